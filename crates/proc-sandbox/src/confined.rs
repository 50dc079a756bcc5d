//! A command that was made into a confined one, ready for whoever starts processes.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::wire::{self, Handles, Report};
use crate::{Enforced, Error, Rung, Spare};

/// A command as it would be run without a sandbox.
#[derive(Debug)]
pub struct Target {
    pub(crate) program: PathBuf,
    pub(crate) args: Vec<OsString>,
    pub(crate) env: Vec<(OsString, OsString)>,
    pub(crate) cwd: OwnedFd,
    pub(crate) stdin: Option<OwnedFd>,
    pub(crate) protected: Vec<PathBuf>,
}

impl Target {
    /// Names the program by an absolute path and its working directory by an open descriptor.
    ///
    /// # Security
    ///
    /// The path is opened by the confined process, so it can be only what the policy lets commands execute. The
    /// directory is entered before the restriction; it must lie where commands may read.
    pub fn new(program: impl Into<PathBuf>, cwd: OwnedFd) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            env: Vec::new(),
            cwd,
            stdin: None,
            protected: Vec::new(),
        }
    }

    /// Appends arguments.
    #[must_use]
    pub fn args<A: Into<OsString>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Appends variables to an environment that is otherwise empty.
    ///
    /// # Security
    ///
    /// Confinement hides nothing that is passed here: see [`environment`](crate::environment) for names that
    /// carry no secrets.
    #[must_use]
    pub fn envs<N: AsRef<OsStr>, V: AsRef<OsStr>>(
        mut self,
        pairs: impl IntoIterator<Item = (N, V)>,
    ) -> Self {
        let owned = |text: &OsStr| text.to_owned();
        self.env.extend(
            pairs.into_iter().map(|(name, value)| (owned(name.as_ref()), owned(value.as_ref()))),
        );
        self
    }

    /// Gives the command `input` as standard input, else it reads end of file.
    #[must_use]
    pub fn stdin(mut self, input: OwnedFd) -> Self {
        self.stdin = Some(input);
        self
    }

    /// Makes places below the workspace read-only for this command, named relative to the workspace.
    ///
    /// On the rungs with namespaces. A name that is not there, is a link or leads out is passed over, and so is every name
    /// on the rung `landlock`: look for changes afterwards.
    ///
    /// # Security
    ///
    /// The names may be an attacker's, such as what was found in the workspace: they are resolved below it without
    /// following links, and a mount takes rights and gives none.
    #[must_use]
    pub fn protect<P: Into<PathBuf>>(mut self, paths: impl IntoIterator<Item = P>) -> Self {
        self.protected.extend(paths.into_iter().map(Into::into));
        self
    }

    /// The variables as `NAME=value`, or why the target cannot be passed on.
    pub(crate) fn checked_env(&self) -> Result<Vec<OsString>, Error> {
        let invalid = |reason| Error::InvalidTarget { program: self.program.clone(), reason };
        let texts = self.args.iter().chain(self.env.iter().map(|(_, value)| value));
        let has = |text: &OsStr, byte: u8| text.as_bytes().contains(&byte);
        if !self.program.is_absolute() {
            return Err(invalid("the program must be named by an absolute path"));
        }
        if has(self.program.as_os_str(), 0) || texts.into_iter().any(|text| has(text, 0)) {
            return Err(invalid("a NUL byte cannot be passed to a program"));
        }
        if self.env.iter().any(|(name, _)| name.is_empty() || has(name, 0) || has(name, b'=')) {
            return Err(invalid(
                "the name of an environment variable is empty or has a NUL byte or '=' in it",
            ));
        }
        let join = |(name, value): &(OsString, OsString)| {
            let mut joined = name.clone();
            joined.push("=");
            joined.push(value);
            joined
        };
        Ok(self.env.iter().map(join).collect())
    }
}

/// A program to start in the place of the target: the helper, which confines itself and becomes the target.
///
/// Start it with exactly these parts, as the leader of a process group of its own, in any directory; or have the
/// [`Spare`] start it, which takes less time. What it started is dead when its process group is.
#[derive(Debug)]
#[non_exhaustive]
pub struct Confined {
    /// The helper, by a descriptor that the [`Sandbox`](crate::Sandbox) holds: valid while that lives.
    pub program: PathBuf,
    /// The helper's arguments.
    pub args: Vec<OsString>,
    /// The helper's standard input, through which it learns what to do. The caller must not keep a copy.
    pub stdin: OwnedFd,
    /// What starts the helper in the place of program and arguments, if the caller likes.
    pub spare: Spare,
    /// From which the caller learns what was enforced. The command ends when this is dropped.
    pub status: Status,
}

/// The caller's end of the helper's reports, and what keeps the command alive: it is ended when nobody holds this
/// any more, as when the caller was killed.
#[derive(Debug)]
pub struct Status {
    pub(crate) socket: OwnedFd,
    pub(crate) program: PathBuf,
    pub(crate) rung: Rung,
    pub(crate) memory_limit: Option<u64>,
}

impl Status {
    /// Reads what was enforced. To be called when the process has ended; it does not block.
    ///
    /// # Errors
    ///
    /// - [`Error::Helper`]: a step failed, and the command was not run.
    /// - [`Error::Execute`]: the command was confined and could not be executed.
    /// - [`Error::Silent`]: the process ended before it was confined; after a time-out or a cancellation of a
    ///   few milliseconds that is nothing unusual.
    /// - [`Error::System`]: the report could not be read.
    pub fn enforced(&self) -> Result<Enforced, Error> {
        let (enforced, _) = self.reports()?;
        Ok(enforced)
    }

    pub(crate) fn reports(&self) -> Result<(Enforced, Vec<crate::attempt::Attempt>), Error> {
        let mut done: Option<(Enforced, Vec<crate::attempt::Attempt>)> = None;
        loop {
            let report = wire::next_report(self.socket.as_fd());
            match report.map_err(Error::system("read the helper's report"))? {
                Some((Report::Done { steps, attempts }, _)) => {
                    let (leftovers, usage) = (None, None);
                    let (rung, memory_limit) = (self.rung, self.memory_limit);
                    let enforced = Enforced { rung, steps, leftovers, usage, memory_limit };
                    done = Some((enforced, attempts));
                }
                Some((Report::Ended { leftovers, usage }, _)) => {
                    if let Some((enforced, _)) = &mut done {
                        enforced.leftovers = leftovers;
                        enforced.usage = Some(usage);
                    }
                }
                Some((Report::Failed { step, errno }, _)) => {
                    return Err(Error::Helper { step, source: from_number(errno) });
                }
                Some((Report::NotExecuted { errno }, _)) => {
                    let program = Path::to_owned(&self.program);
                    return Err(Error::Execute { program, source: from_number(errno) });
                }
                Some((Report::Prepared { .. }, _)) => return Err(Error::Silent),
                None => return done.ok_or(Error::Silent),
            }
        }
    }

    /// What came of preparing a place.
    pub(crate) fn prepared(&self) -> Result<(Handles, Vec<String>), Error> {
        let report = wire::next_report(self.socket.as_fd());
        match report.map_err(Error::system("read the helper's report"))? {
            Some((Report::Prepared { notes, .. }, handles)) => Ok((handles, notes)),
            Some((Report::Failed { step, errno }, _)) => {
                Err(Error::Helper { step, source: from_number(errno) })
            }
            _ => Err(Error::Silent),
        }
    }
}

fn from_number(errno: i32) -> std::io::Error {
    std::io::Error::from_raw_os_error(errno)
}
