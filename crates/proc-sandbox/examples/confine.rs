//! Runs a shell command in the current directory and nowhere else, and says what held it.
//!
//! `cargo run --example confine -- 'ls; cat /etc/shadow; curl example.com'`

use std::fs::File;
use std::io::{self, Write as _};
use std::time::Duration;

use proc_runner::{Cancel, Command, Limits, run};
use proc_sandbox::{Policy, Sandbox, Target, environment};

#[expect(clippy::disallowed_methods, reason = "the workspace is opened once, by whoever names it")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Before anything else: this may be the helper.
    proc_sandbox::helper::dispatch();
    proc_sandbox::harden_self()?;

    let script = std::env::args().nth(1).unwrap_or_else(|| "id; ls -la".to_owned());
    let workspace = File::open(".")?;
    let mut policy = Policy::new(workspace.try_clone()?.into());
    if let Some(home) = std::env::home_dir() {
        policy = policy.home(home);
    }
    let sandbox = Sandbox::new(policy)?;

    let passed = std::env::vars_os().filter(|(name, _)| environment::passes(name));
    let target = Target::new("/bin/sh", workspace.into())
        .args(["-c", &script])
        .envs(passed)
        .envs(sandbox.environment());
    let confined = sandbox.confine(target)?;

    let (spare, stdin) = (confined.spare, confined.stdin);
    let command = Command::started_by(confined.program, move |output| spare.start(stdin, output));
    let limits = Limits::new(Duration::from_mins(1));
    let mut print = |bytes: &[u8]| io::stdout().write_all(bytes);
    let outcome = run(command, &limits, &Cancel::new()?, &mut print)?;

    let enforced = confined.status.enforced()?;
    writeln!(io::stderr(), "{:?} on the rung {}", outcome.end, enforced.rung)?;
    Ok(())
}
