//! What a plan holds: the new bytes, what each edit did, and what is worth saying about it.

use std::fmt;
use std::ops::Range;

use crate::edit::Level;
use crate::syntax::{SyntaxIssue, Unchecked};

/// Edits that all landed: the new bytes and how they came about.
///
/// Nothing has been written; that is the caller's part.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Plan {
    /// The whole file as it should become, byte-order mark included; empty without
    /// [`crate::Options::keep_text`].
    pub text: Vec<u8>,
    /// Whether the file becomes another.
    pub changed: bool,
    /// One entry an edit, in the order of the edits.
    pub applied: Vec<Applied>,
    /// The change of all edits together, as disjoint pieces in file order.
    pub splices: Vec<Splice>,
    /// What is worth saying although the edits landed.
    pub warnings: Vec<Warning>,
    /// A unified diff that `patch` accepts; empty if nothing changed.
    pub diff: String,
    /// Whether `diff` stops at [`crate::Limits::diff_bytes`] and is no longer a whole patch.
    pub diff_truncated: bool,
    /// How many edits matched exactly and how many did not.
    pub stats: Stats,
}

impl Plan {
    /// The new file in pieces, for a writer: what stays of the `original` that was planned on, and what is new.
    ///
    /// ```
    /// use fuzzy_edit::{Edit, Options, plan};
    /// use std::path::Path;
    ///
    /// let file = b"one\ntwo\nthree\n";
    /// let options = Options::default().keep_text(false);
    /// let plan = plan(file, Path::new("a.txt"), &[Edit::new("two", "2")], &options)?;
    /// assert!(plan.text.is_empty());
    /// let chunks: Vec<&[u8]> = plan.chunks(file).collect();
    /// assert_eq!(chunks, [&b"one\n"[..], b"2", b"\nthree\n"]);
    /// # Ok::<(), fuzzy_edit::EditError>(())
    /// ```
    pub fn chunks<'a>(&'a self, original: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
        let ends = self.splices.iter().map(|splice| splice.range.end);
        let starts = self.splices.iter().map(|splice| splice.range.start);
        let kept = std::iter::once(0)
            .chain(ends)
            .zip(starts.chain(std::iter::once(original.len())))
            .map(|(from, to)| original.get(from..to).unwrap_or_default());
        let mut new = self.splices.iter().map(|splice| splice.text.as_bytes());
        kept.flat_map(move |kept| [kept, new.next().unwrap_or_default()])
            .filter(|chunk| !chunk.is_empty())
    }
}

/// What one edit did.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Applied {
    /// The level that found the places.
    pub level: Level,
    /// The replaced byte ranges, in the text as the edits before this one left it.
    pub matches: Vec<Range<usize>>,
    /// First and last 1-based line of each match.
    pub lines: Vec<LineSpan>,
    /// How sure the match is, 0 to 1.
    pub confidence: f32,
}

/// A run of 1-based lines, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct LineSpan {
    /// The first line.
    pub first: usize,
    /// The last line.
    pub last: usize,
}

impl fmt::Display for LineSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first == self.last {
            write!(f, "line {}", self.first)
        } else {
            write!(f, "lines {}-{}", self.first, self.last)
        }
    }
}

/// One piece of the change: `range` of the original becomes `text`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Splice {
    /// Bytes of the original.
    pub range: Range<usize>,
    /// What stands there now.
    pub text: String,
}

/// Edits by kind of match.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Stats {
    /// Edits that matched at [`Level::Exact`].
    pub exact: usize,
    /// All others.
    pub fuzzy: usize,
    /// Places replaced by all edits together.
    pub replacements: usize,
}

/// Something worth saying although the edits landed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Warning {
    /// Other places match at a looser level and were left alone.
    LooserMatches {
        /// 0-based index of the edit.
        edit: usize,
        /// Start lines of the first of them.
        lines: Vec<usize>,
    },
    /// The match begins or ends inside a word.
    SplitsWord {
        /// 0-based index of the edit.
        edit: usize,
        /// 1-based line.
        line: usize,
    },
    /// The replacement dropped a line ending, so the next line was joined to it.
    LineJoined {
        /// 0-based index of the edit.
        edit: usize,
        /// 1-based line.
        line: usize,
    },
    /// Line numbers were taken off the given text.
    LineNumbersStripped {
        /// 0-based index of the edit.
        edit: usize,
    },
    /// The file did not parse before, and does not now.
    StillInvalid(SyntaxIssue),
    /// The new text was not checked.
    NotValidated(Unchecked),
    /// An object has a key twice; legal JSON, and most readers keep the last.
    DuplicateKey {
        /// The key.
        key: String,
        /// 1-based line of the second one.
        line: usize,
    },
    /// The text is TOML 1.1; readers of 1.0 refuse it.
    #[cfg_attr(feature = "serde", serde(rename = "toml_1_1"))]
    Toml11 {
        /// 1-based line of the first such construct.
        line: usize,
    },
}

impl Warning {
    /// The warning's name on the wire, in snake case.
    pub fn name(&self) -> &'static str {
        match self {
            Self::LooserMatches { .. } => "looser_matches",
            Self::SplitsWord { .. } => "splits_word",
            Self::LineJoined { .. } => "line_joined",
            Self::LineNumbersStripped { .. } => "line_numbers_stripped",
            Self::StillInvalid(_) => "still_invalid",
            Self::NotValidated(_) => "not_validated",
            Self::DuplicateKey { .. } => "duplicate_key",
            Self::Toml11 { .. } => "toml_1_1",
        }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LooserMatches { edit, lines } => write!(
                f,
                "edit {edit}: similar text that differs in blanks was left alone at {}",
                AtLines(lines)
            ),
            Self::SplitsWord { edit, line } => {
                write!(f, "edit {edit}: the match on line {line} begins or ends inside a word")
            }
            Self::LineJoined { edit, line } => write!(
                f,
                "edit {edit}: 'old' ends with a line break and 'new' does not, so line {line} was joined to the next"
            ),
            Self::LineNumbersStripped { edit } => {
                write!(f, "edit {edit}: line numbers were taken off the given text")
            }
            Self::StillInvalid(issue) => write!(f, "not valid before and still not: {issue}"),
            Self::NotValidated(reason) => write!(f, "syntax not checked: {reason}"),
            Self::DuplicateKey { key, line } => {
                write!(f, "key {key:?} is there twice, line {line}")
            }
            Self::Toml11 { line } => {
                write!(f, "line {line} is TOML 1.1, which readers of TOML 1.0 refuse")
            }
        }
    }
}

/// Lines as running text: `line 2`, `lines 2 and 4`, `lines 1, 2, 3 …`.
pub(crate) struct AtLines<'a>(pub(crate) &'a [usize]);

impl fmt::Display for AtLines<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 20;
        match self.0 {
            [line] => write!(f, "line {line}"),
            [head @ .., last] if self.0.len() <= SHOWN => {
                f.write_str("lines ")?;
                for (index, line) in head.iter().enumerate() {
                    write!(f, "{}{line}", if index == 0 { "" } else { ", " })?;
                }
                write!(f, " and {last}")
            }
            lines => {
                f.write_str("lines ")?;
                for line in lines.iter().take(SHOWN) {
                    write!(f, "{line}, ")?;
                }
                f.write_str("…")
            }
        }
    }
}
