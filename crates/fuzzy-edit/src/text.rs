//! The text model: a view of the file in which every line ends with `\n`, and the way back to raw bytes.
//!
//! A leading byte-order mark and the kind of the line endings are not part of the view. Spans are kept on
//! character boundaries and translated back to the raw text before anything is replaced, so nothing
//! normalised is ever written. A lone `\r` is data unless it is the only line ending of the file.

use std::borrow::Cow;
use std::ops::Range;

use memchr::{memchr, memchr_iter};

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
    line.trim_end_matches(is_blank)
}

/// The line without blanks at both ends.
pub(crate) fn trim(line: &str) -> &str {
    line.trim_matches(is_blank)
}

/// The blanks a line begins with.
pub(crate) fn indent_of(line: &str) -> &str {
    let rest = line.trim_start_matches(is_blank);
    cut(line, 0..line.len() - rest.len())
}

/// Search and replacement with `\n` alone.
pub(crate) fn unix_ends(text: &str) -> Cow<'_, str> {
    if text.contains("\r\n") { Cow::Owned(text.replace("\r\n", "\n")) } else { Cow::Borrowed(text) }
}

/// The lines of a text in `\n` form, each with its offset; no empty line after a final `\n`.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    text.split_terminator('\n').map(move |line| {
        let start = at;
        at += line.len() + 1;
        (start, line)
    })
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

/// A text seen with `\n` line endings.
#[derive(Debug)]
pub(crate) struct View<'a> {
    /// The text with `\n` for every line ending; the raw text itself if it has no other.
    pub(crate) text: Cow<'a, str>,
    /// How the raw lines end.
    pub(crate) ends: Ends,
    /// View offsets of the `\n` that stand for `\r\n`, ascending.
    crlf: Vec<u32>,
}

impl<'a> View<'a> {
    /// Looks at `raw`, which has no byte-order mark and fewer than 2^32 bytes.
    pub(crate) fn new(raw: &'a str) -> Self {
        let bytes = raw.as_bytes();
        let first_lf = memchr(b'\n', bytes);
        if memchr(b'\r', bytes).is_none() {
            let ends = if first_lf.is_some() { Ends::Uniform("\n") } else { Ends::None };
            return Self { text: Cow::Borrowed(raw), ends, crlf: Vec::new() };
        }
        let Some(first_lf) = first_lf else {
            let text = Cow::Owned(raw.replace('\r', "\n"));
            return Self { text, ends: Ends::Uniform("\r"), crlf: Vec::new() };
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
            return Self { text: Cow::Borrowed(raw), ends: Ends::Uniform("\n"), crlf };
        }
        text.push_str(cut(raw, from..raw.len()));
        let first_is_crlf = first_lf > 0 && bytes.get(first_lf - 1) == Some(&b'\r');
        let ends = match crlf.len().cmp(&lf_only) {
            _ if lf_only == 0 => Ends::Uniform("\r\n"),
            std::cmp::Ordering::Greater => Ends::Mixed("\r\n"),
            std::cmp::Ordering::Less => Ends::Mixed("\n"),
            std::cmp::Ordering::Equal => Ends::Mixed(if first_is_crlf { "\r\n" } else { "\n" }),
        };
        Self { text: Cow::Owned(text), ends, crlf }
    }

    /// Whether a lone `\r` ends a line in this file.
    pub(crate) fn ends_with_cr(&self) -> bool {
        self.ends == Ends::Uniform("\r")
    }

    /// The raw offset of a view offset; that of a `\n` is the start of its raw line ending.
    pub(crate) fn raw(&self, at: usize) -> usize {
        at + self.crlf.partition_point(|&end| (end as usize) < at)
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

    /// The offset at which the line that holds `at` ends, before its line ending.
    pub(crate) fn line_end(&self, at: usize) -> usize {
        let tail = self.text.as_bytes().get(at..).unwrap_or_default();
        memchr(b'\n', tail).map_or(self.text.len(), |newline| at + newline)
    }

    /// The number of line endings in a view range.
    pub(crate) fn newlines(&self, range: Range<usize>) -> usize {
        memchr_iter(b'\n', self.text.as_bytes().get(range).unwrap_or_default()).count()
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
