//! The cascade: the strictest level with a hit decides, and all its hits are counted.
//!
//! One file a level below this one. Each pushes what it finds; those that compare lines as they are look only
//! around the anchors, the others at each line.

use std::borrow::Cow;

use crate::edit::{Level, Options};
use crate::emit::given_lines;
use crate::hits::Hits;
use crate::text::View;

mod anchor;
mod blank_lines;
mod exact;
mod folded;
mod indent;
mod line_numbers;
mod similar;
mod whole;

pub(crate) use anchor::{Anchors, is_line, longest};
pub(crate) use exact::{exact, inside_indentation};
pub(crate) use line_numbers::looks_numbered;
pub(crate) use similar::alike;

/// What a level below the exact one found, and the texts to apply there.
#[derive(Debug)]
pub(crate) struct Found<'s> {
    /// The level with the hits.
    pub(crate) level: Level,
    /// The hits.
    pub(crate) hits: Hits,
    /// The search as it was matched.
    pub(crate) search: Cow<'s, str>,
    /// The replacement that belongs to it.
    pub(crate) replace: Cow<'s, str>,
}

/// Fewest characters, blanks aside, that a folded search must have.
const MIN_FOLDED: usize = 3;

/// Tries the levels below the exact one, strictest first; `empty` sets the bounds of what is kept.
pub(crate) fn loosely<'s>(
    view: &View<'_>,
    search: &'s str,
    replace: &'s str,
    options: &Options,
    empty: &Hits,
) -> Option<Found<'s>> {
    let solid = search.chars().filter(|c| !c.is_whitespace()).count();
    if solid == 0 {
        // Blank text has no identity beyond its bytes.
        return None;
    }
    let text = &view.text;
    let given = given_lines(search);
    let anchors = Anchors::of(text, &given);
    let allowed = |level| level <= options.max_level;
    let found = |level, hits: Hits| {
        (hits.count > 0).then_some(Found {
            level,
            hits,
            search: Cow::Borrowed(search),
            replace: Cow::Borrowed(replace),
        })
    };
    let mut result = None;
    if allowed(Level::TrailingWs) {
        result =
            found(Level::TrailingWs, whole::trailing_ws(view, &given, &anchors, empty.fresh()));
    }
    if result.is_none() && allowed(Level::Indent) {
        let (indent, trim) = indent::indent_and_trim(view, &given, &anchors, empty);
        result = found(Level::Indent, indent);
        if result.is_none() && allowed(Level::Trim) {
            result = found(Level::Trim, trim);
        }
    }
    if result.is_none() && solid >= MIN_FOLDED && allowed(Level::Unicode) {
        result = found(Level::Unicode, folded::unicode(text, search, empty.fresh()));
    }
    if result.is_none() && solid >= MIN_FOLDED && allowed(Level::InnerWs) {
        result = found(Level::InnerWs, folded::inner_ws(text, search, empty.fresh()));
    }
    if result.is_none() && allowed(Level::BlankLines) {
        result = found(
            Level::BlankLines,
            blank_lines::blank_lines(view, &given, &anchors, empty.fresh()),
        );
    }
    if result.is_none() && allowed(Level::LineNumbers) {
        result = line_numbers::line_numbers(text, search, replace, empty.fresh());
    }
    if result.is_none()
        && let Some(least) = options.min_similarity
    {
        result =
            found(Level::Similar, similar::similar(text, search, replace, least, empty.fresh()));
    }
    result
}

/// 1-based start lines of the first places that match when blanks at both ends are ignored and that are
/// none of the 0-based lines `but`, which ascend.
pub(crate) fn looser(view: &View<'_>, search: &str, but: &[usize]) -> Vec<usize> {
    const SHOWN: usize = 20;
    let given = given_lines(search);
    let anchors = Anchors::of(&view.text, &given);
    let hits = Hits::new(but.len().saturating_add(SHOWN), None);
    let hits = whole::trim(view, &given, &anchors, hits);
    hits.places
        .iter()
        .map(|place| place.line)
        .filter(|line| but.binary_search(line).is_err())
        .map(|line| line + 1)
        .take(SHOWN)
        .collect()
}
