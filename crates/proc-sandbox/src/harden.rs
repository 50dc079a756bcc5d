//! What the program that runs commands does to itself.

use rustix::process::{DumpableBehavior, Resource, Rlimit};

use crate::Error;

/// Closes this process to other processes of the same user: to debuggers and to readers of its memory,
/// environment, descriptors and working directory under `/proc`; and keeps it from leaving a core file.
///
/// Call it once, early, after [`helper::dispatch`](crate::helper::dispatch). It is a second wall: on the rung
/// `landlock` commands could not reach these either. Children are not affected, since a program that is executed
/// starts open again.
///
/// # Errors
///
/// [`Error::System`] when the kernel refuses, which it has no reason to.
///
/// # Security
///
/// A process that has `CAP_SYS_PTRACE`, root's for one, still reaches it. `perf`, `gdb` and `strace` of the same
/// user do not.
pub fn harden_self() -> Result<(), Error> {
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)
        .map_err(Error::system("close this process to others"))?;
    let none = Rlimit { current: Some(0), maximum: Some(0) };
    rustix::process::setrlimit(Resource::Core, none).map_err(Error::system("forbid core files"))
}
