//! The same as `confine`, for a runtime whose `main` is not its own: a plugin, a binding, an interpreter.
//!
//! The helper is a program of its own, `proc-sandbox-helper`, which this package builds:
//! `cargo build -p proc-sandbox && cargo run --example with_helper -- target/debug/proc-sandbox-helper 'id; ls -la /'`

use std::fs::File;
use std::io::{self, Write as _};
use std::time::Duration;

use proc_runner::{Cancel, Command, Limits, run};
use proc_sandbox::{Helper, Policy, Sandbox, Target};

#[expect(clippy::disallowed_methods, reason = "the workspace is opened once, by whoever names it")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(helper), Some(script)) = (arguments.next(), arguments.next()) else {
        return Err("usage: with_helper HELPER SCRIPT".into());
    };
    let workspace = File::open(".")?;
    // Opened now and executed by its descriptor: a file put in its place later is not run.
    let policy = Policy::new(workspace.try_clone()?.into()).helper(Helper::Program(helper.into()));
    let sandbox = Sandbox::new(policy)?;

    let target = Target::new("/bin/sh", workspace.into())
        .args(["-c", &script])
        .envs([("PATH", "/usr/bin:/bin")])
        .envs(sandbox.environment());
    let confined = sandbox.confine(target)?;
    let command = Command::new(confined.program).args(confined.args).stdin(confined.stdin);
    let limits = Limits::new(Duration::from_mins(1));
    let mut print = |bytes: &[u8]| io::stdout().write_all(bytes);
    let outcome = run(command, &limits, &Cancel::new()?, &mut print)?;
    writeln!(io::stderr(), "{:?} on the rung {}", outcome.end, confined.status.enforced()?.rung)?;
    Ok(())
}
