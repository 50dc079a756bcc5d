//! `line_numbers`: text copied from a listing, with the numbers still on, that agrees with the file.

use std::borrow::Cow;

use super::Found;
use crate::edit::Level;
use crate::emit::given_lines;
use crate::hits::{Hits, Place};
use crate::text::{is_blank, lines, trim, trim_end};

/// What stands between a number and its line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    Bar,
    Tab,
    Arrow,
    Colon,
}

/// A decorated line: number, mark, rest. A number alone is a blank line whose mark was cut off with its blanks.
fn split(line: &str) -> Option<(usize, Option<Mark>, &str)> {
    let line = line.trim_start_matches(is_blank);
    let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let digits = line.get(..line.len() - rest.len())?;
    let number = digits.parse().ok()?;
    if rest.is_empty() {
        return Some((number, None, ""));
    }
    let behind = |mark: &str| rest.strip_prefix(mark);
    let (mark, rest) = if let Some(rest) = behind("\t") {
        (Mark::Tab, rest)
    } else if let Some(rest) = behind("→") {
        (Mark::Arrow, rest)
    } else if let Some(rest) = behind(": ") {
        (Mark::Colon, rest)
    } else if rest == ":" {
        (Mark::Colon, "")
    } else {
        (Mark::Bar, rest.trim_start_matches(is_blank).strip_prefix('|')?)
    };
    Some((number, Some(mark), rest))
}

/// The lines without numbers, if all carry one of the same kind; `consecutive` if they count up by one.
fn strip<'t>(given: &[&'t str], consecutive: bool) -> Option<(usize, Mark, Vec<&'t str>)> {
    let (first, ..) = split(given.first()?)?;
    let mut mark = None;
    let mut rests = Vec::with_capacity(given.len());
    for (index, line) in given.iter().enumerate() {
        let (number, kind, rest) = split(line)?;
        let other = kind.is_some() && mark.is_some() && kind != mark;
        if other || (consecutive && number != first.checked_add(index)?) {
            return None;
        }
        mark = mark.or(kind);
        rests.push(rest);
    }
    Some((first, mark?, rests))
}

/// The rests without the one blank that a listing puts after its bar, if all have it.
fn after_bar<'t>(rests: &[&'t str]) -> Option<Vec<&'t str>> {
    rests
        .iter()
        .map(|rest| if rest.is_empty() { Some("") } else { rest.strip_prefix(' ') })
        .collect()
}

/// Whether every line of a search begins with a line number.
pub(crate) fn looks_numbered(search: &str) -> bool {
    let given = given_lines(search);
    let solid: Vec<&str> = given.into_iter().filter(|line| !trim(line).is_empty()).collect();
    strip(&solid, false).is_some()
}

/// The one place the numbers name, if the text there is that of the search.
pub(super) fn line_numbers<'s>(
    text: &str,
    search: &str,
    replace: &str,
    mut hits: Hits,
) -> Option<Found<'s>> {
    let given = given_lines(search);
    let (first, mark, rests) = strip(&given, true)?;
    let spaced = if mark == Mark::Bar { after_bar(&rests) } else { None };
    let at = first.checked_sub(1)?;
    let window: Vec<(usize, &str)> = lines(text).skip(at).take(given.len()).collect();
    let same = |wanted: &[&str]| {
        window.len() == wanted.len()
            && window.iter().zip(wanted).all(|((_, line), rest)| trim_end(line) == trim_end(rest))
    };
    let bar_and_blank = !same(&rests) && spaced.as_deref().is_some_and(same);
    let matched = if same(&rests) {
        rests
    } else if bar_and_blank {
        spaced?
    } else {
        return None;
    };
    if matched.iter().all(|line| trim(line).is_empty()) {
        return None;
    }
    let written = given_lines(replace);
    let is_marked = |line: &&str| matches!(split(line), Some((_, Some(_), _)));
    let written: Vec<&str> = if written.iter().any(is_marked) {
        let rests: Option<Vec<&str>> = written
            .iter()
            .map(|line| match split(line) {
                Some((_, kind, rest)) => kind.is_none_or(|kind| kind == mark).then_some(rest),
                None => trim(line).is_empty().then_some(""),
            })
            .collect();
        if bar_and_blank { after_bar(&rests?)? } else { rests? }
    } else {
        written
    };
    let (start, _) = *window.first()?;
    let (last, line) = *window.last()?;
    hits.push(Place::whole(start..last + line.len(), at));
    let joined = |list: &[&str]| -> Cow<'s, str> {
        Cow::Owned(list.iter().flat_map(|line| [*line, "\n"]).collect())
    };
    let (search, replace) = (joined(&matched), joined(&written));
    Some(Found { level: Level::LineNumbers, hits, search, replace })
}
