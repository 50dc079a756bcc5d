//! What is written in the place that was found.
//!
//! At the exact level the replacement is written as it is. At the others it is read line by line against
//! the search: equal lines keep the file's bytes, changed and new ones are put on the file's indentation,
//! blank ones stay empty. Every emitted line takes a line ending that is already there.

use std::borrow::Cow;
use std::ops::Range;

use crate::edit::Level;
use crate::fold;
use crate::hits::Place;
use crate::indent::{self, Mapping, Steps, Unit};
use crate::line_diff::{Origin, origins};
use crate::text::{Ends, View, cut, indent_of, lines, trim, trim_end};

/// A replacement as it goes into the raw text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Patch {
    /// Bytes of the raw text.
    pub(crate) range: Range<usize>,
    /// What they become.
    pub(crate) text: String,
}

/// A line to be written, and the view offset of the `\n` whose kind it takes.
struct Line<'t> {
    text: Cow<'t, str>,
    newline: Option<usize>,
}

/// Writes the replacement as it is, between the ends of `place`.
pub(crate) fn literal(view: &View<'_>, place: &Place, search: &str, replace: &str) -> Patch {
    let written: Vec<&str> = replace.split('\n').collect();
    let mut out: Vec<Line<'_>> =
        written.iter().map(|&text| Line { text: Cow::Borrowed(text), newline: None }).collect();
    if matches!(view.ends, Ends::Mixed(_)) && out.len() > 1 {
        let found = cut(&view.text, place.range.clone());
        let mut at = place.range.start;
        let newlines: Vec<usize> = found
            .split('\n')
            .map(|line| {
                at += line.len() + 1;
                at - 1
            })
            .collect();
        let given: Vec<&str> = search.split('\n').collect();
        for (line, origin) in out.iter_mut().zip(origins(&given, &written)) {
            if let Origin::Kept(partner) | Origin::Paired(partner) = origin {
                line.newline = newlines.get(partner).copied().filter(|&at| at < place.range.end);
            }
        }
    }
    Patch { range: view.raw_range(&place.range), text: join(view, place, &out) }
}

/// Puts the lines together, each but the last with a line ending.
fn join(view: &View<'_>, place: &Place, out: &[Line<'_>]) -> String {
    let fallback = match view.ends {
        Ends::None => "\n",
        Ends::Uniform(end) | Ends::Mixed(end) => end,
    };
    let own = || view.end_at(view.line_end(place.range.start));
    let mut text = String::with_capacity(out.iter().map(|line| line.text.len() + 2).sum());
    let mut last = None;
    for (index, line) in out.iter().enumerate() {
        text.push_str(&line.text);
        if index + 1 < out.len() {
            let end = line
                .newline
                .and_then(|at| view.end_at(at))
                .or(last)
                .or_else(own)
                .unwrap_or(fallback);
            text.push_str(end);
            last = Some(end);
        }
    }
    text
}

/// A line of the matched block, with its offset in the view.
struct FileLine<'t> {
    start: usize,
    text: &'t str,
}

/// The blanks around a line's text, as the level sees them.
fn parts(line: &str, folded: bool) -> (&str, &str) {
    if folded {
        let rest = line.trim_start_matches(fold::folds_to_blank);
        let indent = cut(line, 0..line.len() - rest.len());
        (indent, rest.trim_end_matches(fold::folds_to_blank))
    } else {
        (indent_of(line), trim(line))
    }
}

/// Writes the replacement line by line in the place of whole lines.
pub(crate) fn whole_lines(
    view: &View<'_>,
    place: &Place,
    level: Level,
    search: &[&str],
    replace: &[&str],
    file_unit: Unit,
) -> Patch {
    let text = &view.text;
    if replace.is_empty() {
        // The lines go with their endings.
        let end = if text.as_bytes().get(place.range.end) == Some(&b'\n') {
            place.range.end + 1
        } else {
            place.range.end
        };
        return Patch { range: view.raw_range(&(place.range.start..end)), text: String::new() };
    }
    // A block that consists of one empty line reads as no line at all.
    let block = cut(text, place.range.clone());
    let mut file: Vec<FileLine<'_>> = Vec::new();
    let mut at = place.range.start;
    for line in block.split('\n') {
        file.push(FileLine { start: at, text: line });
        at += line.len() + 1;
    }
    let (search, replace) = (indented(search, level), indented(replace, level));
    let search: Vec<&str> = search.iter().map(|line| &**line).collect();
    let replace: Vec<&str> = replace.iter().map(|line| &**line).collect();
    let out = if level == Level::BlankLines {
        loose_block(&search, &replace, &file)
    } else {
        let aligned: Vec<&FileLine<'_>> = file.iter().collect();
        let origins = kept_lines(level, &search, &replace, &aligned);
        Frame::new(level, &search, &replace, &aligned, file_unit).write(&origins)
    };
    Patch { range: view.raw_range(&place.range), text: join(view, place, &out) }
}

/// Whether the level reads folded text.
fn is_folded(level: Level) -> bool {
    matches!(level, Level::Unicode | Level::InnerWs)
}

/// The lines with indentation of plain blanks, where the level takes others for blanks too.
fn indented<'t>(given: &[&'t str], level: Level) -> Vec<Cow<'t, str>> {
    let plain = |line: &'t str| {
        let (indent, _) = parts(line, is_folded(level));
        if indent.is_ascii() {
            return Cow::Borrowed(line);
        }
        let blanks = indent.chars().map(|c| if c == '\t' { c } else { ' ' });
        Cow::Owned(blanks.chain(cut(line, indent.len()..line.len()).chars()).collect())
    };
    given.iter().map(|line| plain(line)).collect()
}

/// The first line that is not blank.
fn base<'t>(mut given: impl Iterator<Item = &'t str>) -> Option<&'t str> {
    given.find(|line| !trim(line).is_empty()).map(indent_of)
}

/// Whether the replacement is written in the search's indentation, the file's, or without any.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Base {
    Search,
    File,
    Dropped,
}

/// The indentation of the first line of each, and what the replacement's means.
fn base_of<'t>(
    search: &[&'t str],
    replace: &[&'t str],
    file: &[&FileLine<'t>],
    level: Level,
) -> (Base, &'t str, &'t str) {
    let folded = is_folded(level);
    let first = search.iter().position(|line| !trim(line).is_empty()).unwrap_or(0);
    let s0 = search.get(first).map_or("", |line| indent_of(line));
    let f0 = file.get(first).map_or("", |line| parts(line.text, folded).0);
    let r0 = base(replace.iter().copied()).unwrap_or(s0);
    let base = if level == Level::LineNumbers {
        // The listing showed the file's own indentation.
        Base::File
    } else if r0 == s0 {
        Base::Search
    } else if r0 == f0 {
        Base::File
    } else if r0.is_empty() {
        Base::Dropped
    } else {
        Base::Search
    };
    (base, s0, f0)
}

/// Finds which lines of the replacement continue which line of the search.
fn kept_lines(
    level: Level,
    search: &[&str],
    replace: &[&str],
    file: &[&FileLine<'_>],
) -> Vec<Origin> {
    let folded = is_folded(level);
    let (base, s0, _) = base_of(search, replace, file, level);
    let given: Vec<&str> = match base {
        Base::Search => search.iter().map(|line| trim_end(line)).collect(),
        // Written for the file, so it is compared to the file.
        Base::File if !folded => file.iter().map(|line| trim_end(line.text)).collect(),
        Base::File => search.iter().map(|line| trim_end(line)).collect(),
        Base::Dropped => {
            search.iter().map(|line| trim_end(line.strip_prefix(s0).unwrap_or(line))).collect()
        }
    };
    let written: Vec<&str> = replace.iter().map(|line| trim_end(line)).collect();
    origins(&given, &written)
}

/// Everything that decides the indentation of an emitted line.
struct Frame<'t, 'a> {
    level: Level,
    search: &'a [&'t str],
    replace: &'a [&'t str],
    file: &'a [&'a FileLine<'t>],
    base: Base,
    mapping: Option<Mapping<'t>>,
    steps: Steps,
    s0: &'t str,
    f0: &'t str,
    /// Only the first line of the search stands elsewhere than in the file.
    first_only: bool,
}

impl<'t, 'a> Frame<'t, 'a> {
    fn new(
        level: Level,
        search: &'a [&'t str],
        replace: &'a [&'t str],
        file: &'a [&'a FileLine<'t>],
        unit: Unit,
    ) -> Self {
        let folded = is_folded(level);
        let (base, s0, f0) = base_of(search, replace, file, level);
        let pairs: Vec<(&str, &str)> = search
            .iter()
            .zip(file)
            .filter(|(line, _)| !trim(line).is_empty())
            .map(|(line, file)| (indent_of(line), parts(file.text, folded).0))
            .collect();
        let depths: Vec<&str> = replace
            .iter()
            .filter(|line| !trim(line).is_empty())
            .map(|line| indent_of(line))
            .collect();
        let first_only = pairs.len() > 1
            && s0 != f0
            && pairs.iter().skip(1).all(|(s, f)| s == f && !s.is_empty());
        let mapping = indent::mapping(&pairs, Some(unit), &depths).filter(|found| {
            let eight = matches!(found, Mapping::Units { from: Unit::Blanks(8), .. });
            !(first_only && eight)
        });
        let r0 = base_of_depths(&depths);
        let steps = if indent::aligns_to_marks(replace) {
            Steps { given: None, file: unit }
        } else {
            let beyond = depths.iter().map(|depth| depth.strip_prefix(r0).unwrap_or(depth));
            Steps::learn(beyond, search.iter().map(|line| indent_of(line)), unit)
        };
        Self { level, search, replace, file, base, mapping, steps, s0, f0, first_only }
    }

    fn write(&self, origins: &[Origin]) -> Vec<Line<'t>> {
        let near = self.nearest_kept(origins);
        let any_kept = near.iter().any(Option::is_some);
        let first = self.replace.iter().position(|line| !trim(line).is_empty());
        let as_is = self.base == Base::Dropped && self.whole_steps();
        origins
            .iter()
            .zip(self.replace)
            .enumerate()
            .map(|(index, (&origin, line))| {
                let partner = match origin {
                    Origin::Kept(i) | Origin::Paired(i) => self.file.get(i).copied(),
                    Origin::New => None,
                };
                let newline = partner.map(|file| file.start + file.text.len());
                if let (Origin::Kept(_), Some(file)) = (origin, partner) {
                    return Line { text: Cow::Borrowed(file.text), newline };
                }
                if trim(line).is_empty() {
                    return Line { text: Cow::Borrowed(""), newline };
                }
                let blanks = indent_of(line);
                let indent = match (&self.mapping, self.base) {
                    (_, Base::File) => blanks.to_owned(),
                    (_, Base::Dropped) if as_is => format!("{}{blanks}", self.f0),
                    (Some(Mapping::Units { from, to, .. }), Base::Dropped) => {
                        let steps = Steps { given: Some(*from), file: *to };
                        format!("{}{}", self.f0, steps.convert(blanks))
                    }
                    (_, Base::Dropped) => format!("{}{}", self.f0, self.steps.convert(blanks)),
                    (Some(mapping), Base::Search) => mapping.apply(blanks, self.steps),
                    (None, Base::Search) if self.first_only => {
                        if Some(index) == first {
                            indent::shift(blanks, self.s0, self.f0)
                        } else {
                            blanks.to_owned()
                        }
                    }
                    (None, Base::Search) if any_kept => {
                        self.follow(near.get(index).copied().flatten(), origin, blanks)
                    }

                    (None, Base::Search) => indent::shift(blanks, self.s0, self.f0),
                };
                let body = cut(line, blanks.len()..line.len());
                let body = self.spelled_like_the_file(origin, body);
                let text = if indent.is_empty() { body } else { Cow::Owned(indent + &body) };
                Line { text, newline }
            })
            .collect()
    }

    /// For each line, the search line of the nearest kept line with text above it, else below.
    fn nearest_kept(&self, origins: &[Origin]) -> Vec<Option<usize>> {
        let kept = |(origin, line): (&Origin, &&str)| match origin {
            Origin::Kept(partner) if !trim(line).is_empty() => Some(*partner),
            _ => None,
        };
        let mut last = origins.iter().zip(self.replace).find_map(kept);
        let mut out = Vec::with_capacity(origins.len());
        for pair in origins.iter().zip(self.replace) {
            last = kept(pair).or(last);
            out.push(last);
        }
        out
    }

    /// Whether all depths of a replacement without base are whole steps of the file.
    fn whole_steps(&self) -> bool {
        let step = match self.steps.file {
            Unit::Tab => return self.replace.iter().all(|line| !indent_of(line).contains(' ')),
            Unit::Blanks(step) => step,
        };
        self.replace.iter().filter(|line| !trim(line).is_empty()).all(|line| {
            let blanks = indent_of(line);
            !blanks.contains('\t') && blanks.len().is_multiple_of(step)
        })
    }

    /// Where no mapping explains all lines: as the partner, or moved like the nearest kept line.
    fn follow(&self, near: Option<usize>, origin: Origin, blanks: &str) -> String {
        let folded = is_folded(self.level);
        let moved = |partner: usize| {
            let given = self.search.get(partner).map(|line| indent_of(line))?;
            let found = self.file.get(partner).map(|line| parts(line.text, folded).0)?;
            Some((given, found))
        };
        if let Origin::Paired(partner) = origin
            && let Some((given, found)) = moved(partner)
            && given == blanks
        {
            return found.to_owned();
        }
        let (from, to) = near.and_then(moved).unwrap_or((self.s0, self.f0));
        indent::shift(blanks, from, to)
    }

    /// At the folding levels, the file's spelling of what a changed line has in common with the search.
    fn spelled_like_the_file(&self, origin: Origin, body: &'t str) -> Cow<'t, str> {
        let collapse = match self.level {
            Level::Unicode => false,
            Level::InnerWs => true,
            _ => return Cow::Borrowed(body),
        };
        let Origin::Paired(partner) = origin else {
            return Cow::Borrowed(body);
        };
        let (Some(given), Some(file)) = (self.search.get(partner), self.file.get(partner)) else {
            return Cow::Borrowed(body);
        };
        fold::merge(parts(given, true).1, body, parts(file.text, true).1, collapse)
    }
}

fn base_of_depths<'t>(depths: &[&'t str]) -> &'t str {
    depths.first().copied().unwrap_or_default()
}

/// Blank lines of the search and of the file may differ in number: the replacement's layout holds where
/// it changes the search's, the file's elsewhere.
fn loose_block<'t>(
    search: &[&'t str],
    replace: &[&'t str],
    file: &[FileLine<'t>],
) -> Vec<Line<'t>> {
    let solid = |line: &&str| !trim(line).is_empty();
    let (search, replace) = same_edges(search, replace);
    let wanted: Vec<&str> = search.iter().copied().filter(|line| solid(line)).collect();
    let solid_lines: Vec<(usize, &FileLine<'_>)> =
        file.iter().enumerate().filter(|(_, line)| solid(&line.text)).collect();
    let given: Vec<&str> = replace.iter().copied().filter(|line| solid(line)).collect();
    let aligned: Vec<&FileLine<'_>> = solid_lines.iter().map(|(_, line)| *line).collect();
    let origins = kept_lines(Level::BlankLines, &wanted, &given, &aligned);
    let frame = Frame::new(Level::BlankLines, &wanted, &given, &aligned, Unit::Blanks(4));
    let mut written = frame.write(&origins).into_iter();
    let written_gaps = gaps(replace);
    let kept = kept_gaps(&gaps(search), &written_gaps, &origins);
    let mut out = Vec::new();
    for (index, (&blanks, kept)) in written_gaps.iter().zip(kept).enumerate() {
        if index > 0 {
            out.extend(written.next());
        }
        let Some(upper) = kept else {
            out.extend((0..blanks).map(|_| Line { text: Cow::Borrowed(""), newline: None }));
            continue;
        };
        let line = |solid: usize| solid_lines.get(solid).map_or(0, |(line, _)| *line);
        let between = file.get(line(upper) + 1..line(upper + 1)).unwrap_or_default();
        out.extend(between.iter().map(|line| {
            let newline = Some(line.start + line.text.len());
            Line { text: Cow::Borrowed(line.text), newline }
        }));
    }
    out
}

/// A line with text, by its number in the search or as one that is not there; or blank lines, by how many they are.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Piece {
    Line(usize),
    New,
    Blank(usize),
}

/// For each gap of the replacement, the line of the search behind which is the gap that it leaves as it is.
fn kept_gaps(search: &[usize], replace: &[usize], lines: &[Origin]) -> Vec<Option<usize>> {
    let partner = |line: usize| match lines.get(line) {
        Some(Origin::Kept(partner) | Origin::Paired(partner)) => Some(*partner),
        _ => None,
    };
    // Of each piece, the gap that it is or ends with.
    let mut old = Vec::new();
    let mut new = Vec::new();
    let blank = |gap: usize, blanks: usize| (blanks > 0).then_some((gap, Piece::Blank(blanks)));
    for (gap, &blanks) in search.iter().enumerate() {
        old.extend(gap.checked_sub(1).map(|line| (gap, Piece::Line(line))));
        old.extend(blank(gap, blanks));
    }
    for (gap, &blanks) in replace.iter().enumerate() {
        let line = gap.checked_sub(1).map(|line| partner(line).map_or(Piece::New, Piece::Line));
        new.extend(line.map(|line| (gap, line)));
        new.extend(blank(gap, blanks));
    }
    let (old_gaps, old): (Vec<usize>, Vec<Piece>) = old.into_iter().unzip();
    let (new_gaps, new): (Vec<usize>, Vec<Piece>) = new.into_iter().unzip();
    let mut kept = vec![None; replace.len()];
    for ((gap, piece), origin) in new_gaps.into_iter().zip(&new).zip(origins(&old, &new)) {
        if let (Piece::Blank(_), Origin::Kept(from)) = (piece, origin)
            && let Some(slot) = kept.get_mut(gap)
        {
            *slot = old_gaps.get(from).and_then(|gap| gap.checked_sub(1));
        }
    }
    // Where neither of the two has a blank line, the file's follow the upper of its lines.
    for line in 0..lines.len() {
        let Some(upper) = partner(line).filter(|upper| search.get(upper + 1) == Some(&0)) else {
            continue;
        };
        let lower = (line + 1..lines.len()).find(|&lower| partner(lower).is_some());
        if let Some(lower) = lower.filter(|&lower| partner(lower) == Some(upper + 1))
            && replace.get(line + 1..=lower).unwrap_or_default().iter().all(|&blanks| blanks == 0)
            && let Some(slot) = kept.get_mut(line + 1)
        {
            *slot = Some(upper);
        }
    }
    kept
}

/// Takes off the blank lines that both texts begin or end with: the place begins and ends with text.
fn same_edges<'s, 't>(
    mut search: &'s [&'t str],
    mut replace: &'s [&'t str],
) -> (&'s [&'t str], &'s [&'t str]) {
    let blank = |line: Option<&&str>| line.is_some_and(|line| trim(line).is_empty());
    while blank(search.first()) {
        search = search.get(1..).unwrap_or_default();
        if blank(replace.first()) {
            replace = replace.get(1..).unwrap_or_default();
        }
    }
    while blank(search.last()) {
        search = search.get(..search.len() - 1).unwrap_or_default();
        if blank(replace.last()) {
            replace = replace.get(..replace.len() - 1).unwrap_or_default();
        }
    }
    (search, replace)
}

/// The numbers of blank lines before the first line with text, between each two, and after the last.
fn gaps(given: &[&str]) -> Vec<usize> {
    let mut out = vec![0];
    for line in given {
        if trim(line).is_empty() {
            if let Some(last) = out.last_mut() {
                *last += 1;
            }
        } else {
            out.push(0);
        }
    }
    out
}

/// The lines of a search or a replacement.
pub(crate) fn given_lines(text: &str) -> Vec<&str> {
    lines(text).map(|(_, line)| line).collect()
}
