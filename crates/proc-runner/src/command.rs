//! What is to be started: a value without behaviour.
//!
//! Invariant: nothing is taken from the calling process. Environment, working directory and standard input
//! are what was named here, or empty, `/` and end of file.

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// One program with its arguments, environment, working directory and standard input.
///
/// A command is run once: it owns the descriptors it was given, and they are closed as soon as the child has
/// its own copies.
#[derive(Debug)]
pub struct Command {
    pub(crate) program: PathBuf,
    pub(crate) arg0: Option<OsString>,
    pub(crate) args: Vec<OsString>,
    pub(crate) env: Vec<(OsString, OsString)>,
    pub(crate) cwd: Option<OwnedFd>,
    pub(crate) stdin: Option<OwnedFd>,
}

impl Command {
    /// Names the program by a path with at least one `/`; there is no search along `PATH`.
    ///
    /// # Security
    ///
    /// The path is opened by the child's `execve(2)`, so whoever can replace the file chooses the program.
    /// `/proc/self/fd/N` names an open descriptor of the caller and cannot be replaced.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            arg0: None,
            args: Vec::new(),
            env: Vec::new(),
            cwd: None,
            stdin: None,
        }
    }

    /// Sets what the program finds as its own name, when that is not the path.
    #[must_use]
    pub fn arg0(mut self, name: impl Into<OsString>) -> Self {
        self.arg0 = Some(name.into());
        self
    }

    /// Appends arguments.
    ///
    /// # Security
    ///
    /// They reach the program as they are, without a shell. The kernel refuses one over 128 KiB and a sum over
    /// a quarter of the stack limit, which is [`Error::Spawn`](crate::Error::Spawn).
    #[must_use]
    pub fn args<A: Into<OsString>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Sets one variable of the environment, which is otherwise empty. The program finds them sorted by name.
    ///
    /// # Security
    ///
    /// The dynamic loader and most interpreters run code named by variables (`LD_PRELOAD`, `BASH_ENV`,
    /// `NODE_OPTIONS`): take names from a list, not from an attacker.
    #[must_use]
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        let name = name.as_ref();
        self.env.retain(|(known, _)| known != name);
        self.env.push((name.to_owned(), value.as_ref().to_owned()));
        self
    }

    /// Sets several variables, later ones winning.
    #[must_use]
    pub fn envs<N: AsRef<OsStr>, V: AsRef<OsStr>>(
        self,
        pairs: impl IntoIterator<Item = (N, V)>,
    ) -> Self {
        pairs.into_iter().fold(self, |command, (name, value)| command.env(name, value))
    }

    /// Starts the program in the directory behind `directory` (an `O_PATH` descriptor will do), else in `/`.
    ///
    /// # Security
    ///
    /// A descriptor, since a path could be swapped for a link between the check and the start.
    #[must_use]
    pub fn cwd(mut self, directory: OwnedFd) -> Self {
        self.cwd = Some(directory);
        self
    }

    /// Gives the program `input` as standard input, else it reads end of file.
    #[must_use]
    pub fn stdin(mut self, input: OwnedFd) -> Self {
        self.stdin = Some(input);
        self
    }

    /// The program's path as it was given.
    pub fn program(&self) -> &Path {
        &self.program
    }
}
