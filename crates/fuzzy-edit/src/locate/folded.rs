//! `unicode` and `inner_ws`: text that reads the same, spelled otherwise.

use std::ops::{ControlFlow, Range};

use memchr::memmem;

use super::whole::windows;
use crate::emit::given_lines;
use crate::fold::{fold, key, source_ranges};
use crate::hits::{Hits, Place, occurrences};
use crate::text::{lines, trim};

/// Places counted in one line.
const MAX_IN_LINE: usize = 1_000_000;

/// Lines whose folded text is equal; for a search within one line also a part of a line.
pub(super) fn unicode(text: &str, search: &str, mut hits: Hits) -> Hits {
    if text.is_ascii() && search.is_ascii() {
        return hits;
    }
    if search.contains('\n') {
        return windows(text, search, hits, |line| key(line, false));
    }
    let wanted = fold(search);
    let wanted_line = key(search, false);
    for (number, (start, line)) in lines(text).enumerate() {
        if line.is_ascii() && search.is_ascii() {
            continue;
        }
        let read = fold(line);
        if trim(&read) == wanted_line {
            hits.push(Place::whole(start..start + line.len(), number));
            continue;
        }
        let mut found: Vec<Range<usize>> = Vec::new();
        occurrences(read.as_bytes(), wanted.as_bytes(), |at| {
            found.push(at..at + wanted.len());
            if found.len() < MAX_IN_LINE {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        });
        for source in source_ranges(line, &found).into_iter().flatten() {
            hits.push(Place::part(start + source.start..start + source.end, number));
        }
    }
    hits
}

/// Lines whose folded text is equal with each run of blanks as one.
pub(super) fn inner_ws(text: &str, search: &str, hits: Hits) -> Hits {
    let given = given_lines(search);
    let keys: Vec<_> = given.iter().map(|line| key(line, true)).collect();
    if !keys.iter().any(|key| key.contains(' ')) {
        return hits;
    }
    // A line in which nothing is folded has each word of its key; the longest is the rarest.
    let longest = keys.iter().flat_map(|key| key.split(' ')).max_by_key(|word| word.len());
    let absent = |word: &str| memmem::find(text.as_bytes(), word.as_bytes()).is_none();
    if longest.is_some_and(absent) && text.is_ascii() {
        return hits;
    }
    windows(text, search, hits, |line| key(line, true))
}
