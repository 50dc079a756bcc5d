//! From the machine into a prepared place, and into namespaces that are the command's alone.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use rustix::mount::OpenTreeFlags;

use crate::attempt::Bytes;
use crate::place;
use crate::sys::Forbid;
use crate::wire::{Handles, Namespace, Slot};

/// Namespaces of one command. The user namespace is what the kernel counts its processes by, and what makes the
/// mounts of the place immovable for it.
const OWN: libc::c_int = libc::CLONE_NEWUSER | libc::CLONE_NEWNS | libc::CLONE_NEWPID;

/// Joins the place and leaves it again for namespaces below it.
pub(crate) fn enter(handles: &mut Handles) -> io::Result<()> {
    let own = place::own_directory()?;
    for namespace in
        [Namespace::User, Namespace::Mount, Namespace::Network, Namespace::Ipc, Namespace::Uts]
    {
        // A place without a network of its own has no handle for one.
        if let Some(handle) = handles.take(Slot::Namespace(namespace)) {
            rustix::thread::move_into_link_name_space(handle.as_fd(), None)?;
        }
    }
    place::unshare_and_map(OWN, own.as_fd())
}

/// Shows the processes of this command and no others.
pub(crate) fn fresh_proc() -> io::Result<()> {
    let mount = place::processes()?;
    place::attach(mount.as_fd(), CWD, "/proc")
}

/// Enters the working directory at its path in the view, if it is the one the caller holds.
pub(crate) fn enter_directory(path: &Bytes, handles: &Handles) -> io::Result<()> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = rustix::fs::open(path.path(), flags, Mode::empty())?;
    let here = rustix::fs::fstat(&directory)?;
    let there = rustix::fs::fstat(handles.get(Slot::Directory)?)?;
    if (here.st_dev, here.st_ino) != (there.st_dev, there.st_ino) {
        return Err(Errno::STALE.into());
    }
    Ok(rustix::process::fchdir(&directory)?)
}

/// Makes places below the workspace read-only, and immovable by that.
///
/// A name that is not there, is a link or leads out of the workspace is passed over: no mount can hold it.
pub(crate) fn protect(workspace: &Bytes, protected: &[Bytes]) -> io::Result<()> {
    if protected.is_empty() {
        return Ok(());
    }
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = rustix::fs::open(workspace.path(), flags, Mode::empty())?;
    for path in protected {
        let Some(place) = find(&root, path)? else { continue };
        let flags = OpenTreeFlags::OPEN_TREE_CLONE
            | OpenTreeFlags::OPEN_TREE_CLOEXEC
            | OpenTreeFlags::AT_RECURSIVE
            | OpenTreeFlags::AT_EMPTY_PATH;
        let mount = rustix::mount::open_tree(&place, "", flags)?;
        crate::sys::restrict_mount(mount.as_fd(), Forbid::Changes, true)?;
        place::attach(mount.as_fd(), place.as_fd(), "")?;
    }
    Ok(())
}

fn find(root: &OwnedFd, path: &Bytes) -> io::Result<Option<OwnedFd>> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    match rustix::fs::openat2(root, path.path(), flags, Mode::empty(), resolve) {
        Ok(place) => Ok(Some(place)),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}
