//! The entries of one directory.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;

use rustix::fs::FileType;

use crate::at;
use crate::error::{Fault, Result, settle};
use crate::escaped::Escaped;
use crate::jail::Jail;
use crate::noise::is_noise;
use crate::path::Name;
use crate::placeholder;
use crate::resolve::{End, LastLink, resolve};
use crate::smallest::Smallest;
use crate::temp;

/// What an entry is; a link is a link, whatever it points at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum EntryKind {
    /// A directory.
    Directory,
    /// A regular file.
    File,
    /// A symbolic link, not followed.
    Link,
    /// A FIFO, a socket or a device.
    Other,
}

impl From<FileType> for EntryKind {
    fn from(kind: FileType) -> Self {
        match kind {
            FileType::Directory => Self::Directory,
            FileType::RegularFile => Self::File,
            FileType::Symlink => Self::Link,
            _ => Self::Other,
        }
    }
}

/// One entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Entry {
    /// The name as the file system has it: any bytes but `/` and NUL. [`Entry::shown`] is for people.
    pub name: OsString,
    /// What it is.
    pub kind: EntryKind,
}

impl Entry {
    /// The name as one line of text.
    pub fn shown(&self) -> Escaped<'_> {
        Escaped::new(&self.name)
    }
}

/// Some entries of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Listing {
    /// Directories first, then the rest, each in byte order of the names.
    pub entries: Vec<Entry>,
    /// How many entries there are in all, without those of `left_out`.
    pub total: u64,
    /// The names of [`NOISE`](crate::NOISE) that are there and not listed, in byte order.
    pub left_out: Vec<OsString>,
    /// The offset to go on with, if entries follow.
    pub next_offset: Option<u64>,
}

impl Jail {
    /// Lists `limit` entries of a directory, from the one at `offset` (from 0) on. Hidden entries are
    /// shown, names of [`NOISE`](crate::NOISE) are left out and told. Files on their way to their names and
    /// [placeholders](crate::Protect::PLACEHOLDER) are nobody's, and left out without a word.
    ///
    /// Memory is proportional to `offset + limit`, whatever the directory holds.
    ///
    /// ```
    /// use workspace_jail::EntryKind;
    ///
    /// # let root = tempfile::tempdir()?;
    /// # let jail = workspace_jail::Jail::open(root.path(), Default::default())?;
    /// jail.create("src/main.rs", b"")?;
    /// jail.create("README.md", b"")?;
    /// let listing = jail.list(".", 0, 1)?;
    /// let first = &listing.entries[0];
    /// assert_eq!((first.name.to_str(), first.kind), (Some("src"), EntryKind::Directory));
    /// assert_eq!((listing.total, listing.next_offset), (2, Some(1)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `InvalidPath`, `NameTooLong`, `OutsideWorkspace`, `SymlinkLoop`, `NotFound`, `NotADirectory`,
    /// `PermissionDenied`, `Busy`, `Io`.
    ///
    /// # Security
    ///
    /// Nothing is opened but the directory, and nothing is told about a link but its name.
    pub fn list(&self, path: &str, offset: u64, limit: u64) -> Result<Listing> {
        let end = offset.saturating_add(limit);
        let room = usize::try_from(end).unwrap_or(usize::MAX);
        settle(path, || {
            let resolved = resolve(self, path, LastLink::Follow)?;
            match resolved.end {
                End::Directory => {}
                End::Entry(..) => return Err(Fault::NotADirectory),
                End::Missing { .. } => return Err(Fault::NotFound),
            }
            let dir = resolved.trail.dir();
            let mut kept = Smallest::new(room);
            let mut left_out = Vec::new();
            for entry in at::read_dir(dir)? {
                let entry = entry?;
                let Some(name) = Name::new(entry.file_name().to_bytes()) else { continue };
                if is_noise(name.as_os_str()) {
                    left_out.push(name.into_os_string());
                    continue;
                }
                let kind = match entry.file_type() {
                    FileType::Unknown => match at::kind_of(dir, &name) {
                        Ok(kind) => kind,
                        // Gone since the directory was read.
                        Err(rustix::io::Errno::NOENT) => continue,
                        Err(errno) => return Err(errno.into()),
                    },
                    known => known,
                };
                let not_directory = kind != FileType::Directory;
                let is_ours = match kind {
                    FileType::Directory => placeholder::stands_for_nothing(&resolved.trail, &name),
                    FileType::RegularFile => temp::is_temp(name.as_os_str().as_bytes()),
                    _ => false,
                };
                if is_ours {
                    continue;
                }
                kept.push((not_directory, name, EntryKind::from(kind)));
            }
            left_out.sort();
            let total = kept.pushed();
            let entries = kept
                .into_sorted()
                .into_iter()
                .skip(usize::try_from(offset).unwrap_or(usize::MAX))
                .map(|(_, name, kind)| Entry { name: name.into_os_string(), kind })
                .collect();
            Ok(Listing { entries, total, left_out, next_offset: (end < total).then_some(end) })
        })
    }
}
