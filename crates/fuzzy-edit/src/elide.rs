//! Placeholders: lines that stand for others which were not given.
//!
//! Guessing which lines are meant keeps or deletes code by chance, so they are refused. A placeholder that
//! is really in the file is text like any other, and a bare `...` in a replacement is code.

use std::collections::HashSet;

use crate::emit::given_lines;
use crate::text::{lines, trim};

/// What opens a comment, longest first where one begins another.
const COMMENT: [&str; 9] = ["<!--", "{/*", "(*", "/*", "//", "--", "#", ";", "%"];
/// An ellipsis, in two spellings.
const DOTS: [&str; 2] = ["...", "\u{2026}"];

fn is_bare(line: &str) -> bool {
    DOTS.contains(&line)
}

/// A comment sign, then an ellipsis, then nothing or words.
fn is_comment(line: &str) -> bool {
    COMMENT.iter().any(|sign| {
        line.strip_prefix(sign).is_some_and(|rest| {
            // `//// ...` and `## ...` as well
            let last = sign.chars().next_back().unwrap_or(' ');
            let rest = rest.trim_start_matches(last).trim_start();
            DOTS.iter().any(|dots| rest.starts_with(dots))
        })
    })
}

/// The first placeholder line of a search that is not a line of the file.
pub(crate) fn in_search<'s>(search: &'s str, file: &str) -> Option<&'s str> {
    let mut suspects: Vec<&str> = given_lines(search)
        .into_iter()
        .map(trim)
        .filter(|line| is_bare(line) || is_comment(line))
        .collect();
    if suspects.is_empty() {
        return None;
    }
    let wanted: HashSet<&str> = suspects.iter().copied().collect();
    let present: HashSet<&str> =
        lines(file).map(|(_, line)| trim(line)).filter(|line| wanted.contains(line)).collect();
    suspects.retain(|line| !present.contains(line));
    suspects.into_iter().next()
}

/// The first comment placeholder of a replacement that is not a line of the search.
pub(crate) fn in_replacement<'s>(replace: &'s str, search: &str) -> Option<&'s str> {
    let mut suspects = given_lines(replace).into_iter().map(trim).filter(|line| is_comment(line));
    let first = suspects.next()?;
    let known: HashSet<&str> = given_lines(search).into_iter().map(trim).collect();
    std::iter::once(first).chain(suspects).find(|line| !known.contains(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_placeholder_is() {
        for line in
            ["# ... existing code ...", "// ...rest", "<!-- ... -->", "/* \u{2026} */", "-- ..."]
        {
            assert!(is_comment(line), "{line}");
        }
        for line in ["[...b]", "x = ...", "...", "# see below ...", "print(...)", ".. note::"] {
            assert!(!is_comment(line), "{line}");
        }
    }

    #[test]
    fn known_lines_are_text() {
        assert_eq!(in_search("a\n...", "a\n  ...\n"), None);
        assert_eq!(in_search("a\n...", "a\n"), Some("..."));
        assert_eq!(in_replacement("...", "a"), None);
        assert_eq!(in_replacement("  // ... x", "// ... x"), None);
        assert_eq!(in_replacement("  // ... x", "y"), Some("// ... x"));
    }
}
