//! Which stage took which raw lines: the account behind a compaction, made only when it is asked for.
//!
//! Invariants: entries are in raw order and do not overlap; the missing ones are the lines of [`Compacted::omitted`], no more
//! and no fewer. Non-goal: why a row was rare or alarming.

use std::fmt;
use std::ops::Range;

use crate::receipt::{Compacted, OmissionKind, Stage};

/// What became of the raw lines that are not in the text as they were printed.
///
/// Its `Display` is a table, one line an entry, raw lines counted from 1:
///
/// ```
/// use token_filter::{Meta, Policy, compact_explained};
///
/// let raw: String = (0..400).map(|n| format!("[info] queue depth {n}\n")).collect();
/// let (_, explanation) = compact_explained(&Meta::new("./q", Some(0)), raw.as_bytes(), &Policy::default());
/// assert_eq!(explanation.to_string(), "3-399  fold  397 similar lines folded\n");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Explanation {
    /// The entries, in raw order and without overlap.
    pub taken: Vec<Taken>,
}

/// Raw lines and the stage that took them.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Taken {
    /// Zero-based raw lines, end exclusive.
    pub raw_lines: Range<u64>,
    /// Who took them.
    pub stage: Stage,
    /// What became of them.
    pub fate: LineFate,
    /// The recipe that said so, for [`Stage::Recipe`].
    pub recipe: Option<String>,
}

/// What became of raw lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum LineFate {
    /// They are missing, or their middle is.
    Missing(OmissionKind),
    /// Everything they say is shown in a shorter form.
    Rewritten,
    /// They wrote over each other: what a screen would show of them is shown.
    DrawnOver,
}

impl Explanation {
    /// Puts the missing lines of `compacted` among `changed`, which lie outside them.
    pub(crate) fn new(
        compacted: &Compacted,
        changed: Vec<Taken>,
        recipe: impl Fn(&Range<u64>) -> Vec<(Range<u64>, Option<String>)>,
    ) -> Self {
        let mut taken = changed;
        for part in &compacted.omitted {
            let pieces = match part.stage {
                Stage::Recipe => recipe(&part.raw_lines),
                _ => vec![(part.raw_lines.clone(), None)],
            };
            taken.extend(pieces.into_iter().map(|(raw_lines, recipe)| Taken {
                raw_lines,
                stage: part.stage,
                fate: LineFate::Missing(part.kind),
                recipe,
            }));
        }
        taken.sort_by_key(|it| it.raw_lines.start);
        Self { taken }
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for it in &self.taken {
            let (first, last) = (it.raw_lines.start + 1, it.raw_lines.end);
            let count = it.raw_lines.end.saturating_sub(it.raw_lines.start);
            if count == 1 {
                write!(out, "{last}")?;
            } else {
                write!(out, "{first}-{last}")?;
            }
            let noun = if count == 1 { "line" } else { "lines" };
            write!(out, "  {}  ", it.stage)?;
            match it.fate {
                LineFate::Missing(OmissionKind::Gap) => write!(out, "{count} {noun} left out"),
                LineFate::Missing(OmissionKind::Similar) => {
                    write!(out, "{count} similar {noun} folded")
                }
                LineFate::Missing(OmissionKind::Cut) => write!(out, "cut in the middle"),
                LineFate::Missing(OmissionKind::Binary) => write!(out, "{count} binary {noun}"),
                LineFate::Rewritten => write!(out, "{count} {noun} written shorter"),
                LineFate::DrawnOver => write!(out, "{count} {noun} drawn over"),
            }?;
            if let Some(recipe) = &it.recipe {
                write!(out, " by recipe {recipe}")?;
            }
            writeln!(out)?;
        }
        Ok(())
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Decode => "decode",
            Self::Screen => "screen",
            Self::LongLine => "long_line",
            Self::Fold => "fold",
            Self::Recipe => "recipe",
            Self::Records => "records",
            Self::Window => "window",
            Self::Spill => "spill",
        })
    }
}
