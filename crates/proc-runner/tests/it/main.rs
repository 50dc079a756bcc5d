//! Behaviour of `proc-runner`, on real processes.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test stops at what it did not expect, and looks at the machine itself"
)]

mod command;
mod end;
mod output;
mod resources;
mod start;

use std::time::Duration;

use proc_runner::{Cancel, Command, Discard, Limits, Outcome, run};

/// A shell command with a time-out no test should reach.
fn shell(script: &str) -> Command {
    Command::new("/bin/sh").args(["-c", script])
}

fn limits() -> Limits {
    Limits::new(Duration::from_secs(30))
}

/// Runs a script to its end under `limits`.
fn outcome(script: &str, limits: &Limits) -> Outcome {
    run(shell(script), limits, &Cancel::new().unwrap(), &mut Discard).unwrap()
}

/// The captured output as text, nothing of it left out.
fn text(outcome: &Outcome) -> String {
    assert_eq!(outcome.captured.omitted_bytes(), 0);
    let bytes = [outcome.captured.head.clone(), outcome.captured.tail.clone()].concat();
    String::from_utf8(bytes).unwrap()
}

/// Whether a process with `mark` in its command line is alive.
fn alive(mark: &str) -> bool {
    std::fs::read_dir("/proc").unwrap().flatten().any(|entry| {
        std::fs::read(entry.path().join("cmdline"))
            .is_ok_and(|line| String::from_utf8_lossy(&line).contains(mark))
    })
}

/// A mark no other process has.
fn mark(name: &str) -> String {
    format!("mk-{name}-{}", std::process::id())
}
