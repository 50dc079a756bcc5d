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
    /// Processor time of the leader and of the children it waited for; `None` when `/proc` does not tell.
    pub usage: Option<Usage>,
}

/// Processor time, in the kernel's clock ticks (10 ms on most systems).
///
/// The largest resident size is left out: `wait4(2)` alone tells it, and no safe interface to that call is
/// at hand; `/proc` forgets it when the process ends, and `getrusage(2)` mixes all children that ever ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Usage {
    /// Time in user mode.
    pub user: Duration,
    /// Time in the kernel.
    pub system: Duration,
}
