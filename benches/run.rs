//! One short command: plain, through the runner, and confined on each rung; beside `bwrap` where it is installed.
//!
//! The ratios that count, in one run: `native_full` to `plain`, `native_full` to `bwrap`, `landlock` to `plain`, and
//! `native_full_from_two_gib` to `native_full`: starting must not cost more in a large server. What the spare saves is
//! the difference to `native_full_by_program`.
#![expect(
    clippy::disallowed_methods,
    reason = "the baseline is the plain spawn that the runner replaces"
)]

use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use divan::Bencher;
use proc_runner::{Cancel, Command, Discard, End, Limits, run};
use proc_sandbox::{Confined, Policy, Rung, Sandbox, Target};

fn main() {
    // This program is the sandbox's helper too.
    proc_sandbox::helper::dispatch();
    if !Path::new(BWRAP).exists() {
        writeln!(io::stderr(), "{BWRAP} is not installed: nothing to compare with")
            .expect("a place to say it");
    }
    divan::main();
}

const BWRAP: &str = "/usr/bin/bwrap";
const SCRIPT: [&str; 2] = ["-c", "true"];

fn plainly(mut command: std::process::Command) {
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).status();
    assert!(status.expect("a program").success());
}

#[divan::bench(sample_count = 200)]
fn plain() {
    let mut command = std::process::Command::new("/bin/sh");
    command.args(SCRIPT);
    plainly(command);
}

fn through_runner(command: Command) {
    let limits = Limits::new(Duration::from_secs(10));
    let cancel = Cancel::new().expect("an event");
    let outcome = run(command, &limits, &cancel, &mut Discard).expect("an outcome");
    assert_eq!(outcome.end, End::Exited(0));
}

#[divan::bench(sample_count = 200)]
fn runner() {
    through_runner(Command::new("/bin/sh").args(SCRIPT));
}

fn workspace() -> File {
    File::open(".").expect("a working directory")
}

fn sandbox(rung: Rung) -> Sandbox {
    let policy = Policy::new(workspace().into()).ceiling(rung);
    let sandbox = Sandbox::new(policy).expect("a sandbox");
    assert_eq!(sandbox.rung(), rung, "this machine has no such rung");
    sandbox
}

fn confine(sandbox: &Sandbox) -> Confined {
    let target = Target::new("/bin/sh", workspace().into()).args(SCRIPT);
    sandbox.confine(target).expect("a confined command")
}

fn confined(sandbox: &Sandbox) {
    let confined = confine(sandbox);
    let (spare, stdin) = (confined.spare, confined.stdin);
    through_runner(Command::started_by(confined.program, move |output| spare.start(stdin, output)));
    confined.status.enforced().expect("a report");
}

#[divan::bench(sample_count = 200)]
fn landlock(bencher: Bencher<'_, '_>) {
    let sandbox = sandbox(Rung::Landlock);
    bencher.bench_local(|| confined(&sandbox));
}

#[divan::bench(sample_count = 200)]
fn native_full(bencher: Bencher<'_, '_>) {
    let sandbox = sandbox(Rung::NativeFull);
    bencher.bench_local(|| confined(&sandbox));
}

/// The helper is a program that is started for each command.
#[divan::bench(sample_count = 200)]
fn native_full_by_program(bencher: Bencher<'_, '_>) {
    let sandbox = sandbox(Rung::NativeFull);
    bencher.bench_local(|| {
        let confined = confine(&sandbox);
        through_runner(Command::new(confined.program).args(confined.args).stdin(confined.stdin));
        confined.status.enforced().expect("a report");
    });
}

#[divan::bench(sample_count = 200)]
fn native_full_from_two_gib(bencher: Bencher<'_, '_>) {
    let sandbox = sandbox(Rung::NativeFull);
    // Touched, page by page: resident.
    let memory = vec![1_u8; 2 << 30];
    bencher.bench_local(|| confined(&sandbox));
    divan::black_box(memory);
}

/// The same boundary by another program, as far as it goes: no Landlock, no seccomp, no limits.
#[divan::bench(sample_count = 200)]
fn bwrap(bencher: Bencher<'_, '_>) {
    if !Path::new(BWRAP).exists() {
        return;
    }
    let here = std::env::current_dir().expect("a working directory");
    bencher.bench_local(|| {
        let mut command = std::process::Command::new(BWRAP);
        command.args(["--unshare-all", "--die-with-parent", "--proc", "/proc", "--dev", "/dev"]);
        command.args(["--tmpfs", "/tmp", "--ro-bind", "/usr", "/usr", "--ro-bind", "/etc", "/etc"]);
        for name in ["bin", "lib", "lib64", "sbin"] {
            command.args(["--symlink", &format!("usr/{name}"), &format!("/{name}")]);
        }
        command.arg("--bind").args([&here, &here]).arg("/bin/sh").args(SCRIPT);
        plainly(command);
    });
}
