//! The matching lines of one file, as the searcher hands them over.
//!
//! Invariant: as many are kept as there is room for, each cut to [`MAX_SHOWN`] bytes around its match; all
//! are counted.

use std::io;

use grep_matcher::Matcher as _;
use grep_regex::RegexMatcher;
use grep_searcher::{Searcher, Sink, SinkContext, SinkContextKind, SinkMatch};

use super::GrepLine;

/// Bytes kept of a line.
const MAX_SHOWN: usize = 400;

/// Takes the lines of one file.
pub(super) struct Lines<'m> {
    matcher: &'m RegexMatcher,
    /// Matching lines to keep.
    room: usize,
    pub(super) kept: Vec<GrepLine>,
    pub(super) matches: u64,
}

impl<'m> Lines<'m> {
    pub(super) fn new(matcher: &'m RegexMatcher, room: usize) -> Self {
        Self { matcher, room, kept: Vec::new(), matches: 0 }
    }

    /// Whether the last match was kept, so that what follows it is context.
    fn has_room(&self) -> bool {
        self.matches <= self.room as u64
    }

    /// Whether the next match will be kept, so that what stands before it is context.
    fn next_has_room(&self) -> bool {
        self.matches < self.room as u64
    }

    fn keep(&mut self, number: Option<u64>, bytes: &[u8], is_match: bool) {
        let line = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let hit = if is_match { self.matcher.find(line).ok().flatten() } else { None };
        let start = hit.map_or(0, |hit| hit.start());
        let (text, is_cut) = cut(line, start);
        self.kept.push(GrepLine { number: number.unwrap_or(0), text, is_match, is_cut });
    }
}

impl Sink for Lines<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        self.matches += 1;
        if self.has_room() {
            self.keep(found.line_number(), found.bytes(), true);
        }
        Ok(true)
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        let kept = match context.kind() {
            SinkContextKind::Before => self.next_has_room(),
            SinkContextKind::After | SinkContextKind::Other => self.has_room(),
        };
        if kept {
            self.keep(context.line_number(), context.bytes(), false);
        }
        Ok(true)
    }
}

/// At most [`MAX_SHOWN`] bytes of a line, with what stands at `hit` among them.
fn cut(line: &[u8], hit: usize) -> (String, bool) {
    if line.len() <= MAX_SHOWN {
        return (String::from_utf8_lossy(line).into_owned(), false);
    }
    let mut start = hit.saturating_sub(MAX_SHOWN / 4).min(line.len() - MAX_SHOWN);
    let mut end = start + MAX_SHOWN;
    // Not through the middle of a character.
    let continues = |at: usize| line.get(at).is_some_and(|byte| byte & 0xc0 == 0x80);
    for _ in 0..3 {
        start += usize::from(continues(start));
        end -= usize::from(continues(end));
    }
    (String::from_utf8_lossy(&line[start..end]).into_owned(), true)
}
