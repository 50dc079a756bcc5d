//! Where lines stand in large files that were read before, so that a page far inside is not found by
//! reading from the start again.
//!
//! A [`LineIndex`] knows for each block of a file how many lines end before it. It grows as pages are
//! read, and is a few bytes for each MiB of the file. It is kept for a file as it was: the same inode,
//! size and times of change. A file that was changed a moment ago is not kept, since a further change
//! might fall into the same tick of the clock. What an index tells is where to read, never what to answer.
//!
//! Non-goal: seeing writes through a memory map before the system has given the file a new time.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::Stat;

/// Bytes of a block.
const BLOCK: u64 = 1024 * 1024;

/// Files whose index is kept.
const KEPT: usize = 16;

/// How long a file must have been left alone. File systems tell time by two seconds at worst.
const SETTLED: Duration = Duration::from_secs(3);

/// The lines of one file, as far as it was read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LineIndex {
    /// How many lines end in the blocks up to this one, for each block that was read.
    ended: Vec<u64>,
    /// Lines in the whole file, if it was read to its end.
    total: Option<u64>,
}

impl LineIndex {
    /// The last known place before line `line` begins: how many bytes stand before it, and how many lines end
    /// in these.
    pub(crate) fn before(&self, line: u64) -> (u64, u64) {
        let blocks = self.ended.partition_point(|ended| *ended < line);
        let ended = blocks.checked_sub(1).and_then(|last| self.ended.get(last));
        ended.map_or((0, 0), |ended| (blocks as u64 * BLOCK, *ended))
    }

    /// Takes in that `ended` lines end in the first `position` bytes.
    pub(crate) fn note(&mut self, position: u64, ended: u64) {
        if position == (self.ended.len() as u64 + 1) * BLOCK {
            self.ended.push(ended);
        }
    }

    /// Takes in how many lines the whole file has.
    pub(crate) fn note_total(&mut self, total: u64) {
        self.total = Some(total);
    }

    pub(crate) fn total(&self) -> Option<u64> {
        self.total
    }
}

/// A file at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    file: (u64, u64),
    size: i64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    fn of(stat: &Stat) -> Self {
        let nanoseconds = |part| i64::try_from(part).unwrap_or(i64::MAX);
        Self {
            file: (stat.st_dev, stat.st_ino),
            size: stat.st_size,
            modified: (stat.st_mtime, nanoseconds(stat.st_mtime_nsec)),
            changed: (stat.st_ctime, nanoseconds(stat.st_ctime_nsec)),
        }
    }

    /// Whether its last change lies so far back that the next one will have another time.
    fn is_settled(&self, now: SystemTime) -> bool {
        let settled = now.duration_since(UNIX_EPOCH).ok().and_then(|now| now.checked_sub(SETTLED));
        let settled = settled.and_then(|time| i64::try_from(time.as_secs()).ok());
        settled.is_some_and(|settled| self.modified.0.max(self.changed.0) < settled)
    }
}

/// The indexes of the files read last.
#[derive(Debug, Default)]
pub(crate) struct LineIndexes(Mutex<VecDeque<(Stamp, Arc<LineIndex>)>>);

impl LineIndexes {
    /// What is known of the file; nothing if it has changed.
    pub(crate) fn get(&self, stat: &Stat) -> Arc<LineIndex> {
        let stamp = Stamp::of(stat);
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = kept.iter().find(|(of, _)| *of == stamp);
        found.map(|(_, index)| Arc::clone(index)).unwrap_or_default()
    }

    /// Keeps what was learnt of the file, if it is `after` reading what it was `before`.
    pub(crate) fn put(&self, before: &Stat, after: &Stat, index: Arc<LineIndex>) {
        let stamp = Stamp::of(before);
        if stamp != Stamp::of(after) || !stamp.is_settled(SystemTime::now()) {
            return;
        }
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|(of, _)| of.file != stamp.file);
        kept.push_front((stamp, index));
        kept.truncate(KEPT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_known_place_before_a_line_is_told() {
        let mut index = LineIndex::default();
        assert_eq!(index.before(9), (0, 0));
        index.note(BLOCK, 10);
        index.note(BLOCK, 10);
        index.note(BLOCK + 5, 11);
        index.note(2 * BLOCK, 10);
        index.note(3 * BLOCK, 30);
        assert_eq!(index.ended, [10, 10, 30]);
        // Line 10 may begin in the first block, line 11 cannot.
        let places = [0, 10, 11, 30, 31].map(|line| index.before(line));
        let expected = [(0, 0), (0, 0), (2 * BLOCK, 10), (2 * BLOCK, 10), (3 * BLOCK, 30)];
        assert_eq!(places, expected);
    }

    #[test]
    fn a_file_is_settled_some_time_after_its_last_change() {
        let stamp = |modified, changed| Stamp {
            file: (1, 1),
            size: 1,
            modified: (modified, 0),
            changed: (changed, 0),
        };
        let now = UNIX_EPOCH + Duration::from_secs(1000);
        assert!(stamp(900, 996).is_settled(now));
        assert!(!stamp(900, 998).is_settled(now));
        assert!(!stamp(998, 900).is_settled(now));
        assert!(!stamp(900, 2000).is_settled(now));
    }
}
