//! One short command through the runner, beside the standard library's own spawn and wait.
#![expect(
    clippy::disallowed_methods,
    reason = "the baseline is the plain spawn that the runner replaces"
)]

use std::time::Duration;

use proc_runner::{Cancel, Command, Discard, Limits, run};

fn main() {
    divan::main();
}

#[divan::bench(sample_count = 200)]
fn baseline_spawn() {
    let status = std::process::Command::new("/bin/sh").args(["-c", "true"]).status();
    assert!(status.expect("a shell").success());
}

#[divan::bench(sample_count = 200)]
fn through_the_runner() {
    let command = Command::new("/bin/sh").args(["-c", "true"]);
    let limits = Limits::new(Duration::from_secs(10));
    run(command, &limits, &Cancel::new().expect("an event"), &mut Discard).expect("an outcome");
}
