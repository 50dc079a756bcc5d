//! The verdict on a change: an edit may not make a text worse, and need not make it right.
//!
//! Refused is a text that was valid and is not. One that was not valid before may stay so, or a broken
//! file could only be repaired in one step; it may not get more faults, and none where it was edited.

use std::ops::Range;
use std::path::Path;

use super::{
    Checked, Fault, Language, Unchecked, check, guarded, json, json_faults, language, position,
    python,
};
use super::{toml, tree};
use crate::compose::Piece;
use crate::error::{EditError, ErrorKind};
use crate::outcome::Warning;
use crate::text::{BOM, cut};

/// Judges the change of a text into another: fine, worth a warning, or a refusal.
pub(crate) fn judge<'t>(
    path: &Path,
    before: &'t str,
    after: impl FnOnce() -> &'t str,
    pieces: &[Piece],
    limit: usize,
) -> Result<Vec<Warning>, EditError> {
    let Some(named) = language::by_name(path) else {
        return Ok(vec![Warning::NotValidated(Unchecked::UnknownLanguage)]);
    };
    let skip = if before.starts_with(BOM) { BOM.len_utf8() } else { 0 };
    let change = Change::new(before, after(), pieces, skip);
    let outcome = guarded(|| change.judge(named, limit));
    outcome.unwrap_or_else(|| Ok(vec![Warning::NotValidated(Unchecked::ParserFailed)]))
}

/// Duplicate keys whose line is looked up.
const MAX_LOCATED: usize = 100;

/// A text before and after, without byte-order mark, and the 0-based lines in which they differ.
struct Change<'t> {
    before: &'t str,
    after: &'t str,
    old_lines: Vec<Range<usize>>,
    new_lines: Vec<Range<usize>>,
}

impl<'t> Change<'t> {
    fn new(before: &'t str, after: &'t str, pieces: &[Piece], skip: usize) -> Self {
        Self {
            before: cut(before, skip..before.len()),
            after: cut(after, skip..after.len()),
            old_lines: line_ranges(before, pieces.iter().map(|piece| &piece.old)),
            new_lines: line_ranges(after, pieces.iter().map(|piece| &piece.new)),
        }
    }

    fn judge(&self, named: Language, limit: usize) -> Result<Vec<Warning>, EditError> {
        let language = self.dialect(named);
        match check(language, self.after, Some(&self.new_lines), limit) {
            Checked::Valid => Ok(self.remarks(language)),
            Checked::Unchecked(reason) => Ok(vec![Warning::NotValidated(reason)]),
            Checked::Invalid(fault) => {
                let still = match check(language, self.before, None, limit) {
                    Checked::Invalid(old) => !self.worse(language, &old, &fault),
                    _ => false,
                };
                let issue = self.shown(language, fault).issue(language, self.after);
                if still {
                    return Ok(vec![Warning::StillInvalid(issue)]);
                }
                let mut refusal = EditError::new(ErrorKind::SyntaxInvalid, None);
                refusal.detail.syntax = Some(issue);
                Err(refusal)
            }
        }
    }

    /// A `.json` that was JSON with comments is one.
    fn dialect(&self, named: Language) -> Language {
        let strict = named == Language::Json;
        if strict
            && matches!(json::check(self.before), Checked::Invalid(_))
            && matches!(json::check_with_comments(self.before), Checked::Valid)
            && !self.before.trim().is_empty()
        {
            Language::Jsonc
        } else {
            named
        }
    }

    /// Whether a text that was not valid became worse.
    fn worse(&self, language: Language, old: &Fault, new: &Fault) -> bool {
        match language {
            Language::Python => python::faults(self.after) > python::faults(self.before),
            Language::Jsonl => self.lines_got_worse(),
            _ => {
                let (old_line, new_line) =
                    (position(self.before, old.at).0 - 1, position(self.after, new.at).0 - 1);
                let old_edited = within(&self.old_lines, old_line).is_some();
                let new_edited = within(&self.new_lines, new_line).is_some();
                let earlier = !old_edited && new_line < self.moved(old_line);
                let grew = match (faults(language, self.before), faults(language, self.after)) {
                    (Some(before), Some(after)) => after > before,
                    _ => false,
                };
                grew || earlier || (new_edited && !old_edited)
            }
        }
    }

    /// Whether an edited stretch has more bad lines than before.
    fn lines_got_worse(&self) -> bool {
        let lines = |text| json::bad_lines(text).map(|(line, _)| line).collect::<Vec<_>>();
        let (before, after) = (lines(self.before), lines(self.after));
        let bad = |lines: &[usize], stretch: &Range<usize>| {
            let below = |end: usize| lines.partition_point(|&line| line < end);
            below(stretch.end) - below(stretch.start)
        };
        self.old_lines
            .iter()
            .zip(&self.new_lines)
            .any(|(old, new)| bad(&after, new) > bad(&before, old))
    }

    /// The fault to show: of lines, the first one in an edited stretch.
    fn shown(&self, language: Language, first: Fault) -> Fault {
        if language != Language::Jsonl {
            return first;
        }
        json::bad_lines(self.after)
            .find(|(line, _)| within(&self.new_lines, *line).is_some())
            .map_or(first, |(_, fault)| fault)
    }

    /// The line after the change of an unedited line before it.
    fn moved(&self, line: usize) -> usize {
        let before = self.old_lines.partition_point(|range| range.end <= line);
        let last = before.checked_sub(1);
        match last.and_then(|i| Some((self.old_lines.get(i)?, self.new_lines.get(i)?))) {
            Some((old, new)) => new.end + (line - old.end),
            None => line,
        }
    }

    /// What is worth saying about a valid text.
    fn remarks(&self, language: Language) -> Vec<Warning> {
        let mut out = Vec::new();
        match language {
            Language::Json | Language::Jsonc => {
                let new = json::duplicate_keys(self.after);
                if new.len() > json::duplicate_keys(self.before).len() {
                    let line = |at: usize| position(self.after, at).0;
                    let edited = |at: &usize| within(&self.new_lines, line(*at) - 1).is_some();
                    let found =
                        new.iter().take(MAX_LOCATED).find(|(_, at)| edited(at)).or(new.first());
                    out.extend(found.map(|(key, at)| Warning::DuplicateKey {
                        key: key.chars().take(100).collect(),
                        line: line(*at),
                    }));
                }
            }
            Language::Toml => {
                if let Some(at) = toml::newer_than_1_0(self.after)
                    && toml::newer_than_1_0(self.before).is_none()
                {
                    out.push(Warning::Toml11 { line: position(self.after, at).0 });
                }
            }
            _ => {}
        }
        out
    }
}

/// How many faults a text has by a reader that goes on after the first, where there is one.
fn faults(language: Language, text: &str) -> Option<usize> {
    match language {
        Language::Json => Some(json_faults::count(text, false)),
        Language::Jsonc => Some(json_faults::count(text, true)),
        _ => tree::faults(language, text),
    }
}

/// The stretch that holds a line.
fn within(stretches: &[Range<usize>], line: usize) -> Option<usize> {
    let at = stretches.partition_point(|range| range.end <= line);
    stretches.get(at).is_some_and(|range| range.contains(&line)).then_some(at)
}

/// The 0-based lines that ascending byte ranges touch; at least one each.
fn line_ranges<'r>(
    text: &str,
    ranges: impl Iterator<Item = &'r Range<usize>>,
) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let count = |range: Range<usize>| {
        memchr::memchr_iter(b'\n', bytes.get(range).unwrap_or_default()).count()
    };
    let (mut seen, mut line) = (0, 0);
    ranges
        .map(|range| {
            line += count(seen..range.start);
            let first = line;
            line += count(range.start..range.end);
            seen = range.end;
            let closed = range.end > range.start && bytes.get(range.end - 1) == Some(&b'\n');
            first..(if closed { line } else { line + 1 })
        })
        .collect()
}
