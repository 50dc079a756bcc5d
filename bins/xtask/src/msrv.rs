//! `cargo xtask msrv`: the oldest compiler that the manifest promises builds everything.
//!
//! Where the compiler at hand is that one, every other chore has shown it; where it is newer, the promised one is
//! asked through rustup. A compiler that is older is refused by cargo itself.
#![expect(clippy::disallowed_methods, reason = "chores read the source tree itself")]

use std::path::Path;

use anyhow::{Context as _, Result, bail};

use crate::run::{printed, run as step, say, works};

pub(crate) fn run(root: &Path) -> Result<()> {
    let manifest = std::fs::read_to_string(root.join("Cargo.toml")).context("Cargo.toml")?;
    let promised = promised(&manifest)?;
    let here = printed(root, "rustc --version")?;
    if is_of(&here, &promised) {
        say(&format!("msrv: {promised} is the compiler in use"));
        return Ok(());
    }
    let cargo = format!("rustup run {promised} cargo");
    if works(root, &format!("{cargo} --version")) {
        let target = root.join("target/msrv").display().to_string();
        let line = format!("{cargo} check --quiet --workspace --all-targets --locked");
        step(root, &line, &[("CARGO_TARGET_DIR", &target)])?;
        say(&format!("msrv: {promised} builds everything"));
    } else if std::env::var_os("AGENT_WORKSPACE_TESTS_NO_SKIP").is_some() {
        bail!("the promised compiler is missing: rustup toolchain install {promised}");
    } else {
        say(&format!("SKIPPED msrv: rustup toolchain install {promised}"));
    }
    Ok(())
}

fn promised(manifest: &str) -> Result<String> {
    let manifest: toml::Table = manifest.parse().context("Cargo.toml")?;
    let package = manifest.get("workspace").and_then(|it| it.get("package"));
    let promised = package.and_then(|it| it.get("rust-version")).and_then(toml::Value::as_str);
    Ok(promised.context("the workspace has no rust-version")?.to_owned())
}

/// Whether `rustc --version` said `said` of the version `promised`, whatever its patch.
fn is_of(said: &str, promised: &str) -> bool {
    let version = said.split(' ').nth(1).unwrap_or_default();
    version.strip_prefix(promised).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_whole() {
        assert!(is_of("rustc 1.95.0 (59807616e 2026-04-14)", "1.95"));
        assert!(!is_of("rustc 1.950.0 (x)", "1.95"));
        assert!(!is_of("rustc 1.96.0 (x)", "1.95"));
        assert_eq!(promised("[workspace.package]\nrust-version = \"1.95\"").unwrap(), "1.95");
        assert!(promised("[workspace]").is_err());
    }
}
