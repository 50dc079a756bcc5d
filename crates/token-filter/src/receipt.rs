//! What comes out: the text, what it cost, and an account of every raw line that is not in it.

use std::ops::Range;

/// A compacted output and its receipt.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Compacted {
    /// The answer. Empty only if the raw output is empty or shows nothing on a screen.
    pub text: String,
    /// What it cost and saved.
    pub stats: Stats,
    /// Every range of raw lines that is not whole in the text, in order and without overlap.
    pub omitted: Vec<Omission>,
    /// Whether some raw line is omitted, folded or cut; screen cleaning alone does not count.
    pub truncated: bool,
}

/// Sizes before and after.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Stats {
    /// Length of the raw output in bytes.
    pub raw_bytes: u64,
    /// Lines of the raw output; they end at `\n`, the last one perhaps without.
    pub raw_lines: u64,
    /// Estimated tokens of the raw output.
    pub raw_tokens: u64,
    /// Estimated tokens of the text.
    pub out_tokens: u64,
    /// The stages that changed something, in the order they ran.
    pub stages: Vec<StageSaving>,
}

/// What one stage did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct StageSaving {
    /// The stage.
    pub stage: Stage,
    /// Estimated tokens before it ran.
    pub tokens_before: u64,
    /// Estimated tokens after it ran.
    pub tokens_after: u64,
}

/// The steps of a compaction, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Stage {
    /// Bytes that are no text are described instead of shown.
    Decode,
    /// Escapes, carriage returns and overwritten progress are applied as a terminal would.
    Screen,
    /// Lines far wider than a screen are cut around what stands out in them.
    LongLine,
    /// Repeated shapes of chatter are folded, rare lines protected.
    Fold,
    /// Rows of data are written shorter without losing any.
    Records,
    /// The rest is brought under the budget by salience.
    Window,
    /// Input beyond the memory window of a [`Stream`](crate::Stream).
    Spill,
}

/// A range of raw lines that is not whole in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Omission {
    /// Zero-based raw lines, end exclusive; `offset` is `start`, `limit` its length.
    pub raw_lines: Range<u64>,
    /// How they are missing.
    pub kind: OmissionKind,
    /// Who left them out.
    pub stage: Stage,
}

/// How lines are missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum OmissionKind {
    /// Nothing of them is shown.
    Gap,
    /// They repeat the shape of lines that are shown.
    Similar,
    /// The line is shown with its middle cut out.
    Cut,
    /// They hold bytes that are no text.
    Binary,
}
