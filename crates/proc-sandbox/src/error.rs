//! Why a command could not be confined.

use std::io;
use std::path::PathBuf;

use crate::Rung;

/// What went wrong, by what the caller can do about it. Nothing unconfined was run in any of these cases.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A place the policy names cannot be opened.
    #[error("cannot open {path}, which the policy names")]
    Place {
        /// The place as it was named.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The machine cannot give what the policy requires.
    #[error("the sandbox reaches {rung} here, and {floor} is required: {reason}")]
    BelowFloor {
        /// What there is.
        rung: Rung,
        /// What the policy requires.
        floor: Rung,
        /// What is missing, and the remedy.
        reason: String,
    },
    /// A command cannot be passed to the helper as it stands.
    #[error("cannot confine {program}: {reason}")]
    InvalidTarget {
        /// The program as it was given.
        program: PathBuf,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The helper failed before it became the command.
    #[error("the sandbox could not {step}")]
    Helper {
        /// The step that failed.
        step: String,
        /// The system's reason.
        source: io::Error,
    },
    /// The helper ended, or was ended, without a word. It may not be a helper at all: its `main` must begin with
    /// [`helper::dispatch`](crate::helper::dispatch).
    #[error("the sandbox helper ended before it reported what it enforced")]
    Silent,
    /// Everything was enforced, but the program could not be executed.
    #[error("cannot execute {program}")]
    Execute {
        /// The program as it was given.
        program: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A system call failed on the caller's side.
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
    pub(crate) fn system<E: Into<io::Error>>(action: &'static str) -> impl FnOnce(E) -> Self {
        move |source| Self::System { action, source: source.into() }
    }
}
