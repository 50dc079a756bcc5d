//! One plain name in one directory: every call of the crate that takes a name.
//!
//! This file is the proof that nothing leaves the root, and it has two walls. Directories are
//! capabilities of `cap-std`, which opens nothing outside of them. And each call takes a [`Name`],
//! which cannot be `..` and cannot hold a `/`, and follows no link; so each reaches an entry of that
//! directory and nothing else, whatever is renamed meanwhile. All other files combine these steps.
//!
//! Where `cap-std` has no word for a step (holding an entry without opening it, renaming without
//! replacing) the same name goes to the kernel on the same directory's descriptor.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;

use cap_fs_ext::{DirExt as _, FollowSymlinks, OpenOptionsFollowExt as _};
use cap_std::fs::{Dir, DirBuilder, DirBuilderExt as _, OpenOptions, OpenOptionsExt as _};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags, Stat};
use rustix::io::Errno;

use crate::error::{Fault, Step};
use crate::path::Name;

type Sys<T> = rustix::io::Result<T>;

/// The kernel's number in an error of `cap-std`. One without a number is its refusal to leave a directory,
/// which a single name that is not followed cannot ask for.
fn errno(error: &io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::ACCESS)
}

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

    /// The directory that is held, as a capability.
    pub(crate) fn into_dir(self) -> Dir {
        Dir::from_std_file(self.handle.into())
    }

    /// The text of a link.
    pub(crate) fn link_text(&self) -> Sys<Vec<u8>> {
        // The empty name stands for the handle itself: a link swapped meanwhile is not read.
        rustix::fs::readlinkat(&self.handle, c"", Vec::new()).map(std::ffi::CString::into_bytes)
    }
}

/// Takes hold of an entry of any type: a FIFO does not block, a device does not notice.
pub(crate) fn hold(dir: &Dir, name: &Name) -> Sys<Held> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let handle = rustix::fs::openat(dir, name.as_os_str(), flags, Mode::empty())?;
    let stat = rustix::fs::fstat(&handle)?;
    Ok(Held { handle, stat })
}

/// Takes hold of a directory. A link or a file there means that the tree changed.
pub(crate) fn hold_dir(dir: &Dir, name: &Name) -> Step<Dir> {
    dir.open_dir_nofollow(name.as_os_str()).map_err(|error| match errno(&error) {
        Errno::NOENT | Errno::NOTDIR | Errno::LOOP => Fault::Changed,
        other => other.into(),
    })
}

/// What to open a regular file for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Access {
    Read,
    /// Only to learn whether the system would allow a write.
    Write,
}

/// Opens a regular file, and nothing that is not one: the type is looked at before and after.
pub(crate) fn open_regular(dir: &Dir, name: &Name, access: Access) -> Step<(File, Stat)> {
    must_be_regular(&rustix::fs::statat(dir, name.as_os_str(), AtFlags::SYMLINK_NOFOLLOW)?)?;
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let mut options = OpenOptions::new();
    match access {
        Access::Read => options.read(true),
        Access::Write => options.write(true),
    };
    options.follow(FollowSymlinks::No).custom_flags(flags.bits().cast_signed());
    let file = match dir.open_with(name.as_os_str(), &options) {
        Ok(file) => file.into_std(),
        Err(error) => match errno(&error) {
            // A FIFO or a socket slipped in after the look.
            Errno::NXIO => return Err(Fault::NotARegularFile),
            other => return Err(other.into()),
        },
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
pub(crate) fn make_file(dir: &Dir, name: &Name) -> Sys<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600).follow(FollowSymlinks::No);
    let made = dir.open_with(name.as_os_str(), &options);
    made.map(cap_std::fs::File::into_std).map_err(|error| errno(&error))
}

/// Makes a directory of mode 0755, whatever the umask, and takes hold of it.
pub(crate) fn make_dir(dir: &Dir, name: &Name) -> Step<Dir> {
    const READABLE: u32 = 0o755;
    let mut builder = DirBuilder::new();
    builder.mode(READABLE);
    dir.create_dir_with(name.as_os_str(), &builder)?;
    let made = dir.open_dir_nofollow(name.as_os_str())?;
    // A handle that only holds a directory cannot change its mode.
    let open = reopen_dir(&made)?;
    let inherited = Mode::from_raw_mode(rustix::fs::fstat(&open)?.st_mode) & Mode::SGID;
    rustix::fs::fchmod(&open, Mode::from_raw_mode(READABLE) | inherited)?;
    Ok(made)
}

/// Opens the directory behind a handle for reading its entries.
pub(crate) fn read_dir(dir: &Dir) -> Sys<rustix::fs::Dir> {
    rustix::fs::Dir::new(reopen_dir(dir)?)
}

/// A descriptor to read or sync, of the very directory: its own `.` is no link.
fn reopen_dir(dir: &Dir) -> Sys<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::openat(dir, c".", flags, Mode::empty())
}

/// The type of an entry, links not followed.
pub(crate) fn kind_of(dir: &Dir, name: &Name) -> Sys<FileType> {
    let stat = rustix::fs::statat(dir, name.as_os_str(), AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(FileType::from_raw_mode(stat.st_mode))
}

/// Puts `from` in the place of whatever file or link `to` is.
pub(crate) fn rename_over(dir: &Dir, from: &Name, to: &Name) -> Sys<()> {
    dir.rename(from.as_os_str(), dir, to.as_os_str()).map_err(|error| errno(&error))
}

/// Moves `from` to `to` only if nothing has that name.
pub(crate) fn rename_new(from_dir: &Dir, from: &Name, to_dir: &Dir, to: &Name) -> Sys<()> {
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
pub(crate) fn unlink(dir: &Dir, name: &Name) -> Sys<()> {
    dir.remove_file(name.as_os_str()).map_err(|error| errno(&error))
}

/// Removes an empty directory.
pub(crate) fn remove_dir(dir: &Dir, name: &Name) -> Sys<()> {
    dir.remove_dir(name.as_os_str()).map_err(|error| errno(&error))
}

/// Makes the entries of a directory last.
pub(crate) fn sync_dir(dir: &Dir) -> Step<()> {
    DirSync::prepare(dir)?.sync()
}

/// A directory that is ready to be synced. One that may not be read cannot be, and is left out.
pub(crate) struct DirSync(Option<OwnedFd>);

impl DirSync {
    pub(crate) fn prepare(dir: &Dir) -> Step<Self> {
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
