//! A row: what one or more raw lines left on the screen.

use std::borrow::Cow;
use std::ops::Range;

/// One row of the cleaned output.
///
/// Rows are in raw order and their ranges partition the raw lines.
#[derive(Debug, Clone)]
pub(crate) struct Row<'a> {
    /// The raw lines that made it, zero-based.
    pub(crate) raw: Range<u64>,
    /// What it shows, without the line end. May hold line breaks where alarming states were overwritten.
    pub(crate) text: Cow<'a, str>,
    /// What it is; only text has a `text`.
    pub(crate) kind: Kind,
    /// Whether a long line was cut.
    pub(crate) cut: bool,
    /// Whether raw lines wrote over each other to make it.
    pub(crate) drawn: bool,
}

impl<'a> Row<'a> {
    /// A row that shows nothing.
    pub(crate) fn without_text(raw: Range<u64>, kind: Kind) -> Self {
        Self { raw, text: Cow::Borrowed(""), kind, cut: false, drawn: false }
    }

    pub(crate) fn new(raw: Range<u64>, text: Cow<'a, str>) -> Self {
        Self { raw, text, kind: Kind::Text, cut: false, drawn: false }
    }
}

/// What a row is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    /// Bytes that are no text.
    Binary,
    /// Lines that a stream no longer has.
    Hole,
}

/// How a row appears in the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// As it is.
    Shown,
    /// As it is, for a block whose other rows are trimmed.
    Headline,
    /// Left out of a block that repeats an earlier one.
    Trimmed,
    /// Folded as one more of a shape already shown.
    Folded,
    /// The same, because a recipe says so.
    Grouped,
    /// Left out because a recipe says that it is not worth showing.
    Left,
    /// Left out for want of budget.
    Dropped,
    /// No text.
    Binary,
    /// No longer there.
    Spilled,
}

impl Fate {
    pub(crate) fn is_shown(self) -> bool {
        matches!(self, Self::Shown | Self::Headline)
    }

    /// Whether a recipe decided.
    pub(crate) fn is_by_recipe(self) -> bool {
        matches!(self, Self::Grouped | Self::Left)
    }
}
