//! One edit on one text: where it goes, what is written there, and what is worth a warning.

use std::borrow::Cow;
use std::path::Path;

use super::{NAMED, too_large};
use crate::edit::{Edit, Level, Options};
use crate::elide;
use crate::emit::{self, Patch, given_lines};
use crate::error::{EditError, ErrorKind};
use crate::hits::{Hits, Place};
use crate::indent::unit_of;
use crate::locate::{exact, inside_indentation, loosely, looser};
use crate::nearest;
use crate::outcome::{Applied, LineSpan, Warning};
use crate::syntax;
use crate::text::{BOM, Ends, View, cut, indent_of, is_blank, trim, unix_ends};

/// Text up to which looser matches are looked for beside a single exact one.
pub(super) const MAX_LOOSER: usize = 8 << 20;

/// Search and replacement as the view has them: `\n` line endings, no byte-order mark.
pub(super) fn given<'e>(view: &View<'_>, edit: &'e Edit) -> (Cow<'e, str>, Cow<'e, str>) {
    let search = edit.search.strip_prefix(BOM);
    let replace = match edit.replace.strip_prefix(BOM) {
        Some(rest) if view.is_marked() || search.is_some() => rest,
        _ => &edit.replace,
    };
    let read = |text: &'e str| match unix_ends(text) {
        text if view.ends_with_cr() && text.contains('\r') => Cow::Owned(text.replace('\r', "\n")),
        text => text,
    };
    (read(search.unwrap_or(&edit.search)), read(replace))
}

/// First and last 1-based line of a place.
pub(super) fn span(view: &View<'_>, place: &Place) -> LineSpan {
    let last = place.range.end.saturating_sub(1).max(place.range.start);
    let first = place.line + 1;
    LineSpan { first, last: first + view.newlines(place.range.start..last) }
}

/// The offset at which a place has something to see.
fn first_visible(view: &View<'_>, place: &Place) -> usize {
    let text = cut(&view.text, place.range.clone());
    place.range.start + text.find(|c: char| !c.is_whitespace()).unwrap_or(0)
}

/// One edit on one text.
pub(super) struct Step<'e> {
    pub(super) index: usize,
    pub(super) edit: &'e Edit,
    pub(super) path: &'e Path,
    pub(super) options: &'e Options,
}

impl Step<'_> {
    fn error(&self, kind: ErrorKind) -> EditError {
        EditError::new(kind, Some(self.index))
    }

    fn many(&self) -> bool {
        self.edit.replace_all || self.edit.expected_count.is_some()
    }

    /// Refuses what makes no sense.
    pub(super) fn check(&self) -> Result<(), EditError> {
        let edit = self.edit;
        let refuse = |reason: &str| Err(EditError::invalid_edit(Some(self.index), reason));
        if edit.expected_count == Some(0) {
            return refuse("expected_count must be at least 1");
        }
        if edit.at_line == Some(0) {
            return refuse("at_line counts from 1");
        }
        if edit.at_line.is_some()
            && (edit.replace_all || edit.expected_count.is_some_and(|n| n > 1))
        {
            return refuse(
                "at_line chooses one place, replace_all and expected_count ask for several",
            );
        }
        Ok(())
    }

    /// Finds the places and writes what goes there.
    pub(super) fn run(
        &self,
        view: &View<'_>,
        warnings: &mut Vec<Warning>,
    ) -> Result<(Vec<Patch>, Applied), EditError> {
        self.check()?;
        let ending;
        let view = if view.ends == Ends::None && self.edit.replace.contains("\r\n") {
            // Nothing in the file says otherwise.
            ending = view.ending_with("\r\n");
            &ending
        } else {
            view
        };
        let (search, replace) = given(view, self.edit);
        if search.is_empty() {
            return Err(self.error(ErrorKind::EmptySearch));
        }
        if let Some(line) = elide::in_replacement(&replace, &search) {
            return Err(self.error(ErrorKind::Elided).because(format!("{line:?} in 'new'")));
        }
        let limit = if self.many() { self.options.limits.places } else { NAMED };
        let empty = Hits::new(limit, self.edit.at_line.map(|line| line - 1));
        let hits = exact(view, &search, empty.fresh());
        if hits.count > 0 {
            let texts = (&*search, &*replace);
            return self.replace_exactly(view, texts, &hits, true, warnings);
        }
        if let Some(line) = elide::in_search(&search, &view.text) {
            return Err(self.error(ErrorKind::Elided).because(format!("{line:?} in 'old'")));
        }
        let Some(found) = loosely(view, &search, &replace, self.options, &empty) else {
            let mut error = self.error(ErrorKind::NotFound);
            nearest::explain(view, &search, &replace, self.options, &mut error.detail);
            return Err(error);
        };
        let places = self.choose(view, found.level, &found.hits)?;
        if found.level == Level::LineNumbers {
            warnings.push(Warning::LineNumbersStripped { edit: self.index });
        }
        if found.level < Level::Trim {
            self.warn_looser(view, &search, &places, warnings);
        }
        let unit = unit_of(&view.text);
        let (given, written) = (given_lines(&found.search), given_lines(&found.replace));
        let patches = self.patches(view, &places, |place| {
            if place.whole {
                emit::whole_lines(view, place, found.level, &given, &written, unit)
            } else {
                let spelled = crate::fold::merge(
                    &search,
                    &replace,
                    cut(&view.text, place.range.clone()),
                    false,
                );
                emit::literal(view, place, &search, &spelled)
            }
        })?;
        Ok((patches, applied(view, found.level, &places)))
    }

    /// Writes the replacement where the text itself was found; `others` looks for text like it elsewhere.
    pub(super) fn replace_exactly(
        &self,
        view: &View<'_>,
        (search, replace): (&str, &str),
        hits: &Hits,
        others: bool,
        warnings: &mut Vec<Warning>,
    ) -> Result<(Vec<Patch>, Applied), EditError> {
        let places = self.choose(view, Level::Exact, hits)?;
        self.warn_exact(view, search, replace, &places, warnings);
        if others && places.iter().all(|place| covers_lines(view, place)) {
            self.warn_looser(view, search, &places, warnings);
        }
        let patches = self.patches(view, &places, |place| {
            literal_keeping_indentation(view, place, search, replace)
        })?;
        Ok((patches, applied(view, Level::Exact, &places)))
    }

    /// The places to replace, or why that cannot be said.
    fn choose(&self, view: &View<'_>, level: Level, hits: &Hits) -> Result<Vec<Place>, EditError> {
        let refuse = |kind, count, places: &[Place]| {
            let mut error = self.error(kind);
            error.detail.level = Some(level);
            error.detail.count = count;
            error.detail.expected = self.edit.expected_count;
            let named = || places.iter().take(NAMED);
            error.detail.candidates = named().map(|place| span(view, place)).collect();
            let starts: Vec<usize> = named().map(|place| first_visible(view, place)).collect();
            let limit = self.options.limits.validated_bytes;
            error.detail.scopes = syntax::scopes(self.path, &view.text, &starts, limit);
            Err(error)
        };
        if hits.count > 1 && self.edit.at_line.is_some() {
            return match &hits.wanted {
                Some((place, 1)) => Ok(vec![place.clone()]),
                _ => refuse(ErrorKind::Ambiguous, hits.count, &hits.places),
            };
        }
        if !self.many() {
            if hits.count > 1 {
                return refuse(ErrorKind::Ambiguous, hits.count, &hits.places);
            }
            return Ok(hits.places.clone());
        }
        if hits.count > self.options.limits.places {
            let reason = format!("more than {} places match", self.options.limits.places);
            return Err(too_large(Some(self.index), reason));
        }
        let mut end = 0;
        let mut disjoint = Vec::with_capacity(hits.places.len());
        for place in &hits.places {
            if disjoint.is_empty() || place.range.start >= end {
                end = place.range.end;
                disjoint.push(place.clone());
            }
        }
        if self.edit.expected_count.is_some_and(|count| count != disjoint.len()) {
            return refuse(ErrorKind::CountMismatch, disjoint.len(), &disjoint);
        }
        Ok(disjoint)
    }

    /// Writes the replacement for each place, as long as the whole stays within bounds.
    fn patches(
        &self,
        view: &View<'_>,
        places: &[Place],
        write: impl Fn(&Place) -> Patch,
    ) -> Result<Vec<Patch>, EditError> {
        let limit = self.options.limits.file_bytes;
        let refuse = || {
            let reason = format!("the edited file would have more than {limit} bytes");
            Err(too_large(Some(self.index), reason))
        };
        let (mut added, mut removed) = (0_usize, 0_usize);
        let mut patches = Vec::with_capacity(places.len());
        for place in places {
            let patch = write(place);
            added = added.saturating_add(patch.text.len());
            removed += patch.range.len();
            if added > limit {
                return refuse();
            }
            patches.push(patch);
        }
        if (view.raw_len() - removed).saturating_add(added) > limit {
            return refuse();
        }
        Ok(patches)
    }

    fn warn_exact(
        &self,
        view: &View<'_>,
        search: &str,
        replace: &str,
        places: &[Place],
        warnings: &mut Vec<Warning>,
    ) {
        let text = &view.text;
        let word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
        let (first, last) = (search.chars().next(), search.chars().next_back());
        let splits = places.iter().find(|place| {
            let before = cut(text, 0..place.range.start).chars().next_back();
            let after = cut(text, place.range.end..text.len()).chars().next();
            (word(before) && word(first)) || (word(after) && word(last))
        });
        if let Some(place) = splits {
            warnings.push(Warning::SplitsWord { edit: self.index, line: place.line + 1 });
        }
        let joins = search.ends_with('\n') && !replace.is_empty() && !replace.ends_with('\n');
        if let Some(place) = places.iter().find(|place| joins && place.range.end < text.len()) {
            warnings.push(Warning::LineJoined { edit: self.index, line: place.line + 1 });
        }
    }

    fn warn_looser(
        &self,
        view: &View<'_>,
        search: &str,
        places: &[Place],
        warnings: &mut Vec<Warning>,
    ) {
        if trim(search).is_empty() || (view.text.len() > MAX_LOOSER && !self.many()) {
            return;
        }
        let but: Vec<usize> = places.iter().map(|place| place.line).collect();
        let lines = looser(view, search, &but);
        if !lines.is_empty() {
            warnings.push(Warning::LooserMatches { edit: self.index, lines });
        }
    }
}

/// Whether a place begins and ends where lines do.
pub(super) fn covers_lines(view: &View<'_>, place: &Place) -> bool {
    let bytes = view.text.as_bytes();
    let ends_line = |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_none_or(|&b| b == b'\n');
    let last = place.range.end.checked_sub(1);
    ends_line(place.range.start.checked_sub(1))
        && (ends_line(last) || ends_line(Some(place.range.end)))
}

/// Writes the replacement as it is; where the search begins inside the indentation and the replacement
/// has none, with the search's, so that the line keeps its depth.
fn literal_keeping_indentation(
    view: &View<'_>,
    place: &Place,
    search: &str,
    replace: &str,
) -> Patch {
    if inside_indentation(view, &place.range, search) && !replace.starts_with(is_blank) {
        let kept = format!("{}{replace}", indent_of(search));
        emit::literal(view, place, search, &kept)
    } else {
        emit::literal(view, place, search, replace)
    }
}

fn applied(view: &View<'_>, level: Level, places: &[Place]) -> Applied {
    Applied {
        level,
        matches: places.iter().map(|place| view.raw_range(&place.range)).collect(),
        lines: places.iter().map(|place| span(view, place)).collect(),
        confidence: places
            .iter()
            .filter_map(|place| place.score)
            .fold(level.confidence(), f32::max),
    }
}
