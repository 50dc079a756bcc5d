//! `cargo xtask fuzz-smoke [SECONDS]`: builds every fuzz target with coverage and runs each for a while.
//!
//! The flags are those of libFuzzer's coverage, which the stable compiler takes too; no nightly compiler
//! and no `cargo fuzz` is needed for a smoke run. It starts from the same number each time, so that a change is judged by
//! what it changed; long runs with sanitizers, from any number, are `cargo fuzz`'s.
#![expect(clippy::disallowed_methods, reason = "chores read the source tree itself")]

use std::path::Path;

use anyhow::{Context as _, Result, ensure};

use crate::run::run as step;

const COVERAGE: &str = "--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1";

/// How long each target runs where nothing else is said.
pub(crate) const SECONDS: u32 = 60;

/// Runs each target for `seconds`.
pub(crate) fn run(root: &Path, seconds: u32) -> Result<()> {
    let fuzz = root.join("fuzz");
    // A target triple keeps the coverage flags away from build scripts.
    let host = "x86_64-unknown-linux-gnu";
    step(
        &fuzz,
        &format!("cargo build --release --locked --bins --target {host}"),
        &[("RUSTFLAGS", COVERAGE)],
    )?;
    let targets = std::fs::read_dir(fuzz.join("fuzz_targets")).context("fuzz/fuzz_targets")?;
    let mut names: Vec<String> = Vec::new();
    for target in targets {
        let path = target?.path();
        let name = path.file_stem().and_then(|stem| stem.to_str()).context("a target's name")?;
        names.push(name.to_owned());
    }
    names.sort();
    ensure!(!names.is_empty(), "no fuzz target");
    let built = std::env::var("CARGO_TARGET_DIR").unwrap_or_else(|_| "target".into());
    for name in names {
        let seeds = fuzz.join("corpus").join(&name);
        let seeds = if seeds.is_dir() { seeds.display().to_string() } else { String::new() };
        let found = tempfile::tempdir()?;
        // New inputs go to the first folder, so that a smoke run changes nothing in the tree.
        let line = format!(
            "{built}/{host}/release/{name} {} {seeds} -seed=1 -max_total_time={seconds} -timeout=10 \
             -rss_limit_mb=2048 -artifact_prefix={}/ -print_final_stats=0 -print_funcs=0 -verbosity=0",
            found.path().display(),
            found.path().display(),
        );
        step(&fuzz, &line, &[])?;
    }
    Ok(())
}
