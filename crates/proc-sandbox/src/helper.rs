//! The helper: a process that takes the steps of a plan, runs the command and stays as its guardian.
//!
//! It is the same program as the caller, started again: that needs no second file on the machine, and no code
//! between `fork(2)` and `execve(2)` in a process with threads. It fails closed: a step that fails is reported,
//! and the command is not run.

use std::ffi::OsStr;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt as _;

use rustix::fs::{Mode, OFlags};

use crate::attempt::Try;
use crate::guardian;
use crate::layer::Step;
use crate::view::View;
use crate::wire::{self, Plan, Report, Slot};

/// The argument that makes a program the helper.
pub(crate) const MARKER: &str = "__sandbox-init";

/// What follows it where the helper is to wait for more; see [`standby`](crate::standby).
pub(crate) const SPARE: &str = "spare";

/// Exit code of a helper that could not become the command.
pub const FAILED: i32 = 125;

/// Becomes the helper if this process was started as one, and never returns then.
///
/// Call it first in `main`, before threads, arguments or descriptors are touched.
///
/// # Security
///
/// Whoever can start the program with this argument can only have it restrict itself and execute what they
/// name, which they could have executed without it.
#[expect(
    clippy::exit,
    reason = "a helper that cannot become the command must not become the server"
)]
pub fn dispatch() {
    let mut args = std::env::args_os().skip(1);
    if args.next().as_deref() != Some(OsStr::new(MARKER)) {
        return;
    }
    std::process::exit(match args.next() {
        Some(spare) if spare == SPARE => crate::standby::stand_by(),
        _ => run(),
    });
}

/// Takes the steps and stays as the guardian. Returns only if the command was not executed.
pub(crate) fn run() -> i32 {
    // Nothing can be said to anybody before the socket is known to be one.
    let Ok((socket, plan, mut handles)) = take_over() else { return FAILED };
    let report = |report: &Report| {
        // Without a listener there is nobody to tell.
        wire::report(socket.as_fd(), report).ok();
    };
    let failed = |step: &str, error: &std::io::Error| {
        let errno = error.raw_os_error().unwrap_or(libc::EINVAL);
        report(&Report::Failed { step: step.to_owned(), errno });
        FAILED
    };
    if let Some(view) = &plan.call.view {
        return match prepare(socket.as_fd(), view, &handles) {
            Ok(()) => 0,
            Err(failure) => failed(failure.step, &failure.source),
        };
    }

    let tried: Vec<_> = plan.call.tries.iter().cloned().map(Try::before).collect();
    let mut steps = Vec::with_capacity(plan.steps.len());
    let mut tell = None;
    for step in &plan.steps {
        let taken = match step {
            Step::Split => guardian::split().map(|end| tell = Some(end)),
            other => other.apply(&plan.call, &mut handles),
        };
        if let Err(error) = taken {
            return failed(step.name(), &error);
        }
        steps.push(step.name().to_owned());
    }
    let attempts = tried.into_iter().map(crate::attempt::Attempt::again).collect();
    report(&Report::Done { steps, attempts });
    let command = || {
        let error = execute(&plan);
        report(&Report::NotExecuted { errno: error.raw_os_error().unwrap_or(libc::EINVAL) });
        FAILED
    };
    match guardian::watch(socket.as_fd(), tell, command) {
        Ok(never) => match never {},
        Err(error) => failed("start the command", &error),
    }
}

/// Makes a place and hands it to the caller.
fn prepare(
    socket: BorrowedFd<'_>,
    view: &View,
    handles: &wire::Handles,
) -> Result<(), crate::place::Failure> {
    let ready = crate::place::prepare(view, handles)?;
    let (slots, held): (Vec<_>, Vec<_>) = ready.handles.into_iter().unzip();
    let held: Vec<_> = held.iter().map(OwnedFd::as_fd).collect();
    let report = Report::Prepared { slots, notes: ready.notes };
    wire::report_with(socket, &report, &held)
        .map_err(|source| crate::place::Failure { step: "hand the place over", source })
}

/// Moves the socket away from standard input, and puts there what the command is to read.
fn take_over() -> std::io::Result<(OwnedFd, Plan, wire::Handles)> {
    let stdin: BorrowedFd<'_> = rustix::stdio::stdin();
    let socket = rustix::io::fcntl_dupfd_cloexec(stdin, 3)?;
    let (plan, mut handles) = wire::receive(socket.as_fd())?;
    let input = match handles.take(Slot::Stdin) {
        Some(input) => input,
        None => rustix::fs::open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?,
    };
    rustix::stdio::dup2_stdin(&input)?;
    Ok((socket, plan, handles))
}

/// Replaces this process by the command; returns why it could not.
#[expect(
    clippy::disallowed_methods,
    reason = "it starts no child: this process becomes the command"
)]
fn execute(plan: &Plan) -> std::io::Error {
    let [program, args @ ..] = &plan.argv[..] else {
        return std::io::Error::from_raw_os_error(libc::EINVAL);
    };
    let pairs = plan.env.iter().filter_map(|pair| {
        let at = pair.as_bytes().iter().position(|byte| *byte == b'=')?;
        let (name, value) = pair.as_bytes().split_at(at);
        Some((OsStr::from_bytes(name), OsStr::from_bytes(value.get(1..)?)))
    });
    std::process::Command::new(program).args(args).env_clear().envs(pairs).exec()
}
