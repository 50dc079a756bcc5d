//! How long a command may run and how much of its output is kept.

use std::time::Duration;

/// Bounds of one run: the time-out is the caller's choice, the rest has defaults.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Time from the start until the group gets `SIGTERM`. [`Duration::MAX`] means none.
    pub timeout: Duration,
    /// Time between `SIGTERM` and `SIGKILL`; 1 s by default. After a cancellation, nobody waits for the
    /// answer any more and at most [`Limits::CANCEL_GRACE`] is given.
    pub grace: Duration,
    /// Bytes kept from the start of the output; 64 KiB by default.
    pub head_bytes: usize,
    /// Bytes kept from the end of the output, once the head is full; 192 KiB by default.
    pub tail_bytes: usize,
    /// Time the pipe is still read after the group is dead; 1 s by default. It is used up only when a process
    /// outside the group holds the pipe open.
    pub drain: Duration,
}

impl Limits {
    /// The longest grace of a cancelled command.
    pub const CANCEL_GRACE: Duration = Duration::from_millis(500);

    /// Sets the time-out and takes the default of everything else.
    pub fn new(timeout: Duration) -> Self {
        Self {
            timeout,
            grace: Duration::from_secs(1),
            head_bytes: 64 * 1024,
            tail_bytes: 192 * 1024,
            drain: Duration::from_secs(1),
        }
    }

    /// Sets [`Limits::grace`].
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Sets how many bytes of output are kept, from its start and from its end.
    #[must_use]
    pub fn keep(mut self, head_bytes: usize, tail_bytes: usize) -> Self {
        self.head_bytes = head_bytes;
        self.tail_bytes = tail_bytes;
        self
    }

    /// Sets [`Limits::drain`].
    #[must_use]
    pub fn drain(mut self, drain: Duration) -> Self {
        self.drain = drain;
        self
    }
}
