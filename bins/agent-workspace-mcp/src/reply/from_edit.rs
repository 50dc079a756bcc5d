//! Refusals of the edit engine, with the facts that programs check.

use fuzzy_edit::{EditError, ErrorKind as EditKind};

use super::{ErrorKind, Facts, Failure};

impl From<EditError> for Failure {
    fn from(error: EditError) -> Self {
        let kind = match error.kind {
            EditKind::InvalidEdit => ErrorKind::InvalidEdit,
            EditKind::EmptySearch => ErrorKind::EmptySearch,
            EditKind::NotFound => ErrorKind::NoMatch,
            EditKind::Ambiguous => ErrorKind::Ambiguous,
            EditKind::CountMismatch => ErrorKind::CountMismatch,
            EditKind::Overlap => ErrorKind::Overlap,
            EditKind::Elided => ErrorKind::Elided,
            EditKind::SyntaxInvalid => ErrorKind::SyntaxInvalid,
            EditKind::NotUtf8 => ErrorKind::NotUtf8,
            EditKind::TooLarge => ErrorKind::TooLarge,
            _ => ErrorKind::Internal,
        };
        let detail = &*error.detail;
        let text = match error.edit_index {
            Some(index) => format!("Edit {index}: {error}\nNothing was written."),
            None => format!("{error}\nNothing was written."),
        };
        let mut facts = Facts::default().with_some("edit_index", error.edit_index);
        if matches!(kind, ErrorKind::Ambiguous | ErrorKind::CountMismatch) {
            let lines: Vec<_> = detail.candidates.iter().map(|span| span.first).collect();
            facts = facts.with("count", detail.count).with("lines", lines);
        }
        if let Some(issue) = &detail.syntax {
            facts = facts.with("line", issue.line).with("column", issue.column);
        }
        if kind == ErrorKind::NoMatch {
            // Null says "none is near enough", which is a fact too.
            facts =
                facts.with("closest_line", detail.closest.as_ref().map(|near| near.lines.first));
        }
        let first_diff = detail.closest.as_ref().and_then(|near| near.first_diff.as_ref());
        facts = facts
            .with_some("first_diff_line", first_diff.map(|diff| diff.line))
            .with_some("hint", detail.hints.first().map(|hint| hint.name()))
            .with_some("overlaps_edit", detail.overlaps_edit);
        Self::new(kind, text).facts(facts)
    }
}
