//! Many edits in one pass: what each of them looks for is searched for at once.
//!
//! An edit that finds its text once, byte for byte, in lines that no edit before it has touched, is written
//! as if it stood alone, and the text is put together once for all of them. Text that an edit puts in may be
//! what a later one looks for, so around each new piece the search is run again. The first edit that is
//! not as simple as that ends the run; it and its kind see the whole text, one at a time.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::path::Path;

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use memchr::memchr_iter;

use super::step::{MAX_LOOSER, Step, covers_lines};
use crate::edit::{Edit, Options};
use crate::elide;
use crate::emit::{Patch, given_lines};
use crate::hits::{Hits, Place};
use crate::locate::{inside_indentation, is_line, longest};
use crate::outcome::{Applied, Warning};
use crate::text::{BOM, View, cut};

/// Fewest edits worth a search of their own kind.
pub(super) const FEWEST: usize = 8;
/// Bytes of all that is looked for; the automaton takes some fifty times as much memory.
const MOST_WANTED: usize = 1 << 20;
/// Occurrences beyond one a byte of the text at which the run is given up.
const MOST_FOUND: usize = 1 << 16;

/// What a run of edits came to.
#[derive(Debug, Default)]
pub(super) struct Run {
    /// The patches of all edits, ascending and disjoint, with the index of the edit.
    pub(super) patches: Vec<(usize, Patch)>,
    /// What each edit did.
    pub(super) applied: Vec<Applied>,
    /// What is worth saying.
    pub(super) warnings: Vec<Warning>,
}

/// Runs as many of `edits` as are simple; `first` is the index of the first of them.
pub(super) fn run(
    view: &View<'_>,
    first: usize,
    edits: &[Edit],
    path: &Path,
    options: &Options,
) -> Run {
    let mut run = Run::default();
    let Some(mut found) = Found::new(view, edits) else {
        return run;
    };
    let mut pending = Pending::new(&found);
    let mut growth = 0_usize;
    for (offset, edit) in edits.iter().enumerate().take(found.edits.len()) {
        let step = Step { index: first + offset, edit, path, options };
        let Some((place, lonely)) = found.simple(view, offset, &pending) else {
            break;
        };
        growth = growth.saturating_add(edit.replace.len());
        if view.raw_len().saturating_add(growth) > options.limits.file_bytes {
            break;
        }
        let mut hits = Hits::new(1, None);
        hits.push(place.clone());
        let mut said = Vec::new();
        let texts = (&*edit.search, &*edit.replace);
        let Ok((patches, mut done)) = step.replace_exactly(view, texts, &hits, !lonely, &mut said)
        else {
            break;
        };
        let others = said.iter().any(|one| matches!(one, Warning::LooserMatches { .. }));
        let (Ok([made]), false) = (<[Patch; 1]>::try_from(patches), others) else {
            break;
        };
        pending.move_on(place.range.start, &mut done, &mut said);
        run.applied.push(done);
        run.warnings.append(&mut said);
        let start = place.range.start;
        pending.add(view, step.index, place.range, made);
        let (window, new) = pending.around(view, start, found.reach);
        found.look_again(&window, &new);
    }
    run.patches = pending.list.into_values().map(|one| (one.index, one.patch)).collect();
    run
}

/// What is known of one text that is looked for.
struct Pattern {
    /// Its length.
    length: usize,
    /// How often it is in the text.
    count: usize,
    /// Where it is first.
    first: usize,
    /// How many lines it is the whole of, blanks at both ends aside.
    lines: usize,
    /// Whether an edit has put it into the text.
    fresh: bool,
}

impl Pattern {
    fn new(text: &str) -> Self {
        Self { length: text.len(), count: 0, first: 0, lines: 0, fresh: false }
    }
}

/// What a run of edits looks for, and where it is in the text.
struct Found {
    automaton: AhoCorasick,
    patterns: Vec<Pattern>,
    /// For each edit, the patterns of its search and of the longest line of it.
    edits: Vec<(usize, Option<usize>)>,
    /// Length of the longest pattern.
    reach: usize,
}

impl Found {
    /// Looks for everything at once; nothing if that would not pay.
    fn new(view: &View<'_>, edits: &[Edit]) -> Option<Self> {
        if !view.is_plain() {
            return None;
        }
        let mut ids: HashMap<&str, usize> = HashMap::new();
        let mut texts: Vec<&str> = Vec::new();
        let mut id = |text| {
            *ids.entry(text).or_insert_with(|| {
                texts.push(text);
                texts.len() - 1
            })
        };
        let mut known = Vec::new();
        for edit in edits.iter().take_while(|edit| is_plain(edit)) {
            let search = id(&edit.search);
            let lines = given_lines(&edit.search);
            known.push((search, longest(&lines).map(|(_, line)| id(line))));
        }
        let reach = texts.iter().map(|text| text.len()).max()?;
        let (size, work) = (view.text.len(), reach.saturating_mul(3 * known.len()));
        if known.len() < FEWEST || work > size.saturating_mul(4).saturating_add(1 << 20) {
            return None;
        }
        if texts.iter().map(|text| text.len()).sum::<usize>() > MOST_WANTED {
            return None;
        }
        // Of the kinds the one whose memory is in proportion to the texts.
        let kind = Some(AhoCorasickKind::ContiguousNFA);
        let automaton = AhoCorasick::builder().kind(kind).build(&texts).ok()?;
        let mut patterns: Vec<Pattern> = texts.iter().map(|text| Pattern::new(text)).collect();
        for (seen, hit) in automaton.find_overlapping_iter(&*view.text).enumerate() {
            if seen > size.saturating_add(MOST_FOUND) {
                return None;
            }
            let pattern = patterns.get_mut(hit.pattern().as_usize())?;
            if pattern.count == 0 {
                pattern.first = hit.start();
            }
            pattern.count += 1;
            if pattern.lines < 2 && is_line(&view.text, &hit.range()) {
                pattern.lines += 1;
            }
        }
        Some(Self { automaton, patterns, edits: known, reach })
    }

    /// The one place of an edit, if nothing about it is special, and whether no line is like its longest.
    fn simple(&self, view: &View<'_>, edit: usize, pending: &Pending) -> Option<(Place, bool)> {
        let &(search, line) = self.edits.get(edit)?;
        let pattern = self.patterns.get(search).filter(|one| one.count == 1 && !one.fresh)?;
        let text = view.text.as_bytes();
        let range = pattern.first..pattern.first + pattern.length;
        let place = Place::part(range.clone(), view.newlines(0..range.start));
        let searched = cut(&view.text, range.clone());
        let lines = covers_lines(view, &place);
        // Such a hit is for the levels that know indentation.
        let ends_line = matches!(text.get(range.end), None | Some(b'\n'))
            || text.get(range.end - 1) == Some(&b'\n');
        if (ends_line && inside_indentation(view, &range, searched)) || pending.meets(view, &range)
        {
            return None;
        }
        let longest = line.and_then(|line| self.patterns.get(line));
        if lines && view.text.len() <= MAX_LOOSER && longest.is_some_and(|line| line.fresh) {
            return None;
        }
        Some((place, !lines || longest.is_none_or(|line| line.lines < 2)))
    }

    /// Notes what there is in a window of the new text that is not all of old text.
    fn look_again(&mut self, window: &[u8], new: &Range<usize>) {
        for hit in self.automaton.find_overlapping_iter(window) {
            let old = hit.end() <= new.start || hit.start() >= new.end;
            if !old && let Some(pattern) = self.patterns.get_mut(hit.pattern().as_usize()) {
                pattern.fresh = true;
            }
        }
    }
}

/// Whether an edit asks for nothing but one place, in a text without carriage returns.
fn is_plain(edit: &Edit) -> bool {
    let plain = |text: &str| !text.contains('\r') && !text.starts_with(BOM);
    let one = !edit.replace_all && edit.expected_count.is_none() && edit.at_line.is_none();
    one && !edit.search.is_empty()
        && plain(&edit.search)
        && plain(&edit.replace)
        && elide::in_replacement(&edit.replace, &edit.search).is_none()
}

/// A patch that is not yet made.
struct One {
    index: usize,
    /// Bytes of the view.
    old: Range<usize>,
    patch: Patch,
}

/// The patches so far, by where they begin, and by how much they move what is behind them.
struct Pending {
    list: BTreeMap<usize, One>,
    /// Where patches may begin, ascending.
    starts: Vec<usize>,
    /// For each start, bytes and lines that the patches before it add: sums as Fenwick keeps them.
    sums: Vec<(isize, isize)>,
}

impl Pending {
    fn new(found: &Found) -> Self {
        let pattern = |&(search, _): &(usize, _)| found.patterns.get(search);
        let mut starts: Vec<usize> =
            found.edits.iter().filter_map(pattern).map(|pattern| pattern.first).collect();
        starts.sort_unstable();
        starts.dedup();
        let sums = vec![(0, 0); starts.len() + 1];
        Self { list: BTreeMap::new(), starts, sums }
    }

    /// Whether a patch touches the lines of a range.
    fn meets(&self, view: &View<'_>, range: &Range<usize>) -> bool {
        let (start, end) = (view.line_start(range.start), view.line_end(range.end));
        let mut before = self.list.range(..=end).rev();
        before.next().is_some_and(|(_, one)| one.old.end >= start)
    }

    /// The bytes and lines by which patches before an offset move it.
    fn shift(&self, at: usize) -> (isize, isize) {
        let mut rank = self.starts.partition_point(|&start| start < at);
        let (mut bytes, mut lines) = (0, 0);
        while rank > 0 {
            let sum = self.sums.get(rank).copied().unwrap_or_default();
            (bytes, lines) = (bytes + sum.0, lines + sum.1);
            rank &= rank - 1;
        }
        (bytes, lines)
    }

    /// Turns what is said of a place in the text before all patches into what is true after them.
    fn move_on(&self, at: usize, done: &mut Applied, said: &mut [Warning]) {
        let (bytes, lines) = self.shift(at);
        for Range { start, end } in &mut done.matches {
            *start = start.saturating_add_signed(bytes);
            *end = end.saturating_add_signed(bytes);
        }
        for span in &mut done.lines {
            span.first = span.first.saturating_add_signed(lines);
            span.last = span.last.saturating_add_signed(lines);
        }
        for warning in said {
            if let Warning::SplitsWord { line, .. } | Warning::LineJoined { line, .. } = warning {
                *line = line.saturating_add_signed(lines);
            }
        }
    }

    /// Takes in a patch that touches no other.
    fn add(&mut self, view: &View<'_>, index: usize, old: Range<usize>, patch: Patch) {
        let lines = |text: &str| memchr_iter(b'\n', text.as_bytes()).count();
        let bytes = difference(patch.text.len(), old.len());
        let lines = difference(lines(&patch.text), lines(cut(&view.text, old.clone())));
        let mut rank = self.starts.partition_point(|&start| start < old.start) + 1;
        while let Some(sum) = self.sums.get_mut(rank) {
            *sum = (sum.0 + bytes, sum.1 + lines);
            rank += rank & rank.wrapping_neg();
        }
        self.list.insert(old.start, One { index, old, patch });
    }

    /// The text as it now is around the patch at `start`, `reach` bytes to each side, and where the patch is.
    fn around(&self, view: &View<'_>, start: usize, reach: usize) -> (Vec<u8>, Range<usize>) {
        let text = view.text.as_bytes();
        let piece = |range: Range<usize>| text.get(range).unwrap_or_default();
        let Some(middle) = self.list.get(&start) else {
            return (Vec::new(), 0..0);
        };
        let (mut left, mut at, mut length) = (Vec::new(), start, 0);
        for one in self.list.range(..start).rev().map(|(_, one)| one) {
            let gap = piece(one.old.end.max(at.saturating_sub(reach))..at);
            left.extend([gap, one.patch.text.as_bytes()]);
            length += gap.len() + one.patch.text.len();
            at = one.old.start;
            if length >= reach {
                break;
            }
        }
        if length < reach {
            left.push(piece(at.saturating_sub(reach)..at));
        }
        let mut window: Vec<u8> = left.into_iter().rev().flatten().copied().collect();
        window.drain(..window.len().saturating_sub(reach));
        let new = window.len()..window.len() + middle.patch.text.len();
        window.extend_from_slice(middle.patch.text.as_bytes());
        at = middle.old.end;
        for one in self.list.range(start + 1..).map(|(_, one)| one) {
            if window.len() >= new.end + reach {
                break;
            }
            window.extend_from_slice(piece(at..one.old.start.min(at.saturating_add(reach))));
            if one.old.start <= at.saturating_add(reach) {
                window.extend_from_slice(one.patch.text.as_bytes());
            }
            at = one.old.end;
        }
        if window.len() < new.end + reach {
            window.extend_from_slice(piece(at..text.len().min(at.saturating_add(reach))));
        }
        window.truncate(new.end + reach);
        (window, new)
    }
}

fn difference(a: usize, b: usize) -> isize {
    isize::try_from(a).unwrap_or(isize::MAX) - isize::try_from(b).unwrap_or(isize::MAX)
}

#[cfg(test)]
#[expect(
    clippy::string_slice,
    clippy::format_collect,
    reason = "a test's texts are short and ASCII"
)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_the_text_as_it_will_be() {
        let text: String = (0..40).map(|n| format!("line {n}\n")).collect();
        let view = View::new(&text);
        let edits: Vec<Edit> = (10..30).map(|n| Edit::new(format!("line {n}\n"), "")).collect();
        let found = Found::new(&view, &edits).unwrap();
        for reach in [0, 1, 7, 50, 10_000] {
            let mut pending = Pending::new(&found);
            let mut made: Vec<(Range<usize>, String)> = Vec::new();
            // Out of order, some longer, some shorter, some next to each other.
            for n in [12, 25, 13, 29, 10, 11, 20] {
                let at = text.find(&format!("line {n}\n")).unwrap();
                let old = at..at + 8;
                let new = "new\n".repeat(n % 4);
                let patch = Patch { range: old.clone(), text: new.clone() };
                pending.add(&view, n, old.clone(), patch);
                made.push((old, new.clone()));
                made.sort_by_key(|(old, _)| old.start);
                let (mut now, mut from) = (String::new(), 0);
                let mut start = 0;
                for (old, new) in &made {
                    now.push_str(&text[from..old.start]);
                    if old.start == at {
                        start = now.len();
                    }
                    now.push_str(new);
                    from = old.end;
                }
                now.push_str(&text[from..]);
                let (window, range) = pending.around(&view, at, reach);
                let first = start.saturating_sub(reach);
                let last = (start + new.len() + reach).min(now.len());
                assert_eq!(String::from_utf8_lossy(&window), now[first..last]);
                assert_eq!(range, start - first..start - first + new.len());
                let grown = pending.shift(text.len());
                assert_eq!(grown.0, difference(now.len(), text.len()));
                assert_eq!(grown.1, difference(now.matches('\n').count(), 40));
            }
        }
    }
}
