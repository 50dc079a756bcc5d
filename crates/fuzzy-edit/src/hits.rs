//! Places found at one level: counted all, kept as far as they are needed.

use std::collections::VecDeque;
use std::ops::{ControlFlow, Range};

use memchr::memmem::Finder;

/// A place in the view that a level found.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Place {
    /// View offsets; for whole lines without the last line ending.
    pub(crate) range: Range<usize>,
    /// 0-based line on which it starts.
    pub(crate) line: usize,
    /// Whether it stands for whole lines.
    pub(crate) whole: bool,
    /// How much alike, where the level does not say it.
    pub(crate) score: Option<f32>,
}

impl Place {
    /// Whole lines.
    pub(crate) fn whole(range: Range<usize>, line: usize) -> Self {
        Self { range, line, whole: true, score: None }
    }

    /// A part of one or several lines.
    pub(crate) fn part(range: Range<usize>, line: usize) -> Self {
        Self { range, line, whole: false, score: None }
    }
}

/// Counts places without keeping more than `limit` of them.
#[derive(Debug)]
pub(crate) struct Hits {
    /// All places, overlapping ones too.
    pub(crate) count: usize,
    /// The first `limit` of them, in file order.
    pub(crate) places: Vec<Place>,
    /// The place on the wanted line, and how many are there.
    pub(crate) wanted: Option<(Place, usize)>,
    limit: usize,
    at_line: Option<usize>,
}

impl Hits {
    /// Keeps `limit` places, and the one on the 0-based line `at_line`.
    pub(crate) fn new(limit: usize, at_line: Option<usize>) -> Self {
        Self { count: 0, places: Vec::new(), wanted: None, limit, at_line }
    }

    /// Takes the next place.
    pub(crate) fn push(&mut self, place: Place) {
        self.count += 1;
        if self.at_line == Some(place.line) {
            let seen = self.wanted.take();
            self.wanted = Some(seen.map_or((place.clone(), 1), |(first, n)| (first, n + 1)));
        }
        if self.places.len() < self.limit {
            self.places.push(place);
        }
    }

    /// The same bounds, nothing found.
    pub(crate) fn fresh(&self) -> Self {
        Self::new(self.limit, self.at_line)
    }
}

/// Length of the longest border of each prefix: how far a partial match survives a mismatch.
fn borders<T: PartialEq>(wanted: &[T]) -> Vec<u32> {
    let mut table = vec![0_u32; wanted.len()];
    let mut length = 0_usize;
    for at in 1..wanted.len() {
        while length > 0 && wanted.get(at) != wanted.get(length) {
            length = table.get(length - 1).map_or(0, |&shorter| shorter as usize);
        }
        if wanted.get(at) == wanted.get(length) {
            length += 1;
        }
        if let Some(slot) = table.get_mut(at) {
            *slot = u32::try_from(length).unwrap_or(u32::MAX);
        }
    }
    table
}

/// Finds a sequence in a stream, overlapping occurrences too, without going back.
///
/// Knuth, Morris and Pratt: linear also where all items are the same.
struct Matcher<'w, T> {
    wanted: &'w [T],
    table: Vec<u32>,
    matched: usize,
}

impl<'w, T: PartialEq> Matcher<'w, T> {
    fn new(wanted: &'w [T]) -> Self {
        Self { wanted, table: borders(wanted), matched: 0 }
    }

    /// Takes the next item; whether an occurrence ends with it.
    fn step(&mut self, item: &T) -> bool {
        if self.matched == self.wanted.len() {
            self.fall_back();
        }
        loop {
            if self.wanted.get(self.matched) == Some(item) {
                self.matched += 1;
                break;
            }
            if self.matched == 0 {
                break;
            }
            self.fall_back();
        }
        self.matched == self.wanted.len()
    }

    fn fall_back(&mut self) {
        let at = self.matched.checked_sub(1);
        self.matched = at.and_then(|at| self.table.get(at)).map_or(0, |&n| n as usize);
    }
}

/// Finds every run of lines equal to the wanted ones.
pub(crate) struct Runs<'w, T> {
    matcher: Matcher<'w, T>,
    starts: VecDeque<(usize, usize)>,
}

impl<'w, T: PartialEq> Runs<'w, T> {
    /// Looks for `wanted`, which is not empty.
    pub(crate) fn new(wanted: &'w [T]) -> Self {
        Self { matcher: Matcher::new(wanted), starts: VecDeque::new() }
    }

    /// Takes the line that begins at `mark` (offset, number); gives the mark of a run that ends with it.
    pub(crate) fn next(&mut self, line: &T, mark: (usize, usize)) -> Option<(usize, usize)> {
        if self.starts.len() == self.matcher.wanted.len() {
            self.starts.pop_front();
        }
        self.starts.push_back(mark);
        if self.matcher.step(line) { self.starts.front().copied() } else { None }
    }
}

/// Gives the offset of every occurrence of `search`, overlapping ones too, until `found` says stop.
///
/// Two searches decide the usual case of at most one; a text that cannot overlap itself is then searched
/// the fast way, another one byte by byte.
pub(crate) fn occurrences(
    text: &[u8],
    search: &[u8],
    mut found: impl FnMut(usize) -> ControlFlow<()>,
) {
    let finder = Finder::new(search);
    let Some(first) = finder.find(text) else {
        return;
    };
    let rest = text.get(first + 1..).unwrap_or_default();
    if found(first).is_break() || finder.find(rest).is_none() {
        return;
    }
    let mut matcher = Matcher::new(search);
    if matcher.table.last() == Some(&0) {
        for at in finder.find_iter(rest) {
            if found(first + 1 + at).is_break() {
                return;
            }
        }
    } else {
        for (at, byte) in rest.iter().enumerate() {
            if matcher.step(byte) && found(first + 2 + at - search.len()).is_break() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_runs_are_all_found() {
        let wanted = ["x", "x"];
        let mut runs = Runs::new(&wanted);
        let found: Vec<_> = ["x", "x", "x", "y", "x", "x"]
            .iter()
            .enumerate()
            .filter_map(|(line, item)| runs.next(item, (line, line)))
            .map(|(line, _)| line)
            .collect();
        assert_eq!(found, [0, 1, 4]);
    }

    #[test]
    fn occurrences_overlap() {
        let all = |text: &str, search: &str| {
            let mut out = Vec::new();
            occurrences(text.as_bytes(), search.as_bytes(), |at| {
                out.push(at);
                ControlFlow::Continue(())
            });
            out
        };
        assert_eq!(all("aaaa", "aa"), [0, 1, 2]);
        assert_eq!(all("xabababx", "abab"), [1, 3]);
        assert_eq!(all("ab ab ab", "ab"), [0, 3, 6]);
        assert_eq!(all("ab", "c"), [0_usize; 0]);
    }

    #[test]
    fn borders_of_a_periodic_word() {
        assert_eq!(borders(b"abab"), [0, 0, 1, 2]);
        assert_eq!(borders(b"abc"), [0, 0, 0]);
    }
}
