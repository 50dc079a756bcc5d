//! The text model: a view of the file in which every line ends with `\n`, and the way back to raw bytes.
//!
//! A leading byte-order mark and the kind of the line endings are not part of the view. Spans are kept on
//! character boundaries and translated back to the raw text before anything is replaced, so nothing
//! normalised is ever written. A lone `\r` is data unless it is the only line ending of the file.

use std::borrow::Cow;
use std::ops::Range;

use memchr::{memchr, memchr_iter, memrchr};

/// UTF-8 byte-order mark.
pub(crate) const BOM: char = '\u{feff}';

/// A part of a text; empty instead of a panic if the range is not one.
pub(crate) fn cut(text: &str, range: Range<usize>) -> &str {
    text.get(range).unwrap_or_default()
}

/// Whether `c` is a blank inside a line.
pub(crate) fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t')
}

/// The line without blanks at its end.
pub(crate) fn trim_end(line: &str) -> &str {
    let solid = line.bytes().rposition(|byte| !matches!(byte, b' ' | b'\t'));
    cut(line, 0..solid.map_or(0, |last| last + 1))
}

/// The line without blanks at both ends.
pub(crate) fn trim(line: &str) -> &str {
    let line = trim_end(line);
    cut(line, indent_of(line).len()..line.len())
}

/// The blanks a line begins with.
pub(crate) fn indent_of(line: &str) -> &str {
    let solid = line.bytes().position(|byte| !matches!(byte, b' ' | b'\t'));
    cut(line, 0..solid.unwrap_or(line.len()))
}

/// Search and replacement with `\n` alone.
pub(crate) fn unix_ends(text: &str) -> Cow<'_, str> {
    if text.contains("\r\n") { Cow::Owned(text.replace("\r\n", "\n")) } else { Cow::Borrowed(text) }
}

/// The lines of a text in `\n` form, each with its offset; no empty line after a final `\n`.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut ends = memchr_iter(b'\n', text.as_bytes());
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = at;
        let end = match ends.next() {
            Some(end) => end,
            None if start < text.len() => text.len(),
            None => return None,
        };
        at = end + 1;
        Some((start, cut(text, start..end)))
    })
}

/// The offset at which the line that holds `at` begins.
pub(crate) fn line_start(text: &str, at: usize) -> usize {
    memrchr(b'\n', text.as_bytes().get(..at).unwrap_or_default()).map_or(0, |newline| newline + 1)
}

/// The offset of the line before the one at `start`.
pub(crate) fn line_before(text: &str, start: usize) -> Option<usize> {
    Some(line_start(text, start.checked_sub(1)?))
}

/// The lines from an offset on, which is the start of one.
pub(crate) fn lines_from(text: &str, start: usize) -> impl Iterator<Item = (usize, &str)> {
    lines(cut(text, start..text.len())).map(move |(at, line)| (start + at, line))
}

/// How the lines of a file end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ends {
    /// No line ends at all.
    None,
    /// All alike.
    Uniform(&'static str),
    /// `\n` and `\r\n`, with the one seen more often, or first.
    Mixed(&'static str),
}

/// Bytes looked at in one go, so few that they stay in the processor's cache between two looks.
const BLOCK: usize = 32 << 10;

/// How many `\n` stand before each block of a text, so that a line number costs no pass over the text.
#[derive(Debug, Default, Clone)]
pub(crate) struct Newlines(Vec<u32>);

impl Newlines {
    /// Counts, and says whether there is a `\r` anywhere.
    pub(crate) fn of(text: &str) -> (Self, bool) {
        let bytes = text.as_bytes();
        let mut before = Vec::with_capacity(bytes.len() / BLOCK + 1);
        let (mut total, mut any_cr) = (0_u32, false);
        for block in bytes.chunks(BLOCK) {
            before.push(total);
            any_cr = any_cr || memchr(b'\r', block).is_some();
            let here = memchr_iter(b'\n', block).count();
            total = total.saturating_add(u32::try_from(here).unwrap_or(u32::MAX));
        }
        (Self(before), any_cr)
    }

    /// The number of `\n` in a range of the text that was counted.
    pub(crate) fn within(&self, text: &str, range: Range<usize>) -> usize {
        let direct = |range: Range<usize>| {
            memchr_iter(b'\n', text.as_bytes().get(range).unwrap_or_default()).count()
        };
        if range.len() <= BLOCK {
            return direct(range);
        }
        let before = |at: usize| {
            // A text that ends with a block has none after it.
            let block = (at / BLOCK).min(self.0.len().saturating_sub(1));
            self.0.get(block).map_or(0, |&count| count as usize) + direct(block * BLOCK..at)
        };
        before(range.end) - before(range.start)
    }
}

/// A text seen with `\n` line endings, without its byte-order mark.
#[derive(Debug)]
pub(crate) struct View<'a> {
    /// The text with `\n` for every line ending; a part of the raw text itself if it has no other.
    pub(crate) text: Cow<'a, str>,
    /// How the raw lines end.
    pub(crate) ends: Ends,
    /// Bytes of the byte-order mark before the text.
    mark: usize,
    /// Whether the raw text has a `\r` at all.
    any_cr: bool,
    /// Of `text`.
    newlines: Newlines,
    /// View offsets of the `\n` that stand for `\r\n`, ascending.
    crlf: Vec<u32>,
}

impl<'a> View<'a> {
    /// Looks at `whole`, which has fewer than 2^32 bytes.
    pub(crate) fn new(whole: &'a str) -> Self {
        let raw = whole.strip_prefix(BOM).unwrap_or(whole);
        let mark = whole.len() - raw.len();
        let bytes = raw.as_bytes();
        let (newlines, any_cr) = Newlines::of(raw);
        let first_lf = memchr(b'\n', bytes);
        let kept = |ends, newlines| Self {
            text: Cow::Borrowed(raw),
            ends,
            mark,
            any_cr,
            newlines,
            crlf: Vec::new(),
        };
        if !any_cr {
            let ends = if first_lf.is_some() { Ends::Uniform("\n") } else { Ends::None };
            return kept(ends, newlines);
        }
        let rewritten = |text: String, ends, crlf| {
            let newlines = Newlines::of(&text).0;
            Self { text: Cow::Owned(text), ends, mark, any_cr, newlines, crlf }
        };
        let Some(first_lf) = first_lf else {
            return rewritten(raw.replace('\r', "\n"), Ends::Uniform("\r"), Vec::new());
        };
        let mut text = String::with_capacity(raw.len());
        let mut crlf = Vec::new();
        let mut lf_only = 0_usize;
        let mut from = 0;
        for at in memchr_iter(b'\n', bytes) {
            if at > 0 && bytes.get(at - 1) == Some(&b'\r') {
                text.push_str(cut(raw, from..at - 1));
                crlf.push(u32::try_from(text.len()).unwrap_or(u32::MAX));
            } else {
                lf_only += 1;
                text.push_str(cut(raw, from..at));
            }
            text.push('\n');
            from = at + 1;
        }
        if crlf.is_empty() {
            return kept(Ends::Uniform("\n"), newlines);
        }
        text.push_str(cut(raw, from..raw.len()));
        let first_is_crlf = first_lf > 0 && bytes.get(first_lf - 1) == Some(&b'\r');
        let ends = match crlf.len().cmp(&lf_only) {
            _ if lf_only == 0 => Ends::Uniform("\r\n"),
            std::cmp::Ordering::Greater => Ends::Mixed("\r\n"),
            std::cmp::Ordering::Less => Ends::Mixed("\n"),
            std::cmp::Ordering::Equal => Ends::Mixed(if first_is_crlf { "\r\n" } else { "\n" }),
        };
        rewritten(text, ends, crlf)
    }

    /// The same view of a text without line endings, whose first ones will be `end`.
    pub(crate) fn ending_with(&self, end: &'static str) -> View<'_> {
        View {
            text: Cow::Borrowed(&*self.text),
            ends: Ends::Uniform(end),
            mark: self.mark,
            any_cr: self.any_cr,
            newlines: self.newlines.clone(),
            crlf: Vec::new(),
        }
    }

    /// Bytes of the raw text.
    pub(crate) fn raw_len(&self) -> usize {
        self.mark + self.text.len() + self.crlf.len()
    }

    /// Whether the raw text begins with a byte-order mark.
    pub(crate) fn is_marked(&self) -> bool {
        self.mark > 0
    }

    /// Whether there are line endings, and all of them `\n`, and no `\r` elsewhere.
    pub(crate) fn is_plain(&self) -> bool {
        self.ends == Ends::Uniform("\n") && !self.any_cr
    }

    /// Whether a lone `\r` ends a line in this file.
    pub(crate) fn ends_with_cr(&self) -> bool {
        self.ends == Ends::Uniform("\r")
    }

    /// The raw offset of a view offset; that of a `\n` is the start of its raw line ending.
    pub(crate) fn raw(&self, at: usize) -> usize {
        self.mark + at + self.crlf.partition_point(|&end| (end as usize) < at)
    }

    /// The raw range of a view range.
    pub(crate) fn raw_range(&self, range: &Range<usize>) -> Range<usize> {
        self.raw(range.start)..self.raw(range.end)
    }

    /// The raw line ending that the `\n` at view offset `at` stands for, if there is a `\n`.
    pub(crate) fn end_at(&self, at: usize) -> Option<&'static str> {
        if self.text.as_bytes().get(at) != Some(&b'\n') {
            return None;
        }
        Some(match self.ends {
            Ends::Uniform(end) => end,
            _ if u32::try_from(at).is_ok_and(|at| self.crlf.binary_search(&at).is_ok()) => "\r\n",
            _ => "\n",
        })
    }

    /// The offset at which the line that holds `at` begins.
    pub(crate) fn line_start(&self, at: usize) -> usize {
        line_start(&self.text, at)
    }

    /// The offset at which the line that holds `at` ends, before its line ending.
    pub(crate) fn line_end(&self, at: usize) -> usize {
        let tail = self.text.as_bytes().get(at..).unwrap_or_default();
        memchr(b'\n', tail).map_or(self.text.len(), |newline| at + newline)
    }

    /// The number of `\n` in a range of `whole`, the raw text this is a view of.
    pub(crate) fn raw_newlines(&self, whole: &str, range: Range<usize>) -> usize {
        match (&self.text, range.start.checked_sub(self.mark)) {
            (Cow::Borrowed(_), Some(start)) => self.newlines(start..range.end - self.mark),
            _ => memchr_iter(b'\n', whole.as_bytes().get(range).unwrap_or_default()).count(),
        }
    }

    /// The number of line endings in a view range.
    pub(crate) fn newlines(&self, range: Range<usize>) -> usize {
        self.newlines.within(&self.text, range)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(raw: &str, text: &str, ends: Ends) {
        let view = View::new(raw);
        assert_eq!(view.text, text);
        assert_eq!(view.ends, ends);
        for (at, _) in text.char_indices().filter(|(_, c)| *c != '\n') {
            assert_eq!(
                raw.get(view.raw(at)..).and_then(|rest| rest.chars().next()),
                text.get(at..).and_then(|rest| rest.chars().next())
            );
        }
    }

    #[test]
    fn line_numbers_by_blocks() {
        let text = "a\nbc\n\n".repeat(BLOCK / 2);
        let (newlines, any_cr) = Newlines::of(&text);
        assert!(!any_cr);
        for range in [0..0, 0..text.len(), 1..BLOCK + 2, BLOCK..2 * BLOCK, 5..2 * BLOCK + 1] {
            let counted = cut(&text, range.clone()).matches('\n').count();
            assert_eq!(newlines.within(&text, range), counted);
        }
        assert!(Newlines::of(&format!("{text}\r")).1);
    }

    #[test]
    fn a_mark_is_no_text() {
        let view = View::new("\u{feff}a\r\nb");
        assert_eq!((&*view.text, view.raw(0), view.raw(2)), ("a\nb", 3, 6));
        assert!(view.is_marked());
    }

    #[test]
    fn every_kind_of_line_ending_reads_as_newline() {
        check("", "", Ends::None);
        check("a", "a", Ends::None);
        check("a\nb", "a\nb", Ends::Uniform("\n"));
        check("a\r\nb\r\n", "a\nb\n", Ends::Uniform("\r\n"));
        check("a\rb\r", "a\nb\n", Ends::Uniform("\r"));
        check("a\r\nb\n", "a\nb\n", Ends::Mixed("\r\n"));
        check("a\nb\r\nc\n", "a\nb\nc\n", Ends::Mixed("\n"));
        check("1%\r2%\rx\n", "1%\r2%\rx\n", Ends::Uniform("\n"));
        check("a\r\r\nb", "a\r\nb", Ends::Uniform("\r\n"));
    }
}
