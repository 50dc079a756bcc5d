//! Runs a program within some seconds, and says how it ended and what it used: `within SECONDS PROGRAM [ARGUMENT…]`.
//!
//! `cargo run -p proc-runner --example within -- 2 /bin/sh -c 'sleep 60 & seq 1 3'`

use std::io::{self, Write as _};
use std::time::Duration;

use proc_runner::{Cancel, Command, Limits, run};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let (seconds, program) = arguments.next().zip(arguments.next()).ok_or("within SECONDS …")?;
    let seconds = seconds.to_str().ok_or("seconds are a number")?.parse()?;
    // A child gets no variable that it is not given.
    let path = std::env::var_os("PATH").unwrap_or_default();
    let command = Command::new(program).args(arguments).env("PATH", path);
    let mut print = |bytes: &[u8]| io::stdout().write_all(bytes);
    let limits = Limits::new(Duration::from_secs(seconds));
    let outcome = run(command, &limits, &Cancel::new()?, &mut print)?;

    let mut said = io::stderr().lock();
    let why = if outcome.timed_out { ", its time was up" } else { "" };
    writeln!(said, "{:?} after {:.1?}{why}", outcome.end, outcome.duration)?;
    writeln!(said, "processor time {:.1?}", outcome.usage.user + outcome.usage.system)?;
    if let Some(count) = outcome.leftovers.filter(|count| *count > 0) {
        writeln!(said, "left running and ended: {count}")?;
    }
    Ok(())
}
