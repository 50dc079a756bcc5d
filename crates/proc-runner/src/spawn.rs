//! Starts the leader: the one place that creates a process, or asks somebody else for one.
//!
//! Invariants: a leader that came from elsewhere is looked at before it is believed to be one. The child is started by `posix_spawn(3)` (no `pre_exec`, no user or group change, a program
//! named by a path), so the price does not grow with the caller's memory as that of `fork(2)` does; and every
//! descriptor made here is close-on-exec from its birth, so a child started by another thread at the same
//! moment cannot inherit it.

use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::Stdio;

use rustix::io::Errno;
use rustix::pipe::PipeFlags;
use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions};

use crate::command::Starter;
use crate::{Command, Error};

/// A started leader, not reaped, with the pipe that all of its output goes to.
#[derive(Debug)]
pub(crate) struct Child {
    pub(crate) pid: Pid,
    pub(crate) pidfd: OwnedFd,
    pub(crate) output: OwnedFd,
}

pub(crate) fn spawn(mut command: Command) -> Result<Child, Error> {
    if let Some(reason) = unusable(&command) {
        return Err(Error::InvalidCommand { program: command.program, reason });
    }
    let program = command.program.clone();
    let refused = |source: io::Error| Error::Spawn { program: program.clone(), source };
    let (output, inlet) =
        rustix::pipe::pipe_with(PipeFlags::CLOEXEC).map_err(|errno| refused(errno.into()))?;
    // Our end alone: the two ends of a pipe have flags of their own, the child's stays blocking.
    rustix::fs::fcntl_setfl(&output, rustix::fs::OFlags::NONBLOCK)
        .map_err(|errno| refused(errno.into()))?;
    let pid = match command.starter.take() {
        Some(starter) => ask(starter, inlet).map_err(refused)?,
        None => Pid::from_child(&start(command, inlet).map_err(refused)?),
    };
    // Nobody else reaps this child, so its id is still its own and the descriptor cannot be a stranger's.
    match rustix::process::pidfd_open(pid, PidfdFlags::empty()) {
        Ok(pidfd) => Ok(Child { pid, pidfd, output }),
        Err(errno) => {
            abandon(pid);
            Err(refused(errno.into()))
        }
    }
}

/// Why a command cannot be handed to the system at all.
fn unusable(command: &Command) -> Option<&'static str> {
    let path = command.program.as_os_str().as_bytes();
    let text = command.args.iter().chain(&command.arg0);
    let pairs = command.env.iter();
    let given = text.clone().next().is_some() || pairs.clone().next().is_some();
    if command.starter.is_some() {
        let given = given || command.cwd.is_some() || command.stdin.is_some();
        given.then_some("what somebody else starts can be given nothing here")
    } else if !path.contains(&b'/') {
        Some("the program must be named by a path")
    } else if path.contains(&0)
        || text.chain(pairs.clone().map(|(_, value)| value)).any(|text| has_nul(text))
    {
        Some("a NUL byte cannot be passed to a program")
    } else if pairs.clone().any(|(name, _)| name.is_empty() || has_nul(name) || has_equals(name)) {
        Some("the name of an environment variable is empty or has a NUL byte or '=' in it")
    } else {
        None
    }
}

fn has_nul(text: &std::ffi::OsStr) -> bool {
    text.as_bytes().contains(&0)
}

fn has_equals(text: &std::ffi::OsStr) -> bool {
    text.as_bytes().contains(&b'=')
}

/// Consumes the command, so that the caller's copies of the child's descriptors are closed on return.
#[expect(clippy::disallowed_methods, reason = "this is where every child is started")]
fn start(command: Command, inlet: OwnedFd) -> io::Result<std::process::Child> {
    let mut std_command = std::process::Command::new(&command.program);
    if let Some(name) = &command.arg0 {
        std_command.arg0(name);
    }
    std_command
        .args(&command.args)
        .env_clear()
        .envs(command.env.iter().map(|(name, value)| (name, value)))
        .process_group(0)
        .stdin(command.stdin.map_or_else(Stdio::null, Stdio::from))
        .stdout(Stdio::from(inlet.try_clone()?))
        .stderr(Stdio::from(inlet));
    match &command.cwd {
        // The child changes directory before it executes, when it still has a copy of this descriptor; the
        // link in /proc leads to the open directory itself, wherever its names lead by now.
        Some(directory) => {
            std_command.current_dir(format!("/proc/self/fd/{}", directory.as_raw_fd()))
        }
        None => std_command.current_dir("/"),
    };
    std_command.spawn()
}

/// Has somebody else start the leader; what is no child of ours, or leads no group, is none.
fn ask(Starter(start): Starter, inlet: OwnedFd) -> io::Result<Pid> {
    let invalid = |reason| io::Error::new(io::ErrorKind::InvalidData, reason);
    let number = i32::try_from(start(inlet)?).ok().filter(|number| *number > 1);
    let pid = number.and_then(Pid::from_raw).ok_or_else(|| invalid("no process id"))?;
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    rustix::process::waitid(WaitId::Pid(pid), look)?;
    if rustix::process::getpgid(Some(pid))? != pid {
        abandon(pid);
        return Err(invalid("a process without a group of its own"));
    }
    Ok(pid)
}

/// Ends a child that cannot be watched.
fn abandon(pid: Pid) {
    // Each fails only if the group or the child is gone already.
    rustix::process::kill_process_group(pid, Signal::KILL).ok();
    rustix::process::kill_process(pid, Signal::KILL).ok();
    while rustix::process::waitid(WaitId::Pid(pid), WaitIdOptions::EXITED)
        .is_err_and(|errno| errno == Errno::INTR)
    {}
}
