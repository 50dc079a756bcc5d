//! All unsafe code: the few system calls no safe crate at hand offers.
//!
//! One operation a block, each with the reason why it is sound. None of them touches memory through a pointer
//! that outlives the call.
#![expect(unsafe_code, reason = "the one place for system calls without a safe interface")]

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::time::Duration;

use rustix::process::Pid;

use crate::Usage;

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

/// What all children of the calling process that were waited for used, and theirs; see `getrusage(2)`.
pub(crate) fn usage_of_children() -> io::Result<Usage> {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::uninit();
    // SAFETY: the pointer leads to memory of the right size, which this call initialises.
    let result = unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, usage.as_mut_ptr()) };
    outcome(result.into())?;
    // SAFETY: the call above initialised it.
    let usage = unsafe { usage.assume_init() };
    let time = |time: libc::timeval| {
        let seconds = Duration::from_secs(time.tv_sec.unsigned_abs());
        seconds + Duration::from_micros(time.tv_usec.unsigned_abs())
    };
    // The kernel tells KiB.
    let max_rss = usage.ru_maxrss.unsigned_abs().saturating_mul(1024);
    Ok(Usage { user: time(usage.ru_utime), system: time(usage.ru_stime), max_rss })
}

/// Makes a file empty by its path, without opening it; see `truncate(2)`.
pub(crate) fn truncate(path: &Path) -> io::Result<()> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: the pointer leads to a string with its NUL, which lives until the call returns.
    let result = unsafe { libc::truncate(path.as_ptr(), 0) };
    outcome(result.into()).map(drop)
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

/// Splits the calling process in two; `None` in the child. See `fork(2)`.
///
/// Only the helper calls it, which has one thread: so the child finds every lock free and its memory whole.
pub(crate) fn fork() -> io::Result<Option<Pid>> {
    // SAFETY: the helper starts no thread (it is dispatched before `main` does anything), so the child is not
    // limited to async-signal-safe functions.
    let result = unsafe { libc::fork() };
    outcome(result.into())?;
    Ok(Pid::from_raw(result))
}

/// Splits the calling process in two like [`fork`], but so that the new process is a child of the caller's parent; see
/// `CLONE_PARENT` in `clone(2)`. `None` in the new process.
///
/// The C library is not told. What it keeps of the calling process is its thread's number, which no call here relies
/// on, and which [`fork`] puts right in every process below.
pub(crate) fn fork_sibling() -> io::Result<Option<Pid>> {
    // The signal is the parent's choice when the caller itself was made.
    let flags = libc::c_long::from(libc::CLONE_PARENT | libc::SIGCHLD);
    let none = 0 as libc::c_long;
    // SAFETY: without CLONE_VM the new process goes on with copies of memory and stack, and no pointer is passed. The
    // helper has one thread, as for `fork`.
    let result = unsafe { libc::syscall(libc::SYS_clone, flags, none, none, none, none) };
    let number = i32::try_from(outcome(result)?).map_err(io::Error::other)?;
    Ok(Pid::from_raw(number))
}

/// Closes every descriptor but the three standard ones; see `close_range(2)`.
///
/// To be called at the start of a program, before anything is opened.
pub(crate) fn close_inherited() -> io::Result<()> {
    let (first, last): (libc::c_uint, libc::c_uint) = (3, libc::c_uint::MAX);
    // SAFETY: it takes integers. What is open was inherited, so no owner in this program has it yet.
    let result = unsafe { libc::syscall(libc::SYS_close_range, first, last, 0 as libc::c_uint) };
    outcome(result).map(drop)
}

/// Leaves namespaces for new ones; see `unshare(2)`.
pub(crate) fn unshare(flags: libc::c_int) -> io::Result<()> {
    // SAFETY: it takes flags and touches no memory. The one that would part a thread from descriptors of
    // another, CLONE_FILES, is not used here, and there is no other thread.
    let result = unsafe { libc::unshare(flags) };
    outcome(result.into()).map(drop)
}

/// `struct mount_attr` of `linux/mount.h`.
#[repr(C)]
struct MountAttributes {
    set: u64,
    clear: u64,
    propagation: u64,
    user_namespace: u64,
}

const MOUNT_ATTR_RDONLY: u64 = 0x1;
const MOUNT_ATTR_NOSUID: u64 = 0x2;
const MOUNT_ATTR_NODEV: u64 = 0x4;
const MOUNT_ATTR_NOEXEC: u64 = 0x8;
const MOUNT_ATTR_IDMAP: u64 = 0x0010_0000;
const AT_EMPTY_PATH: libc::c_uint = 0x1000;
const AT_RECURSIVE: libc::c_uint = 0x8000;

/// What a mount forbids. Setuid programs have no power on any of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Forbid {
    /// Nothing else.
    Nothing,
    /// Opening devices.
    Devices,
    /// Changes, and opening devices.
    Changes,
    /// These, and executing programs.
    Execution,
}

fn mount_setattr(
    mount: BorrowedFd<'_>,
    recursive: bool,
    attributes: &MountAttributes,
) -> io::Result<()> {
    let flags = AT_EMPTY_PATH | if recursive { AT_RECURSIVE } else { 0 };
    let size = std::mem::size_of::<MountAttributes>();
    // SAFETY: the path is an empty string with its NUL, the attributes are a live structure whose size is
    // passed, and the kernel reads both before it returns.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            flags,
            std::ptr::from_ref(attributes),
            size,
        )
    };
    outcome(result).map(drop)
}

/// Restricts a mount, and those below it if `recursive`; see `mount_setattr(2)`.
pub(crate) fn restrict_mount(
    mount: BorrowedFd<'_>,
    forbid: Forbid,
    recursive: bool,
) -> io::Result<()> {
    let set = MOUNT_ATTR_NOSUID
        | match forbid {
            Forbid::Nothing => 0,
            Forbid::Devices => MOUNT_ATTR_NODEV,
            Forbid::Changes => MOUNT_ATTR_NODEV | MOUNT_ATTR_RDONLY,
            Forbid::Execution => MOUNT_ATTR_NODEV | MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOEXEC,
        };
    let attributes = MountAttributes { set, clear: 0, propagation: 0, user_namespace: 0 };
    mount_setattr(mount, recursive, &attributes)
}

/// Shows the files of a mount under other owners, as a user namespace maps them; see `mount_setattr(2)`.
pub(crate) fn map_owners(
    mount: BorrowedFd<'_>,
    user_namespace: BorrowedFd<'_>,
    recursive: bool,
) -> io::Result<()> {
    let number = u64::from(user_namespace.as_raw_fd().unsigned_abs());
    let attributes =
        MountAttributes { set: MOUNT_ATTR_IDMAP, clear: 0, propagation: 0, user_namespace: number };
    mount_setattr(mount, recursive, &attributes)
}

/// `IFF_UP` of `linux/if.h`, in the width it has there.
const IFF_UP: libc::c_short = 1;
/// `SIOCSIFFLAGS` of `linux/sockios.h`, whose type in the C library differs by system.
const SIOCSIFFLAGS: libc::Ioctl = 0x8914;

/// Takes the loopback interface of a new network namespace up; see `netdevice(7)`.
pub(crate) fn loopback_up(socket: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: an interface request is plain bytes, for which zero is a valid value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(*b"lo") {
        *to = libc::c_char::from_ne_bytes([from]);
    }
    request.ifr_ifru.ifru_flags = IFF_UP;
    // SAFETY: this request reads a live structure of the size the kernel expects, and writes nothing.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCSIFFLAGS, &raw const request) };
    outcome(result.into()).map(drop)
}

/// Blocks `signals` for good and returns a descriptor they are read from; see `signalfd(2)`.
pub(crate) fn signals(signals: &[libc::c_int]) -> io::Result<OwnedFd> {
    let mut set = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the pointer leads to a set of the right size, which this call initialises.
    let result = unsafe { libc::sigemptyset(set.as_mut_ptr()) };
    outcome(result.into())?;
    // SAFETY: the call above initialised it.
    let mut set = unsafe { set.assume_init() };
    for signal in signals {
        // SAFETY: the set is live and initialised.
        let result = unsafe { libc::sigaddset(&raw mut set, *signal) };
        outcome(result.into())?;
    }
    // SAFETY: the first pointer leads to a live set, the null one asks for no old set.
    let result =
        unsafe { libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) };
    outcome(result.into())?;
    // SAFETY: the set is live; -1 asks for a new descriptor.
    let result =
        unsafe { libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
    outcome(result.into())?;
    // SAFETY: the call returned it just now, so nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(result) })
}

/// Sends a signal to every other process of the PID namespace whose first process is the calling one.
///
/// # Errors
///
/// `EPERM` when the calling process is not the first of its namespace: there the same call would reach processes
/// that are none of ours.
pub(crate) fn signal_everybody(signal: libc::c_int) -> io::Result<()> {
    if rustix::process::getpid().as_raw_nonzero().get() != 1 {
        return Err(io::Error::from_raw_os_error(libc::EPERM));
    }
    // SAFETY: it takes integers. From the first process of a namespace it reaches that namespace alone.
    let result = unsafe { libc::kill(-1, signal) };
    outcome(result.into()).map(drop)
}

/// Ends the calling process by a signal, if that can end it.
pub(crate) fn die_of(signal: libc::c_int) {
    // SAFETY: the default action is no handler of ours.
    unsafe { libc::signal(signal, libc::SIG_DFL) };
    let mut set = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the pointer leads to a set of the right size, which this call initialises.
    unsafe { libc::sigemptyset(set.as_mut_ptr()) };
    // SAFETY: the call above initialised it.
    let mut set = unsafe { set.assume_init() };
    // SAFETY: the set is live and initialised; a number that is no signal is refused.
    unsafe { libc::sigaddset(&raw mut set, signal) };
    let this = rustix::process::getpid().as_raw_nonzero().get();
    // SAFETY: it takes integers and reaches the calling process alone. Not raise(3), which may go by a thread's number
    // that the C library remembers from before the process was split off.
    unsafe { libc::kill(this, signal) };
    // SAFETY: the first pointer leads to a live set, the null one asks for no old set.
    unsafe { libc::sigprocmask(libc::SIG_UNBLOCK, &raw const set, std::ptr::null_mut()) };
}
