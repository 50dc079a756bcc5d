//! The names of rows that the budget leaves out: the word of each that tells the rows apart.
//!
//! A package list or a table of pods loses its columns then, but no row. Applies only where nearly every row opens
//! with a name of its own, or with a state and a name, and all names together cost a part of the budget. Where they cost more, names
//! that open alike stand behind the shortest of them: `gcc +2` for `gcc`, `gcc-12` and `gcc-12-base`.

use std::collections::HashSet;

use crate::row::{Fate, Row};
use crate::tokens::estimate_tokens;

/// Least rows, and least distinct names.
const LEAST: usize = 24;
/// Longest name, in bytes.
const LONGEST: usize = 64;
/// Price of a count behind a name.
const COUNT: u64 = 2;

/// How the rows left out are named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Naming {
    /// The word that is the name, the first or the second.
    second: bool,
    /// Whether names that open alike share one.
    families: bool,
    /// What the names of all rows cost, in tokens.
    pub(crate) price: u64,
}

impl Naming {
    /// The naming that fits three quarters of `budget`, if the rows have names.
    pub(crate) fn new(rows: &[Row<'_>], fates: &[Fate], budget: u64) -> Option<Self> {
        let mut naming = [false, true].into_iter().find_map(|second| {
            let names = distinct(rows, fates, second)?;
            let price = names.iter().map(|name| estimate_tokens(name) + 1).sum();
            Some(Self { second, families: false, price })
        })?;
        if naming.price * 4 > budget * 3 {
            naming.families = true;
            let names = distinct(rows, fates, naming.second)?;
            let price = |(name, more): (&str, usize)| {
                estimate_tokens(name) + 1 + if more > 0 { COUNT } else { 0 }
            };
            naming.price = families(&names).into_iter().map(price).sum();
        }
        (naming.price * 4 <= budget * 3).then_some(naming)
    }

    /// The name of a row, if it has one.
    pub(crate) fn name<'t>(&self, text: &'t str) -> Option<&'t str> {
        name(text, self.second)
    }

    /// The names of the rows of one gap as they are written, in order, or nothing for fewer than two.
    pub(crate) fn write(&self, names: &[&str]) -> Option<String> {
        let mut names = names.to_vec();
        names.dedup();
        if names.len() < 2 {
            return None;
        }
        if !self.families {
            return Some(names.join(" "));
        }
        let written = families(&names).into_iter().map(|(name, more)| match more {
            0 => name.to_owned(),
            _ => format!("{name} +{more}"),
        });
        Some(written.collect::<Vec<_>>().join(" "))
    }
}

/// The name in `text`: its first word, or the one behind a short state such as `ii`.
fn name(text: &str, second: bool) -> Option<&str> {
    let text = if second {
        let (state, rest) = text.split_once([' ', '\t'])?;
        rest.get(..1).filter(|_| state.len() <= 3)?;
        rest.trim_ascii_start()
    } else {
        text
    };
    if !text.starts_with(|char: char| char.is_alphabetic() || char == '_' || char == '.') {
        return None;
    }
    let end = text.find([' ', '\t', ',', ':', '=', '|', '(', '/']).unwrap_or(text.len());
    // A slash belongs to the name, `gcc/stable`, unless a path begins there.
    let end = end + usize::from(text.as_bytes().get(end) == Some(&b'/'));
    text.get(..end).filter(|name| name.len() >= 2 && name.len() <= LONGEST)
}

/// The names of all shown rows, each once, in order; `None` if they do not tell the rows apart.
fn distinct<'t>(rows: &'t [Row<'_>], fates: &[Fate], second: bool) -> Option<Vec<&'t str>> {
    let mut shown = 0;
    let mut with_name = 0;
    let mut seen = HashSet::new();
    let mut names = Vec::new();
    for (row, _) in rows.iter().zip(fates).filter(|(_, fate)| fate.is_shown()) {
        shown += 1;
        if let Some(name) = name(&row.text, second) {
            with_name += 1;
            if seen.insert(name) {
                names.push(name);
            }
        }
    }
    let many = names.len() >= LEAST && with_name * 10 >= shown * 9;
    (many && names.len() * 10 >= with_name * 8).then_some(names)
}

/// Neighbours that open alike: the shortest, and how many more there are.
fn families<'t>(names: &[&'t str]) -> Vec<(&'t str, usize)> {
    names
        .chunk_by(|a, b| stem(a) == stem(b))
        .filter_map(|family| {
            let shortest = family.iter().min_by_key(|name| name.len())?;
            Some((*shortest, family.len() - 1))
        })
        .collect()
}

/// The letters that a name opens with.
fn stem(name: &str) -> &str {
    let end = name.find(|char: char| !char.is_alphabetic()).unwrap_or(name.len());
    name.get(..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{families, name};

    #[test]
    fn names_open_rows() {
        assert_eq!(name("gcc/oldstable,now 4:12.2 amd64 [installed]", false), Some("gcc/"));
        assert_eq!(name("api-7f9c   1/1   Running", false), Some("api-7f9c"));
        assert_eq!(name("ii  adduser  3.134", true), Some("adduser"));
        assert_eq!(name("  indented", false), None);
        assert_eq!(name("2026-03-04 x", false), None);
        assert_eq!(name("# comment", false), None);
        assert_eq!(name("lengthy word", true), None);
    }

    #[test]
    fn names_that_open_alike_share_the_shortest() {
        let names = ["gawk/", "gcc-12-base/", "gcc-12/", "gcc/", "git/"];
        assert_eq!(families(&names), [("gawk/", 0), ("gcc/", 2), ("git/", 0)]);
    }
}
