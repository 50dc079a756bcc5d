//! What is to be started: a value without behaviour.
//!
//! Invariant: nothing is taken from the calling process. Environment, working directory and standard input
//! are what was named here, or empty, `/` and end of file; or all of it is a starter's business.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
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
    pub(crate) starter: Option<Starter>,
}

/// Who starts the leader, where that is not this crate.
pub(crate) struct Starter(pub(crate) Box<dyn FnOnce(OwnedFd) -> io::Result<u32> + Send>);

impl fmt::Debug for Starter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Starter")
    }
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
            starter: None,
        }
    }

    /// Leaves the start to `start`, which is given the pipe for standard output and standard error and returns the
    /// process id of what it started; `program` is what errors call it.
    ///
    /// For processes that come from elsewhere than from this process's own `execve(2)`, such as from one that was kept
    /// ready. Arguments, environment, working directory and standard input are the starter's to give: a command that has
    /// some here as well is refused.
    ///
    /// # Security
    ///
    /// The process must be a child of the calling process that nobody else waits for, and the leader of a process group
    /// of its own; both are checked, and a child that leads no group is killed. Whatever else [`run`](crate::run)
    /// promises of a child's descriptors is the starter's to keep.
    ///
    /// ```
    /// use std::os::unix::process::CommandExt as _;
    /// use proc_runner::Command;
    ///
    /// let command = Command::started_by("/bin/true", |output| {
    ///     let mut command = std::process::Command::new("/bin/true");
    ///     Ok(command.process_group(0).stdout(output).spawn()?.id())
    /// });
    /// ```
    pub fn started_by(
        program: impl Into<PathBuf>,
        start: impl FnOnce(OwnedFd) -> io::Result<u32> + Send + 'static,
    ) -> Self {
        Self { starter: Some(Starter(Box::new(start))), ..Self::new(program) }
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
