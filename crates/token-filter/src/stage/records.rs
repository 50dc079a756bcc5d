//! Rows of data written shorter without losing any.
//!
//! Four rewritings, each invertible and each announced by a bracketed line: rows that count up, rows that differ in one
//! word, `path:line:text` hits under their path, and rows of one form. A rewriting stands only if it saves a third of the tokens of its rows, since foreign
//! shapes cost a reader something too. Linear: every row is looked at a bounded number of times.

use std::ops::Range;

use crate::marker;
use crate::row::{Kind, Row};
use crate::salience::Severity;
use crate::stage::fold;
use crate::stage::window::Traits;
use crate::tokens::estimate_tokens;

mod braces;
mod columns;
mod counting;
mod headings;

/// Least tokens saved by a rewriting.
const WORTH: u64 = 40;

/// The length of the run that opens the lines, and its rewriting. A form that answers `None` has read few lines.
type Form = fn(&[&str]) -> Option<(usize, String)>;

/// The tightest first.
const FORMS: [Form; 4] = [counting::rewrite, headings::rewrite, braces::rewrite, columns::rewrite];

/// A rewriting of some rows.
#[derive(Debug)]
pub(crate) struct Rewrite {
    /// The rows it stands for.
    pub(crate) rows: Range<usize>,
    /// What is shown for them, without the last line end.
    pub(crate) text: String,
}

/// Rewrites runs of the rows in `shown` where that saves tokens.
///
/// Alarming rows take no part: what they say stays in one piece.
pub(crate) fn rewrite(rows: &[Row<'_>], traits: &[Traits], shown: Range<usize>) -> Vec<Rewrite> {
    let lines: Vec<&str> = rows
        .get(shown.clone())
        .unwrap_or_default()
        .iter()
        .zip(traits.get(shown.clone()).unwrap_or_default())
        .map(|(row, it)| if is_plain(row) && !alarms(row, it) { row.text.as_ref() } else { "" })
        .collect();
    let mut found = Vec::new();
    let mut at = 0;
    // Where each rewriting is tried next: a run that was not worth it is not read again from within.
    let mut next = [0; FORMS.len()];
    while at < lines.len() {
        let rest = lines.get(at..).unwrap_or_default();
        let mut found_here = None;
        for (form, next) in FORMS.iter().zip(&mut next) {
            if *next > at {
                continue;
            }
            let Some((count, text)) = form(rest) else { continue };
            *next = at + count;
            let first = shown.start + at;
            let run = traits.get(first..first + count).unwrap_or_default();
            let before: u64 = run.iter().map(|it| it.tokens).sum();
            let after = estimate_tokens(&text) + 1;
            if after + WORTH <= before && after * 3 <= before * 2 {
                found_here = Some((count, text));
                break;
            }
        }
        at += match found_here {
            Some((count, text)) => {
                found.push(Rewrite { rows: shown.start + at..shown.start + at + count, text });
                count
            }
            None => 1,
        };
    }
    found
}

fn alarms(row: &Row<'_>, it: &Traits) -> bool {
    it.severity >= Severity::Error && !fold::is_passing(&row.text)
}

/// Whether a row is one raw line as it was printed, and none of ours.
fn is_plain(row: &Row<'_>) -> bool {
    row.kind == Kind::Text
        && !row.cut
        && !row.text.contains('\n')
        && row.raw.end - row.raw.start == 1
        && !marker::is_marker(&row.text)
}
