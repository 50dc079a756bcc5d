//! Line differences with a bound on their cost that does not depend on the clock.

use std::hash::Hash;

use similar::{Algorithm, DiffOp, capture_diff_slices};

/// Product of the differing middles beyond which they count as wholly different.
const MAX_WORK: usize = 16_000_000;

/// The steps from `old` to `new`; equal runs, and everything else as one replacement between them.
///
/// The common beginning and end are found first. Where the rest is so large that its difference would not
/// be quick, it is one replacement.
pub(crate) fn diff<T: Hash + Eq + Ord + Clone>(old: &[T], new: &[T]) -> Vec<DiffOp> {
    let head = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let (old_rest, new_rest) =
        (old.get(head..).unwrap_or_default(), new.get(head..).unwrap_or_default());
    let tail = old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(|(a, b)| a == b).count();
    let old_middle = old_rest.get(..old_rest.len() - tail).unwrap_or_default();
    let new_middle = new_rest.get(..new_rest.len() - tail).unwrap_or_default();
    let mut ops = Vec::new();
    if head > 0 {
        ops.push(DiffOp::Equal { old_index: 0, new_index: 0, len: head });
    }
    let (old_len, new_len) = (old_middle.len(), new_middle.len());
    let small = old_len <= 1 && new_len <= 1;
    if old_len + new_len == 0 {
        // The common ends meet.
    } else if small || old_len.saturating_mul(new_len) > MAX_WORK {
        ops.push(DiffOp::Replace { old_index: head, old_len, new_index: head, new_len });
    } else {
        let found = capture_diff_slices(Algorithm::Myers, old_middle, new_middle);
        ops.extend(found.into_iter().map(|op| moved(op, head)));
    }
    if tail > 0 {
        let (old_index, new_index) = (head + old_len, head + new_len);
        ops.push(DiffOp::Equal { old_index, new_index, len: tail });
    }
    ops
}

fn moved(op: DiffOp, by: usize) -> DiffOp {
    match op {
        DiffOp::Equal { old_index, new_index, len } => {
            DiffOp::Equal { old_index: old_index + by, new_index: new_index + by, len }
        }
        DiffOp::Delete { old_index, old_len, new_index } => {
            DiffOp::Delete { old_index: old_index + by, old_len, new_index: new_index + by }
        }
        DiffOp::Insert { old_index, new_index, new_len } => {
            DiffOp::Insert { old_index: old_index + by, new_index: new_index + by, new_len }
        }
        DiffOp::Replace { old_index, old_len, new_index, new_len } => DiffOp::Replace {
            old_index: old_index + by,
            old_len,
            new_index: new_index + by,
            new_len,
        },
    }
}

/// What became of a line of the replacement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Equal to this line of the search.
    Kept(usize),
    /// In the place of this line of the search, one for one.
    Paired(usize),
    /// New.
    New,
}

/// For each line of `new`, the line of `old` it continues.
pub(crate) fn origins<T: Hash + Eq + Ord + Clone>(old: &[T], new: &[T]) -> Vec<Origin> {
    let mut out = vec![Origin::New; new.len()];
    for op in diff(old, new) {
        let (old_index, new_index, len, kept) = match op {
            DiffOp::Equal { old_index, new_index, len } => (old_index, new_index, len, true),
            DiffOp::Replace { old_index, old_len, new_index, new_len } if old_len == new_len => {
                (old_index, new_index, new_len, false)
            }
            _ => continue,
        };
        for (step, slot) in out.iter_mut().skip(new_index).take(len).enumerate() {
            let partner = old_index + step;
            *slot = if kept { Origin::Kept(partner) } else { Origin::Paired(partner) };
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_name_the_partner() {
        use Origin::{Kept, New, Paired};
        assert_eq!(origins(&["a", "b", "c"], &["a", "x", "c"]), [Kept(0), Paired(1), Kept(2)]);
        assert_eq!(origins(&["a", "c"], &["a", "x", "y", "c"]), [Kept(0), New, New, Kept(1)]);
    }

    #[test]
    fn huge_differences_are_bounded() {
        let old: Vec<usize> = (0..50_000).collect();
        let new: Vec<usize> = (100_000..150_000).collect();
        assert_eq!(diff(&old, &new).len(), 1);
    }
}
