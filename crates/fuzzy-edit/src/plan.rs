//! The one verb: edits and bytes in, a plan or a refusal out.

use std::borrow::Cow;
use std::ops::Range;
use std::path::Path;

use crate::compose::Change;
use crate::edit::{Edit, Level, Options, Validate};
use crate::emit::{self, Patch, given_lines};
use crate::error::{EditError, ErrorKind};
use crate::hits::{Hits, Place};
use crate::indent::unit_of;
use crate::locate::{exact, inside_indentation, loosely, looser};
use crate::outcome::{Applied, LineSpan, Plan, Splice, Stats, Warning};
use crate::text::{BOM, Ends, View, cut, indent_of, is_blank, trim, unix_ends};
use crate::{diff, elide, nearest, syntax};

/// Places named in a report.
const NAMED: usize = 20;
/// Text up to which looser matches are looked for beside a single exact one.
const MAX_LOOSER: usize = 8 << 20;

/// Plans `edits` on `original`, in order, all or nothing.
///
/// Edit n sees the text after edit n-1; only the final text is validated. `path` is a name that decides
/// the parser, nothing is opened.
///
/// ```
/// use fuzzy_edit::{Edit, Level, Options, plan};
/// use std::path::Path;
///
/// let file = b"class A:\n    def f(self):\n        return 1\n";
/// let edit = Edit::new("def f(self):\n    return 1", "def f(self):\n    return 2");
/// let plan = plan(file, Path::new("a.py"), &[edit], &Options::default())?;
/// assert_eq!(plan.text, b"class A:\n    def f(self):\n        return 2\n");
/// assert_eq!(plan.applied[0].level, Level::Indent);
/// # Ok::<(), fuzzy_edit::EditError>(())
/// ```
///
/// # Errors
///
/// See [`ErrorKind`]; the first edit at fault decides, and the syntax of the whole comes last.
///
/// # Security
///
/// Total on arbitrary bytes: no panic, time linear in text and search, memory bounded by
/// [`crate::Limits`]. `path` is only read as a name.
pub fn plan(
    original: &[u8],
    path: &Path,
    edits: &[Edit],
    options: &Options,
) -> Result<Plan, EditError> {
    if edits.is_empty() {
        return Err(EditError::invalid_edit(None, "no edits were given"));
    }
    let whole = decode(original, options)?;
    let raw = whole.strip_prefix(BOM).unwrap_or(whole);
    let mark = cut(whole, 0..whole.len() - raw.len());
    let mut state =
        State { text: Cow::Borrowed(raw), change: Change::default(), touched: Vec::new() };
    let mut applied = Vec::with_capacity(edits.len());
    let mut warnings = Vec::new();
    for (index, edit) in edits.iter().enumerate() {
        let step = Step { index, edit, path, options, marked: !mark.is_empty() };
        let (patches, mut done) = step
            .run(&state.text, &mut warnings)
            .map_err(|error| state.meets_earlier(error, raw, edit, options))?;
        for range in &mut done.matches {
            *range = range.start + mark.len()..range.end + mark.len();
        }
        state.apply(index, &patches);
        applied.push(done);
    }
    let text =
        if mark.is_empty() { state.text.into_owned() } else { format!("{mark}{}", state.text) };
    for piece in &mut state.change.pieces {
        piece.old = piece.old.start + mark.len()..piece.old.end + mark.len();
        piece.new = piece.new.start + mark.len()..piece.new.end + mark.len();
    }
    let pieces = &state.change.pieces;
    if options.validate == Validate::Auto {
        let limit = options.limits.validated_bytes;
        warnings.extend(syntax::judge(path, whole, &text, pieces, limit)?);
    }
    let changed = text != whole;
    let (diff, diff_truncated) = if changed {
        diff::unified(path, whole, &text, pieces, options.context, options.limits.diff_bytes)
    } else {
        (String::new(), false)
    };
    let splices = pieces
        .iter()
        .map(|piece| Splice {
            range: piece.old.clone(),
            text: cut(&text, piece.new.clone()).to_owned(),
        })
        .collect();
    let exact = applied.iter().filter(|done| done.level == Level::Exact).count();
    let counted = Stats {
        exact,
        fuzzy: applied.len() - exact,
        replacements: applied.iter().map(|done| done.matches.len()).sum(),
    };
    let text = text.into_bytes();
    Ok(Plan { text, changed, applied, splices, warnings, diff, diff_truncated, stats: counted })
}

/// The file as text.
fn decode<'a>(original: &'a [u8], options: &Options) -> Result<&'a str, EditError> {
    let limit = options.limits.file_bytes.min(u32::MAX as usize);
    if original.len() > limit {
        return Err(too_large(None, format!("the file has more than {limit} bytes")));
    }
    if original.starts_with(&[0xff, 0xfe]) || original.starts_with(&[0xfe, 0xff]) {
        let error = EditError::new(ErrorKind::NotUtf8, None);
        return Err(error.because("it begins with a UTF-16 byte-order mark"));
    }
    std::str::from_utf8(original).map_err(|error| {
        let at = error.valid_up_to();
        EditError::new(ErrorKind::NotUtf8, None).because(format!("invalid byte at offset {at}"))
    })
}

fn too_large(index: Option<usize>, reason: String) -> EditError {
    EditError::new(ErrorKind::TooLarge, index).because(reason)
}

/// The text as the edits so far left it, and how it came about.
struct State<'a> {
    text: Cow<'a, str>,
    change: Change,
    /// What each edit replaced, in the original.
    touched: Vec<(usize, Range<usize>)>,
}

impl State<'_> {
    fn apply(&mut self, index: usize, patches: &[Patch]) {
        let mut next = String::with_capacity(self.text.len());
        let mut at = 0;
        for patch in patches {
            self.touched.push((index, self.change.original_range(&patch.range)));
            next.push_str(cut(&self.text, at..patch.range.start));
            next.push_str(&patch.text);
            at = patch.range.end;
        }
        next.push_str(cut(&self.text, at..self.text.len()));
        let lengths: Vec<_> =
            patches.iter().map(|patch| (patch.range.clone(), patch.text.len())).collect();
        self.change.then(&lengths);
        self.text = Cow::Owned(next);
    }

    /// A text that was not found, but was in the original where an earlier edit replaced it.
    fn meets_earlier(
        &self,
        error: EditError,
        original: &str,
        edit: &Edit,
        options: &Options,
    ) -> EditError {
        if error.kind != ErrorKind::NotFound || self.touched.is_empty() {
            return error;
        }
        let view = View::new(original);
        let (search, _) = given(&view, edit, true);
        let mut hits = exact(&view, &search, Hits::new(NAMED, None));
        if hits.count == 0 {
            let options =
                options.clone().max_level(Level::Trim.min(options.max_level)).min_similarity(None);
            match loosely(&view, &search, "", &options, &Hits::new(NAMED, None)) {
                Some(found) => hits = found.hits,
                None => return error,
            }
        }
        for place in &hits.places {
            let range = view.raw_range(&place.range);
            let met = self
                .touched
                .iter()
                .find(|(_, touched)| range.start < touched.end && touched.start < range.end);
            if let Some((earlier, _)) = met {
                let mut overlap = EditError::new(ErrorKind::Overlap, error.edit_index);
                overlap.detail.overlaps_edit = Some(*earlier);
                overlap.detail.candidates = vec![span(&view, place)];
                return overlap;
            }
        }
        error
    }
}

/// Search and replacement as the view has them: `\n` line endings, no byte-order mark.
fn given<'e>(view: &View<'_>, edit: &'e Edit, marked: bool) -> (Cow<'e, str>, Cow<'e, str>) {
    let search = edit.search.strip_prefix(BOM);
    let replace = match edit.replace.strip_prefix(BOM) {
        Some(rest) if marked || search.is_some() => rest,
        _ => &edit.replace,
    };
    let read = |text: &'e str| match unix_ends(text) {
        text if view.ends_with_cr() && text.contains('\r') => Cow::Owned(text.replace('\r', "\n")),
        text => text,
    };
    (read(search.unwrap_or(&edit.search)), read(replace))
}

/// First and last 1-based line of a place.
fn span(view: &View<'_>, place: &Place) -> LineSpan {
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
struct Step<'e> {
    index: usize,
    edit: &'e Edit,
    path: &'e Path,
    options: &'e Options,
    /// Whether the file begins with a byte-order mark.
    marked: bool,
}

impl Step<'_> {
    fn error(&self, kind: ErrorKind) -> EditError {
        EditError::new(kind, Some(self.index))
    }

    fn many(&self) -> bool {
        self.edit.replace_all || self.edit.expected_count.is_some()
    }

    /// Refuses what makes no sense.
    fn check(&self) -> Result<(), EditError> {
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

    fn run(
        &self,
        text: &str,
        warnings: &mut Vec<Warning>,
    ) -> Result<(Vec<Patch>, Applied), EditError> {
        self.check()?;
        let mut view = View::new(text);
        if view.ends == Ends::None && self.edit.replace.contains("\r\n") {
            // Nothing in the file says otherwise.
            view.ends = Ends::Uniform("\r\n");
        }
        let (search, replace) = given(&view, self.edit, self.marked);
        if search.is_empty() {
            return Err(self.error(ErrorKind::EmptySearch));
        }
        if let Some(line) = elide::in_replacement(&replace, &search) {
            return Err(self.error(ErrorKind::Elided).because(format!("{line:?} in 'new'")));
        }
        let limit = if self.many() { self.options.limits.places } else { NAMED };
        let empty = Hits::new(limit, self.edit.at_line.map(|line| line - 1));
        let hits = exact(&view, &search, empty.fresh());
        if hits.count > 0 {
            let places = self.choose(&view, Level::Exact, &hits)?;
            self.warn_exact(&view, &search, &replace, &places, warnings);
            let patches = self.patches(&places, |place| {
                literal_keeping_indentation(&view, place, &search, &replace)
            })?;
            return Ok((patches, applied(&view, Level::Exact, &places)));
        }
        if let Some(line) = elide::in_search(&search, &view.text) {
            return Err(self.error(ErrorKind::Elided).because(format!("{line:?} in 'old'")));
        }
        let Some(found) = loosely(&view, &search, &replace, self.options, &empty) else {
            let mut error = self.error(ErrorKind::NotFound);
            nearest::explain(&view, &search, &replace, self.options, &mut error.detail);
            return Err(error);
        };
        let places = self.choose(&view, found.level, &found.hits)?;
        if found.level == Level::LineNumbers {
            warnings.push(Warning::LineNumbersStripped { edit: self.index });
        }
        if found.level < Level::Trim {
            self.warn_looser(&view, &search, &places, warnings);
        }
        let unit = unit_of(&view.text);
        let (given, written) = (given_lines(&found.search), given_lines(&found.replace));
        let patches = self.patches(&places, |place| {
            if place.whole {
                emit::whole_lines(&view, place, found.level, &given, &written, unit)
            } else {
                let spelled = crate::fold::merge(
                    &search,
                    &replace,
                    cut(&view.text, place.range.clone()),
                    false,
                );
                emit::literal(&view, place, &search, &spelled)
            }
        })?;
        Ok((patches, applied(&view, found.level, &places)))
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
        places: &[Place],
        write: impl Fn(&Place) -> Patch,
    ) -> Result<Vec<Patch>, EditError> {
        let limit = self.options.limits.file_bytes;
        let mut total = 0_usize;
        let mut patches = Vec::with_capacity(places.len());
        for place in places {
            let patch = write(place);
            total = total.saturating_add(patch.text.len());
            if total > limit {
                let reason = format!("the edited file would have more than {limit} bytes");
                return Err(too_large(Some(self.index), reason));
            }
            patches.push(patch);
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
        let whole_lines = places.iter().all(|place| {
            let bytes = text.as_bytes();
            let at_start =
                place.range.start == 0 || bytes.get(place.range.start - 1) == Some(&b'\n');
            at_start
                && (search.ends_with('\n')
                    || matches!(bytes.get(place.range.end), None | Some(b'\n')))
        });
        if whole_lines {
            self.warn_looser(view, search, places, warnings);
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
