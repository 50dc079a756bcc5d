//! Where output goes while it arrives.

use std::io;

/// Receives every byte of output, in order, as it arrives.
///
/// A closure `FnMut(&[u8]) -> io::Result<()>` is one.
pub trait Sink {
    /// Takes the next bytes: at least one, at most 64 KiB, cut anywhere, in the middle of a character too.
    ///
    /// The child is held up while this runs (its pipe fills), and so are time-out and cancellation: a sink
    /// that can block must bound that itself.
    ///
    /// # Errors
    ///
    /// An error ends the whole tree without grace; [`run`](crate::run) then reports it as
    /// [`Error::Sink`](crate::Error::Sink) together with the outcome. The sink is not called again.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()>;
}

impl<F: FnMut(&[u8]) -> io::Result<()>> Sink for F {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self(bytes)
    }
}

/// A sink for callers that want no more than what [`Captured`](crate::Captured) keeps.
#[derive(Debug, Clone, Copy, Default)]
pub struct Discard;

impl Sink for Discard {
    fn write(&mut self, _: &[u8]) -> io::Result<()> {
        Ok(())
    }
}
