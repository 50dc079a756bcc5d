//! Reading a whole file: for an edit, or to learn its version.

use std::fs::File;
use std::os::unix::fs::FileExt as _;

use rustix::fs::Stat;

use crate::at::{self, Access};
use crate::error::{Fault, Result, Step, settle};
use crate::jail::{Hardlinks, Jail};
use crate::resolve::{End, LastLink, resolve};
use crate::sha256::{Hasher, Sha256};
use crate::text;

/// A file's bytes and their version.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Snapshot {
    /// The whole content.
    pub bytes: Vec<u8>,
    /// The version of `bytes`, for [`Jail::replace`].
    pub sha256: Sha256,
}

/// A file's text and its version.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TextSnapshot {
    /// The whole content, byte for byte: a byte-order mark and line ends included.
    pub text: String,
    /// The version of the content, for [`Jail::replace`].
    pub sha256: Sha256,
}

impl Jail {
    /// Reads a regular file of at most `max_bytes` bytes.
    ///
    /// ```
    /// use workspace_jail::Error;
    ///
    /// # let root = tempfile::tempdir()?;
    /// # let jail = workspace_jail::Jail::open(root.path(), Default::default())?;
    /// jail.create("image", b"\x89PNG\0")?;
    /// assert_eq!(jail.read("image", 1024)?.bytes, b"\x89PNG\0");
    /// assert!(matches!(jail.read("image", 3), Err(Error::TooLarge { size: 5, max: 3, .. })));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `InvalidPath`, `NameTooLong`, `OutsideWorkspace`, `SymlinkLoop`, `NotFound`, `NotADirectory`,
    /// `IsDirectory`, `NotARegularFile`, `HardlinkRefused`, `PermissionDenied`, `TooLarge`, `Busy`, `Io`.
    ///
    /// # Security
    ///
    /// `path` may be an attacker's, and the tree may change meanwhile: the file read is a regular one
    /// below the root. With [`Hardlinks::Allow`] it may have further names anywhere on its file system.
    pub fn read(&self, path: &str, max_bytes: u64) -> Result<Snapshot> {
        settle(path, || {
            let (file, stat) = open(self, path)?;
            read_whole(&file, &stat, max_bytes)
        })
    }

    /// Reads a UTF-8 text file of at most `max_bytes` bytes.
    ///
    /// # Errors
    ///
    /// As [`Jail::read`], and `BinaryFile` for a NUL byte in the first 8 KiB, `NotUtf8` for bytes that
    /// are not UTF-8 or a byte-order mark of UTF-16 or UTF-32.
    ///
    /// # Security
    ///
    /// As [`Jail::read`].
    pub fn read_text(&self, path: &str, max_bytes: u64) -> Result<TextSnapshot> {
        settle(path, || {
            let (file, stat) = open(self, path)?;
            text::sniff_file(&file)?;
            let Snapshot { bytes, sha256 } = read_whole(&file, &stat, max_bytes)?;
            let text = String::from_utf8(bytes).map_err(|_| Fault::NotUtf8)?;
            Ok(TextSnapshot { text, sha256 })
        })
    }

    /// The version of a regular file of any size; reads all of it, in constant memory.
    ///
    /// # Errors
    ///
    /// As [`Jail::read`], without `TooLarge`.
    ///
    /// # Security
    ///
    /// As [`Jail::read`].
    pub fn sha256(&self, path: &str) -> Result<Sha256> {
        settle(path, || {
            let (file, stat) = open(self, path)?;
            digest(&file, size_of(&stat))
        })
    }
}

/// Opens the regular file at `path`, as the jail's policy on hard links allows.
pub(crate) fn open(jail: &Jail, path: &str) -> Step<(File, Stat)> {
    let resolved = resolve(jail, path, LastLink::Follow)?;
    let (name, held) = match resolved.end {
        End::Directory => return Err(Fault::IsDirectory),
        End::Missing { .. } => return Err(Fault::NotFound),
        End::Entry(name, held) => (name, held),
    };
    at::must_be_regular(&held.stat)?;
    check_hardlinks(jail, &held.stat)?;
    match at::open_regular(resolved.trail.dir(), &name, Access::Read) {
        Ok((file, stat)) => {
            check_hardlinks(jail, &stat)?;
            Ok((file, stat))
        }
        // It was there a moment ago.
        Err(Fault::NotFound) => Err(Fault::Changed),
        Err(fault) => Err(fault),
    }
}

/// Refuses a file with more than one name where the jail says so.
pub(crate) fn check_hardlinks(jail: &Jail, stat: &Stat) -> Step<()> {
    if jail.hardlinks() == Hardlinks::Deny && stat.st_nlink > 1 {
        return Err(Fault::HardlinkRefused);
    }
    Ok(())
}

/// The size at the time of the `fstat`. Every reader stops there, so a file that grows has an end.
pub(crate) fn size_of(stat: &Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or(0)
}

/// Fills `buffer` from `offset` on; less only at the end of the file.
pub(crate) fn fill_at(file: &File, buffer: &mut [u8], offset: u64) -> Step<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read_at(&mut buffer[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(filled)
}

fn read_whole(file: &File, stat: &Stat, max: u64) -> Step<Snapshot> {
    let size = size_of(stat);
    if size > max {
        return Err(Fault::TooLarge { size, max });
    }
    let room = usize::try_from(size).map_err(|_| Fault::TooLarge { size, max })?;
    let mut bytes = vec![0; room];
    let filled = fill_at(file, &mut bytes, 0)?;
    bytes.truncate(filled);
    let sha256 = Sha256::of(&bytes);
    Ok(Snapshot { bytes, sha256 })
}

/// The digest of the first `size` bytes.
pub(crate) fn digest(file: &File, size: u64) -> Step<Sha256> {
    let mut hasher = Hasher::new();
    each_chunk(file, 0, size, |chunk| {
        hasher.update(chunk);
        true
    })?;
    Ok(hasher.finish())
}

/// Bytes read at a time.
pub(crate) const CHUNK: usize = 256 * 1024;

/// Passes the bytes from `start` to `end` to `take`, in order, until it says `false`. Says how far it
/// came.
pub(crate) fn each_chunk(
    file: &File,
    start: u64,
    end: u64,
    mut take: impl FnMut(&[u8]) -> bool,
) -> Step<u64> {
    let mut buffer =
        vec![0; CHUNK.min(usize::try_from(end.saturating_sub(start)).unwrap_or(CHUNK))];
    let mut position = start;
    while position < end {
        let left = usize::try_from(end - position).unwrap_or(usize::MAX);
        let room = buffer.len().min(left);
        let filled = fill_at(file, &mut buffer[..room], position)?;
        position += filled as u64;
        if filled == 0 || !take(&buffer[..filled]) {
            break;
        }
    }
    Ok(position)
}
