//! The leader's process group: who is in it, and its death.
//!
//! Invariant: every function here is called while the leader is not reaped, so its id names this group and no
//! other.

use std::os::fd::{AsFd as _, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions};

use crate::procfs::{Proc, Stat};
use crate::run::until;

/// Members whose death is waited for by name; the kernel kills the others too.
const WATCHED: usize = 256;
/// Time members get to die of `SIGKILL` before the answer stops waiting for them.
const SETTLE: Duration = Duration::from_secs(1);

/// A process group by its leader's id.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Group(pub(crate) Pid);

impl Group {
    pub(crate) fn signal(self, signal: Signal) {
        // It fails only when every member is gone, which is what a signal is sent for.
        rustix::process::kill_process_group(self.0, signal).ok();
    }

    /// Kills all members, waits for their death, and returns how many there were beside the leader.
    ///
    /// One kill reaches all members at once: a fork in progress sees the signal and gives up. A look *before* it
    /// tells how many there were, and may miss one that is always another process; a look *after* it misses
    /// nothing, since nothing in the group can fork any more.
    pub(crate) fn end(self) -> Option<usize> {
        let give_up = Instant::now() + SETTLE;
        let before = self.members();
        self.signal(Signal::KILL);
        let mut most = before?.count;
        loop {
            let members = self.members()?;
            // Those that are slow to die are seen again, so the numbers are not added up.
            most = most.max(members.count);
            if members.count == 0 || Instant::now() >= give_up {
                return Some(most);
            }
            members.wait(give_up);
            // One that joined the group while it was killed.
            self.signal(Signal::KILL);
        }
    }

    fn members(self) -> Option<Members> {
        let proc = Proc::open()?;
        let mut members = Members { count: 0, watched: Vec::new() };
        for pid in proc.started_after(self.0)? {
            match proc.stat(pid) {
                Some(stat) if stat.group == self.0 => members.add(self, &proc, pid, &stat),
                _ => {}
            }
        }
        Some(members)
    }
}

/// Living members of a group beside its leader.
struct Members {
    count: usize,
    watched: Vec<OwnedFd>,
}

impl Members {
    fn add(&mut self, group: Group, proc: &Proc, pid: Pid, stat: &Stat) {
        if stat.dead {
            // An orphan that became a child of ours, as it does when the caller is process 1 or a subreaper.
            // A stranger's child is refused by the kernel.
            rustix::process::waitid(
                WaitId::Pid(pid),
                WaitIdOptions::EXITED | WaitIdOptions::NOHANG,
            )
            .ok();
            return;
        }
        self.count += 1;
        if self.watched.len() == WATCHED {
            return;
        }
        let Ok(pidfd) = rustix::process::pidfd_open(pid, PidfdFlags::empty()) else { return };
        // The id may have passed to another process since it was read; only a member is waited for.
        if proc.stat(pid).is_some_and(|stat| stat.group == group.0) {
            self.watched.push(pidfd);
        }
    }

    fn wait(mut self, give_up: Instant) {
        while !self.watched.is_empty() && Instant::now() < give_up {
            let mut fds: Vec<_> =
                self.watched.iter().map(|pidfd| PollFd::new(pidfd, PollFlags::IN)).collect();
            if rustix::event::poll(&mut fds, until(Some(give_up)).as_ref())
                .is_err_and(|errno| errno != rustix::io::Errno::INTR)
            {
                return;
            }
            let mut gone = fds.iter().map(|fd| !fd.revents().is_empty()).collect::<Vec<_>>();
            self.watched.retain(|pidfd| {
                let gone = !gone.is_empty() && gone.remove(0);
                if gone {
                    // Reaps it where it became a child of ours; elsewhere the kernel refuses.
                    rustix::process::waitid(
                        WaitId::PidFd(pidfd.as_fd()),
                        WaitIdOptions::EXITED | WaitIdOptions::NOHANG,
                    )
                    .ok();
                }
                !gone
            });
        }
    }
}
