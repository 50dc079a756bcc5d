//! How a command ended, and what it cost.

use std::time::Duration;

use crate::Captured;

/// How the leader ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum End {
    /// With an exit code, 0 to 255.
    Exited(u8),
    /// By the signal with this number.
    Signaled(i32),
}

/// What is known of a command after its whole group has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Outcome {
    /// How the leader ended. After a time-out it may well have exited by itself, on `SIGTERM`.
    pub end: End,
    /// Whether the time was up.
    pub timed_out: bool,
    /// Whether it was cancelled.
    pub cancelled: bool,
    /// Processes of the group that were alive when the leader had ended, or had to be killed with it. `None`
    /// when `/proc` could not be read to its end; the group was killed all the same.
    pub leftovers: Option<usize>,
    /// Start and end of the output.
    pub captured: Captured,
    /// From before the start to the end of the last step.
    pub duration: Duration,
    /// What the leader used, and those of its descendants that were waited for.
    pub usage: Usage,
}

/// What a command used, as `wait4(2)` tells it of the leader.
///
/// A process is counted with its parent when that waits for it. So a whole build is counted, and what was left
/// running, orphaned or killed with the group is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Usage {
    /// Time in user mode.
    pub user: Duration,
    /// Time in the kernel.
    pub system: Duration,
    /// Bytes of memory that the largest single process held; not a sum.
    ///
    /// `None` where that is not clearly more than the caller itself ever held. A child is started in its parent's
    /// memory (`vfork(2)`), and what the kernel notes of it begins with the parent's peak: a smaller child cannot be
    /// told from it. See `exec_mmap` in `fs/exec.c`.
    pub max_rss: Option<u64>,
}

impl Usage {
    /// From what the kernel tells, beside the caller's own peak.
    pub(crate) fn of(told: &wait4::ResourceUsage, own_peak: Option<u64>) -> Self {
        // The kernel's count of pages is rough by some for each processor.
        let clear = |peak: u64| peak + peak / 8 + (1 << 20);
        let max_rss = own_peak.is_some_and(|peak| told.maxrss > clear(peak)).then_some(told.maxrss);
        Self { user: told.utime, system: told.stime, max_rss }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Usage;

    #[test]
    fn memory_is_told_only_where_it_is_not_the_callers() {
        let told = wait4::ResourceUsage {
            utime: Duration::from_millis(3),
            stime: Duration::ZERO,
            maxrss: 100 << 20,
        };
        let max_rss = |own_peak| Usage::of(&told, own_peak).max_rss;
        assert_eq!(max_rss(Some(10 << 20)), Some(100 << 20));
        assert_eq!(max_rss(Some(100 << 20)), None);
        assert_eq!(max_rss(Some(95 << 20)), None);
        assert_eq!(max_rss(None), None);
    }
}
