//! Patterns over paths, in the style of `.gitignore`.
//!
//! A pattern without a slash is compared with the name at any depth, one with a slash with the whole
//! path from the root. Matching is linear in the path ([`globset`] compiles to a finite automaton), so
//! no pattern is expensive by its shape.

use std::path::Path;

use globset::{GlobBuilder, GlobMatcher};

/// Longest pattern taken, bytes.
const MAX_PATTERN: usize = 4095;

/// What is said about a pattern that tries to leave.
const TRAVERSAL: &str = "Path traversal or absolute paths are not allowed";

/// A compiled pattern.
#[derive(Debug)]
pub(crate) struct Glob(GlobMatcher);

impl Glob {
    /// Compiles `pattern`, or says what is wrong with it.
    pub(crate) fn new(pattern: &str) -> Result<Self, String> {
        if pattern.is_empty() {
            return Err("it is empty".to_owned());
        }
        if pattern.len() > MAX_PATTERN {
            return Err(format!("it is longer than {MAX_PATTERN} bytes"));
        }
        if leaves(pattern) {
            return Err(TRAVERSAL.to_owned());
        }
        let mut anchored = pattern;
        while let Some(rest) = anchored.strip_prefix("./") {
            anchored = rest.trim_start_matches('/');
        }
        // A trailing slash names a directory: what is meant is what it holds.
        let holds = if anchored.ends_with('/') { "**" } else { "" };
        let any_depth = if pattern.trim_end_matches('/').contains('/') { "" } else { "**/" };
        let glob = GlobBuilder::new(&format!("{any_depth}{anchored}{holds}"))
            .literal_separator(true)
            .backslash_escape(true)
            .empty_alternates(true)
            .build()
            .map_err(|error| error.kind().to_string())?;
        Ok(Self(glob.compile_matcher()))
    }

    pub(crate) fn matches(&self, path: &Path) -> bool {
        self.0.is_match(path)
    }
}

/// Whether a pattern is absolute, starts at a home, or has a `..` step, in any of its alternatives.
fn leaves(pattern: &str) -> bool {
    starts(pattern).any(|start| start.starts_with(['/', '~']))
        || pattern.split(['/', '{', ',', '}']).any(|part| part == "..")
}

/// The pattern from each of the places that it may begin at: a group of alternatives in front has several.
fn starts(pattern: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_usize;
    let in_front = pattern.char_indices().map_while(move |(at, letter)| {
        match letter {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        (depth > 0).then_some((at, letter))
    });
    let inner = in_front.filter(|(_, letter)| matches!(letter, '{' | ','));
    [pattern].into_iter().chain(inner.filter_map(|(at, _)| pattern.get(at + 1..)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pattern: &str, matching: &[&str], others: &[&str]) {
        let glob = Glob::new(pattern).unwrap_or_else(|reason| panic!("{pattern}: {reason}"));
        for path in matching {
            assert!(glob.matches(Path::new(path)), "{pattern} should match {path}");
        }
        for path in others {
            assert!(!glob.matches(Path::new(path)), "{pattern} should not match {path}");
        }
    }

    #[test]
    fn patterns_match_as_in_a_gitignore_file() {
        check("*.py", &["a.py", "x/y/b.py"], &["a.pyc", "py"]);
        check("**/*.py", &["a.py", "x/y/b.py"], &["a.txt"]);
        check("src/*.py", &["src/a.py"], &["a.py", "src/x/a.py", "x/src/a.py"]);
        check("src/**/*.py", &["src/a.py", "src/x/y/a.py"], &["a.py"]);
        check("./*", &["a"], &["x/a"]);
        check("src/", &["src/a", "x/src/y/b"], &["src"]);
        check("*.{rs,toml}", &["a.rs", "x/Cargo.toml"], &["a.py"]);
        check("x..y", &["x..y", "d/x..y"], &["x/y"]);
        check("[ab].txt", &["a.txt"], &["c.txt"]);
        check("A.txt", &["A.txt"], &["a.txt"]);
    }

    #[test]
    fn patterns_that_leave_are_refused() {
        for pattern in [
            "../x",
            "a/../x",
            "/x",
            "~/x",
            "~user/x",
            "..",
            "{..,a}/x",
            "x/{../y,z}",
            "{/x,a}",
            "{a,~/b}/c",
            "{{a,/b},c}",
        ] {
            assert_eq!(Glob::new(pattern).map(drop), Err(TRAVERSAL.to_owned()), "{pattern}");
        }
        for pattern in ["a{/b,/c}", "{a,b}/c", "a{~,b}", "{a}{/b,c}"] {
            assert!(Glob::new(pattern).is_ok(), "{pattern}");
        }
        assert!(Glob::new("[[[z-a").is_err());
        assert!(Glob::new("").is_err());
    }
}
