//! Rights a command does not take along: capabilities, setuid programs, root's name where it can be helped.

use std::io;

use rustix::fs::{Gid, Uid};
use rustix::io::Errno;
use rustix::thread::{CapabilitySet, CapabilitySets};

/// `PIPEFS_MAGIC` of `linux/magic.h`, the file system of pipes without a name, in the type that differs by system.
const PIPES: rustix::fs::FsWord = 0x5049_5045;

/// Capabilities are numbered below this; the kernel's masks have as many bits.
const LAST_CAPABILITY: u32 = 63;

/// Empties the bounding set, out of which a program could gain capabilities when it is executed.
///
/// It takes a capability to give up capabilities: an ordinary user keeps the set, which is worth nothing under
/// no-new-privileges.
pub(crate) fn empty_bounding_set() -> io::Result<()> {
    for number in 0..=LAST_CAPABILITY {
        let capability = CapabilitySet::from_bits_retain(1 << number);
        match rustix::thread::remove_capability_from_bounding_set(capability) {
            Ok(()) => {}
            // Not ours to give up, or the kernel does not know so many.
            Err(Errno::PERM | Errno::INVAL) => return Ok(()),
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}

/// Clears every set of the calling thread.
pub(crate) fn drop_capabilities() -> io::Result<()> {
    match rustix::thread::clear_ambient_capability_set() {
        // Kernels before 4.3 have no ambient set.
        Ok(()) | Err(Errno::INVAL) => {}
        Err(errno) => return Err(errno.into()),
    }
    let none = CapabilitySet::empty();
    let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
    Ok(rustix::thread::set_capabilities(None, sets)?)
}

/// Becomes another user, for good.
///
/// The calling process has one thread, so the ids of the thread are those of the process. A change of user closes
/// its entries in `/proc` to itself, through which it maps that user into namespaces; it is opened again.
pub(crate) fn become_user(user: u32, group: u32) -> io::Result<()> {
    let (user, group) = (Uid::from_raw(user), Gid::from_raw(group));
    // What is written to `/dev/stderr` opens the pipe again, which belongs to whoever made it.
    for output in [rustix::stdio::stdout(), rustix::stdio::stderr()] {
        if rustix::fs::fstatfs(output)?.f_type == PIPES {
            rustix::fs::fchown(output, Some(user), Some(group))?;
        }
    }
    rustix::thread::set_thread_groups(&[])?;
    rustix::thread::set_thread_res_gid(group, group, group)?;
    rustix::thread::set_thread_res_uid(user, user, user)?;
    Ok(rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::Dumpable)?)
}

/// Makes setuid programs and file capabilities worthless, for good.
pub(crate) fn no_new_privileges() -> io::Result<()> {
    Ok(rustix::thread::set_no_new_privs(true)?)
}
