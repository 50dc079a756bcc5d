//! `cargo xtask tidy`: the house rules that a compiler does not know.
//!
//! Arrows between the crates, sizes of files, openings of files, wiring of test files, the one home of unsafe
//! code, the README's test command, and the listings of what libraries show. Each rule names what breaks it.
#![expect(clippy::disallowed_methods, reason = "chores read the source tree itself")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use crate::api;
use crate::run::say;

/// Longer files need a reason here.
const MAX_LINES: usize = 600;
const LONG_FILES: &[(&str, &str)] = &[];

/// The one file with unsafe code.
const UNSAFE_HOME: &str = "crates/proc-sandbox/src/sys.rs";

/// Libraries know nothing of these.
const FOREIGN: &[&str] = &["tokio", "rmcp", "schemars", "tracing", "clap", "anyhow"];
/// Libraries that a model-facing program adds one by one; none knows another.
pub(crate) const LIBRARIES: &[&str] = &[
    "workspace-jail",
    "fuzzy-edit",
    "proc-runner",
    "proc-sandbox",
    "egress-proxy",
    "token-filter",
    "container-sandbox",
];

pub(crate) fn run(root: &Path) -> Result<()> {
    let mut faults = Vec::new();
    arrows(root, &mut faults)?;
    let mut sources = Vec::new();
    for top in ["crates", "bins", "benches", "fuzz"] {
        collect(&root.join(top), &mut sources)?;
    }
    for path in &sources {
        let name = path.strip_prefix(root).unwrap_or(path).display().to_string();
        let text = std::fs::read_to_string(path).with_context(|| name.clone())?;
        source(&name, &text, &mut faults);
    }
    wiring(root, &sources, &mut faults)?;
    test_command(root, &mut faults)?;
    api::check(root, LIBRARIES, &mut faults)?;
    if faults.is_empty() {
        say(&format!("tidy: {} source files, no fault", sources.len()));
        return Ok(());
    }
    bail!("tidy:\n  {}", faults.join("\n  "))
}

fn collect(dir: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    for entry in std::fs::read_dir(dir).with_context(|| dir.display().to_string())? {
        let path = entry?.path();
        if path.is_dir() {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if !matches!(name, "target" | "node_modules" | "corpus" | "cases" | "artifacts") {
                collect(&path, found)?;
            }
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
    found.sort();
    Ok(())
}

fn source(name: &str, text: &str, faults: &mut Vec<String>) {
    let lines = text.lines().count();
    if lines > MAX_LINES && !LONG_FILES.iter().any(|(file, _)| *file == name) {
        faults.push(format!("{name}: {lines} lines; split it, or give a reason in tidy.rs"));
    }
    if !text.starts_with("//!") && !name.ends_with("build.rs") {
        faults.push(format!("{name}: does not open with //! (purpose, invariants, non-goals)"));
    }
    let own = name.ends_with("tidy.rs");
    for (number, line) in text.lines().enumerate() {
        let code = line.split("//").next().unwrap_or_default();
        let is_unsafe = code
            .split("unsafe ")
            .skip(1)
            .any(|rest| ["{", "fn", "impl"].iter().any(|next| rest.starts_with(next)));
        if is_unsafe && !own && !name.starts_with(UNSAFE_HOME.trim_end_matches(".rs")) {
            faults.push(format!("{name}:{}: unsafe code lives in {UNSAFE_HOME}", number + 1));
        }
        let unfinished = ["todo!(", "unimplemented!(", "#[ignore]"];
        if !own && unfinished.iter().any(|word| code.contains(word)) {
            faults.push(format!("{name}:{}: unfinished or switched off", number + 1));
        }
    }
}

/// The arrows between packages, as cargo itself sees them.
fn arrows(root: &Path, faults: &mut Vec<String>) -> Result<()> {
    for library in LIBRARIES {
        let manifest = root.join("crates").join(library).join("Cargo.toml");
        let text = std::fs::read_to_string(&manifest).with_context(|| library.to_string())?;
        let manifest: toml::Table = text.parse().with_context(|| library.to_string())?;
        let names: BTreeSet<&str> = manifest
            .get("dependencies")
            .and_then(toml::Value::as_table)
            .map(|table| table.keys().map(String::as_str).collect())
            .unwrap_or_default();
        for other in LIBRARIES.iter().filter(|other| names.contains(*other)) {
            faults.push(format!("{library} depends on {other}; libraries do not know each other"));
        }
        let asynchronous = *library == "container-sandbox";
        for foreign in FOREIGN.iter().filter(|foreign| names.contains(*foreign)) {
            if !(asynchronous && *foreign == "tokio") {
                faults
                    .push(format!("{library} depends on {foreign}, which only programs may know"));
            }
        }
    }
    Ok(())
}

/// A file in `tests/it` that `main.rs` does not name is never compiled.
fn wiring(root: &Path, sources: &[PathBuf], faults: &mut Vec<String>) -> Result<()> {
    for path in sources {
        let Some(dir) = path.parent().filter(|dir| dir.ends_with("tests/it")) else { continue };
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        if stem == "main" {
            continue;
        }
        let main = std::fs::read_to_string(dir.join("main.rs"))
            .with_context(|| format!("{} has no main.rs", dir.display()))?;
        if !main.lines().any(|line| line.trim() == format!("mod {stem};")) {
            let name = path.strip_prefix(root).unwrap_or(path).display();
            faults.push(format!("{name}: not wired into main.rs, so never run"));
        }
    }
    Ok(())
}

/// The README's test command is the one that CI runs.
fn test_command(root: &Path, faults: &mut Vec<String>) -> Result<()> {
    let readme = std::fs::read_to_string(root.join("README.md")).context("README.md")?;
    let ci = std::fs::read_to_string(root.join(".ci/run")).context(".ci/run")?;
    let command = readme.lines().map(str::trim).find(|line| line.starts_with("cargo test"));
    match command {
        None => faults.push("README.md: names no test command".into()),
        Some(command) if !ci.lines().any(|line| line.trim() == command) => {
            faults.push(format!(".ci/run does not run the README's test command: {command}"));
        }
        Some(_) => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(name: &str, text: &str) -> Vec<String> {
        let mut faults = Vec::new();
        source(name, text, &mut faults);
        faults
    }

    #[test]
    fn each_rule_can_fail() {
        assert_eq!(faults("a.rs", "//! x\n"), Vec::<String>::new());
        assert!(faults("a.rs", "fn main() {}\n")[0].contains("does not open"));
        assert!(faults("a.rs", &format!("//! x\n{}", "\n".repeat(600)))[0].contains("601 lines"));
        assert!(faults("a.rs", "//! x\nunsafe { x() }\n")[0].contains("a.rs:2: unsafe"));
        assert!(faults(UNSAFE_HOME, "//! x\nunsafe { x() }\n").is_empty());
        assert!(faults("a.rs", "//! x\ntodo!()\n")[0].contains("unfinished"));
    }
}
