//! What was probably meant by a text that was not found: hints, and the most similar block of the file.
//!
//! The work is bounded: seeds are lines found word for word, else lines that share trigrams; the best few
//! windows are compared in full, of long lines the beginning.

use std::collections::HashMap;

use memchr::memmem;

use crate::edit::{Level, Options};
use crate::emit::given_lines;
use crate::error::{Closest, Detail, Hint, LineDiff};
use crate::hits::Hits;
use crate::locate::{Anchors, alike, exact, looks_numbered, loosely};
use crate::outcome::LineSpan;
use crate::text::{View, line_before, lines, lines_from, trim, trim_end};

/// Windows compared in full.
const MAX_WINDOWS: usize = 8;
/// Lines of the search and of a window that are compared.
const MAX_LINES: usize = 400;
/// Start lines that collect votes.
const MAX_VOTES: usize = 20_000;
/// Bytes of the file in which trigrams are looked for.
const MAX_TRIGRAM_BYTES: usize = 4 << 20;
/// Lines of a search that are each looked for on their own.
const FEW_LINES: usize = 6;
/// One trigram of so many is looked at before the others.
const SAMPLE: usize = 4;
/// Bytes of a line that count.
const MAX_LINE: usize = 200;
/// Least likeness worth a report.
const LEAST: f32 = 0.6;

/// Fills in hints and the closest block.
pub(crate) fn explain(
    view: &View<'_>,
    search: &str,
    replace: &str,
    options: &Options,
    detail: &mut Detail,
) {
    let given = given_lines(search);
    if given.iter().all(|line| trim(line).is_empty()) {
        return;
    }
    let unescaped = unescape(search);
    if let Some(meant) = unescaped.as_deref()
        && let Some((line, count)) = find(view, meant, options)
    {
        detail.hints.push(Hint::OverEscaped);
        let window: Vec<(usize, &str)> = numbered(view, line, count.max(given.len()));
        let similarity = score(&given, &window);
        let lines = LineSpan { first: line + 1, last: line + count.max(1) };
        let first_diff = first_diff(&given, &window);
        detail.closest = Some(Closest { lines, similarity, first_diff });
    }
    if trim(replace).len() > 2 && memmem::find(view.text.as_bytes(), replace.as_bytes()).is_some() {
        detail.hints.push(Hint::AlreadyApplied);
    }
    if looks_numbered(search) {
        detail.hints.push(Hint::LineNumberPrefix);
    }
    if detail.closest.is_none() {
        detail.closest = closest(view, &given);
    }
}

/// The first place of a text at the exact or a line level: 0-based line and number of lines.
fn find(view: &View<'_>, search: &str, options: &Options) -> Option<(usize, usize)> {
    let mut options = options.clone();
    options.max_level = Level::Trim.min(options.max_level);
    options.min_similarity = None;
    let hits = exact(view, search, Hits::new(1, None));
    let place = hits.places.into_iter().next().or_else(|| {
        loosely(view, search, "", &options, &Hits::new(1, None))?.hits.places.into_iter().next()
    })?;
    let last = place.range.end.saturating_sub(1).max(place.range.start);
    Some((place.line, view.newlines(place.range.start..last) + 1))
}

/// The text with one level of backslash escapes less, if it has any.
fn unescape(text: &str) -> Option<String> {
    if !text.contains('\\') {
        return None;
    }
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    let mut changed = false;
    while let Some(c) = chars.next() {
        let plain = match chars.peek() {
            Some('n') => '\n',
            Some('t') => '\t',
            Some('r') => '\r',
            Some(&c @ ('"' | '\'' | '\\')) => c,
            _ => c,
        };
        if c == '\\' && (plain != c || chars.peek() == Some(&'\\')) {
            out.push(plain);
            chars.next();
            changed = true;
        } else {
            out.push(c);
        }
    }
    changed.then(|| out.replace("\r\n", "\n"))
}

fn numbered<'v>(view: &'v View<'_>, from: usize, count: usize) -> Vec<(usize, &'v str)> {
    let all = lines(&view.text).map(|(_, line)| line).enumerate();
    all.skip(from).take(count.min(MAX_LINES)).collect()
}

/// The most similar block of as many lines as the search, if it is similar enough.
fn closest(view: &View<'_>, given: &[&str]) -> Option<Closest> {
    let head = given.len().min(MAX_LINES);
    let given_head = given.get(..head)?;
    let mut starts = seeds(view, given_head);
    if starts.is_empty() {
        starts = trigram_seeds(view, given_head);
    }
    let mut best: Option<(f32, Vec<(usize, &str)>)> = None;
    for start in starts {
        let first = view.newlines(0..start);
        let block = lines_from(&view.text, start).take(head);
        let window: Vec<_> =
            block.enumerate().map(|(index, (_, line))| (first + index, line)).collect();
        let score = score(given_head, &window);
        if best.as_ref().is_none_or(|(most, _)| score > *most) {
            best = Some((score, window));
        }
    }
    let (similarity, window) = best.filter(|(score, _)| *score >= LEAST)?;
    let first = window.first()?.0 + 1;
    let lines = LineSpan { first, last: first + given.len().max(1) - 1 };
    let lines =
        if window.len() < head { LineSpan { last: window.last()?.0 + 1, ..lines } } else { lines };
    Some(Closest { lines, similarity, first_diff: first_diff(given_head, &window) })
}

/// A line of the file that is like a line of the search.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Seed {
    /// Offset of the file's line.
    at: usize,
    /// Index of the search's line.
    index: usize,
}

impl Seed {
    /// The offset of the window in which the two lines face each other.
    fn start(self, text: &str) -> Option<usize> {
        (0..self.index).try_fold(self.at, |at, _| line_before(text, at))
    }
}

/// Start offsets of windows that have lines of the search where the search has them, most of them first.
fn seeds(view: &View<'_>, given: &[&str]) -> Vec<usize> {
    let mut wanted: HashMap<&str, usize> = HashMap::new();
    for (index, line) in given.iter().enumerate() {
        // Braces and the like are in every block.
        if trim(line).chars().filter(|c| c.is_alphanumeric()).count() >= 2 {
            wanted.entry(trim(line)).or_insert(index);
        }
    }
    // By the number of the first line: how many lines agree, and one of them.
    let mut votes: HashMap<usize, (usize, Seed)> = HashMap::new();
    let mut vote = |number: usize, seed: Seed| {
        if let Some(start) = number.checked_sub(seed.index) {
            votes.entry(start).or_insert((0, seed)).0 += 1;
        }
        votes.len() < MAX_VOTES
    };
    if wanted.len() <= FEW_LINES {
        for (line, &index) in &wanted {
            let anchors = Anchors::of(&view.text, &[line]);
            let Some(starts) = anchors.starts() else {
                continue;
            };
            for &at in starts {
                vote(view.newlines(0..at), Seed { at, index });
            }
        }
    } else {
        for (number, (at, line)) in lines(&view.text).enumerate() {
            if let Some(&index) = wanted.get(trim(line))
                && !vote(number, Seed { at, index })
            {
                break;
            }
        }
    }
    let mut starts: Vec<_> = votes.into_iter().collect();
    starts.sort_unstable_by_key(|&(start, (count, _))| (std::cmp::Reverse(count), start));
    starts.truncate(MAX_WINDOWS);
    starts.into_iter().filter_map(|(_, (_, seed))| seed.start(&view.text)).collect()
}

/// A set of trigrams by 15 bits of their hash; a rare collision costs a wasted comparison.
struct Trigrams(Vec<u8>);

/// The 15 bits of the first three of four bytes, which are read at once.
fn bits([a, b, c, _]: [u8; 4]) -> usize {
    (u32::from_le_bytes([a, b, c, 0]).wrapping_mul(0x9e37_79b1) >> 17) as usize
}

impl Trigrams {
    fn of(line: &[u8]) -> Self {
        let mut set = vec![0; 1 << 15];
        for &[a, b, c] in line.array_windows() {
            if let Some(slot) = set.get_mut(bits([a, b, c, 0])) {
                *slot = 1;
            }
        }
        Self(set)
    }

    /// How many of every `step`th trigram of a line, but for its last, are in the set.
    fn shared(&self, line: &[u8], step: usize) -> usize {
        let grams = line.array_windows().step_by(step);
        grams.map(|&gram| usize::from(self.0.get(bits(gram)).copied().unwrap_or_default())).sum()
    }
}

/// The part of a line that counts.
fn head_of(line: &str) -> &[u8] {
    let bytes = trim(line).as_bytes();
    bytes.get(..bytes.len().min(MAX_LINE)).unwrap_or_default()
}

/// Start offsets of windows whose line is most like the longest line of the search.
fn trigram_seeds(view: &View<'_>, given: &[&str]) -> Vec<usize> {
    let lines_given = given.iter().map(|line| head_of(line)).enumerate();
    let Some((index, longest)) = lines_given.max_by_key(|(_, line)| line.len()) else {
        return Vec::new();
    };
    let wanted = Trigrams::of(longest);
    // A line must share a third, and of two lines that share as much the shorter one is nearer.
    let enough = longest.len().saturating_sub(2).div_ceil(3).max(1);
    let mut best: Vec<(usize, Seed)> = Vec::new();
    let cut_down = |best: &mut Vec<(usize, Seed)>| {
        best.sort_unstable_by_key(|&(shared, seed)| (std::cmp::Reverse(shared), seed));
        best.truncate(MAX_WINDOWS);
    };
    let mut seen = 0;
    let mut least = enough;
    for (at, line) in lines(&view.text) {
        seen += line.len().min(MAX_LINE) + 1;
        if seen > MAX_TRIGRAM_BYTES {
            break;
        }
        let line = head_of(line);
        // A sample first: a line that shares enough has about its part of it in the sample.
        if line.len() < enough || 2 * SAMPLE * wanted.shared(line, SAMPLE) < least {
            continue;
        }
        let over = line.len().saturating_sub(longest.len());
        let shared = wanted.shared(line, 1);
        let score = shared.saturating_sub(over / 2);
        if shared < enough || score < least {
            continue;
        }
        best.push((score, Seed { at, index }));
        if best.len() >= MAX_WINDOWS * 4 {
            cut_down(&mut best);
            least = best.last().map_or(least, |&(score, _)| score);
        }
    }
    cut_down(&mut best);
    best.into_iter().filter_map(|(_, seed)| seed.start(&view.text)).collect()
}

/// Mean likeness of the lines, longer ones counting more.
fn score(given: &[&str], window: &[(usize, &str)]) -> f32 {
    let (mut sum, mut weight) = (0.0, 0.0);
    for (index, wanted) in given.iter().enumerate() {
        let wanted = trim(wanted);
        let found = window.get(index).map(|(_, line)| trim(line));
        let longer = wanted.len().max(found.map_or(0, str::len)).min(MAX_LINE);
        let counts = f32::from(u16::try_from(longer).unwrap_or(u16::MAX));
        weight += counts;
        sum += found.map_or(0.0, |found| alike(wanted, found) * counts);
    }
    if weight == 0.0 { 0.0 } else { sum / weight }
}

/// The first line that differs beyond blanks at its ends, else the first that differs at all.
fn first_diff(given: &[&str], window: &[(usize, &str)]) -> Option<LineDiff> {
    let differs = |same: fn(&str) -> &str| {
        given.iter().zip(window).find(|(wanted, (_, found))| same(wanted) != same(found))
    };
    let (wanted, &(number, found)) = differs(trim).or_else(|| differs(trim_end))?;
    let away = wanted.chars().zip(found.chars()).take_while(|(a, b)| a == b).count();
    let from = away.saturating_sub(60);
    let (wanted, caret) = visible(wanted, from, away);
    let (found, _) = visible(found, from, away);
    Some(LineDiff { line: number + 1, wanted, found, caret })
}

/// A part of a line with tabs, blanks at its ends and other invisible characters made visible, and where
/// the character `mark` now stands.
fn visible(line: &str, from: usize, mark: usize) -> (String, usize) {
    const WIDTH: usize = 120;
    let solid = trim(line).len() + (line.len() - line.trim_start_matches([' ', '\t']).len());
    let mut out = String::new();
    let mut caret = 0;
    if from > 0 {
        out.push('…');
    }
    let mut leading = true;
    for (index, (at, c)) in line.char_indices().enumerate() {
        leading &= matches!(c, ' ' | '\t');
        if index < from {
            continue;
        }
        if index == mark {
            caret = out.chars().count();
        }
        if index >= from + WIDTH {
            out.push('…');
            break;
        }
        match c {
            ' ' if leading || at >= solid => out.push('·'),
            '\t' => out.push('→'),
            c if c.is_control() || (c != ' ' && c.is_whitespace()) || is_invisible(c) => {
                out.extend(c.escape_unicode());
            }
            c => out.push(c),
        }
    }
    if mark >= line.chars().take(from + WIDTH).count() {
        caret = out.chars().count();
    }
    (out, caret)
}

fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{ad}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_level_of_escapes() {
        assert_eq!(unescape(r"a\nb").as_deref(), Some("a\nb"));
        assert_eq!(unescape(r#"say(\"hi\")"#).as_deref(), Some("say(\"hi\")"));
        assert_eq!(unescape(r"\\s").as_deref(), Some(r"\s"));
        assert_eq!(unescape(r"\d"), None);
    }

    #[test]
    fn blanks_are_made_visible() {
        assert_eq!(visible("  a\tb  ", 0, 2), ("··a→b··".to_owned(), 2));
    }
}
