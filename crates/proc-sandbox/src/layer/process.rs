//! What a fresh process would have, whatever the caller's was like: terminal, signals, mask, descriptors.

use std::io;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

/// Gives up the controlling terminal where there is one.
///
/// A leader of a process group cannot start a session, so the helper leaves the terminal by name instead.
pub(crate) fn leave_terminal() -> io::Result<()> {
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    match rustix::fs::open("/dev/tty", flags, Mode::empty()) {
        Ok(terminal) => {
            use std::os::fd::AsFd as _;
            crate::sys::leave_terminal(terminal.as_fd())
        }
        // No terminal, or no /dev in this container.
        Err(Errno::NXIO | Errno::NOENT | Errno::ACCESS | Errno::IO) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

/// Default actions, nothing blocked.
pub(crate) fn reset_signals() -> io::Result<()> {
    crate::sys::reset_signals()
}

/// Files are born with the usual rights.
pub(crate) fn usual_mask() {
    rustix::process::umask(Mode::WGRP | Mode::WOTH);
}

/// Nothing but the three standard descriptors survives the last `execve(2)`.
pub(crate) fn close_descriptors() -> io::Result<()> {
    crate::sys::close_on_exec()
}

/// When memory runs out on the machine, commands go before the server that runs them.
pub(crate) fn first_to_go() -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    match rustix::fs::open("/proc/self/oom_score_adj", flags, Mode::empty()) {
        Ok(file) => {
            // Raising the number is everybody's right; where a container forbids it nothing is lost but a
            // preference.
            match rustix::io::write(&file, b"500") {
                Ok(_) | Err(Errno::ACCESS | Errno::PERM) => Ok(()),
                Err(errno) => Err(errno.into()),
            }
        }
        Err(Errno::ACCESS | Errno::ROFS | Errno::NOENT) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}
