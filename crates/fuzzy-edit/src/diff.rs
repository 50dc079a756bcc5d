//! A unified diff made from the known change, never from a comparison of whole files.
//!
//! It shows raw lines, carriage returns and a missing last newline included, so that `patch` turns the
//! original into the new text byte for byte. Only a diff beyond its bound is cut, and says so.

use std::ops::Range;
use std::path::Path;

use memchr::{memchr, memchr_iter};
use similar::DiffOp;

use crate::edit::Options;
use crate::line_diff;
use crate::outcome::Splice;
use crate::text::{View, cut, line_start};

/// Characters of a line shown once the whole diff would be too long.
const CLIPPED: usize = 500;

/// Lines that differ: byte ranges of both texts and 0-based line numbers.
#[derive(Debug)]
struct Lines {
    old: Range<usize>,
    new: Range<usize>,
    old_at: usize,
    new_at: usize,
    old_count: usize,
    new_count: usize,
}

/// Writes the diff; true if it was cut at its bound. `seen` is the view of `old`, whose lines are counted.
pub(crate) fn unified(
    path: &Path,
    old: &str,
    seen: &View<'_>,
    splices: &[Splice],
    options: &Options,
) -> (String, bool) {
    let (changes, new) = changes(old, seen, splices);
    let new = new.as_str();
    if changes.is_empty() {
        return (String::new(), false);
    }
    let (context, limit) = (options.context, options.limits.diff_bytes);
    let whole = write(path, old, new, &changes, context, limit, false);
    whole.map_or_else(
        || (write(path, old, new, &changes, context, limit, true).unwrap_or_default(), true),
        |diff| (diff, false),
    )
}

/// Widens the splices to whole lines and finds the lines that really differ; also gives the text in which
/// the new ones are.
fn changes(old: &str, seen: &View<'_>, splices: &[Splice]) -> (Vec<Lines>, String) {
    let (mut out, mut new) = (Vec::new(), String::new());
    let mut splices = splices.iter().peekable();
    // Line endings are counted from one region to the next; between them the texts have the same.
    let (mut counted, mut old_line, mut new_line) = (0, 0, 0);
    while let Some(first) = splices.next() {
        let (start, new_start) = (line_start(old, first.range.start), new.len());
        let mut at = start;
        let mut take = |splice: &Splice, at: &mut usize| {
            new.push_str(cut(old, *at..splice.range.start));
            new.push_str(&splice.text);
            *at = splice.range.end;
            // Lines end where they do in both texts.
            let ends = |text: &str| text.is_empty() || text.ends_with('\n');
            if ends(cut(old, 0..*at)) && ends(new.get(new_start..).unwrap_or_default()) {
                *at
            } else {
                let rest = old.as_bytes().get(*at..).unwrap_or_default();
                *at + memchr(b'\n', rest).map_or(rest.len(), |newline| newline + 1)
            }
        };
        let mut end = take(first, &mut at);
        while let Some(next) = splices.next_if(|next| next.range.start < end) {
            end = take(next, &mut at);
        }
        new.push_str(cut(old, at..end));
        let between = seen.raw_newlines(old, counted..start);
        (old_line, new_line) = (old_line + between, new_line + between);
        region((old, start..end), (&new, new_start..new.len()), (old_line, new_line), &mut out);
        old_line += newlines(old, start..end);
        new_line += newlines(&new, new_start..new.len());
        counted = end;
    }
    (out, new)
}

fn region(
    (old, old_range): (&str, Range<usize>),
    (new, new_range): (&str, Range<usize>),
    (old_line, new_line): (usize, usize),
    out: &mut Vec<Lines>,
) {
    let old_lines: Vec<&str> = cut(old, old_range.clone()).split_inclusive('\n').collect();
    let new_lines: Vec<&str> = cut(new, new_range.clone()).split_inclusive('\n').collect();
    let length = |lines: &[&str], range: Range<usize>| -> usize {
        lines.get(range).unwrap_or_default().iter().map(|line| line.len()).sum()
    };
    let (mut old_at, mut new_at) = (old_range.start, new_range.start);
    for op in line_diff::diff(&old_lines, &new_lines) {
        let (o, n) = (op.old_range(), op.new_range());
        let old_end = old_at + length(&old_lines, o.clone());
        let new_end = new_at + length(&new_lines, n.clone());
        if !matches!(op, DiffOp::Equal { .. }) {
            out.push(Lines {
                old: old_at..old_end,
                new: new_at..new_end,
                old_at: old_line + o.start,
                new_at: new_line + n.start,
                old_count: o.len(),
                new_count: n.len(),
            });
        }
        (old_at, new_at) = (old_end, new_end);
    }
}

fn newlines(text: &str, range: Range<usize>) -> usize {
    memchr_iter(b'\n', text.as_bytes().get(range).unwrap_or_default()).count()
}

/// Writes all hunks; nothing if the whole would be longer than `limit`, unless it is to be clipped.
fn write(
    path: &Path,
    old: &str,
    new: &str,
    changes: &[Lines],
    context: usize,
    limit: usize,
    clip: bool,
) -> Option<String> {
    let name: String =
        path.to_string_lossy().trim_start_matches('/').chars().map(visible).collect();
    let mut out = format!("--- a/{name}\n+++ b/{name}\n");
    let mut from = 0;
    while let Some(first) = changes.get(from) {
        let mut to = from + 1;
        let mut last = first;
        while let Some(next) = changes.get(to) {
            if next.old_at - (last.old_at + last.old_count) > context.saturating_mul(2) {
                break;
            }
            last = next;
            to += 1;
        }
        if !hunk(&mut out, old, new, changes.get(from..to)?, context, limit, clip) {
            if !clip {
                return None;
            }
            let line = format!("[diff cut at {limit} bytes]\n");
            out.push_str(&line);
            return Some(out);
        }
        from = to;
    }
    Some(out)
}

fn visible(c: char) -> char {
    if c.is_control() { '?' } else { c }
}

/// Writes one hunk; false if it does not fit.
fn hunk(
    out: &mut String,
    old: &str,
    new: &str,
    changes: &[Lines],
    context: usize,
    limit: usize,
    clip: bool,
) -> bool {
    let (Some(first), Some(last)) = (changes.first(), changes.last()) else {
        return true;
    };
    let mut start = first.old.start;
    let mut before = 0;
    while before < context && start > 0 {
        start = line_start(old, start - 1);
        before += 1;
    }
    let mut end = last.old.end;
    let mut after = 0;
    while after < context && end < old.len() {
        let rest = old.as_bytes().get(end..).unwrap_or_default();
        end += memchr(b'\n', rest).map_or(rest.len(), |newline| newline + 1);
        after += 1;
    }
    let old_count = last.old_at + last.old_count - first.old_at + before + after;
    let new_count = last.new_at + last.new_count - first.new_at + before + after;
    let line = |at: usize, count: usize| if count == 0 { at } else { at + 1 };
    let (old_line, new_line) =
        (line(first.old_at - before, old_count), line(first.new_at - before, new_count));
    let line = format!(
        "@@ -{old_line},{old_count} +{new_line},{new_count} @@
"
    );
    out.push_str(&line);
    let mut at = start;
    for change in changes {
        let fits = lines(out, ' ', cut(old, at..change.old.start), limit, clip)
            && lines(out, '-', cut(old, change.old.clone()), limit, clip)
            && lines(out, '+', cut(new, change.new.clone()), limit, clip);
        if !fits {
            return false;
        }
        at = change.old.end;
    }
    lines(out, ' ', cut(old, at..end), limit, clip)
}

/// Writes lines with a sign in front; false once the diff is too long.
fn lines(out: &mut String, sign: char, text: &str, limit: usize, clip: bool) -> bool {
    for line in text.split_inclusive('\n') {
        let (body, ended) = match line.strip_suffix('\n') {
            Some(body) => (body, true),
            None => (line, false),
        };
        let shown = if clip {
            body.char_indices().nth(CLIPPED).map_or(body, |(at, _)| cut(body, 0..at))
        } else {
            body
        };
        if out.len() + shown.len() > limit {
            return false;
        }
        out.push(sign);
        out.push_str(shown);
        if shown.len() < body.len() {
            let line = format!("… [{} bytes more]", body.len() - shown.len());
            out.push_str(&line);
        }
        out.push('\n');
        if !ended {
            out.push_str("\\ No newline at end of file\n");
        }
    }
    true
}
