//! Several changes, one after the other, as one change of the original.

use std::ops::Range;

/// A piece of the original and what stands in its place; outside all pieces the texts are equal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Bytes of the original.
    pub(crate) old: Range<usize>,
    /// Bytes of the text after all changes so far.
    pub(crate) new: Range<usize>,
}

/// The change so far, as disjoint pieces in order.
#[derive(Debug, Default)]
pub(crate) struct Change {
    pub(crate) pieces: Vec<Piece>,
}

impl Change {
    /// The original offset of a current one; inside a piece its start, or its end if `end`.
    fn original(&self, at: usize, end: bool) -> usize {
        let before = self.pieces.partition_point(|piece| piece.new.start < at);
        let Some(piece) = before.checked_sub(1).and_then(|i| self.pieces.get(i)) else {
            return at;
        };
        if at >= piece.new.end {
            piece.old.end + (at - piece.new.end)
        } else if end {
            piece.old.end
        } else {
            piece.old.start
        }
    }

    /// The original range that a current range stands for, pieces it touches inside taken whole.
    pub(crate) fn original_range(&self, range: &Range<usize>) -> Range<usize> {
        let start = self.original(range.start, false);
        start..self.original(range.end, true).max(start)
    }

    /// Takes in the next change: ascending disjoint current ranges and the lengths they become.
    pub(crate) fn then(&mut self, next: &[(Range<usize>, usize)]) {
        let mut out: Vec<Piece> = Vec::with_capacity(self.pieces.len() + next.len());
        let mut mine = std::mem::take(&mut self.pieces).into_iter().peekable();
        let mut theirs = next.iter().peekable();
        // How far behind the last piece taken each text runs ahead of the current one.
        let (mut old_shift, mut new_shift) = (0_isize, 0_isize);
        loop {
            let start = match (mine.peek(), theirs.peek()) {
                (Some(a), Some((b, _))) => a.new.start.min(b.start),
                (Some(a), None) => a.new.start,
                (None, Some((b, _))) => b.start,
                (None, None) => break,
            };
            let (old_start, new_start) = (moved(start, old_shift), moved(start, new_shift));
            let mut end = start;
            loop {
                if let Some(a) = mine.next_if(|a| a.new.start <= end) {
                    end = end.max(a.new.end);
                    old_shift = difference(a.old.end, a.new.end);
                } else if let Some((b, length)) = theirs.next_if(|(b, _)| b.start <= end) {
                    end = end.max(b.end);
                    new_shift += difference(*length, b.len());
                } else {
                    break;
                }
            }
            out.push(Piece {
                old: old_start..moved(end, old_shift),
                new: new_start..moved(end, new_shift),
            });
        }
        self.pieces = out;
    }
}

fn moved(at: usize, by: isize) -> usize {
    at.saturating_add_signed(by)
}

fn difference(a: usize, b: usize) -> isize {
    isize::try_from(a).unwrap_or(isize::MAX) - isize::try_from(b).unwrap_or(isize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    type Step<'a> = &'a [(Range<usize>, &'a str)];

    /// Applies the steps to a text and checks that the pieces say the same.
    #[track_caller]
    fn check(original: &str, steps: &[Step<'_>], pieces: usize) {
        let mut change = Change::default();
        let mut text = original.to_owned();
        for step in steps {
            let lengths: Vec<_> = step.iter().map(|(r, t)| (r.clone(), t.len())).collect();
            for (range, new) in step.iter().rev() {
                text.replace_range(range.clone(), new);
            }
            change.then(&lengths);
        }
        let mut rebuilt = original.to_owned();
        for piece in change.pieces.iter().rev() {
            rebuilt.replace_range(piece.old.clone(), crate::text::cut(&text, piece.new.clone()));
        }
        assert_eq!(rebuilt, text);
        assert_eq!(change.pieces.len(), pieces);
    }

    #[test]
    fn steps_compose() {
        check("0123456789", &[&[(2..3, "abc")], &[(0..1, "")]], 2);
        check("0123456789", &[&[(2..3, "abc")], &[(3..4, "XY")]], 1);
        check("0123456789", &[&[(2..6, "")], &[(1..4, "Q")]], 1);
        check("0123456789", &[&[(1..2, "aa"), (5..6, "")], &[(0..8, "z")]], 1);
        check("0123456789", &[&[(8..9, "")], &[(0..1, "long")], &[(4..5, "?")]], 2);
    }
}
