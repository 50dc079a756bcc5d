//! Why an edit was refused, with the facts a caller needs to ask again and better.
//!
//! A refusal is whole: there is no partial plan beside it. The text of [`EditError`] is made to follow
//! `Edit N: ` in an answer and calls search and replacement by their names on the wire, 'old' and 'new'.

use std::fmt;

use crate::edit::Level;
use crate::outcome::{AtLines, LineSpan};
use crate::syntax::SyntaxIssue;

/// Why nothing was changed.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct EditError {
    /// What kind of refusal it is.
    pub kind: ErrorKind,
    /// 0-based index of the edit at fault, where it is one edit's.
    pub edit_index: Option<usize>,
    /// The facts; boxed, so that the happy path does not carry them.
    pub detail: Box<Detail>,
}

/// Kinds of refusal, by what the caller can do about them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum ErrorKind {
    /// The request makes no sense: no edits, contradicting options.
    InvalidEdit,
    /// An empty search.
    EmptySearch,
    /// No level found the text.
    NotFound,
    /// The strictest level with a hit has more than one.
    Ambiguous,
    /// Not as many places as `expected_count` says.
    CountMismatch,
    /// The text was in the original, where an earlier edit has replaced it.
    Overlap,
    /// A placeholder such as `# ... existing code ...` stands for lines that were not given.
    Elided,
    /// The new text does not parse, or parses worse than before.
    SyntaxInvalid,
    /// The file is not UTF-8.
    NotUtf8,
    /// Beyond one of the [`crate::Limits`].
    TooLarge,
}

impl ErrorKind {
    /// The kind's name in snake case.
    pub fn name(self) -> &'static str {
        match self {
            Self::InvalidEdit => "invalid_edit",
            Self::EmptySearch => "empty_search",
            Self::NotFound => "not_found",
            Self::Ambiguous => "ambiguous",
            Self::CountMismatch => "count_mismatch",
            Self::Overlap => "overlap",
            Self::Elided => "elided",
            Self::SyntaxInvalid => "syntax_invalid",
            Self::NotUtf8 => "not_utf8",
            Self::TooLarge => "too_large",
        }
    }
}

/// The facts of a refusal; which are there depends on its kind.
#[derive(Debug, Clone, PartialEq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Detail {
    /// What is wrong, where the kind alone does not say it: `invalid_edit`, `elided`, `not_utf8`, `too_large`.
    pub reason: Option<String>,
    /// The level at which the places were found.
    pub level: Option<Level>,
    /// How many places were found.
    pub count: usize,
    /// How many were asked for.
    pub expected: Option<usize>,
    /// The first 20 places, by line; a line with two places is there twice.
    pub candidates: Vec<LineSpan>,
    /// What each of the candidates stands in, such as `class A > def m`, `jobs.build.steps[2].run` or
    /// `[package] name`; as many as candidates, or empty where the language has no grammar in this build or
    /// the text is not given to it. For `ambiguous` and `count_mismatch`. Best effort: the file need not parse.
    #[cfg_attr(feature = "serde", serde(default))]
    pub scopes: Vec<Option<String>>,
    /// The most similar block of the file, if one is similar enough to be of use.
    pub closest: Option<Closest>,
    /// What probably went wrong, most telling first.
    pub hints: Vec<Hint>,
    /// 0-based index of the earlier edit that replaced the text.
    pub overlaps_edit: Option<usize>,
    /// The first fault of the text as it would have become.
    pub syntax: Option<SyntaxIssue>,
}

/// What probably went wrong with a text that was not found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Hint {
    /// One round of unescaping makes it match.
    OverEscaped,
    /// The replacement is in the file already.
    AlreadyApplied,
    /// Its lines begin with line numbers that do not agree with the file.
    LineNumberPrefix,
}

impl Hint {
    /// The hint's name on the wire, in snake case.
    pub fn name(self) -> &'static str {
        match self {
            Self::OverEscaped => "over_escaped",
            Self::AlreadyApplied => "already_applied",
            Self::LineNumberPrefix => "line_number_prefix",
        }
    }

    fn advice(self) -> &'static str {
        match self {
            Self::OverEscaped => {
                "it matches with one level of escaping less: give line breaks, tabs, quotes and backslashes as they are in the file"
            }
            Self::AlreadyApplied => "the 'new' text is already in the file",
            Self::LineNumberPrefix => "give the text without the line numbers of a listing",
        }
    }
}

/// The block of the file that is most like the search.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Closest {
    /// Where it is.
    pub lines: LineSpan,
    /// How much alike it is, 0 to 1.
    pub similarity: f32,
    /// The first line that differs, if any does beyond blanks.
    pub first_diff: Option<LineDiff>,
}

/// Two spellings of a line, cut to a useful width, blanks at the ends and tabs made visible.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct LineDiff {
    /// 1-based line of the file.
    pub line: usize,
    /// The line as the search has it.
    pub wanted: String,
    /// The line as the file has it.
    pub found: String,
    /// 0-based character of `wanted` and `found` at which they part.
    pub caret: usize,
}

impl EditError {
    pub(crate) fn new(kind: ErrorKind, edit_index: Option<usize>) -> Self {
        Self { kind, edit_index, detail: Box::default() }
    }

    pub(crate) fn because(mut self, reason: impl Into<String>) -> Self {
        self.detail.reason = Some(reason.into());
        self
    }

    /// Makes a refusal of a request that could not even be read as an [`crate::Edit`], such as one without
    /// a replacement, so that callers report it like any other.
    pub fn invalid_edit(edit_index: Option<usize>, reason: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidEdit, edit_index).because(reason)
    }
}

impl std::error::Error for EditError {}

impl fmt::Display for EditError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let detail = &*self.detail;
        let reason = detail.reason.as_deref().unwrap_or("no reason given");
        match self.kind {
            ErrorKind::InvalidEdit | ErrorKind::TooLarge => f.write_str(reason),
            ErrorKind::EmptySearch => {
                f.write_str("empty 'old' text: give the text to replace, or write the file instead")
            }
            ErrorKind::NotFound => self.fmt_not_found(f),
            ErrorKind::Ambiguous => {
                self.fmt_places(f)?;
                f.write_str(
                    "; add neighbouring lines to 'old' until it is unique, or say which with at_line, or replace_all",
                )?;
                self.fmt_scopes(f)
            }
            ErrorKind::CountMismatch => {
                self.fmt_places(f)?;
                write!(
                    f,
                    ", expected {}; give the count there is, or an 'old' that has as many",
                    detail.expected.unwrap_or_default()
                )?;
                self.fmt_scopes(f)
            }
            ErrorKind::Overlap => write!(
                f,
                "the 'old' text was in the file, but edit {} has replaced it; edits apply in order, so match the new text or merge the two",
                detail.overlaps_edit.unwrap_or_default()
            ),
            ErrorKind::Elided => write!(
                f,
                "{reason} is a placeholder, not text of the file; give the lines it stands for, or a smaller edit"
            ),
            ErrorKind::SyntaxInvalid => match &detail.syntax {
                Some(issue) => write!(f, "{issue}\nMend the edits, or pass validate=\"off\"."),
                None => f.write_str("the new text does not parse"),
            },
            ErrorKind::NotUtf8 => write!(
                f,
                "the file is not UTF-8 text: {reason}; convert it first, or edit it with a command"
            ),
        }
    }
}

impl EditError {
    fn fmt_places(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let detail = &*self.detail;
        let fuzzy = if matches!(detail.level, None | Some(Level::Exact)) { "" } else { "fuzzy " };
        let noun = if detail.count == 1 { "match" } else { "matches" };
        write!(f, "Found {} {fuzzy}{noun} of the 'old' text", detail.count)?;
        let mut lines: Vec<usize> = detail.candidates.iter().map(|span| span.first).collect();
        let more = detail.count > lines.len();
        lines.dedup();
        if lines.is_empty() {
            return Ok(());
        }
        write!(f, " at {}{}", AtLines(&lines), if more { " and more" } else { "" })
    }

    fn fmt_scopes(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 10;
        let lines = self.detail.candidates.iter().map(|span| span.first);
        let mut named: Vec<_> = lines
            .zip(&self.detail.scopes)
            .filter_map(|(line, scope)| Some((line, scope.as_deref()?)))
            .collect();
        named.dedup();
        for (line, scope) in named.into_iter().take(SHOWN) {
            write!(f, "\n  line {line} in {scope}")?;
        }
        Ok(())
    }

    fn fmt_not_found(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let detail = &*self.detail;
        f.write_str("the 'old' text was not found in the file")?;
        for hint in &detail.hints {
            write!(f, "; {}", hint.advice())?;
        }
        let Some(closest) = &detail.closest else {
            let lost = detail.hints.is_empty();
            return if lost { f.write_str("; read the file and copy the lines") } else { Ok(()) };
        };
        write!(f, "; closest: {} ({:.0} % alike)", closest.lines, closest.similarity * 100.0)?;
        if let Some(diff) = &closest.first_diff {
            let pad = " ".repeat(diff.caret);
            write!(
                f,
                ", first difference in line {}:\n  'old': {}\n  file:  {}\n         {pad}^",
                diff.line, diff.wanted, diff.found
            )?;
        }
        Ok(())
    }
}
