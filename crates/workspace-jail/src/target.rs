//! Where a write would go, and every reason not to.
//!
//! All checks are made before anything is changed, in the order of [`Error`](crate::Error)'s variants;
//! only the size is compared earlier, before the file that is there counts.

use std::fs::File;

use rustix::fs::{Stat, StatVfsMountFlags};
use rustix::io::Errno;

use crate::at::{self, Access};
use crate::error::{Fault, Result, Step, settle};
use crate::jail::Jail;
use crate::path::Name;
use crate::read::check_hardlinks;
use crate::resolve::{End, LastLink, Resolved, resolve};
use crate::trail::Trail;

/// What a write wants to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Intent {
    /// Make a file that is not there.
    Create,
    /// Make a file or put another content in its place.
    Replace,
}

/// The place of a write that may be made.
#[derive(Debug)]
pub(crate) struct Target<'j> {
    pub(crate) trail: Trail<'j>,
    /// Directories to make below the trail's.
    pub(crate) dirs: Vec<Name>,
    pub(crate) name: Name,
    pub(crate) existing: Option<Existing>,
}

/// The file that is there.
#[derive(Debug)]
pub(crate) struct Existing {
    pub(crate) file: File,
    pub(crate) stat: Stat,
}

impl Jail {
    /// Makes all checks that [`Jail::create`] or [`Jail::replace`] of `bytes` bytes would make, and
    /// changes nothing: for a caller that validates the content between the checks and the write. Of
    /// those errors, `TooLarge` (more than `max_bytes`) comes after the ones about the path and before
    /// the ones about what is there.
    ///
    /// # Errors
    ///
    /// `InvalidPath`, `NameTooLong`, `OutsideWorkspace`, `SymlinkLoop`, `NotFound`, `NotADirectory`,
    /// `ProtectedPath`, `ReadOnly`, `TooLarge`, `AlreadyExists`, `IsDirectory`, `NotARegularFile`,
    /// `HardlinkRefused`, `PermissionDenied`, `Busy`, `Io`.
    ///
    /// # Security
    ///
    /// A permission is not kept: the write makes the checks again.
    pub fn check_write(
        &self,
        path: &str,
        intent: Intent,
        bytes: u64,
        max_bytes: u64,
    ) -> Result<()> {
        let limit = Some((bytes, max_bytes));
        settle(path, || target(self, path, intent, limit).map(drop))
    }
}

/// Finds the place of a write, or the reason against it.
pub(crate) fn target<'j>(
    jail: &'j Jail,
    path: &str,
    intent: Intent,
    limit: Option<(u64, u64)>,
) -> Step<Target<'j>> {
    let resolved = resolve(jail, path, LastLink::Follow)?;
    check_policy(jail, &resolved)?;
    if let Some((size, max)) = limit
        && size > max
    {
        return Err(Fault::TooLarge { size, max });
    }
    let Resolved { trail, end, through_link, .. } = resolved;
    match end {
        End::Missing { as_directory: true, .. } => Err(Fault::IsDirectory),
        End::Missing { dirs, name, .. } => match intent {
            // The name itself is taken, by a link to nothing.
            Intent::Create if through_link => Err(Fault::AlreadyExists),
            _ => Ok(Target { trail, dirs, name, existing: None }),
        },
        End::Directory | End::Entry(..) if intent == Intent::Create => Err(Fault::AlreadyExists),
        End::Directory => Err(Fault::IsDirectory),
        End::Entry(name, held) => {
            at::must_be_regular(&held.stat)?;
            check_hardlinks(jail, &held.stat)?;
            check_write_bit(&held.stat)?;
            let existing = open_existing(jail, &trail, &name)?;
            Ok(Target { trail, dirs: Vec::new(), name, existing: Some(existing) })
        }
    }
}

/// Refuses protected names, then read-only jails and mounts.
pub(crate) fn check_policy(jail: &Jail, resolved: &Resolved<'_>) -> Step<()> {
    if resolved.is_protected(jail) {
        return Err(Fault::Protected);
    }
    let mount = || rustix::fs::fstatvfs(resolved.trail.dir());
    if jail.is_read_only() || mount()?.f_flag.contains(StatVfsMountFlags::RDONLY) {
        return Err(Fault::ReadOnly);
    }
    Ok(())
}

/// A file nobody may write is not replaced either, by root neither.
pub(crate) fn check_write_bit(stat: &Stat) -> Step<()> {
    if stat.st_mode & 0o222 == 0 {
        return Err(Fault::PermissionDenied);
    }
    Ok(())
}

/// Asks the system, by opening the file for writing; nothing is written through this descriptor.
fn open_existing(jail: &Jail, trail: &Trail<'_>, name: &Name) -> Step<Existing> {
    let (file, stat) = match at::open_regular(trail.dir(), name, Access::Write) {
        // A program that is running cannot be written, but it can be replaced.
        Err(Fault::Os(error)) if Errno::from_io_error(&error) == Some(Errno::TXTBSY) => {
            at::open_regular(trail.dir(), name, Access::Read)?
        }
        Err(Fault::NotFound) => return Err(Fault::Changed),
        other => other?,
    };
    check_hardlinks(jail, &stat)?;
    check_write_bit(&stat)?;
    Ok(Existing { file, stat })
}
