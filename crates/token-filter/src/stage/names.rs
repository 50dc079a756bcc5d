//! The names of rows that the budget leaves out: the first word of each, where that word tells the rows apart.
//!
//! A package list or a table of pods loses its columns then, but no row. Applies only where nearly every row opens
//! with a name of its own and all names together cost a part of the budget.

use std::collections::HashSet;

use crate::row::{Fate, Row};
use crate::tokens::estimate_tokens;

/// Least rows, and least distinct names.
const LEAST: usize = 24;
/// Longest name, in bytes.
const LONGEST: usize = 64;

/// The name that `text` opens with, if it opens with one.
pub(crate) fn name(text: &str) -> Option<&str> {
    if !text.starts_with(|char: char| char.is_alphabetic() || char == '_' || char == '.') {
        return None;
    }
    let end = text.find([' ', '\t', ',', ':', '=', '|', '(', '/']).unwrap_or(text.len());
    // A slash belongs to the name, `gcc/stable`, unless a path begins there.
    let end = end + usize::from(text.as_bytes().get(end) == Some(&b'/'));
    text.get(..end).filter(|name| name.len() >= 2 && name.len() <= LONGEST)
}

/// What the names of all shown rows cost, in tokens; `None` if they do not tell the rows apart.
pub(crate) fn price(rows: &[Row<'_>], fates: &[Fate]) -> Option<u64> {
    let mut shown = 0;
    let mut named = 0;
    let mut distinct = HashSet::new();
    let mut tokens = 0;
    for (row, _) in rows.iter().zip(fates).filter(|(_, fate)| fate.is_shown()) {
        shown += 1;
        if let Some(name) = name(&row.text) {
            named += 1;
            if distinct.insert(name) {
                tokens += estimate_tokens(name) + 1;
            }
        }
    }
    let many = distinct.len() >= LEAST && named * 10 >= shown * 9;
    (many && distinct.len() * 10 >= named * 8).then_some(tokens)
}

#[cfg(test)]
mod tests {
    use super::name;

    #[test]
    fn names_open_rows() {
        assert_eq!(name("gcc/oldstable,now 4:12.2 amd64 [installed]"), Some("gcc/"));
        assert_eq!(name("api-7f9c   1/1   Running"), Some("api-7f9c"));
        assert_eq!(name("  indented"), None);
        assert_eq!(name("2026-03-04 x"), None);
        assert_eq!(name("# comment"), None);
    }
}
