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
    Colon,
}

/// A decorated line: number, mark, rest.
fn split(line: &str) -> Option<(usize, Mark, &str)> {
    let line = line.trim_start_matches(is_blank);
    let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let digits = line.get(..line.len() - rest.len())?;
    let number = digits.parse().ok()?;
    if let Some(rest) = rest.strip_prefix('\t') {
        return Some((number, Mark::Tab, rest));
    }
    if let Some(rest) = rest.strip_prefix(": ") {
        return Some((number, Mark::Colon, rest));
    }
    if rest == ":" {
        return Some((number, Mark::Colon, ""));
    }
    let rest = rest.trim_start_matches(is_blank).strip_prefix('|')?;
    Some((number, Mark::Bar, rest))
}

/// The lines without numbers, if all carry one of the same kind; `consecutive` if they count up by one.
fn strip<'t>(given: &[&'t str], consecutive: bool) -> Option<(usize, Mark, Vec<&'t str>)> {
    let (first, mark, _) = split(given.first()?)?;
    let mut rests = Vec::with_capacity(given.len());
    for (index, line) in given.iter().enumerate() {
        let (number, kind, rest) = split(line)?;
        if kind != mark || (consecutive && number != first.checked_add(index)?) {
            return None;
        }
        rests.push(rest);
    }
    Some((first, mark, rests))
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
    let decorated = written.iter().filter(|line| split(line).is_some()).count();
    let solid = written.iter().filter(|line| !trim(line).is_empty()).count();
    let written: Vec<&str> = if decorated == 0 {
        written
    } else if decorated >= solid {
        let rests: Option<Vec<&str>> = written
            .iter()
            .map(|line| match split(line) {
                Some((_, kind, rest)) => (kind == mark).then_some(rest),
                None => Some(""),
            })
            .collect();
        if bar_and_blank { after_bar(&rests?)? } else { rests? }
    } else {
        return None;
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
