//! Removing what writers that were killed left behind.
//!
//! A file is removed only if its name is one of [`temp`]'s, it is a regular file of this user's with no
//! other name, and its lock can be had, which a living writer holds. The look is bounded: leftovers
//! beyond it, and in directories of [`NOISE`](crate::NOISE), cost their bytes and nothing else.

use std::os::unix::ffi::OsStrExt as _;

use rustix::fs::{FileType, FlockOperation};

use crate::at::{self, Access};
use crate::jail::Jail;
use crate::noise::is_noise;
use crate::temp;
use crate::trail::Trail;
use crate::walk::{Flow, Visit, Walk};

/// Entries looked at.
const MAX_ENTRIES: usize = 100_000;

/// Removes dead temporary files below the root. What cannot be removed stays: it harms nobody.
pub(crate) fn dead_temps(jail: &Jail) {
    let mut left = MAX_ENTRIES;
    let user = rustix::process::geteuid().as_raw();
    // A `*.tmp` in a `.gitignore` must not hide them.
    Walk::new(jail, true).include_temps().run(Trail::new(jail.root()), &mut |visit| {
        if visit.kind == FileType::RegularFile && temp::is_temp(visit.name.as_os_str().as_bytes()) {
            remove_if_dead(visit, user);
        }
        left -= 1;
        if left == 0 {
            Flow::Stop
        } else if is_noise(visit.name.as_os_str()) {
            Flow::Past
        } else {
            Flow::On
        }
    });
}

fn remove_if_dead(visit: &Visit<'_>, user: u32) {
    let Ok((file, stat)) = at::open_regular(visit.dir, visit.name, Access::Write) else { return };
    if stat.st_uid != user || stat.st_nlink != 1 {
        return;
    }
    if rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
        // Under the lock: its writer cannot be about to publish it.
        at::unlink(visit.dir, visit.name).ok();
    }
}
