//! Folding: which different spellings count as the same text when looking for a place.
//!
//! Folded are typographic dashes, quotes, blanks and the ellipsis, invisible characters, and canonically
//! equivalent sequences ([UAX #15](https://www.unicode.org/reports/tr15/)). Never folded are letter case,
//! compatibility forms, look-alike letters, joiners and direction marks: they carry meaning. Folding finds
//! places; folded text is never written.

use std::borrow::Cow;
use std::ops::Range;

use unicode_normalization::UnicodeNormalization as _;
use unicode_segmentation::UnicodeSegmentation as _;

use crate::text::{cut, is_blank};

/// Longest line whose bytes are preserved piece by piece; beyond it the replacement's line is taken.
const MAX_MERGED: usize = 1 << 20;

/// What a single character reads as, if not as itself; empty for an invisible one.
fn folded(c: char) -> Option<&'static str> {
    Some(match c {
        '\u{2010}'..='\u{2015}' | '\u{2212}' => "-",
        '\u{2018}'..='\u{201b}' => "'",
        '\u{201c}'..='\u{201f}' => "\"",
        '\u{a0}' | '\u{2002}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => " ",
        '\u{2026}' => "...",
        '\u{200b}' | '\u{2060}' | '\u{feff}' | '\u{ad}' => "",
        _ => return None,
    })
}

/// Whether a character counts as a blank, or as nothing, once folded.
pub(crate) fn folds_to_blank(c: char) -> bool {
    is_blank(c) || matches!(folded(c), Some("" | " "))
}

/// Whether a character is a grapheme of its own and its own composed form, between others that are: the
/// letters, punctuation and ideographs that make up most text.
fn stands_alone(c: char) -> bool {
    matches!(c,
        '\u{a0}'..='\u{ac}' | '\u{ae}'..='\u{2ff}' | '\u{388}'..='\u{482}' | '\u{2010}'..='\u{2027}'
        | '\u{202f}'..='\u{205f}' | '\u{3000}'..='\u{3029}' | '\u{3030}'..='\u{3098}'
        | '\u{309b}'..='\u{9fff}')
}

/// The pieces of a line: source range and what it reads as, one a grapheme.
fn pieces(line: &str, mut each: impl FnMut(Range<usize>, &str)) {
    let bytes = line.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        // A plain character that no mark follows stands for itself.
        let plain = |i: usize| bytes.get(i).is_none_or(u8::is_ascii);
        if plain(at) && plain(at + 1) {
            each(at..at + 1, cut(line, at..at + 1));
            at += 1;
            continue;
        }
        if let Some(c) =
            cut(line, at..bytes.len()).chars().next().filter(|&c| c.is_ascii() || stands_alone(c))
        {
            let next = at + c.len_utf8();
            let follower = cut(line, next..bytes.len()).chars().next();
            if follower.is_none_or(|c| c.is_ascii() || stands_alone(c)) {
                each(at..next, folded(c).unwrap_or(cut(line, at..next)));
                at = next;
                continue;
            }
        }
        let mut end = at + 1;
        while end < bytes.len() && !plain(end) {
            end += 1;
        }
        for (offset, grapheme) in cut(line, at..end).grapheme_indices(true) {
            let range = at + offset..at + offset + grapheme.len();
            let mut chars = grapheme.chars();
            match (chars.next().and_then(folded), chars.next()) {
                (Some(key), None) => each(range, key),
                _ => each(range, &grapheme.nfc().collect::<String>()),
            }
        }
        at = end;
    }
}

/// The line as it reads: folded, without blanks at its ends, and with `collapse` each run of blanks as one.
pub(crate) fn key(line: &str, collapse: bool) -> Cow<'_, str> {
    let plain = line.trim_matches(is_blank);
    let runs = |text: &str| text.contains('\t') || text.contains("  ");
    if plain.is_ascii() && !(collapse && runs(plain)) {
        return Cow::Borrowed(plain);
    }
    let mut out = fold(plain).into_owned();
    if collapse && runs(&out) {
        let mut one = String::with_capacity(out.len());
        for c in out.chars() {
            if !is_blank(c) {
                one.push(c);
            } else if !one.ends_with(' ') {
                one.push(' ');
            }
        }
        out = one;
    }
    let kept = out.trim_matches(is_blank);
    if kept.len() < out.len() { Cow::Owned(kept.to_owned()) } else { Cow::Owned(out) }
}

/// The text as it reads, blanks kept as they are.
pub(crate) fn fold(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    pieces(text, |_, key| out.push_str(key));
    Cow::Owned(out)
}

/// The source ranges of ascending ranges of [`fold`]'s result, where both ends lie between graphemes.
pub(crate) fn source_ranges(text: &str, wanted: &[Range<usize>]) -> Vec<Option<Range<usize>>> {
    if wanted.is_empty() {
        return Vec::new();
    }
    let mut starts = vec![None; wanted.len()];
    let mut ends = vec![None; wanted.len()];
    let (mut next_start, mut next_end, mut at) = (0, 0, 0);
    pieces(text, |source, key| {
        if key.is_empty() {
            return;
        }
        while let Some(range) = wanted.get(next_start).filter(|range| range.start <= at) {
            if let Some(slot) = starts.get_mut(next_start) {
                *slot = (range.start == at).then_some(source.start);
            }
            next_start += 1;
        }
        at += key.len();
        while let Some(range) = wanted.get(next_end).filter(|range| range.end <= at) {
            if let Some(slot) = ends.get_mut(next_end) {
                *slot = (range.end == at).then_some(source.end);
            }
            next_end += 1;
        }
    });
    starts.into_iter().zip(ends).map(|(start, end)| Some(start?..end?)).collect()
}

/// A cluster of a line: where it is and what it reads as.
struct Cluster {
    source: Range<usize>,
    key_end: usize,
}

/// A line as clusters, runs of blanks as one if wanted.
struct Clusters<'t> {
    text: &'t str,
    list: Vec<Cluster>,
    key: String,
}

impl<'t> Clusters<'t> {
    fn new(text: &'t str, collapse: bool) -> Self {
        let mut list: Vec<Cluster> = Vec::new();
        let mut key = String::new();
        pieces(text, |source, piece| {
            if piece.is_empty() {
                return;
            }
            let blank = collapse && piece.chars().all(is_blank);
            match list.last_mut() {
                Some(before) if blank && key.ends_with(' ') => before.source.end = source.end,
                _ => {
                    key.push_str(if blank { " " } else { piece });
                    list.push(Cluster { source, key_end: key.len() });
                }
            }
        });
        Self { text, list, key }
    }

    fn source(&self, index: usize) -> &'t str {
        self.list.get(index).map_or("", |cluster| cut(self.text, cluster.source.clone()))
    }

    /// How many clusters lie before the key offset, if it is a boundary.
    fn boundary(&self, key_at: usize) -> Option<usize> {
        if key_at == 0 {
            return Some(0);
        }
        self.list.binary_search_by_key(&key_at, |cluster| cluster.key_end).ok().map(|i| i + 1)
    }

    fn key_at(&self, clusters: usize) -> usize {
        clusters.checked_sub(1).and_then(|last| self.list.get(last)).map_or(0, |c| c.key_end)
    }
}

/// Puts what `replace` changes in `search` into `file`, which reads like `search`; the file keeps its
/// spelling of the common beginning and end.
///
/// Common is what is spelled alike in search and replacement: a changed quote is a change.
pub(crate) fn merge<'t>(
    search: &str,
    replace: &'t str,
    file: &str,
    collapse: bool,
) -> Cow<'t, str> {
    if search.len().max(replace.len()).max(file.len()) > MAX_MERGED {
        return Cow::Borrowed(replace);
    }
    let s = Clusters::new(search, collapse);
    let r = Clusters::new(replace, collapse);
    let f = Clusters::new(file, collapse);
    if s.key != f.key {
        return Cow::Borrowed(replace);
    }
    let shorter = s.list.len().min(r.list.len());
    let mut head = (0..shorter).take_while(|&i| s.source(i) == r.source(i)).count();
    let head_in_file = loop {
        match f.boundary(s.key_at(head)) {
            Some(found) => break found,
            None => head = head.saturating_sub(1),
        }
    };
    let (s_len, r_len) = (s.list.len(), r.list.len());
    let mut tail =
        (1..=shorter - head).take_while(|&i| s.source(s_len - i) == r.source(r_len - i)).count();
    let tail_in_file = loop {
        match f.boundary(s.key_at(s_len - tail)) {
            Some(found) => break found,
            None => tail = tail.saturating_sub(1),
        }
    };
    let head_end =
        head_in_file.checked_sub(1).and_then(|i| f.list.get(i)).map_or(0, |c| c.source.end);
    let tail_start = f.list.get(tail_in_file).map_or(file.len(), |c| c.source.start);
    let middle = r
        .list
        .get(head..r_len - tail)
        .and_then(|list| Some(list.first()?.source.start..list.last()?.source.end));
    let tail_text = if tail == 0 { "" } else { cut(file, tail_start.max(head_end)..file.len()) };
    let mut out = cut(file, 0..head_end).to_owned();
    out.push_str(middle.map_or("", |range| cut(replace, range)));
    out.push_str(tail_text);
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folding_is_about_spelling_only() {
        assert_eq!(
            key("  \u{201c}a\u{201d}\u{a0}\u{2014} b\u{200b}c\u{2026} ", false),
            "\"a\" - bc..."
        );
        assert_eq!(key("cafe\u{301}", false), "caf\u{e9}");
        assert_eq!(key("stra\u{df}e \u{ff11} \u{200d}", false), "stra\u{df}e \u{ff11} \u{200d}");
        assert_eq!(key("a \t\u{a0} b", true), "a b");
    }

    #[test]
    fn what_stands_alone_is_one_composed_grapheme() {
        for c in (0_u32..0x1_0000).filter_map(char::from_u32).filter(|&c| stands_alone(c)) {
            let text = format!("a{c}\u{e9}{c}b");
            assert_eq!(text.graphemes(true).count(), 5, "{c:?}");
            assert_eq!(c.to_string().nfc().collect::<String>(), c.to_string());
        }
    }

    #[test]
    fn a_range_inside_a_grapheme_is_no_range() {
        let text = "wait\u{2026} done";
        assert_eq!(source_ranges(text, &[4..7, 5..7]), [Some(4..7), None]);
    }

    #[test]
    fn merge_keeps_the_spelling_around_the_change() {
        let merged = |s, r, f| merge(s, r, f, true).into_owned();
        assert_eq!(merged("x = 1 # k", "x = 5 # k", "x    = 1  # k"), "x    = 5  # k");
        assert_eq!(merged("\"a\" b", "\"a\" c", "\u{201c}a\u{201d} b"), "\u{201c}a\u{201d} c");
        assert_eq!(merged("a - b", "a \u{2014} b", "a \u{2013} b"), "a \u{2014} b");
        assert_eq!(merged("wait... x", "wait.. x", "wait\u{2026} x"), "wait.. x");
        assert_eq!(merged("aa", "a", "aa"), "a");
        assert_eq!(merged("a", "aa", "a"), "aa");
    }
}
