//! The one error type: each variant is something different the caller can do.
//!
//! Invariant: no message carries what the host would rather keep. Paths of the host, the value of
//! `DOCKER_HOST` and the engine's own words stay out of `Display`; the engine's words are kept as the
//! source, for the operator's log. Non-goal: outcomes. A command that fails, is cut short or writes too
//! much is an [`ExecOutcome`](crate::ExecOutcome), not an error.

use std::fmt;
use std::time::Duration;

/// The engine's own account of a failure. May name paths of the host: for the operator's log alone.
pub type EngineFault = Box<dyn std::error::Error + Send + Sync>;

/// Why something with a container could not be done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Nobody answers where a container engine usually listens: install or start one.
    #[error("no container engine answers ({})", Listed(tried))]
    EngineUnavailable {
        /// Every place that was looked at, and why it would not do.
        tried: Vec<Candidate>,
    },
    /// An argument that no engine is asked about: correct the call.
    #[error("{argument} {reason}")]
    InvalidArgument {
        /// Which argument.
        argument: &'static str,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The engine does not hold this image: pull or build it, or name another.
    #[error("the engine has no image {image}")]
    ImageMissing {
        /// The reference as it was given.
        image: String,
    },
    /// The engine could not fetch the image. Its reason is the source: a registry that does not answer, a name that it
    /// does not know, no right to it.
    #[error("the engine could not pull {image}")]
    PullFailed {
        /// The reference as it was given.
        image: String,
        /// The engine's account.
        #[source]
        source: EngineFault,
    },
    /// The engine could not make or start the container.
    #[error("the engine could not start the container")]
    StartFailed {
        /// The engine's account.
        #[source]
        source: EngineFault,
    },
    /// The engine made the container without some of the protection it was asked for, so it was removed
    /// again: a kernel without a cgroup controller, most often.
    #[error("the engine did not apply {}", .missing.join(", "))]
    NotHardened {
        /// The protections that are not in force.
        missing: Vec<&'static str>,
    },
    /// The image has a directory `/work` of its own, and the engine's runtime gave its mode to ours (runc 1.1
    /// does): use an image without it, or with one that all may write to.
    #[error("commands could not write to /work, a directory of the image: use an image without it")]
    WorkNotWritable,
    /// A shared directory, or a read-only place in it, is not what the engine mounted: a path with a link in it, most
    /// often, or an engine on another machine.
    #[error("the engine did not share the directory as asked ({place})")]
    ShareDiffers {
        /// Which place, relative to the directory; `.` is the directory itself.
        place: String,
    },
    /// The image has no such program, or it may not be run.
    #[error("the container cannot run {program}")]
    ProgramMissing {
        /// The first word of the command as given.
        program: String,
    },
    /// The command's working directory is not in the container.
    #[error("the container has no directory {directory}")]
    DirectoryMissing {
        /// The directory as given.
        directory: String,
    },
    /// The engine could not run the command. Whether it began is unknown.
    #[error("the engine could not run the command")]
    ExecFailed {
        /// The engine's account.
        #[source]
        source: EngineFault,
    },
    /// The container has ended or was removed: start another.
    #[error("the container has ended")]
    Gone,
    /// The engine could not remove a container; it is still there.
    #[error("the engine could not remove the container")]
    RemoveFailed {
        /// The engine's account.
        #[source]
        source: EngineFault,
    },
    /// The engine took the request and did not answer in time. What was asked may still happen.
    #[error("the engine did not answer within {} s ({operation})", .after.as_secs())]
    Timeout {
        /// What it was asked to do.
        operation: &'static str,
        /// How long was waited.
        after: Duration,
    },
}

/// One place where an engine might have listened.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Candidate {
    /// The place by its public name: `DOCKER_HOST`, or a path with variables unexpanded.
    pub place: &'static str,
    /// Why it would not do.
    pub why_not: WhyNot,
}

/// Why a place was passed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum WhyNot {
    /// The variable that names the place is not set.
    Unset,
    /// Not the path of a unix socket; no other transport is spoken.
    NotUnix,
    /// Nothing is there.
    Absent,
    /// This process may not connect.
    Forbidden,
    /// Something is there, and nobody listens.
    Refused,
    /// It was connected to and did not answer in time.
    Silent,
    /// It answered, but not as a container engine does.
    NotAnEngine,
}

impl fmt::Display for WhyNot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unset => "not set",
            Self::NotUnix => "not a unix socket",
            Self::Absent => "not there",
            Self::Forbidden => "permission denied",
            Self::Refused => "nobody listens",
            Self::Silent => "no answer in time",
            Self::NotAnEngine => "not a container engine",
        })
    }
}

struct Listed<'a>(&'a [Candidate]);

impl fmt::Display for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, Candidate { place, why_not }) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { "; " };
            write!(f, "{separator}{place}: {why_not}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_says_what_and_never_repeats_its_source() {
        let secret = || EngineFault::from("mounting /home/someone/x failed");
        for error in [
            Error::StartFailed { source: secret() },
            Error::ExecFailed { source: secret() },
            Error::RemoveFailed { source: secret() },
        ] {
            assert!(!error.to_string().contains("/home"), "{error}");
            assert!(
                std::error::Error::source(&error).is_some_and(|s| s.to_string().contains("/home"))
            );
        }
        let error = Error::EngineUnavailable {
            tried: vec![
                Candidate { place: "DOCKER_HOST", why_not: WhyNot::NotUnix },
                Candidate { place: "/var/run/docker.sock", why_not: WhyNot::Absent },
            ],
        };
        assert_eq!(
            error.to_string(),
            "no container engine answers (DOCKER_HOST: not a unix socket; /var/run/docker.sock: not there)"
        );
        let error = Error::NotHardened { missing: vec!["memory limit", "pids limit"] };
        assert_eq!(error.to_string(), "the engine did not apply memory limit, pids limit");
    }
}
