//! The first and the last bytes of an output of any length.
//!
//! Invariant: memory stays below head + 3 × tail, whatever is written. What falls between is counted, and the
//! sink of [`Container::exec_with`](crate::Container::exec_with) has seen it.

use std::fmt;

/// What a command wrote, both streams in the order the engine gave them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Output {
    /// The first bytes; all of them when nothing was omitted.
    pub head: Vec<u8>,
    /// The last bytes; empty while everything fits in the head.
    pub tail: Vec<u8>,
    /// How many bytes between the two were not kept.
    pub omitted: u64,
}

impl Output {
    /// Whether bytes are missing in the middle.
    pub fn truncated(&self) -> bool {
        self.omitted > 0
    }
}

/// As text, each byte sequence that is not UTF-8 replaced by U+FFFD, and a bracketed line where bytes are missing.
impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.omitted == 0 {
            // Joined first: the cut may lie within a character.
            let whole = [self.head.as_slice(), &self.tail].concat();
            return f.write_str(&String::from_utf8_lossy(&whole));
        }
        f.write_str(&String::from_utf8_lossy(&self.head))?;
        write!(f, "\n[{} bytes omitted]\n", self.omitted)?;
        f.write_str(&String::from_utf8_lossy(&self.tail))
    }
}

/// Takes an output piece by piece.
pub(crate) struct Capture {
    output: Output,
    head: usize,
    tail: usize,
}

impl Capture {
    pub(crate) fn new((head, tail): (usize, usize)) -> Self {
        Self { output: Output::default(), head, tail }
    }

    pub(crate) fn push(&mut self, piece: &[u8]) {
        let room = (self.head - self.output.head.len()).min(piece.len());
        let (first, rest) = piece.split_at(room);
        self.output.head.extend_from_slice(first);
        // Only the end of a long piece can survive; the rest is counted without being copied.
        let (passed, rest) = rest.split_at(rest.len().saturating_sub(self.tail));
        self.output.omitted += passed.len() as u64;
        self.output.tail.extend_from_slice(rest);
        // Twice the tail is let grow, so that the front is moved away once a tail and not once a piece.
        if self.output.tail.len() >= self.tail.saturating_mul(2) {
            self.trim();
        }
    }

    fn trim(&mut self) {
        let excess = self.output.tail.len().saturating_sub(self.tail);
        self.output.tail.drain(..excess);
        self.output.omitted += excess as u64;
    }

    pub(crate) fn finish(mut self) -> Output {
        self.trim();
        self.output
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn head_gap_and_tail_are_the_whole(
            pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..20),
            head in 0_usize..50,
            tail in 0_usize..50,
        ) {
            let mut capture = Capture::new((head, tail));
            for piece in &pieces {
                capture.push(piece);
                prop_assert!(capture.output.head.len() <= head);
                prop_assert!(capture.output.tail.len() <= tail * 2);
            }
            let output = capture.finish();
            let whole = pieces.concat();
            prop_assert!(whole.starts_with(&output.head));
            prop_assert!(whole.ends_with(&output.tail));
            let omitted = usize::try_from(output.omitted).unwrap();
            prop_assert_eq!(output.head.len() + omitted + output.tail.len(), whole.len());
            prop_assert_eq!(omitted, whole.len().saturating_sub(head + tail));
        }
    }

    #[test]
    fn a_character_across_the_cut_is_whole_when_nothing_is_missing() {
        let mut capture = Capture::new((1, 9));
        capture.push("é!".as_bytes());
        assert_eq!(capture.finish().to_string(), "é!");
    }

    #[test]
    fn a_gap_is_said() {
        let mut capture = Capture::new((2, 2));
        capture.push(b"abcdefgh");
        assert_eq!(capture.finish().to_string(), "ab\n[4 bytes omitted]\ngh");
    }
}
