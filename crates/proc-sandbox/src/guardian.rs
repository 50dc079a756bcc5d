//! Who stays behind when a command is started, so that nothing of it outlives its end or its caller's.
//!
//! On every rung the process the caller started remains as the *guardian*: it waits for the command, ends as the
//! command ended, and ends everything when the caller is gone, which it learns from the socket both hold. With a
//! PID namespace there is one more process between them, the namespace's first: it reaps what is orphaned,
//! counts what is left and ends it; and when it ends itself, the kernel ends the namespace. A guardian that is
//! killed takes the first process along through their process group, which the caller ends with its leader.
//!
//! This replaces the parent-death signal, which is tied to a thread of the parent and not to the parent; see
//! `PR_SET_PDEATHSIG` in `prctl(2)`.

use std::convert::Infallible;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::process::{DumpableBehavior, Pid, Signal, WaitOptions, WaitStatus};

use crate::helper::FAILED;
use crate::wire::{self, Report};

/// Signals that are waited for rather than taken.
const SIGNALS: [libc::c_int; 2] = [libc::SIGTERM, libc::SIGCHLD];

/// How a command ended, on its way from the first process of a namespace to the guardian.
const EXITED: u8 = 0;
const KILLED: u8 = 1;

/// Ends the calling process at once.
#[expect(clippy::exit, reason = "a process of the helper's must not go on as the caller's program")]
pub(crate) fn end(code: i32) -> ! {
    std::process::exit(code)
}

/// Splits off the first process of a new PID namespace, which goes on; the caller becomes its guardian and
/// never returns. What is returned is where the first process says how the command ended.
pub(crate) fn split() -> io::Result<OwnedFd> {
    let (told, tell) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    // Blocked in both: the namespace's first process passes on what the guardian need not take.
    drop(crate::sys::signals(&SIGNALS)?);
    match crate::sys::fork()? {
        None => Ok(tell),
        Some(first) => {
            drop(tell);
            let mut ending = [FAILED.to_le_bytes()[0]; 2];
            let length = rustix::io::read(&told, &mut ending).unwrap_or(0);
            // It ends when everything in its namespace has.
            rustix::process::waitpid(Some(first), WaitOptions::empty()).ok();
            match (length, ending) {
                (2, [EXITED, code]) => end(code.into()),
                (2, [KILLED, signal]) => die_of(signal),
                _ => end(FAILED),
            }
        }
    }
}

/// Runs `command` in a child and waits for its end.
///
/// `tell` is given to the first process of a namespace, by [`split`]. Without it the calling process is the
/// guardian itself.
pub(crate) fn watch(
    socket: BorrowedFd<'_>,
    tell: Option<OwnedFd>,
    command: impl FnOnce() -> i32,
) -> io::Result<Infallible> {
    // Under the same user as the command, so closed to it: memory, descriptors, environment.
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    let signals = crate::sys::signals(&SIGNALS)?;
    let first = tell.is_some();
    let Some(child) = crate::sys::fork()? else {
        crate::sys::reset_signals()?;
        if first {
            // In its own group: what it signals by `kill 0` are its own, and no terminal is theirs.
            rustix::process::setsid()?;
        }
        end(command());
    };
    let Some(status) = wait_for(child, socket, &signals, first)? else {
        // The caller is gone. What is in a namespace ends with its first process; else the group is pinned.
        if !first {
            rustix::process::kill_current_process_group(Signal::KILL).ok();
        }
        end(FAILED);
    };
    let ending = match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => [EXITED, code.to_le_bytes()[0]],
        (None, Some(signal)) => [KILLED, signal.to_le_bytes()[0]],
        (None, None) => [EXITED, FAILED.to_le_bytes()[0]],
    };
    let ended = |leftovers| {
        if let Ok(usage) = crate::sys::usage_of_children() {
            // Whoever is not there any more need not know.
            wire::report(socket, &Report::Ended { leftovers, usage }).ok();
        }
    };
    let Some(tell) = tell else {
        ended(None);
        match ending {
            [KILLED, signal] => die_of(signal),
            [_, code] => end(code.into()),
        }
    };
    ended(Some(end_everybody()));
    rustix::io::write(&tell, &ending).ok();
    end(0)
}

/// Waits for the child's end; `None` when the caller is gone.
fn wait_for(
    child: Pid,
    socket: BorrowedFd<'_>,
    signals: &OwnedFd,
    first: bool,
) -> io::Result<Option<WaitStatus>> {
    loop {
        let (happened, gone) = {
            let mut fds = [
                PollFd::new(signals, PollFlags::IN),
                PollFd::from_borrowed_fd(socket, PollFlags::empty()),
            ];
            match rustix::event::poll(&mut fds, None) {
                Err(Errno::INTR) => continue,
                other => other?,
            };
            (!fds[0].revents().is_empty(), !fds[1].revents().is_empty())
        };
        if gone {
            return Ok(None);
        }
        if happened && take_signal(signals)? == libc::SIGTERM.unsigned_abs() && first {
            // The caller's request reaches this process alone, the command being in a group of its own. A
            // stopped process takes it when it goes on.
            for signal in [libc::SIGTERM, libc::SIGCONT] {
                crate::sys::signal_everybody(signal).ok();
            }
        }
        while let Some((pid, status)) = reap(WaitOptions::NOHANG) {
            if pid == child {
                return Ok(Some(status));
            }
        }
    }
}

/// The number of the next signal; 0 when there is none any more.
fn take_signal(signals: &OwnedFd) -> io::Result<u32> {
    // `struct signalfd_siginfo` is 128 bytes long and begins with the number.
    let mut information = [0_u8; 128];
    match rustix::io::read(signals, &mut information) {
        Ok(_) => {
            let number = information.first_chunk().copied().unwrap_or_default();
            Ok(u32::from_ne_bytes(number))
        }
        Err(Errno::AGAIN | Errno::INTR) => Ok(0),
        Err(errno) => Err(errno.into()),
    }
}

fn reap(options: WaitOptions) -> Option<(Pid, WaitStatus)> {
    loop {
        match rustix::process::wait(options) {
            Err(Errno::INTR) => {}
            other => return other.ok().flatten(),
        }
    }
}

/// Ends every other process of the namespace and counts those that were alive.
fn end_everybody() -> usize {
    // Nobody there is no failure.
    crate::sys::signal_everybody(libc::SIGKILL).ok();
    let mut count = 0;
    while let Some((_, status)) = reap(WaitOptions::empty()) {
        // What had ended by itself and was not waited for yet was not running.
        count += usize::from(status.terminating_signal() == Some(libc::SIGKILL));
    }
    count
}

/// Ends as a process that a signal ended.
fn die_of(signal: u8) -> ! {
    crate::sys::die_of(signal.into());
    // Not every signal kills: one that would only stop is no end.
    end(128 + i32::from(signal))
}
