//! What `/proc` tells of processes, in as few looks as will do.
//!
//! Ids are given out in rising order, so whoever a leader started has an id between the leader's and the last
//! one given out, which `/proc/loadavg` tells. That is a handful of processes where a machine has thousands:
//! reading all 2,000 of one took 11 ms, ten times as long as starting a program.
//!
//! Non-goal: a process that joined the group from elsewhere, or one older than the leader in a range that has
//! wrapped all the way round, is not seen here. It is killed with its group all the same, by the kernel.

use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags};
use rustix::process::Pid;

/// Ids tried one by one; beyond this the directory is read.
const TRIED: i32 = 4096;
/// Entries of `/proc` looked at in one walk: about 0.2 s, on a machine with that many processes.
const WALKED: usize = 32_768;

/// The directory `/proc`.
#[derive(Debug)]
pub(crate) struct Proc(OwnedFd);

impl Proc {
    pub(crate) fn open() -> Option<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        rustix::fs::open("/proc", flags, Mode::empty()).ok().map(Self)
    }

    /// Ids that may be those of processes started after `leader`; `None` when that cannot be told.
    pub(crate) fn started_after(&self, leader: Pid) -> Option<Vec<Pid>> {
        let leader = leader.as_raw_nonzero().get();
        match self.last_id() {
            Some(last) if (leader..=leader.saturating_add(TRIED)).contains(&last) => {
                Some((leader + 1..=last).filter_map(id).collect())
            }
            Some(last) => self.walk(|pid| is_later(leader, last, pid)),
            None => self.walk(|pid| pid != leader),
        }
    }

    pub(crate) fn stat(&self, pid: Pid) -> Option<Stat> {
        let mut text = [0; 1024];
        let text = self.read(&format!("{}/stat", pid.as_raw_nonzero()), &mut text)?;
        Stat::parse(text)
    }

    /// The last id given out; see `proc_loadavg(5)`.
    fn last_id(&self) -> Option<i32> {
        let mut text = [0; 128];
        let text = self.read("loadavg", &mut text)?;
        std::str::from_utf8(text).ok()?.split_ascii_whitespace().next_back()?.parse().ok()
    }

    fn walk(&self, wanted: impl Fn(i32) -> bool) -> Option<Vec<Pid>> {
        let mut found = Vec::new();
        let entries = rustix::fs::Dir::read_from(&self.0).ok()?;
        for (count, entry) in entries.enumerate() {
            if count == WALKED {
                return None;
            }
            let entry = entry.ok()?;
            let number = entry.file_name().to_str().ok().and_then(|name| name.parse().ok());
            found.extend(number.filter(|number| wanted(*number)).and_then(id));
        }
        Some(found)
    }

    fn read<'t>(&self, path: &str, text: &'t mut [u8]) -> Option<&'t [u8]> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.0, path, flags, Mode::empty()).ok()?;
        let length = rustix::io::read(&file, &mut *text).ok()?;
        text.get(..length)
    }
}

/// The fields of `/proc/PID/stat` that matter here.
#[derive(Debug, PartialEq)]
pub(crate) struct Stat {
    pub(crate) dead: bool,
    pub(crate) group: Pid,
}

impl Stat {
    /// See `proc_pid_stat(5)`. The name in parentheses may hold anything, so fields count from the last one.
    fn parse(text: &[u8]) -> Option<Self> {
        let name_end = text.iter().rposition(|byte| *byte == b')')?;
        let text = std::str::from_utf8(text.get(name_end + 1..)?).ok()?;
        let mut fields = text.split_ascii_whitespace();
        let dead = matches!(fields.next()?, "Z" | "X" | "x");
        // The parent stands between.
        Some(Self { dead, group: id(fields.nth(1)?.parse().ok()?)? })
    }
}

/// The most memory the calling process ever held, in bytes; see `proc_pid_status(5)`.
pub(crate) fn own_peak() -> Option<u64> {
    let mut text = [0; 4096];
    let text = std::str::from_utf8(Proc::open()?.read("self/status", &mut text)?).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

/// Whether `pid` was given out after `leader`, when `last` was the last one.
fn is_later(leader: i32, last: i32, pid: i32) -> bool {
    if last >= leader {
        (leader + 1..=last).contains(&pid)
    } else {
        // The numbers have begun again from the bottom while the leader ran.
        pid > leader || pid <= last
    }
}

/// A process id, if it can be one: the kernel writes -1 as the group of a process that is just going.
fn id(number: i32) -> Option<Pid> {
    if number > 0 { Pid::from_raw(number) } else { None }
}

#[cfg(test)]
mod tests {
    use super::{Proc, Stat, id, is_later, own_peak};

    #[test]
    fn a_name_with_parentheses_and_spaces_does_not_shift_the_fields() {
        let line = b"42 (a) S 1 (b) Z 7 40 40 0 -1 4194560 1 2 3 4 150 20 50 80 20 0 1 0 5 6 7";
        let stat = Stat::parse(line).unwrap();
        assert!(stat.dead);
        assert_eq!(stat.group.as_raw_nonzero().get(), 40);
    }

    #[test]
    fn a_line_cut_or_of_a_process_that_is_going_is_no_stat() {
        let going = "42 (sh) X 0 -1 -1 0 -1 4194560 1 2 3 4 150 20 50 80 20 0 1 0 5 6 7";
        for line in [going, "", "42", "42 (sh", "42 (sh) S 1", "42 (sh) S 1 x 40 0 -1"] {
            assert_eq!(Stat::parse(line.as_bytes()), None, "{line}");
        }
    }

    #[test]
    fn the_own_peak_grows_with_what_is_touched() {
        let before = own_peak().unwrap();
        assert!(before > 1 << 20);
        let memory = std::hint::black_box(vec![1_u8; 64 << 20]);
        assert!(own_peak().unwrap() > 60 << 20);
        drop(memory);
    }

    #[test]
    fn numbers_that_began_again_are_later_than_those_before() {
        let later = |leader, last| (1..=9).filter(|pid| is_later(leader, last, *pid)).collect();
        let check = |leader, last, expected: &[i32]| {
            let found: Vec<i32> = later(leader, last);
            assert_eq!(found, expected, "leader {leader}, last {last}");
        };
        check(4, 7, &[5, 6, 7]);
        check(7, 7, &[]);
        check(7, 2, &[1, 2, 8, 9]);
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "this needs a process, not a run of one")]
    fn a_process_started_later_is_among_the_candidates() {
        let proc = Proc::open().unwrap();
        let (reader, writer) = std::io::pipe().unwrap();
        let mut command = std::process::Command::new("/bin/cat");
        let mut child = command.stdin(reader).spawn().unwrap();
        let child_id = rustix::process::Pid::from_child(&child);
        assert!(proc.started_after(rustix::process::getpid()).unwrap().contains(&child_id));
        // The longer way finds it too.
        assert_eq!(proc.walk(|pid| id(pid) == Some(child_id)).unwrap(), [child_id]);
        drop((command, writer));
        child.wait().unwrap();
    }
}
