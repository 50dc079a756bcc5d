//! What to run: a program, its words, its surroundings and its bounds.
//!
//! Invariant: a [`Command`] is only data; it is checked when it is run. Non-goals: standard input (commands
//! find it at end of file), terminals.

use std::time::Duration;

use crate::error::Error;
use crate::hardening::WORK;

/// A command for [`Container::exec`](crate::Container::exec).
#[derive(Debug, Clone)]
pub struct Command {
    argv: Vec<String>,
    env: Vec<(String, String)>,
    cwd: String,
    timeout: Duration,
    head: usize,
    tail: usize,
    interleaved: bool,
}

impl Command {
    /// A program and its arguments, with at most `timeout` to run. Started in `/work`; keeps the first 64 KiB
    /// and the last 192 KiB of its output.
    ///
    /// # Security
    ///
    /// The words reach the program as they are; no shell is between, unless the program is one.
    pub fn new<S: Into<String>>(argv: impl IntoIterator<Item = S>, timeout: Duration) -> Self {
        Self {
            argv: argv.into_iter().map(Into::into).collect(),
            env: Vec::new(),
            cwd: WORK.to_owned(),
            timeout,
            head: 64 << 10,
            tail: 192 << 10,
            interleaved: false,
        }
    }

    /// Sets one variable, over what image and container set.
    ///
    /// # Security
    ///
    /// Nothing of this process's own environment is passed; what is set here, the command can read and tell.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Starts in this directory of the container, an absolute path.
    #[must_use]
    pub fn cwd(mut self, directory: impl Into<String>) -> Self {
        self.cwd = directory.into();
        self
    }

    /// Keeps this many bytes from the start and from the end of the output.
    #[must_use]
    pub fn keep(mut self, head: usize, tail: usize) -> Self {
        (self.head, self.tail) = (head, tail);
        self
    }

    /// Keeps standard output and error in the exact order they were written, by letting the image's `sh` join
    /// them before the program starts.
    ///
    /// Without this the engine carries two streams, and their order is lost: Podman 4.3 was seen to deliver ten
    /// alternating lines as five and five. A program that is missing is then reported by the shell (exit code
    /// 127) and not as [`Error::ProgramMissing`].
    #[must_use]
    pub fn interleaved(mut self) -> Self {
        self.interleaved = true;
        self
    }

    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }

    pub(crate) fn bounds(&self) -> (usize, usize) {
        (self.head, self.tail)
    }

    pub(crate) fn directory(&self) -> &str {
        &self.cwd
    }

    /// The words the engine is given.
    pub(crate) fn words(&self) -> Vec<String> {
        if !self.interleaved {
            return self.argv.clone();
        }
        let join = ["sh", "-c", "exec \"$@\" 2>&1", "sh"].map(str::to_owned);
        join.into_iter().chain(self.argv.iter().cloned()).collect()
    }

    /// The variables as the engine takes them.
    pub(crate) fn variables(&self) -> Vec<String> {
        self.env.iter().map(|(name, value)| format!("{name}={value}")).collect()
    }

    /// Refuses what could not arrive at the program as it was meant.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let invalid = |argument, reason| Err(Error::InvalidArgument { argument, reason });
        if self.argv.first().is_none_or(String::is_empty) {
            return invalid("command", "is empty");
        }
        if self.argv.iter().any(|word| word.contains('\0')) {
            return invalid("command", "holds a NUL character");
        }
        // Linux refuses one word of 32 pages or more (MAX_ARG_STRLEN, execve(2)), and the engine says so in words
        // that cannot be told from the program's own.
        if self.argv.iter().any(|word| word.len() >= MAX_WORD) {
            return invalid("command", "has a word of 128 KiB or more");
        }
        for (name, value) in &self.env {
            if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
                return invalid("environment", "has a name or value that no environment can hold");
            }
            if name.len() + value.len() + 1 >= MAX_WORD {
                return invalid("environment", "has a variable of 128 KiB or more");
            }
        }
        if !self.cwd.starts_with('/') || self.cwd.contains('\0') {
            return invalid("working directory", "is not an absolute path");
        }
        if self.timeout.is_zero() {
            return invalid("timeout", "is zero");
        }
        Ok(())
    }
}

const MAX_WORD: usize = 128 << 10;
