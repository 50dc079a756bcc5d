//! Limits of one process, by `setrlimit(2)`.
//!
//! Memory is held by `RLIMIT_DATA`, private writable memory, not by `RLIMIT_AS`: Node, Go, Java and the address
//! sanitizer reserve address space by the terabyte and never write to it, so under a limit of address space they
//! do not start. A limit of either kind is for one process; what all of a command's processes use together needs
//! a control group.
//!
//! The number of processes is counted by the kernel for the whole user, so the limit is put above what that user
//! runs already; for root the kernel does not look at it.

use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags};
use rustix::process::{Resource, Rlimit};
use serde::{Deserialize, Serialize};

use crate::ResourceLimits;

/// A resource, as it travels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Limited {
    Core,
    Memory,
    FileSize,
    OpenFiles,
    Cpu,
    Processes,
}

/// A limit of a resource: soft and hard alike, so that a command cannot raise it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Limit {
    pub(crate) resource: Limited,
    pub(crate) value: u64,
}

/// The limits a policy asks for, but for that of processes, which depends on the moment.
pub(crate) fn plan(limits: &ResourceLimits) -> Vec<Limit> {
    let seconds = limits.cpu.map(|time| time.as_secs().max(1));
    [
        // Not 0: a core that is piped to a program knows no limit but this one, which forbids it. See core(5) and
        // fs/coredump.c.
        (Limited::Core, Some(1)),
        (Limited::Memory, limits.memory),
        (Limited::FileSize, limits.file_size),
        (Limited::OpenFiles, limits.open_files),
        (Limited::Cpu, seconds),
    ]
    .into_iter()
    .filter_map(|(resource, value)| value.map(|value| Limit { resource, value }))
    .collect()
}

/// Sets limits. One that is lower already stays as it is.
pub(crate) fn apply(limits: &[Limit]) -> io::Result<()> {
    for limit in limits {
        let resource = resource(limit.resource);
        let known = rustix::process::getrlimit(resource);
        let value = known.maximum.map_or(limit.value, |hard| hard.min(limit.value));
        let value = Some(value);
        rustix::process::setrlimit(resource, Rlimit { current: value, maximum: value })?;
    }
    Ok(())
}

/// Whether the calling process is held to each of `limits`.
pub(crate) fn holds(limits: &[Limit]) -> bool {
    limits.iter().all(|limit| {
        let known = rustix::process::getrlimit(resource(limit.resource));
        known.current.is_some_and(|soft| soft <= limit.value)
            && known.maximum.is_some_and(|hard| hard <= limit.value)
    })
}

fn resource(limited: Limited) -> Resource {
    match limited {
        Limited::Core => Resource::Core,
        Limited::Memory => Resource::Data,
        Limited::FileSize => Resource::Fsize,
        Limited::OpenFiles => Resource::Nofile,
        Limited::Cpu => Resource::Cpu,
        Limited::Processes => Resource::Nproc,
    }
}

/// Processes and threads of `user` that run now, as far as `/proc` shows them.
pub(crate) fn tasks_of(user: u32) -> io::Result<u64> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let proc = rustix::fs::open("/proc", flags, Mode::empty())?;
    let mut tasks = 0;
    for entry in rustix::fs::Dir::read_from(&proc)? {
        let name = entry?.file_name().to_owned();
        if name.to_bytes().first().is_some_and(u8::is_ascii_digit) {
            // A process that ended meanwhile has no tasks.
            tasks += tasks_in(&proc, &name, user).unwrap_or(0);
        }
    }
    Ok(tasks)
}

/// Threads of one process, 0 when it is another user's; see `proc_pid_status(5)`.
fn tasks_in(proc: &OwnedFd, process: &std::ffi::CStr, user: u32) -> Option<u64> {
    let path = [process.to_bytes(), b"/status"].concat();
    let file = rustix::fs::openat(proc, &path[..], OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
        .ok()?;
    let mut text = [0; 4096];
    let length = rustix::io::read(&file, &mut text).ok()?;
    let text = String::from_utf8_lossy(&text[..length]);
    let field = |name| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_ascii_whitespace().next()
    };
    // The first of the four ids is the real one, which the kernel counts by.
    let owner: u32 = field("Uid:")?.parse().ok()?;
    if owner == user { field("Threads:")?.parse().ok() } else { Some(0) }
}

#[cfg(test)]
mod tests {
    use super::{Limited, plan, tasks_of};
    use crate::ResourceLimits;

    #[test]
    fn this_process_is_counted_with_its_threads() {
        let user = rustix::process::getuid().as_raw();
        let (leave, wait) = std::sync::mpsc::channel::<()>();
        let before = tasks_of(user).unwrap();
        assert!(before >= 1);
        let thread = std::thread::spawn(move || wait.recv());
        // Other processes come and go; one that nobody has counts none.
        assert_eq!(tasks_of(4_000_000_000).unwrap(), 0);
        drop(leave);
        assert!(thread.join().unwrap().is_err());
    }

    #[test]
    fn what_is_not_asked_for_is_not_limited_but_for_core_files() {
        let limits = ResourceLimits {
            pids: None,
            memory: None,
            file_size: None,
            open_files: None,
            cpu: None,
            tmp: None,
        };
        let resources: Vec<_> = plan(&limits).iter().map(|limit| limit.resource).collect();
        assert_eq!(resources, [Limited::Core]);
    }
}
