//! `exact`: the text itself, anywhere.
//!
//! One kind of hit is no hit here: one that begins inside a line's indentation and covers whole lines. Its
//! search has the wrong depth, which the line levels can put right.

use std::ops::{ControlFlow, Range};

use crate::hits::{Hits, Place, occurrences};
use crate::text::{View, is_blank, trim_end};

/// Finds every occurrence of `search`, overlapping ones too.
pub(crate) fn exact(view: &View<'_>, search: &str, mut hits: Hits) -> Hits {
    let mut sink = Sink { view, search, hits: &mut hits, counted: 0, line: 0 };
    occurrences(view.text.as_bytes(), search.as_bytes(), |at| {
        sink.take(at);
        ControlFlow::Continue(())
    });
    hits
}

struct Sink<'v, 'a, 's> {
    view: &'v View<'a>,
    search: &'s str,
    hits: &'v mut Hits,
    /// Up to here the line endings are counted.
    counted: usize,
    line: usize,
}

impl Sink<'_, '_, '_> {
    fn take(&mut self, start: usize) {
        let range = start..start + self.search.len();
        self.line += self.view.newlines(self.counted..start);
        self.counted = start;
        let text = self.view.text.as_bytes();
        let whole = matches!(text.get(range.end), None | Some(b'\n'))
            || text.get(range.end - 1) == Some(&b'\n');
        if whole && inside_indentation(self.view, &range, self.search) {
            return;
        }
        self.hits.push(Place::part(range, self.line));
    }
}

/// Whether a hit begins inside the blanks that indent a line, with a search that begins with blanks itself.
pub(crate) fn inside_indentation(view: &View<'_>, range: &Range<usize>, search: &str) -> bool {
    let text = view.text.as_bytes();
    let before = text.get(..range.start).unwrap_or_default();
    search.starts_with(is_blank)
        && !trim_end(search).is_empty()
        && before.last().is_some_and(|&b| b != b'\n')
        && before.iter().rev().take_while(|&&b| b != b'\n').all(|&b| matches!(b, b' ' | b'\t'))
}
