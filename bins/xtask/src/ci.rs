//! `cargo xtask ci`: everything a change has to pass beside the tests themselves.

use std::path::Path;

use anyhow::Result;

use crate::run::{run as step, say, works};
use crate::{conformance, examples, fuzz_smoke, msrv, package, tidy};

/// Feature sets that must build and keep their lints beside the default one.
const FEATURES: &[&str] = &[
    "-p fuzzy-edit --no-default-features",
    "-p fuzzy-edit --no-default-features --features python",
    "-p fuzzy-edit --no-default-features --features json,toml,yaml,serde",
    "-p workspace-jail --features serde",
    "-p proc-runner --features serde",
    "-p token-filter --features serde",
    "-p token-filter --no-default-features --features serde",
    "-p token-filter --features o200k --all-targets",
    "-p agent-workspace-mcp --no-default-features",
    "-p agent-workspace-mcp --no-default-features --features http",
];

/// Runs the chores in the order in which they fail fastest.
pub(crate) fn run(root: &Path) -> Result<()> {
    tidy::run(root)?;
    step(root, "cargo fmt --all --check", &[])?;
    step(root, "cargo clippy --workspace --all-targets --locked -- -D warnings", &[])?;
    for features in FEATURES {
        step(root, &format!("cargo clippy {features} --locked -- -D warnings"), &[])?;
    }
    step(root, "cargo doc --workspace --no-deps --locked", &[("RUSTDOCFLAGS", "-D warnings")])?;
    examples::run(root)?;
    package::run(root, tidy::LIBRARIES)?;
    msrv::run(root)?;
    if works(root, "cargo deny --version") {
        // Advisories need a database from the network; the rules that need none hold everywhere.
        step(root, "cargo deny --locked --offline check bans licenses sources", &[])?;
    } else if std::env::var_os("AGENT_WORKSPACE_TESTS_NO_SKIP").is_some() {
        anyhow::bail!("cargo-deny is missing: cargo install --locked cargo-deny");
    } else {
        say("SKIPPED cargo deny: not installed (cargo install --locked cargo-deny)");
    }
    if conformance::is_installed() {
        conformance::run(root)?;
    } else if std::env::var_os("AGENT_WORKSPACE_TESTS_NO_SKIP").is_some() {
        anyhow::bail!("the conformance suite is missing: .ci/setup installs it");
    } else {
        say("SKIPPED conformance: not installed (.ci/setup installs it)");
    }
    fuzz_smoke::run(root, fuzz_smoke::SECONDS)?;
    say("\nxtask ci: all passed");
    Ok(())
}
