//! `cargo xtask package`: whether each published package would be whole and no larger than it has to be.
//!
//! Looks at each list of files and manifest, then rehearses `cargo publish` with all of them at once, so that those that
//! need each other are found: each is packed, and compiled from what was packed. Asks the registry's index what is there, so it
//! needs a network. Non-goal: a repository's address, which whoever publishes knows.
#![expect(clippy::disallowed_methods, reason = "chores read the source tree itself")]

use std::path::Path;

use anyhow::{Context as _, Result, bail};

use crate::run::{printed, run as step, say};

/// Files that every package holds.
const NEEDED: &[&str] =
    &["Cargo.toml", "Cargo.lock", "README.md", "LICENSE-MIT", "LICENSE-APACHE", "src/lib.rs"];
/// What none holds: it needs packages that are not published.
const UNWANTED: &[&str] = &["tests/", "target/", "fuzz/"];
/// The most bytes of a package's files together.
const MOST: u64 = 1024 * 1024;

/// A list in a manifest that registries limit.
const LISTS: &[(&str, usize)] = &[("keywords", 5), ("categories", 5)];
const TEXTS: &[&str] = &["description", "readme"];
const INHERITED: &[&str] = &["version", "edition", "rust-version", "license", "include"];

pub(crate) fn run(root: &Path, libraries: &[&'static str]) -> Result<()> {
    let libraries = libraries.iter().map(|name| (*name, format!("crates/{name}")));
    let server = ("agent-workspace-mcp", "bins/agent-workspace-mcp".to_owned());
    let packages: Vec<_> = libraries.chain([server]).collect();
    let mut faults = Vec::new();
    for (name, folder) in &packages {
        let folder = root.join(folder);
        let text = std::fs::read_to_string(folder.join("Cargo.toml")).context(*name)?;
        metadata(name, &text, &mut faults)?;
        let line = format!("cargo package --quiet --locked --allow-dirty --list --package {name}");
        let listed = printed(root, &line)?;
        files(name, &listed, &mut faults);
        let sizes = listed.lines().map(|file| std::fs::metadata(folder.join(file)));
        // The files that cargo itself makes are not there, and the server's README lies at the top.
        let size: u64 = sizes.flatten().map(|found| found.len()).sum();
        if size > MOST {
            faults.push(format!("{name}: {size} bytes; leave out what users do not need"));
        }
    }
    if !faults.is_empty() {
        bail!("package:\n  {}", faults.join("\n  "));
    }
    let names: Vec<_> = packages.iter().map(|(name, _)| format!("--package {name}")).collect();
    let names = names.join(" ");
    step(root, &format!("cargo publish --dry-run --quiet --locked --allow-dirty {names}"), &[])?;
    say(&format!("package: {} packages, each whole, each compiled as packed", packages.len()));
    Ok(())
}

fn metadata(name: &str, manifest: &str, faults: &mut Vec<String>) -> Result<()> {
    let manifest: toml::Table = manifest.parse().with_context(|| name.to_owned())?;
    let package = manifest.get("package").and_then(toml::Value::as_table).context("[package]")?;
    for (key, most) in LISTS {
        let list = package.get(*key).and_then(toml::Value::as_array).map_or(0, Vec::len);
        if list == 0 || list > *most {
            faults.push(format!("{name}: {list} {key}; a registry takes 1 to {most}"));
        }
    }
    for key in TEXTS {
        if package.get(*key).and_then(toml::Value::as_str).is_none_or(str::is_empty) {
            faults.push(format!("{name}: no {key}"));
        }
    }
    for key in INHERITED {
        let inherited = package.get(*key).and_then(|value| value.get("workspace"));
        if inherited.and_then(toml::Value::as_bool) != Some(true) {
            faults.push(format!("{name}: {key} is not the workspace's"));
        }
    }
    Ok(())
}

fn files(name: &str, listed: &str, faults: &mut Vec<String>) {
    let there = |file: &str| listed.lines().any(|line| line == file);
    for missing in NEEDED.iter().filter(|file| !there(file)) {
        faults.push(format!("{name}: {missing} is not in the package"));
    }
    for line in listed.lines() {
        if UNWANTED.iter().any(|folder| line.starts_with(folder)) {
            faults.push(format!("{name}: {line} has no use in the package"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rule_can_fail() {
        let mut faults = Vec::new();
        metadata("a", "[package]\nname = \"a\"\nkeywords = []\nlicense = \"X\"\n", &mut faults)
            .unwrap();
        files("a", "Cargo.toml\nsrc/lib.rs\ntests/it/main.rs\n", &mut faults);
        let faults = faults.join("\n");
        for fault in [
            "a: 0 keywords",
            "a: 0 categories",
            "a: no description",
            "a: no readme",
            "a: license is not the workspace's",
            "a: LICENSE-MIT is not in the package",
            "a: tests/it/main.rs has no use",
        ] {
            assert!(faults.contains(fault), "{fault} in {faults}");
        }
        assert!(!faults.contains("src/lib.rs"), "{faults}");
    }
}
