//! All unsafe code: the few system calls no safe crate at hand offers.
//!
//! One operation a block, each with the reason why it is sound. None of them touches memory through a pointer
//! that outlives the call.
#![expect(unsafe_code, reason = "the one place for system calls without a safe interface")]

use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd};

/// `LANDLOCK_CREATE_RULESET_VERSION` of `linux/landlock.h`.
const LANDLOCK_VERSION: libc::c_uint = 1;
/// Signals run from 1 to this number on every architecture supported here.
const LAST_SIGNAL: libc::c_int = 64;

fn outcome(result: libc::c_long) -> io::Result<libc::c_long> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// The kernel's Landlock version; see `landlock_create_ruleset(2)`.
pub(crate) fn landlock_abi() -> io::Result<i64> {
    let null = std::ptr::null::<libc::c_void>();
    // SAFETY: with the version flag the kernel takes a null pointer and length zero, and reads no memory.
    let result = unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, null, 0_usize, LANDLOCK_VERSION)
    };
    outcome(result)
}

/// Restricts the calling thread by a ruleset; see `landlock_restrict_self(2)`.
pub(crate) fn landlock_restrict_self(ruleset: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: it takes two integers; the descriptor is open for as long as it is borrowed.
    let result = unsafe {
        libc::syscall(libc::SYS_landlock_restrict_self, ruleset.as_raw_fd(), 0 as libc::c_uint)
    };
    outcome(result).map(drop)
}

/// Marks every descriptor above standard error close-on-exec; see `close_range(2)`.
pub(crate) fn close_on_exec() -> io::Result<()> {
    let (first, last): (libc::c_uint, libc::c_uint) = (3, libc::c_uint::MAX);
    // SAFETY: it takes integers; no descriptor is closed, so none that Rust owns becomes invalid.
    let result =
        unsafe { libc::syscall(libc::SYS_close_range, first, last, libc::CLOSE_RANGE_CLOEXEC) };
    outcome(result).map(drop)
}

/// Gives every signal its default action and blocks none.
pub(crate) fn reset_signals() -> io::Result<()> {
    for signal in 1..=LAST_SIGNAL {
        // SAFETY: the default action is no handler, so no code of ours can run in a signal's context. It fails
        // for SIGKILL, SIGSTOP and the two the C library keeps, whose action is the default one always.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    let mut none = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the pointer leads to a set of the right size, which this call initialises.
    let result = unsafe { libc::sigemptyset(none.as_mut_ptr()) };
    outcome(result.into())?;
    // SAFETY: the call above initialised it.
    let none = unsafe { none.assume_init() };
    // SAFETY: the first pointer leads to a live set, the null one asks for no old set.
    let result =
        unsafe { libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut()) };
    outcome(result.into()).map(drop)
}

/// Gives up the controlling terminal; see `ioctl_tty(2)`.
pub(crate) fn leave_terminal(terminal: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: this request takes no argument, so no memory is read or written.
    let result = unsafe { libc::ioctl(terminal.as_raw_fd(), libc::TIOCNOTTY) };
    outcome(result.into()).map(drop)
}

/// Tries to trace a process that does not exist: `ESRCH` where tracing is allowed.
pub(crate) fn attempt_ptrace() -> io::Result<()> {
    let null = std::ptr::null_mut::<libc::c_void>();
    // SAFETY: seizing uses neither pointer, and no process has this id, so nothing is traced.
    let result = unsafe { libc::ptrace(libc::PTRACE_SEIZE, libc::pid_t::MAX, null, null) };
    outcome(result).map(drop)
}

/// Tries to make a user namespace.
pub(crate) fn attempt_user_namespace() -> io::Result<()> {
    // SAFETY: it takes flags and touches no memory; a new user namespace changes credentials alone.
    let result = unsafe { libc::unshare(libc::CLONE_NEWUSER) };
    outcome(result.into()).map(drop)
}

/// Calls `setsid(2)` and returns its raw answer, which is 0 where a filter answers in the kernel's place.
pub(crate) fn attempt_new_session() -> io::Result<i32> {
    // SAFETY: it takes no argument and touches no memory.
    let result = unsafe { libc::setsid() };
    outcome(result.into()).map(|_| result)
}
