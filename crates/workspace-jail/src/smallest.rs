//! The smallest few of many, in order, without keeping the many.

use std::collections::BinaryHeap;

/// Keeps the `room` smallest values pushed and counts all.
#[derive(Debug)]
pub(crate) struct Smallest<T> {
    room: usize,
    kept: BinaryHeap<T>,
    pushed: u64,
}

impl<T: Ord> Smallest<T> {
    pub(crate) fn new(room: usize) -> Self {
        Self { room, kept: BinaryHeap::new(), pushed: 0 }
    }

    pub(crate) fn push(&mut self, value: T) {
        self.pushed += 1;
        if self.kept.len() < self.room {
            self.kept.push(value);
        } else if let Some(mut largest) = self.kept.peek_mut()
            && value < *largest
        {
            *largest = value;
        }
    }

    /// How many values were pushed.
    pub(crate) fn pushed(&self) -> u64 {
        self.pushed
    }

    pub(crate) fn into_sorted(self) -> Vec<T> {
        self.kept.into_sorted_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_are_kept_and_all_are_counted() {
        let mut smallest = Smallest::new(3);
        for value in [5, 1, 4, 1, 3, 9] {
            smallest.push(value);
        }
        assert_eq!((smallest.pushed(), smallest.into_sorted()), (6, vec![1, 1, 3]));
        let mut none = Smallest::new(0);
        none.push(1);
        assert_eq!((none.pushed(), none.into_sorted()), (1, vec![]));
    }
}
