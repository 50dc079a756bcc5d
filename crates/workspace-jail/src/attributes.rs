//! What a new content takes over from the file whose place it takes.
//!
//! Owner and group where the system allows it, extended attributes with the ACL among them, and the
//! mode, less set-user-id and set-group-id: the new content has not earned them, nor the file
//! capabilities in `security.capability`. A user's attribute that cannot be kept stops the write, before
//! anything is lost.

use std::ffi::CStr;
use std::fs::File;

use rustix::fs::{Mode, Stat, XattrFlags};
use rustix::io::Errno;

use crate::error::{Fault, Step};

/// Mode of a file that was not there.
const NEW: u32 = 0o644;

/// Largest list of names, and largest value, that Linux has (`XATTR_LIST_MAX`, `XATTR_SIZE_MAX`).
const MAX_XATTR: usize = 64 * 1024;

const ACCESS_ACL: &CStr = c"system.posix_acl_access";

/// Gives `to` the mode of a new file.
pub(crate) fn fresh(to: &File) -> Step<()> {
    Ok(rustix::fs::fchmod(to, Mode::from_raw_mode(NEW))?)
}

/// Gives `to` what `from` has.
pub(crate) fn carry(from: &File, stat: &Stat, to: &File) -> Step<()> {
    carry_owner(stat, to)?;
    let had_acl = carry_xattrs(from, to)?;
    if !had_acl {
        // The directory's default ACL gave the new file one the old did not have.
        match rustix::fs::fremovexattr(to, ACCESS_ACL) {
            Ok(()) | Err(Errno::NODATA | Errno::OPNOTSUPP | Errno::NOSYS) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    // Last, since a change of owner or ACL changes it.
    Ok(rustix::fs::fchmod(to, Mode::from_raw_mode(stat.st_mode & 0o1777))?)
}

fn carry_owner(stat: &Stat, to: &File) -> Step<()> {
    let now = rustix::fs::fstat(to)?;
    let owner = (now.st_uid != stat.st_uid).then(|| rustix::fs::Uid::from_raw(stat.st_uid));
    let group = (now.st_gid != stat.st_gid).then(|| rustix::fs::Gid::from_raw(stat.st_gid));
    if owner.is_none() && group.is_none() {
        return Ok(());
    }
    match rustix::fs::fchown(to, owner, group) {
        // Not ours to give away, or an id this user namespace does not know; the group alone may do.
        Err(Errno::PERM | Errno::INVAL | Errno::OVERFLOW) if owner.is_some() => {
            match rustix::fs::fchown(to, None, group) {
                Ok(()) | Err(Errno::PERM | Errno::INVAL | Errno::OVERFLOW) => Ok(()),
                Err(errno) => Err(errno.into()),
            }
        }
        Ok(()) | Err(Errno::PERM | Errno::INVAL | Errno::OVERFLOW) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

/// Copies the attributes and says whether an ACL was among them.
fn carry_xattrs(from: &File, to: &File) -> Step<bool> {
    let mut list = vec![0; MAX_XATTR];
    let filled = match rustix::fs::flistxattr(from, &mut list[..]) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => return Ok(false),
        other => other?,
    };
    list.truncate(filled);
    let mut had_acl = false;
    let mut value = vec![0; MAX_XATTR];
    for name in list.split_inclusive(|byte| *byte == 0) {
        let Ok(name) = CStr::from_bytes_with_nul(name) else { continue };
        if name == c"security.capability" {
            continue;
        }
        let must_be_kept = name.to_bytes().starts_with(b"user.") || name == ACCESS_ACL;
        had_acl |= name == ACCESS_ACL;
        let copied = rustix::fs::fgetxattr(from, name, &mut value[..])
            .and_then(|size| rustix::fs::fsetxattr(to, name, &value[..size], XattrFlags::empty()));
        match copied {
            Ok(()) | Err(Errno::NODATA) => {}
            Err(errno) if must_be_kept => return Err(Fault::from(errno)),
            // Labels that the system gives by itself, or that only it may give.
            Err(_) => {}
        }
    }
    Ok(had_acl)
}
