//! A switch that ends runs from another thread, at once.
//!
//! Invariant: a switch once thrown stays thrown. Its event counter is never read, so every poll on it, at any
//! later time and from any number of runs, reports it.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec};

use crate::Error;

/// Cancels the runs it was given to. Clones are the same switch.
///
/// ```
/// use std::time::Duration;
/// use proc_runner::{Cancel, Command, Limits, run};
///
/// let cancel = Cancel::new()?;
/// let switch = cancel.clone();
/// let command = Command::new("/bin/sh").args(["-c", "echo ready; sleep 600"]);
/// // The switch is thrown as soon as the command has said something; usually another thread does it.
/// let mut sink = |_: &[u8]| {
///     switch.cancel();
///     Ok(())
/// };
/// let outcome = run(command, &Limits::new(Duration::from_secs(60)), &cancel, &mut sink)?;
/// assert!(outcome.cancelled && !outcome.timed_out);
/// assert_eq!(outcome.captured.head, b"ready\n");
/// # Ok::<(), proc_runner::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Cancel {
    event: Arc<OwnedFd>,
}

impl Cancel {
    /// Makes a switch that is not thrown; it uses one descriptor.
    ///
    /// # Errors
    ///
    /// [`Error::System`] when no descriptor is left.
    pub fn new() -> Result<Self, Error> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let event = rustix::event::eventfd(0, flags).map_err(Error::system("make an event"))?;
        Ok(Self { event: Arc::new(event) })
    }

    /// Ends every run that has this switch, now or later. It returns at once; doing it again changes nothing.
    pub fn cancel(&self) {
        // The only failure is a counter at its maximum, in which case the switch is long thrown.
        rustix::io::write(&*self.event, &1_u64.to_ne_bytes()).ok();
    }

    /// Whether it was thrown.
    pub fn is_cancelled(&self) -> bool {
        let mut fds = [PollFd::new(&*self.event, PollFlags::IN)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        rustix::event::poll(&mut fds, Some(&now)).is_ok_and(|ready| ready > 0)
    }
}

impl AsFd for Cancel {
    /// Readable once thrown; for a caller's own `poll(2)`. Reading from it would take the throw back.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::Cancel;

    #[test]
    fn a_switch_stays_thrown_for_all_clones() {
        let cancel = Cancel::new().unwrap();
        let clone = cancel.clone();
        assert!(!clone.is_cancelled());
        cancel.cancel();
        cancel.cancel();
        assert!(clone.is_cancelled());
        assert!(clone.is_cancelled());
    }
}
