//! `cargo xtask conformance`: the protocol's own conformance suite against this project's HTTP stack.
//!
//! Twice, for each of two protocol versions: everything that the version requires, against a fixture with the tools
//! that the suite calls by name (`examples/conformance_fixture` of the server); and what needs no fixture, against
//! the binary that is shipped. `.ci/setup` installs the suite and names it in two variables.

mod forwarder;
mod server;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use self::server::{BINARY, FIXTURE, Started};
use crate::run::{output, run as step, say};

/// A Node that the suite runs on.
const NODE: &str = "AGENT_WORKSPACE_TEST_NODE";
/// The suite's entry.
const SUITE: &str = "AGENT_WORKSPACE_TEST_CONFORMANCE";

/// How many scenarios each version requires, so that a suite that runs fewer does not pass.
const REQUIRED: &[(&str, usize)] = &[("2025-11-25", 30), ("2026-07-28", 37)];

/// What the shipped binary passes: everything that calls for no tool, resource or prompt of the suite's own.
const SHIPPED: &[(&str, &[&str])] = &[
    (
        "2025-11-25",
        &[
            "server-initialize",
            "ping",
            "logging-set-level",
            "tools-list",
            "server-sse-multiple-streams",
            "dns-rebinding-protection",
            "server-session-lifecycle",
            "server-sse-polling",
            "resources-list",
            "prompts-list",
            "completion-complete",
        ],
    ),
    (
        "2026-07-28",
        &[
            "tools-list",
            "server-sse-multiple-streams",
            "dns-rebinding-protection",
            "caching",
            "resources-list",
            "prompts-list",
            "completion-complete",
            "sep-2164-resource-not-found",
            "input-required-result-unsupported-methods",
            "http-header-validation",
        ],
    ),
];

/// Whether the suite can be run here.
pub(crate) fn is_installed() -> bool {
    suite().is_ok()
}

fn suite() -> Result<(PathBuf, PathBuf)> {
    let named = |variable: &str| {
        let path = std::env::var_os(variable).map(PathBuf::from);
        let path = path.filter(|path| path.is_file());
        path.with_context(|| format!("{variable} names no file; .ci/setup installs the suite"))
    };
    Ok((named(NODE)?, named(SUITE)?))
}

/// Builds both servers and runs everything; an error names what was missed.
pub(crate) fn run(root: &Path) -> Result<()> {
    let (node, suite) = suite()?;
    // The whole workspace, as the tests build it, so that nothing is built twice.
    step(root, "cargo build --quiet --workspace --locked --bins --examples", &[])?;
    let suite = |arguments: &[&str]| output(&node, &suite, arguments);
    let mut missed = Vec::new();

    let fixture = Started::new(root, FIXTURE)?;
    for (version, required) in REQUIRED {
        let said = suite(&["server", "--url", fixture.url(), "--requirements", version])?;
        let passed = required_and_passed(&said.text);
        say(&format!("fixture, {version}: {passed} of {required} required scenarios passed"));
        if !said.success || passed != *required {
            say(&said.text);
            missed.push(format!("fixture, {version}: {passed} of {required}"));
        }
    }
    drop(fixture);

    let shipped = Started::new(root, BINARY)?;
    for (version, scenarios) in SHIPPED {
        for scenario in *scenarios {
            let url = shipped.url();
            let arguments =
                ["server", "--url", url, "--spec-version", version, "--scenario", scenario];
            let said = suite(&arguments)?;
            if said.success {
                say(&format!("shipped, {version}: {scenario} passed"));
            } else {
                say(&said.text);
                missed.push(format!("shipped, {version}: {scenario}"));
            }
        }
    }
    if missed.is_empty() {
        say("conformance: nothing missed");
        return Ok(());
    }
    bail!("conformance:\n  {}", missed.join("\n  "))
}

/// Scenarios of a summary that count, in which something was checked and nothing failed.
///
/// The summary has a line `✓ name: 2 passed, 0 failed` for each, and at its end `✓ name (reason)` for those that are
/// run for information alone.
fn required_and_passed(said: &str) -> usize {
    let summary = said.split("=== SUMMARY ===").nth(1).unwrap_or_default();
    let lines = || summary.lines().filter_map(|line| line.trim().strip_prefix('✓')).map(str::trim);
    let unscored = |name: &str| {
        lines().any(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(" (")))
    };
    lines()
        .filter_map(|line| line.split_once(": "))
        .filter(|(_, checks)| checks.ends_with(" passed, 0 failed") && !checks.starts_with("0 "))
        .filter(|(name, _)| !unscored(name))
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_counts_and_was_checked_is_counted() {
        let said = "\
✓ noise: 1 passed, 0 failed
=== SUMMARY ===
✓ ping: 2 passed, 0 failed
✗ caching: 7 passed, 1 failed
✓ vacuous: 0 passed, 0 failed
✓ tools: 4 passed, 0 failed
✓ tools-list: 12 passed, 0 failed
✗ tasks: 1 passed, 8 failed

Not scored for 2026-07-28: 2 scenario(s) run, 1 failing.
  ✗ tasks (extension)
  ✓ tools (pending)
";
        assert_eq!(required_and_passed(said), 2);
        assert_eq!(required_and_passed("nothing"), 0);
    }
}
