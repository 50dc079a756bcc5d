//! A spare's own life: it waits, and splits off a helper whenever it is asked for one.
//!
//! The price of a helper is the start of a program: loading, linking, and on virtual machines the C library's questions
//! to the processor, each of which leaves the machine. A spare has that behind it. It is a helper that was started and
//! was told nothing: it has read no plan and never does, so what is split off is as good as new, and nothing of one
//! command can be found in the next (their helpers share where things lie in memory, which no command gets to see: it
//! is executed, and a helper is closed to it). The new process is a child of the caller, which waits for it and ends it like one
//! it started itself; see [`fork_sibling`](crate::sys::fork_sibling).
//!
//! A spare holds its socket and nothing else, and ends when its caller is gone. Helpers give the socket up before they
//! read their plan.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::process::{DumpableBehavior, Pid};

use crate::helper::FAILED;
use crate::{sys, wire};

/// Waits to be asked, until nobody can. Returns the exit code, of the spare or of a helper that became one.
pub(crate) fn stand_by() -> i32 {
    let Ok(socket) = take_over() else { return FAILED };
    loop {
        let [stdin, output] = match wire::asked(socket.as_fd()) {
            Ok(Some(pair)) => pair,
            Ok(None) => return 0,
            Err(_) => return FAILED,
        };
        match sys::fork_sibling() {
            Ok(None) => {
                let made = become_helper(&stdin, &output);
                let failed = made.is_err();
                // Before it reads its plan: as long as no answer was given, nothing was done, and the caller may turn to
                // another spare.
                if wire::answer(socket.as_fd(), made).is_err() || failed {
                    return FAILED;
                }
                drop((socket, stdin, output));
                return crate::helper::run();
            }
            // It answers for itself.
            Ok(Some(_)) => {}
            Err(error) => {
                // Whoever is gone by now is noticed at the next turn.
                wire::answer(socket.as_fd(), Err(error)).ok();
            }
        }
    }
}

/// Moves the socket away from standard input; closes what the caller left open, and itself to others.
fn take_over() -> io::Result<OwnedFd> {
    sys::close_inherited()?;
    // Its arguments are those of every helper it splits off, and its program's name is a number.
    rustix::thread::set_name(c"sandbox-spare")?;
    let socket = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
    let nothing = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    rustix::stdio::dup2_stdin(&nothing)?;
    // Under the same user as commands, on the rung without namespaces.
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    Ok(socket)
}

/// What `posix_spawn(3)` does for a helper that is started the usual way.
fn become_helper(stdin: &OwnedFd, output: &OwnedFd) -> io::Result<Pid> {
    rustix::process::setpgid(None, None)?;
    rustix::thread::set_name(c"sandbox-helper")?;
    rustix::stdio::dup2_stdin(stdin)?;
    rustix::stdio::dup2_stdout(output)?;
    rustix::stdio::dup2_stderr(output)?;
    // It maps users through entries in /proc that are closed to it otherwise.
    rustix::process::set_dumpable_behavior(DumpableBehavior::Dumpable)?;
    Ok(rustix::process::getpid())
}
