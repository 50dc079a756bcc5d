//! What can go wrong, named by what the caller can do about it.
//!
//! Invariants: every variant carries the path as the caller wrote it, never a host path and never the
//! place a link points at; an escape is [`Error::OutsideWorkspace`] and nothing else is. When two
//! variants apply to one call, the one declared first is returned ([`Error::Busy`] aside, which means
//! that nothing could be decided).
//!
//! Inside the crate faults travel without their path ([`Fault`]) and get it at the verb's edge.

use std::fmt;
use std::io;

use rustix::io::Errno;

use crate::escaped::Escaped;

/// The result of every verb of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a verb did nothing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The files changed under the call each time it was tried, or the system ran out of descriptors:
    /// try again.
    #[error("'{}' kept changing while it was used; try again", Escaped::new(path))]
    Busy {
        /// The path as the caller wrote it.
        path: String,
    },
    /// A pattern cannot be used.
    #[error("invalid pattern '{}': {reason}", Start(pattern))]
    InvalidPattern {
        /// The pattern as the caller wrote it.
        pattern: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The path is empty or holds a NUL byte.
    #[error("invalid path '{}': {reason}", Start(path))]
    InvalidPath {
        /// The path as the caller wrote it.
        path: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A component is over 255 bytes or the path over 4,095.
    #[error("path name too long ({} bytes; 4095 in all and 255 a component are possible)", path.len())]
    NameTooLong {
        /// The path as the caller wrote it.
        path: String,
    },
    /// The path leads out of the root: by a step above it (even one that comes back), by an absolute
    /// link, or by being absolute itself. The same for targets that exist and targets that do not.
    #[error("path '{}' leads outside the workspace boundary", Escaped::new(path))]
    OutsideWorkspace {
        /// The path as the caller wrote it.
        path: String,
    },
    /// More than 40 links on the way.
    #[error("too many symbolic links on the way to '{}'", Escaped::new(path))]
    SymlinkLoop {
        /// The path as the caller wrote it.
        path: String,
    },
    /// A component is missing.
    #[error("path '{}' not found", Escaped::new(path))]
    NotFound {
        /// The path as the caller wrote it.
        path: String,
    },
    /// A file stands where a directory is needed.
    #[error("'{}' is not a directory", Escaped::new(path))]
    NotADirectory {
        /// The path as the caller wrote it.
        path: String,
    },
    /// A write to a name that programs on the operator's side act on, see [`Protect`](crate::Protect).
    #[error("'{}' is protected: other programs run what it says", Escaped::new(path))]
    ProtectedPath {
        /// The path as the caller wrote it.
        path: String,
    },
    /// The jail or the file system is read-only.
    #[error("'{}' is read-only", Escaped::new(path))]
    ReadOnly {
        /// The path as the caller wrote it.
        path: String,
    },
    /// The name is taken, by anything: a dangling link too.
    #[error("'{}' already exists", Escaped::new(path))]
    AlreadyExists {
        /// The path as the caller wrote it.
        path: String,
    },
    /// A directory stands where a file is needed.
    #[error("'{}' is a directory", Escaped::new(path))]
    IsDirectory {
        /// The path as the caller wrote it.
        path: String,
    },
    /// A FIFO, a socket or a device: never opened, never replaced.
    #[error("'{}' is not a regular file", Escaped::new(path))]
    NotARegularFile {
        /// The path as the caller wrote it.
        path: String,
    },
    /// The file has more than one name and the jail refuses such files.
    #[error("'{}' has more than one hard link", Escaped::new(path))]
    HardlinkRefused {
        /// The path as the caller wrote it.
        path: String,
    },
    /// The system refuses, or the file has no write bit (which counts for root, too).
    #[error("permission denied: '{}'", Escaped::new(path))]
    PermissionDenied {
        /// The path as the caller wrote it.
        path: String,
    },
    /// A NUL byte in the first 8 KiB.
    #[error("'{}' appears to be binary", Escaped::new(path))]
    BinaryFile {
        /// The path as the caller wrote it.
        path: String,
    },
    /// The bytes asked for exceed the caller's limit.
    #[error("'{}': {size} bytes exceed the limit of {max}", Escaped::new(path))]
    TooLarge {
        /// The path as the caller wrote it.
        path: String,
        /// Bytes found; a lower bound where counting on would have read more than 64 MiB.
        size: u64,
        /// The limit, bytes.
        max: u64,
    },
    /// The content is not the one the caller expected.
    #[error("'{}' has changed since it was read", Escaped::new(path))]
    Stale {
        /// The path as the caller wrote it.
        path: String,
    },
    /// Not UTF-8, or marked as UTF-16 or UTF-32.
    #[error("'{}' is not UTF-8 text", Escaped::new(path))]
    NotUtf8 {
        /// The path as the caller wrote it.
        path: String,
    },
    /// The disk or the quota is full; what was there before is whole.
    #[error("no space left for '{}'", Escaped::new(path))]
    NoSpace {
        /// The path as the caller wrote it.
        path: String,
    },
    /// Anything else the system says.
    #[error("input/output error on '{}'", Escaped::new(path))]
    Io {
        /// The path as the caller wrote it.
        path: String,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

impl Error {
    /// The stable name of the variant: `"outside_workspace"`, `"not_found"`, …; `"io"` for [`Error::Io`].
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Busy { .. } => "busy",
            Self::InvalidPattern { .. } => "invalid_pattern",
            Self::InvalidPath { .. } => "invalid_path",
            Self::NameTooLong { .. } => "name_too_long",
            Self::OutsideWorkspace { .. } => "outside_workspace",
            Self::SymlinkLoop { .. } => "symlink_loop",
            Self::NotFound { .. } => "not_found",
            Self::NotADirectory { .. } => "not_a_directory",
            Self::ProtectedPath { .. } => "protected_path",
            Self::ReadOnly { .. } => "read_only",
            Self::AlreadyExists { .. } => "already_exists",
            Self::IsDirectory { .. } => "is_directory",
            Self::NotARegularFile { .. } => "not_a_regular_file",
            Self::HardlinkRefused { .. } => "hardlink_refused",
            Self::PermissionDenied { .. } => "permission_denied",
            Self::BinaryFile { .. } => "binary_file",
            Self::TooLarge { .. } => "too_large",
            Self::Stale { .. } => "stale",
            Self::NotUtf8 { .. } => "not_utf8",
            Self::NoSpace { .. } => "no_space",
            Self::Io { .. } => "io",
        }
    }
}

/// Shows the start of a text that may have any length.
struct Start<'a>(&'a str);

impl fmt::Display for Start<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MAX_CHARS: usize = 200;
        match self.0.char_indices().nth(MAX_CHARS).and_then(|(end, _)| self.0.get(..end)) {
            None => Escaped::new(self.0).fmt(f),
            Some(start) => write!(f, "{}…", Escaped::new(start)),
        }
    }
}

/// The result of a step inside the crate.
pub(crate) type Step<T> = std::result::Result<T, Fault>;

/// An [`Error`] that does not know its path yet.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The tree changed between two steps: the verb is tried again, see [`settle`].
    Changed,
    Busy,
    InvalidPath(&'static str),
    NameTooLong,
    Outside,
    Loop,
    NotFound,
    NotADirectory,
    Protected,
    ReadOnly,
    AlreadyExists,
    IsDirectory,
    NotARegularFile,
    HardlinkRefused,
    PermissionDenied,
    Binary,
    TooLarge {
        size: u64,
        max: u64,
    },
    Stale,
    NotUtf8,
    NoSpace,
    Os(io::Error),
}

impl Fault {
    /// Names the path the caller wrote.
    pub(crate) fn at(self, path: &str) -> Error {
        let path = path.to_owned();
        match self {
            Self::Changed | Self::Busy => Error::Busy { path },
            Self::InvalidPath(reason) => Error::InvalidPath { path, reason },
            Self::NameTooLong => Error::NameTooLong { path },
            Self::Outside => Error::OutsideWorkspace { path },
            Self::Loop => Error::SymlinkLoop { path },
            Self::NotFound => Error::NotFound { path },
            Self::NotADirectory => Error::NotADirectory { path },
            Self::Protected => Error::ProtectedPath { path },
            Self::ReadOnly => Error::ReadOnly { path },
            Self::AlreadyExists => Error::AlreadyExists { path },
            Self::IsDirectory => Error::IsDirectory { path },
            Self::NotARegularFile => Error::NotARegularFile { path },
            Self::HardlinkRefused => Error::HardlinkRefused { path },
            Self::PermissionDenied => Error::PermissionDenied { path },
            Self::Binary => Error::BinaryFile { path },
            Self::TooLarge { size, max } => Error::TooLarge { path, size, max },
            Self::Stale => Error::Stale { path },
            Self::NotUtf8 => Error::NotUtf8 { path },
            Self::NoSpace => Error::NoSpace { path },
            Self::Os(source) => Error::Io { path, source },
        }
    }
}

impl From<Errno> for Fault {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::NOENT => Self::NotFound,
            Errno::NOTDIR => Self::NotADirectory,
            Errno::NAMETOOLONG => Self::NameTooLong,
            Errno::ACCESS | Errno::PERM => Self::PermissionDenied,
            Errno::ROFS => Self::ReadOnly,
            Errno::EXIST => Self::AlreadyExists,
            Errno::ISDIR => Self::IsDirectory,
            Errno::NOSPC | Errno::DQUOT => Self::NoSpace,
            // No call of this crate follows a link, so this one says that a name became a link.
            Errno::LOOP => Self::Changed,
            Errno::MFILE | Errno::NFILE | Errno::BUSY | Errno::AGAIN => Self::Busy,
            other => Self::Os(other.into()),
        }
    }
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        match Errno::from_io_error(&error) {
            Some(errno) => errno.into(),
            None => Self::Os(error),
        }
    }
}

/// How often a verb is tried before a tree that keeps changing is [`Error::Busy`].
const ATTEMPTS: usize = 64;

/// Runs `verb` until it neither fails with [`Fault::Changed`] nor has failed so too often, and names
/// `path` in its error.
pub(crate) fn settle<T>(path: &str, mut verb: impl FnMut() -> Step<T>) -> Result<T> {
    for _ in 1..ATTEMPTS {
        match verb() {
            Err(Fault::Changed) => std::thread::yield_now(),
            other => return other.map_err(|fault| fault.at(path)),
        }
    }
    verb().map_err(|fault| fault.at(path))
}
