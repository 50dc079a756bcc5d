//! What kept a command from being run, or its output from being delivered.

use std::io;
use std::path::PathBuf;

use crate::Outcome;

/// Why [`run`](crate::run) has no plain outcome to return.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The command cannot be started as it stands; nothing was started.
    #[error("cannot run {program}: {reason}")]
    InvalidCommand {
        /// The program as it was given.
        program: PathBuf,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The system refused to start the program: it is missing, not executable, the arguments are too long,
    /// the working directory is gone, or there are too many processes.
    #[error("cannot start {program}")]
    Spawn {
        /// The program as it was given.
        program: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The cancellation came before the start; nothing was started.
    #[error("cancelled before {program} was started")]
    Cancelled {
        /// The program as it was given.
        program: PathBuf,
    },
    /// The sink gave up; the tree was ended at once.
    #[error("output of {program} could not be delivered")]
    Sink {
        /// The program as it was given.
        program: PathBuf,
        /// How the tree ended and what was captured, bytes the sink did not take included.
        outcome: Box<Outcome>,
        /// The sink's error.
        source: io::Error,
    },
    /// `SIGKILL` did not end the leader within ten seconds: it hangs in the kernel, usually on a dead file
    /// system. It ends, and is reaped in the background, as soon as the kernel lets it.
    #[error("{program} (process {pid}) cannot be ended: it hangs in the kernel")]
    Stuck {
        /// The program as it was given.
        program: PathBuf,
        /// Its process id.
        pid: i32,
    },
    /// A system call around the child failed; the tree was ended.
    #[error("cannot {action}")]
    System {
        /// What was tried.
        action: &'static str,
        /// The system's reason.
        source: io::Error,
    },
}

impl Error {
    /// Pairs a failed call with what it was for, for `map_err`.
    pub(crate) fn system(action: &'static str) -> impl FnOnce(rustix::io::Errno) -> Self {
        move |errno| Self::System { action, source: errno.into() }
    }
}
