//! The jail: a root held by descriptor, and what the caller allows below it.
//!
//! [`Jail::open`] is the one use of ambient authority in this crate: the only place where a host path is
//! opened. From then on the root is a descriptor, and moving the directory or putting a link in its place
//! redirects nothing.

use std::ffi::OsString;
use std::fmt;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use cap_std::ambient_authority;
use cap_std::fs::Dir;

use crate::error::{Fault, Result, Step, settle};
use crate::line_index::LineIndexes;
use crate::path::components;
use crate::protect::Protect;
use crate::resolve::{End, LastLink, resolve};
use crate::sweep;

/// What happens to a file that has more than one name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum Hardlinks {
    /// It is read, and a write gives the written name a file of its own; the other names keep theirs.
    /// Package managers fill workspaces with such files.
    #[default]
    Allow,
    /// Reads and writes are [`Error::HardlinkRefused`](crate::Error::HardlinkRefused).
    Deny,
}

/// How a jail is opened; everything has a default.
#[derive(Debug, Clone)]
pub struct Options {
    aliases: Vec<PathBuf>,
    hardlinks: Hardlinks,
    protect: Protect,
    read_only: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            aliases: vec![PathBuf::from("/workspace")],
            hardlinks: Hardlinks::default(),
            protect: Protect::default(),
            read_only: false,
        }
    }
}

impl Options {
    /// The defaults: the alias `/workspace`, hard links allowed, protected names on, writes allowed.
    pub fn new() -> Self {
        Self::default()
    }

    /// Replaces the absolute paths that stand for the root beside its own path.
    ///
    /// # Security
    ///
    /// An alias is compared with a caller's path component by component and then cut off; it is never
    /// opened.
    #[must_use]
    pub fn aliases<I>(mut self, aliases: I) -> Self
    where
        I: IntoIterator,
        I::Item: Into<PathBuf>,
    {
        self.aliases = aliases.into_iter().map(Into::into).collect();
        self
    }

    /// Sets what happens to files with more than one name.
    #[must_use]
    pub fn hardlinks(mut self, hardlinks: Hardlinks) -> Self {
        self.hardlinks = hardlinks;
        self
    }

    /// Sets which names may not be written.
    #[must_use]
    pub fn protect(mut self, protect: Protect) -> Self {
        self.protect = protect;
        self
    }

    /// Refuses every write with [`Error::ReadOnly`](crate::Error::ReadOnly).
    #[must_use]
    pub fn read_only(mut self, read_only: bool) -> Self {
        self.read_only = read_only;
        self
    }
}

/// One directory and nothing else: every verb takes a path below it and cannot leave it.
///
/// Paths are relative to the root, or absolute with the root's path (or an alias) as their leading
/// components. A jail is `Send` and `Sync`; its verbs may run in parallel.
pub struct Jail {
    root: Dir,
    names: Vec<Vec<OsString>>,
    options: Options,
    /// Held while a writer of this jail compares and publishes, so that two of them never both win.
    publishing: Mutex<()>,
    line_indexes: LineIndexes,
}

impl Jail {
    /// Opens the directory `root` as the jail's root, and removes what writers that were killed left
    /// behind below it.
    ///
    /// # Errors
    ///
    /// `NotFound`, `NotADirectory`, `PermissionDenied`, `Io`: the root cannot be opened. The path in the
    /// error is `root` as it was given.
    ///
    /// # Security
    ///
    /// `root` is the operator's: it is opened with this process's whole authority, links followed. Never
    /// pass a caller's text.
    pub fn open(root: &Path, options: Options) -> Result<Self> {
        let shown = root.to_string_lossy();
        let opened = Dir::open_ambient_dir(root, ambient_authority());
        let opened = opened.map_err(|error| Fault::from(error).at(&shown))?;
        let mut names: Vec<_> = options.aliases.iter().map(|alias| components(alias)).collect();
        for name in own_names(root).map_err(|error| Fault::from(error).at(&shown))? {
            let parts = components(&name);
            if !names.contains(&parts) {
                names.push(parts);
            }
        }
        let jail = Self {
            root: opened,
            names,
            options,
            publishing: Mutex::new(()),
            line_indexes: LineIndexes::default(),
        };
        if !jail.options.read_only {
            sweep::dead_temps(&jail);
        }
        Ok(jail)
    }

    /// The root, for a sandbox to mount or a runner to start in.
    ///
    /// # Security
    ///
    /// The descriptor carries the right to the whole directory, and `openat(dir, "..")` leaves it: lend
    /// it to code that starts from it, never to a confined child.
    pub fn dir(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }

    /// Opens a directory below the root, as the working directory of a command. The descriptor is an
    /// `O_PATH` one: good for `fchdir` and `openat`, not for reading entries.
    ///
    /// # Errors
    ///
    /// `InvalidPath`, `NameTooLong`, `OutsideWorkspace`, `SymlinkLoop`, `NotFound`, `NotADirectory` for
    /// anything that is no directory, `PermissionDenied`, `Busy`, `Io`.
    ///
    /// # Security
    ///
    /// The same warning as for [`Jail::dir`].
    pub fn open_dir(&self, path: &str) -> Result<OwnedFd> {
        settle(path, || {
            let resolved = resolve(self, path, LastLink::Follow)?;
            match resolved.end {
                End::Directory => Ok(resolved.trail.dir().try_clone()?.into_std_file().into()),
                End::Entry(..) => Err(Fault::NotADirectory),
                End::Missing { .. } => Err(Fault::NotFound),
            }
        })
    }

    /// The path of a directory or file below the root after links, relative, for showing and for
    /// building a path in another view of the same root. `""` is the root.
    ///
    /// # Errors
    ///
    /// As [`Jail::open_dir`], without `NotADirectory` for a file.
    ///
    /// # Security
    ///
    /// True when it was made. Do not open it: pass it to a verb of this crate, which resolves it again.
    pub fn canonical(&self, path: &str) -> Result<PathBuf> {
        settle(path, || {
            let resolved = resolve(self, path, LastLink::Follow)?;
            let mut canonical: PathBuf = resolved.trail.names().collect();
            match resolved.end {
                End::Directory => {}
                End::Entry(name, _) => canonical.push(name.as_os_str()),
                End::Missing { .. } => return Err(Fault::NotFound),
            }
            Ok(canonical)
        })
    }

    /// A step that found the tree changed, in a root that was removed: nothing will be found there any more.
    pub(crate) fn unless_removed<T>(&self, step: Step<T>) -> Step<T> {
        let is_removed = || rustix::fs::fstat(&self.root).is_ok_and(|stat| stat.st_nlink == 0);
        match step {
            Err(Fault::Changed) if is_removed() => Err(Fault::NotFound),
            other => other,
        }
    }

    pub(crate) fn root(&self) -> &Dir {
        &self.root
    }

    pub(crate) fn root_names(&self) -> &[Vec<OsString>] {
        &self.names
    }

    pub(crate) fn protect(&self) -> Protect {
        self.options.protect
    }

    pub(crate) fn hardlinks(&self) -> Hardlinks {
        self.options.hardlinks
    }

    pub(crate) fn is_read_only(&self) -> bool {
        self.options.read_only
    }

    pub(crate) fn line_indexes(&self) -> &LineIndexes {
        &self.line_indexes
    }

    pub(crate) fn publishing(&self) -> &Mutex<()> {
        &self.publishing
    }
}

impl fmt::Debug for Jail {
    /// Host paths stay out of logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Jail")
            .field("hardlinks", &self.options.hardlinks)
            .field("protect", &self.options.protect)
            .field("read_only", &self.options.read_only)
            .finish_non_exhaustive()
    }
}

/// The absolute paths the root has on this host: as given, and after links.
#[expect(
    clippy::disallowed_methods,
    reason = "the result is compared with callers' paths as text to cut a prefix off; nothing is opened by it"
)]
fn own_names(root: &Path) -> std::io::Result<[PathBuf; 2]> {
    Ok([std::path::absolute(root)?, std::fs::canonicalize(root)?])
}
