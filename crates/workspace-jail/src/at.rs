//! One plain name on one descriptor: every system call of the crate that takes a name.
//!
//! This file is the proof that nothing leaves the root. Each call takes a directory's descriptor and a
//! [`Name`], which cannot be `..` and cannot hold a `/`, and none follows a link; so each reaches an
//! entry of that directory and nothing else, whatever is renamed meanwhile. All other files combine
//! these steps.

use std::fs::File;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, RenameFlags, Stat};
use rustix::io::Errno;

use crate::error::{Fault, Step};
use crate::path::Name;

type Sys<T> = rustix::io::Result<T>;

/// An entry held by descriptor, without opening what it names.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) handle: OwnedFd,
    pub(crate) stat: Stat,
}

impl Held {
    pub(crate) fn kind(&self) -> FileType {
        FileType::from_raw_mode(self.stat.st_mode)
    }

    /// The text of a link.
    pub(crate) fn link_text(&self) -> Sys<Vec<u8>> {
        // The empty name stands for the handle itself: a link swapped meanwhile is not read.
        rustix::fs::readlinkat(&self.handle, c"", Vec::new()).map(std::ffi::CString::into_bytes)
    }
}

/// Takes hold of an entry of any type: a FIFO does not block, a device does not notice.
pub(crate) fn hold(dir: BorrowedFd<'_>, name: &Name) -> Sys<Held> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let handle = rustix::fs::openat(dir, name.as_os_str(), flags, Mode::empty())?;
    let stat = rustix::fs::fstat(&handle)?;
    Ok(Held { handle, stat })
}

/// Takes hold of a directory. A link or a file there means that the tree changed.
pub(crate) fn hold_dir(dir: BorrowedFd<'_>, name: &Name) -> Step<OwnedFd> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::DIRECTORY | OFlags::CLOEXEC;
    match rustix::fs::openat(dir, name.as_os_str(), flags, Mode::empty()) {
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Err(Fault::Changed),
        other => Ok(other?),
    }
}

/// What to open a regular file for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Access {
    Read,
    /// Only to learn whether the system would allow a write.
    Write,
}

/// Opens a regular file, and nothing that is not one: the type is looked at before and after.
pub(crate) fn open_regular(dir: BorrowedFd<'_>, name: &Name, access: Access) -> Step<(File, Stat)> {
    let held = hold(dir, name)?;
    must_be_regular(&held.stat)?;
    let mode = match access {
        Access::Read => OFlags::RDONLY,
        Access::Write => OFlags::WRONLY,
    };
    let flags = mode | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = match rustix::fs::openat(dir, name.as_os_str(), flags, Mode::empty()) {
        // A FIFO or a socket slipped in after the look.
        Err(Errno::NXIO) => return Err(Fault::NotARegularFile),
        other => File::from(other?),
    };
    let stat = rustix::fs::fstat(&file)?;
    must_be_regular(&stat)?;
    Ok((file, stat))
}

/// Whether this is a regular file, said as a refusal.
pub(crate) fn must_be_regular(stat: &Stat) -> Step<()> {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Ok(()),
        FileType::Directory => Err(Fault::IsDirectory),
        FileType::Symlink => Err(Fault::Changed),
        _ => Err(Fault::NotARegularFile),
    }
}

/// Makes a file that did not exist, readable by its owner alone until it is published.
pub(crate) fn make_file(dir: BorrowedFd<'_>, name: &Name) -> Sys<File> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR;
    rustix::fs::openat(dir, name.as_os_str(), flags, mode).map(File::from)
}

/// Makes a directory of mode 0755, whatever the umask, and takes hold of it.
pub(crate) fn make_dir(dir: BorrowedFd<'_>, name: &Name) -> Step<OwnedFd> {
    let readable = Mode::from_raw_mode(0o755);
    rustix::fs::mkdirat(dir, name.as_os_str(), readable)?;
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let made = rustix::fs::openat(dir, name.as_os_str(), flags, Mode::empty())?;
    let inherited = Mode::from_raw_mode(rustix::fs::fstat(&made)?.st_mode) & Mode::SGID;
    rustix::fs::fchmod(&made, readable | inherited)?;
    Ok(made)
}

/// Opens the directory behind a handle for reading its entries.
pub(crate) fn read_dir(dir: BorrowedFd<'_>) -> Sys<Dir> {
    Dir::new(reopen_dir(dir)?)
}

/// A descriptor to read or sync, of the very directory: its own `.` is no link.
fn reopen_dir(dir: BorrowedFd<'_>) -> Sys<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::openat(dir, c".", flags, Mode::empty())
}

/// The type of an entry, links not followed.
pub(crate) fn kind_of(dir: BorrowedFd<'_>, name: &Name) -> Sys<FileType> {
    let stat = rustix::fs::statat(dir, name.as_os_str(), AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(FileType::from_raw_mode(stat.st_mode))
}

/// Puts `from` in the place of whatever file or link `to` is.
pub(crate) fn rename_over(dir: BorrowedFd<'_>, from: &Name, to: &Name) -> Sys<()> {
    rustix::fs::renameat(dir, from.as_os_str(), dir, to.as_os_str())
}

/// Moves `from` to `to` only if nothing has that name.
pub(crate) fn rename_new(
    from_dir: BorrowedFd<'_>,
    from: &Name,
    to_dir: BorrowedFd<'_>,
    to: &Name,
) -> Sys<()> {
    let (from, to) = (from.as_os_str(), to.as_os_str());
    match rustix::fs::renameat_with(from_dir, from, to_dir, to, RenameFlags::NOREPLACE) {
        // The file system cannot; a second name is as exclusive.
        Err(Errno::INVAL | Errno::NOSYS) => {
            rustix::fs::linkat(from_dir, from, to_dir, to, AtFlags::empty())?;
            rustix::fs::unlinkat(from_dir, from, AtFlags::empty())
        }
        other => other,
    }
}

/// Removes a file or a link.
pub(crate) fn unlink(dir: BorrowedFd<'_>, name: &Name) -> Sys<()> {
    rustix::fs::unlinkat(dir, name.as_os_str(), AtFlags::empty())
}

/// Removes an empty directory.
pub(crate) fn remove_dir(dir: BorrowedFd<'_>, name: &Name) -> Sys<()> {
    rustix::fs::unlinkat(dir, name.as_os_str(), AtFlags::REMOVEDIR)
}

/// Makes the entries of a directory last.
pub(crate) fn sync_dir(dir: BorrowedFd<'_>) -> Step<()> {
    DirSync::prepare(dir)?.sync()
}

/// A directory that is ready to be synced. One that may not be read cannot be, and is left out.
pub(crate) struct DirSync(Option<OwnedFd>);

impl DirSync {
    pub(crate) fn prepare(dir: BorrowedFd<'_>) -> Step<Self> {
        match reopen_dir(dir) {
            Ok(open) => Ok(Self(Some(open))),
            Err(Errno::ACCESS) => Ok(Self(None)),
            // Removed meanwhile.
            Err(Errno::NOENT) => Err(Fault::Changed),
            Err(errno) => Err(errno.into()),
        }
    }

    pub(crate) fn sync(self) -> Step<()> {
        match self.0.map_or(Ok(()), rustix::fs::fsync) {
            // Some file systems have nothing to sync in a directory.
            Err(Errno::INVAL | Errno::BADF) => Ok(()),
            other => Ok(other?),
        }
    }
}
