//! Where a block of lines can be at all: at the lines that hold the longest one of it.
//!
//! A search for one line's text runs at the speed of memory, so a level that has no hit, or few, costs no
//! look at each line of the file. A line that is everywhere is no anchor; then all lines are looked at.

use std::ops::Range;

use memchr::memmem::Finder;

use crate::hits::Place;
use crate::text::{View, line_before, line_start, lines_from, trim};

/// Occurrences of the anchor's text that are looked at.
const MAX_FOUND: usize = 4_096;
/// Lines compared around all anchors.
const MAX_WORK: usize = 20_000;

/// The lines of a text that are, blanks at both ends aside, the longest line of a search.
#[derive(Debug)]
pub(crate) struct Anchors {
    /// Offsets of the lines, ascending; nothing if they are too many to be of use.
    starts: Option<Vec<usize>>,
}

/// Whether a range is all of a line but the blanks at its ends.
pub(crate) fn is_line(text: &str, range: &Range<usize>) -> bool {
    let bytes = text.as_bytes();
    let blank = |byte: &&u8| matches!(byte, b' ' | b'\t');
    let before = bytes.get(..range.start).unwrap_or_default().iter().rev().find(|b| !blank(b));
    let after = bytes.get(range.end..).unwrap_or_default().iter().find(|b| !blank(b));
    let ends = |byte: Option<&u8>| byte.is_none_or(|&byte| byte == b'\n');
    ends(before) && ends(after)
}

/// The line of a search that is looked for first.
pub(crate) fn longest<'g>(given: &[&'g str]) -> Option<(usize, &'g str)> {
    let lines = given.iter().enumerate().map(|(index, line)| (index, trim(line)));
    lines.filter(|(_, line)| !line.is_empty()).max_by_key(|(_, line)| line.len())
}

impl Anchors {
    /// Looks for the longest line of `given`.
    pub(crate) fn of(text: &str, given: &[&str]) -> Self {
        let Some((_, wanted)) = longest(given) else {
            return Self { starts: None };
        };
        let mut starts = Vec::new();
        // A line of this text has no earlier occurrence that overlaps it: that one would begin with a blank.
        for (found, at) in Finder::new(wanted).find_iter(text.as_bytes()).enumerate() {
            let range = at..at + wanted.len();
            if is_line(text, &range) {
                starts.push(line_start(text, at));
            }
            if found >= MAX_FOUND || starts.len().saturating_mul(given.len()) > MAX_WORK {
                return Self { starts: None };
            }
        }
        Self { starts: Some(starts) }
    }

    /// Offsets of the lines, ascending; nothing if they are too many to be of use.
    pub(crate) fn starts(&self) -> Option<&[usize]> {
        self.starts.as_deref()
    }

    /// The blocks that may be equal to `given`, each line by line; nothing if the anchor is no help.
    ///
    /// `solid` leaves blank lines out of the blocks; `given` has none then.
    pub(crate) fn blocks<'t>(
        &self,
        text: &'t str,
        given: &[&str],
        solid: bool,
        mut each: impl FnMut(&[(usize, &'t str)]),
    ) -> Option<()> {
        let counts = |line: &str| !solid || !trim(line).is_empty();
        let (index, _) = longest(given)?;
        let mut work = 0;
        for &anchor in self.starts.as_ref()? {
            let mut start = Some(anchor);
            let mut left = index;
            while let Some(at) = start.filter(|_| left > 0) {
                work += 1;
                start = line_before(text, at);
                let line = start.and_then(|start| text.get(start..at - 1));
                left -= usize::from(line.is_some_and(counts));
            }
            let Some(start) = start else {
                continue;
            };
            let mut block: Vec<(usize, &str)> = Vec::with_capacity(given.len());
            for (at, line) in lines_from(text, start) {
                work += 1;
                if counts(line) {
                    block.push((at, line));
                }
                if block.len() == given.len() || work > 8 * MAX_WORK {
                    break;
                }
            }
            if work > 8 * MAX_WORK {
                return None;
            }
            if block.len() == given.len() {
                each(&block);
            }
        }
        Some(())
    }
}

/// Whole lines as a place.
pub(crate) fn place(view: &View<'_>, block: &[(usize, &str)]) -> Option<Place> {
    let (&(start, _), &(last, line)) = (block.first()?, block.last()?);
    Some(Place::whole(start..last + line.len(), view.newlines(0..start)))
}
