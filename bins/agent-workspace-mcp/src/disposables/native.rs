//! A native place: a private directory, locked while its server lives, and what runs commands in it.

use std::fs::Permissions;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use anyhow::Context as _;
use cap_std::fs::Dir;
use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use tempfile::TempDir;
use workspace_jail::{Jail, Options, Protect};

use super::{PREFIX, Place};
use crate::config::{Config, Network};
use crate::reply::{ErrorKind, Failure};
use crate::seen::{Changes, Seen};
use crate::shell::{self, Shell};

/// Directories that are made before giving up: a sweep takes one by chance.
const TRIES: usize = 8;

/// A private directory and what runs commands in it.
#[derive(Debug)]
pub struct Native {
    /// Runs its commands.
    pub shell: Shell,
    /// Shell words that come before every line: what leads programs to installed packages.
    pub preamble: String,
    /// Last, so that nothing runs in it any more when it is removed.
    scratch: Scratch,
}

/// A private directory, and the jail around it.
#[derive(Debug)]
pub struct Scratch {
    /// Its files.
    pub jail: Jail,
    /// Says that its server lives.
    _lock: OwnedFd,
    dir: TempDir,
}

impl Native {
    /// Makes one with the operator's settings and this network.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Internal`] when there is no place for its files, [`ErrorKind::SandboxUnavailable`] below the
    /// operator's floor.
    pub fn new(config: &Config, near: &Jail, network: Network) -> Result<Self, Failure> {
        let made = Self::make(config, near, network).map_err(|error| none(&error))?;
        match made.shell.refused() {
            None => Ok(made),
            Some(failure) => Err(failure),
        }
    }

    fn make(config: &Config, near: &Jail, network: Network) -> anyhow::Result<Self> {
        let scratch = Scratch::new(near.dir())?;
        let shell = scratch.shell(config, network)?;
        Ok(Self { shell, preamble: String::new(), scratch })
    }

    /// Its files.
    pub fn jail(&self) -> &Jail {
        &self.scratch.jail
    }

    /// Looks at its files, as `place` remembers them.
    pub fn look(&self, place: &Place) -> Changes {
        // A directory that cannot be opened has no files to tell of.
        let seen = self.scratch.dir().map(|dir| Seen::below(&dir)).unwrap_or_default();
        place.look(seen)
    }

    /// A second shell in the same directory, with another network.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Internal`] when there is none.
    pub fn shell_with(&self, config: &Config, network: Network) -> Result<Shell, Failure> {
        self.scratch.shell(config, network).map_err(|error| none(&error))
    }
}

impl Scratch {
    /// Makes an empty one outside the workspace `near`, closed to other users.
    ///
    /// # Errors
    ///
    /// When there is no place for it.
    pub fn new(near: BorrowedFd<'_>) -> anyhow::Result<Self> {
        let parent = shell::scratch_parent(near);
        let mut made = Self::make(&parent);
        for _ in 1..TRIES {
            if made.is_ok() {
                break;
            }
            // Another server's sweep can have found it before its lock was held.
            made = Self::make(&parent);
        }
        made
    }

    fn make(parent: &Path) -> anyhow::Result<Self> {
        let dir = tempfile::Builder::new()
            .prefix(PREFIX)
            .permissions(Permissions::from_mode(0o700))
            .tempdir_in(parent)
            .context("no temporary directory")?;
        let options = Options::new().protect(Protect::Off);
        let jail = Jail::open(dir.path(), options).context("the new directory")?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let lock = rustix::fs::openat(jail.dir(), ".", flags, Mode::empty())
            .context("the new directory")?;
        flock(&lock, FlockOperation::NonBlockingLockShared).context("the new directory's lock")?;
        // From here on no sweep takes it; one that had begun has removed it from under its name.
        let stat = rustix::fs::fstat(&lock).context("the new directory")?;
        anyhow::ensure!(stat.st_nlink > 0, "the new directory was removed");
        Ok(Self { jail, _lock: lock, dir })
    }

    /// The directory itself, for the server's own files.
    ///
    /// # Errors
    ///
    /// When there is no descriptor.
    pub fn dir(&self) -> std::io::Result<Dir> {
        Dir::reopen_dir(&self.jail.dir())
    }

    /// Where it lies.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    fn shell(&self, config: &Config, network: Network) -> anyhow::Result<Shell> {
        let mut config = config.clone();
        self.dir.path().clone_into(&mut config.workspace);
        config.network = network;
        Shell::new(&config, &self.jail)
    }
}

fn none(error: &anyhow::Error) -> Failure {
    tracing::error!(error = format!("{error:#}"), "no disposable sandbox");
    Failure::new(ErrorKind::Internal, "a disposable sandbox could not be made here")
}
