//! The first and the last bytes of a stream, in fixed memory.
//!
//! Invariants: head and tail never exceed their limits; while nothing had to go, head followed by tail is the
//! whole stream.

/// Start and end of a command's output.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Captured {
    /// The first bytes, at most [`Limits::head_bytes`](crate::Limits::head_bytes).
    pub head: Vec<u8>,
    /// The last bytes of what came after the head, at most [`Limits::tail_bytes`](crate::Limits::tail_bytes).
    pub tail: Vec<u8>,
    /// Bytes of output in all.
    pub total_bytes: u64,
}

impl Captured {
    /// Bytes between head and tail that were not kept; 0 when head followed by tail is the whole output.
    pub fn omitted_bytes(&self) -> u64 {
        self.total_bytes - (self.head.len() + self.tail.len()) as u64
    }
}

/// A [`Captured`] in the making: the tail is a ring.
#[derive(Debug)]
pub(crate) struct Capture {
    head: Vec<u8>,
    head_limit: usize,
    ring: Vec<u8>,
    ring_limit: usize,
    /// Where the oldest byte of a full ring is, and the next one goes.
    oldest: usize,
    total: u64,
}

impl Capture {
    pub(crate) fn new(head_limit: usize, ring_limit: usize) -> Self {
        Self { head: Vec::new(), head_limit, ring: Vec::new(), ring_limit, oldest: 0, total: 0 }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let (head, rest) = bytes.split_at(bytes.len().min(self.head_limit - self.head.len()));
        self.head.extend_from_slice(head);
        // Of a chunk longer than the ring only its end could stay.
        let rest = rest.split_at(rest.len().saturating_sub(self.ring_limit)).1;
        let (grow, wrap) = rest.split_at(rest.len().min(self.ring_limit - self.ring.len()));
        self.ring.extend_from_slice(grow);
        let (to_end, to_start) = wrap.split_at(wrap.len().min(self.ring.len() - self.oldest));
        self.ring[self.oldest..][..to_end.len()].copy_from_slice(to_end);
        self.ring[..to_start.len()].copy_from_slice(to_start);
        if self.ring_limit > 0 {
            self.oldest = (self.oldest + wrap.len()) % self.ring_limit;
        }
    }

    pub(crate) fn finish(mut self) -> Captured {
        self.ring.rotate_left(self.oldest);
        Captured { head: self.head, tail: self.ring, total_bytes: self.total }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Capture;

    proptest! {
        #[test]
        fn head_and_tail_are_the_ends_of_the_stream(
            chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..20),
            head_limit in 0_usize..50,
            tail_limit in 0_usize..50,
        ) {
            let stream = chunks.concat();
            let mut capture = Capture::new(head_limit, tail_limit);
            for chunk in &chunks {
                capture.push(chunk);
            }
            let captured = capture.finish();
            let (head, rest) = stream.split_at(stream.len().min(head_limit));
            prop_assert_eq!(&captured.head, head);
            prop_assert_eq!(&captured.tail, &rest[rest.len().saturating_sub(tail_limit)..]);
            prop_assert_eq!(captured.total_bytes, stream.len() as u64);
            prop_assert_eq!(
                captured.omitted_bytes(),
                (stream.len() - captured.head.len() - captured.tail.len()) as u64
            );
        }
    }
}
