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
    /// Estimated tokens of what a client's blind cut would leave of the raw output: its first [`Stats::BLIND_CUT`] characters.
    pub blind_tokens: u64,
    /// The stages that changed something, in the order they ran.
    pub stages: Vec<StageSaving>,
}

impl Stats {
    /// Characters to which clients cut the output of a command, keeping its beginning, when nobody else shortens it.
    pub const BLIND_CUT: usize = 30_000;

    /// Estimated tokens saved; negative if the text costs more than the raw output.
    pub fn saved(&self) -> i64 {
        signed(self.raw_tokens) - signed(self.out_tokens)
    }

    /// Estimated tokens saved beyond the blind cut; negative if the cut, which keeps the beginning and loses the rest, costs less.
    pub fn saved_beyond_cut(&self) -> i64 {
        signed(self.blind_tokens) - signed(self.out_tokens)
    }
}

fn signed(tokens: u64) -> i64 {
    i64::try_from(tokens).unwrap_or(i64::MAX)
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
    /// Lines to which a recipe gave a class are folded or left out, rare and alarming ones protected.
    Recipe,
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
