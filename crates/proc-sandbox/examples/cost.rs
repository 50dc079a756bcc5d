//! Measures what confinement costs on this machine: medians of `sh -c true`, with and without.
//!
//! `cargo run --release --example cost`, and with the helper as a program of its own
//! `cargo run --release --example cost -- path/to/proc-sandbox-helper`

use std::fs::File;
use std::io::{self, Write as _};
use std::time::{Duration, Instant};

use proc_runner::{Cancel, Command, Discard, Limits, run};
use proc_sandbox::{Helper, Policy, Sandbox, Target};

const RUNS: usize = 200;

type Failure = Box<dyn std::error::Error>;

#[expect(clippy::disallowed_methods, reason = "the workspace is opened once, by whoever names it")]
fn main() -> Result<(), Failure> {
    proc_sandbox::helper::dispatch();

    let workspace = File::open(".")?;
    let ready = Instant::now();
    let helper = std::env::args_os().nth(1);
    let helper = helper.map_or_else(Helper::default, |path| Helper::Program(path.into()));
    let sandbox = Sandbox::new(Policy::new(workspace.try_clone()?.into()).helper(helper))?;
    let ready = ready.elapsed();
    let probe = Instant::now();
    let report = sandbox.probe();
    let probe = probe.elapsed();

    // Taken by turns, so that what else the machine does falls on both.
    let (mut plain, mut confined) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        plain.push(time(|| {
            finish(Command::new("/bin/sh").args(["-c", "true"]).cwd(workspace.try_clone()?.into()))
        })?);
        confined.push(time(|| {
            let target = Target::new("/bin/sh", workspace.try_clone()?.into());
            let confined = sandbox.confine(target.args(["-c", "true"]))?;
            let (spare, stdin) = (confined.spare, confined.stdin);
            let start = move |output| spare.start(stdin, output);
            finish(Command::started_by(confined.program, start))?;
            confined.status.enforced()?;
            Ok(())
        })?);
    }
    let (plain, confined) = (median(plain), median(confined));
    let ratio = confined.as_secs_f64() / plain.as_secs_f64();
    let mut out = io::stdout();
    writeln!(out, "sandbox made in {ready:?}, probed in {probe:?}: {}", report.rung)?;
    writeln!(
        out,
        "sh -c true, median of {RUNS}: plain {plain:?}, confined {confined:?}, {ratio:.2} times"
    )?;
    Ok(())
}

fn finish(command: Command) -> Result<(), Failure> {
    let limits = Limits::new(Duration::from_secs(10));
    run(command, &limits, &Cancel::new()?, &mut Discard)?;
    Ok(())
}

fn time(body: impl FnOnce() -> Result<(), Failure>) -> Result<Duration, Failure> {
    let start = Instant::now();
    body()?;
    Ok(start.elapsed())
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times.get(times.len() / 2).copied().unwrap_or_default()
}
