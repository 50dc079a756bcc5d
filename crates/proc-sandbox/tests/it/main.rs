//! Behaviour of `proc-sandbox`, on real processes under the real kernel.
//!
//! Every attack is run twice: without the sandbox, where it must succeed, and in it, where it must not. So no
//! test can pass because its attack was broken.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test stops at what it did not expect, and looks at the machine itself"
)]

mod cases;
mod files;
mod forced;
mod helper;
mod host;
mod identity;
mod layers;
mod limits;
mod native;
mod network;
mod old_landlock;
mod processes;
mod report;
mod spare;
mod tools;

use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use proc_runner::{Cancel, Command, Discard, End, Limits, Outcome, run};
use proc_sandbox::{Confined, Helper, Policy, Rung, Sandbox, Status, Target};
use testkit::{Fixture, Missing, require};

/// A workspace and its sandboxes, one for each rung.
struct Place {
    fixture: Fixture,
    /// On the rung that needs no namespaces.
    sandbox: Sandbox,
    /// On the rungs with namespaces, the higher one last.
    native: Vec<Sandbox>,
}

impl Place {
    /// The strictest policy over a workspace made from `files`.
    fn new(files: &str) -> Self {
        Self::with(files, |policy| policy)
    }

    fn with(files: &str, change: impl Fn(Policy) -> Policy) -> Self {
        Self::over(Fixture::new(files), change)
    }

    /// Without the rungs with namespaces, for a machine that is made to lack something.
    fn plain(change: impl Fn(Policy) -> Policy) -> Self {
        let fixture = Fixture::new("");
        let sandbox = Sandbox::new(change(policy(&fixture.root()))).unwrap();
        Self { fixture, sandbox, native: Vec::new() }
    }

    fn over(fixture: Fixture, change: impl Fn(Policy) -> Policy) -> Self {
        let root = fixture.root();
        let sandbox = Sandbox::new(change(policy(&root))).unwrap();
        let native = [Rung::NativeNoproc, Rung::NativeFull]
            .into_iter()
            .filter_map(|rung| {
                let sandbox = Sandbox::new(change(policy(&root).ceiling(rung))).unwrap();
                let probe = match sandbox.rung() {
                    reached if reached == rung => Ok(sandbox),
                    reached => Err(Missing(format!("the rung {rung}; there is {reached}"))),
                };
                require("a sandbox with namespaces", probe)
            })
            .collect();
        Self { fixture, sandbox, native }
    }

    /// Its sandbox on the highest rung.
    fn highest(&self) -> &Sandbox {
        self.native.last().unwrap_or(&self.sandbox)
    }

    fn all(&self) -> impl Iterator<Item = &Sandbox> {
        std::iter::once(&self.sandbox).chain(&self.native)
    }

    /// What a shell command prints in the sandbox without namespaces, and how it ends.
    fn confined(&self, script: &str) -> Ran {
        self.confined_by(&self.sandbox, script)
    }

    fn confined_by(&self, sandbox: &Sandbox, script: &str) -> Ran {
        self.confined_within(sandbox, script, Duration::from_secs(30))
    }

    fn confined_within(&self, sandbox: &Sandbox, script: &str, timeout: Duration) -> Ran {
        self.confined_and_started(sandbox, script, timeout, by_spare)
    }

    /// The same, the helper being a program that is started for this command.
    fn confined_by_program(&self, sandbox: &Sandbox, script: &str) -> Ran {
        self.confined_and_started(sandbox, script, Duration::from_secs(30), by_program)
    }

    fn confined_and_started(
        &self,
        sandbox: &Sandbox,
        script: &str,
        timeout: Duration,
        by: fn(Confined) -> (Command, Status),
    ) -> Ran {
        let target = Target::new("/bin/bash", directory(&self.fixture.root()))
            .args(["-c", script])
            .envs(environment())
            .envs(sandbox.environment());
        let (command, status) = by(sandbox.confine(target).unwrap());
        let mut ran = start(command, timeout);
        // It says what was enforced, or the test is about something else than it thinks.
        let enforced = status.enforced().unwrap();
        assert_eq!(enforced.rung, sandbox.rung());
        ran.outcome.leftovers = enforced.leftovers.or(ran.outcome.leftovers);
        ran.usage = enforced.usage;
        ran
    }

    /// The same command without the sandbox.
    fn open(&self, script: &str) -> Ran {
        self.open_within(script, Duration::from_secs(30))
    }

    fn open_within(&self, script: &str, timeout: Duration) -> Ran {
        let command = Command::new("/bin/bash")
            .args(["-c", script])
            .envs(environment())
            .cwd(directory(&self.fixture.root()));
        start(command, timeout)
    }
}

fn by_spare(confined: Confined) -> (Command, Status) {
    let Confined { program, stdin, spare, status, .. } = confined;
    (Command::started_by(program, move |output| spare.start(stdin, output)), status)
}

fn by_program(confined: Confined) -> (Command, Status) {
    let Confined { program, args, stdin, status, .. } = confined;
    (Command::new(program).args(args).stdin(stdin), status)
}

/// Variables every test command gets.
fn environment() -> [(&'static str, String); 1] {
    [("PATH", std::env::var("PATH").unwrap())]
}

fn policy(workspace: &Path) -> Policy {
    let helper = Helper::Program(env!("CARGO_BIN_EXE_proc-sandbox-helper").into());
    Policy::new(directory(workspace)).helper(helper).ceiling(Rung::Landlock)
}

fn directory(path: &Path) -> OwnedFd {
    File::open(path).unwrap().into()
}

/// What a command printed, and how it ended.
#[derive(Debug)]
struct Ran {
    text: String,
    outcome: Outcome,
    /// What the sandbox told besides.
    usage: Option<proc_sandbox::Usage>,
}

fn start(command: Command, timeout: Duration) -> Ran {
    let limits = Limits::new(timeout).grace(Duration::from_millis(200));
    let outcome = run(command, &limits, &Cancel::new().unwrap(), &mut Discard).unwrap();
    let text = [outcome.captured.head.clone(), outcome.captured.tail.clone()].concat();
    Ran { text: String::from_utf8_lossy(&text).into_owned(), outcome, usage: None }
}

impl Ran {
    /// The output of a command that must have succeeded.
    fn succeeded(self) -> String {
        assert_eq!(self.outcome.end, End::Exited(0), "{}", self.text);
        self.text
    }

    /// The output of a command that must have failed by itself.
    fn failed(self) -> String {
        let by_itself = matches!(self.outcome.end, End::Exited(code) if code != 0);
        assert!(by_itself, "{:?}: {}", self.outcome.end, self.text);
        self.text
    }
}

/// Checks that `attack` prints `proof` outside of the sandbox, and on no rung in it.
fn check_attack(place: &Place, attack: &str, proof: &str) {
    let open = place.open(attack);
    assert!(open.text.contains(proof), "the attack does not work at all: {open:?}");
    for sandbox in place.all() {
        let confined = place.confined_by(sandbox, attack);
        assert!(!confined.text.contains(proof), "{}: {confined:?}", sandbox.rung());
    }
}
