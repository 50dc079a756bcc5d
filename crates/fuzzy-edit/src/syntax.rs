//! Whether a text parses in the language its file name says.
//!
//! The verdict is the real parser's. tree-sitter counts faults where a text was not valid before either,
//! finds tabs in YAML and names the scope of a place: as a verdict it is wrong both ways.

use std::fmt;
use std::ops::Range;
use std::path::Path;

use crate::text::{BOM, cut};

mod json;
mod json_faults;
mod judge;
mod language;
mod python;
#[cfg(any(feature = "python", feature = "json", feature = "toml", feature = "yaml"))]
mod scope;
mod toml;
mod tree;
mod yaml;

pub(crate) use judge::judge;
#[cfg(any(feature = "python", feature = "json", feature = "toml", feature = "yaml"))]
pub(crate) use scope::scopes;

/// A language with a parser.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Language {
    /// `.py`, `.pyi`
    Python,
    /// `.json`, `.ipynb`
    Json,
    /// `.jsonc` and files known to be JSON with comments
    Jsonc,
    /// `.jsonl`, `.ndjson`
    Jsonl,
    /// `.toml`
    Toml,
    /// `.yaml`, `.yml`
    Yaml,
}

/// The first fault of a text, and where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct SyntaxIssue {
    /// The language it was read as.
    pub language: Language,
    /// 1-based line.
    pub line: usize,
    /// 1-based character in the line.
    pub column: usize,
    /// What the parser says.
    pub message: String,
    /// The line, cut to a useful width.
    pub excerpt: String,
}

/// Why a text was not checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Unchecked {
    /// No parser for files of this name.
    UnknownLanguage,
    /// The parser was left out of this build.
    FeatureOff,
    /// Larger than [`crate::Limits::validated_bytes`].
    TooLarge,
    /// Nested deeper than the parser can be trusted with.
    TooDeep,
    /// Not UTF-8.
    NotUtf8,
    /// The parser gave up: out of a resource, or a fault of its own.
    ParserFailed,
}

/// What the parser says about a whole text.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Verdict {
    /// It parses.
    Valid,
    /// It was not checked.
    NotValidated {
        /// Why not.
        reason: Unchecked,
    },
    /// It does not parse.
    Invalid(SyntaxIssue),
}

/// Bytes up to which [`validate`] parses; [`crate::plan`] takes [`crate::Limits::validated_bytes`].
const DEFAULT_LIMIT: usize = 8 << 20;

/// Checks a whole text by the parser of its language, found by the last extension of `path`.
///
/// A leading byte-order mark is skipped. Texts above 8 MiB are not checked.
///
/// ```
/// use fuzzy_edit::{Verdict, validate};
/// use std::path::Path;
///
/// # if cfg!(feature = "json") {
/// assert_eq!(validate(Path::new("a.json"), b"[1, 2]"), Verdict::Valid);
/// let Verdict::Invalid(issue) = validate(Path::new("a.json"), b"[1,\n 2") else { unreachable!() };
/// assert!(issue.to_string().starts_with("JSON parse error at line 2"));
/// # }
/// ```
///
/// # Security
///
/// `path` is only read as a name; no file is touched. The parsers run on a thread of their own with a
/// large stack, behind bounds of size and depth; a parser that fails is no verdict.
pub fn validate(path: &Path, bytes: &[u8]) -> Verdict {
    let Some(language) = language::by_name(path) else {
        return Verdict::NotValidated { reason: Unchecked::UnknownLanguage };
    };
    let Ok(text) = std::str::from_utf8(bytes) else {
        return Verdict::NotValidated { reason: Unchecked::NotUtf8 };
    };
    let text = text.strip_prefix(BOM).unwrap_or(text);
    match guarded(|| check(language, text, None, DEFAULT_LIMIT)) {
        Some(Checked::Valid) => Verdict::Valid,
        Some(Checked::Unchecked(reason)) => Verdict::NotValidated { reason },
        Some(Checked::Invalid(fault)) => Verdict::Invalid(fault.issue(language, text)),
        None => Verdict::NotValidated { reason: Unchecked::ParserFailed },
    }
}

/// Names what places stand in; without a grammar, none.
#[cfg(not(any(feature = "python", feature = "json", feature = "toml", feature = "yaml")))]
pub(crate) fn scopes(
    _: &Path,
    _text: &str,
    _places: &[usize],
    _limit: usize,
) -> Vec<Option<String>> {
    Vec::new()
}

/// What a language's parser says.
#[derive(Debug)]
pub(crate) enum Checked {
    Valid,
    Unchecked(Unchecked),
    Invalid(Fault),
}

/// The first fault, as its parser locates it.
#[derive(Debug)]
pub(crate) struct Fault {
    /// Byte offset; beyond the end means the end.
    pub(crate) at: usize,
    pub(crate) message: String,
}

impl Fault {
    fn issue(self, language: Language, text: &str) -> SyntaxIssue {
        let (line, column) = position(text, self.at);
        let excerpt = excerpt(text, line, column);
        let message = self.message.split_whitespace().collect::<Vec<_>>().join(" ");
        SyntaxIssue { language, line, column, message, excerpt }
    }
}

/// 1-based line and character of an offset. An end of file behind a last line ending is on that last line.
fn position(text: &str, at: usize) -> (usize, usize) {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    let head = cut(text, 0..at);
    let cr_only = !text.contains('\n');
    let is_end = |c: char| c == '\n' || (cr_only && c == '\r');
    let head = if at == text.len() { head.trim_end_matches(is_end) } else { head };
    let line = head.chars().filter(|&c| is_end(c)).count() + 1;
    let start = head.rfind(is_end).map_or(0, |end| end + 1);
    (line, cut(head, start..head.len()).chars().count() + 1)
}

/// The line, or a part of it around the column.
fn excerpt(text: &str, line: usize, column: usize) -> String {
    const WIDTH: usize = 120;
    let end = if text.contains('\n') { '\n' } else { '\r' };
    let line = text.split(end).nth(line - 1).unwrap_or_default().trim_end_matches('\r');
    let from = if column > WIDTH { column - WIDTH / 2 } else { 0 };
    let mut shown: String = line.chars().skip(from).take(WIDTH).collect();
    if from > 0 {
        shown.insert(0, '…');
    }
    if line.chars().skip(from).nth(WIDTH).is_some() {
        shown.push('…');
    }
    shown.chars().map(|c| if c.is_control() && c != '\t' { '\u{fffd}' } else { c }).collect()
}

/// Parses a text; `edited` are the 0-based lines of an edit, if it is one.
fn check(language: Language, text: &str, edited: Option<&[Range<usize>]>, limit: usize) -> Checked {
    if text.len() > limit {
        return Checked::Unchecked(Unchecked::TooLarge);
    }
    match language {
        Language::Python => python::check(text),
        Language::Json => json::check(text),
        Language::Jsonc => json::check_with_comments(text),
        Language::Jsonl => json::check_lines(text),
        Language::Toml => toml::check(text),
        Language::Yaml => yaml::check(text, edited),
    }
}

/// Bytes of stack for the parsers: ruff recurses on nesting.
const STACK: usize = 64 << 20;

/// Runs a parser on a thread of its own; nothing if it panics or cannot be started.
fn guarded<T: Send>(run: impl FnOnce() -> T + Send) -> Option<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("syntax".to_owned()).stack_size(STACK);
        thread.spawn_scoped(scope, run).ok()?.join().ok()
    })
}

impl fmt::Display for SyntaxIssue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let label = match self.language {
            Language::Python => "Python syntax error",
            Language::Json | Language::Jsonc => "JSON parse error",
            Language::Jsonl => "JSONL parse error",
            Language::Toml => "TOML parse error",
            Language::Yaml => "YAML parse error",
        };
        write!(f, "{label} at line {}, column {}: {}", self.line, self.column, self.message)?;
        if self.excerpt.is_empty() { Ok(()) } else { write!(f, "\n  {}", self.excerpt) }
    }
}

impl fmt::Display for Unchecked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::UnknownLanguage => "no parser for files of this name",
            Self::FeatureOff => "the parser was left out of this build",
            Self::TooLarge => "the text is too large",
            Self::TooDeep => "the text is nested too deeply",
            Self::NotUtf8 => "the text is not UTF-8",
            Self::ParserFailed => "the parser gave up",
        })
    }
}
