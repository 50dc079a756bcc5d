//! The text as the edits so far left it, and how it came about.

use std::ops::Range;

use super::NAMED;
use super::step::{given, span};
use crate::compose::{Change, Piece};
use crate::edit::{Edit, Level, Options};
use crate::emit::Patch;
use crate::error::{EditError, ErrorKind};
use crate::hits::Hits;
use crate::locate::{exact, loosely};
use crate::outcome::Splice;
use crate::text::{View, cut};

/// A text under edit, byte-order mark included.
pub(super) struct State<'a> {
    whole: &'a str,
    original: &'a View<'a>,
    /// The text before `pending`, if that is not the original.
    text: Option<String>,
    /// What is decided and not yet done, ascending and disjoint.
    pending: Vec<Patch>,
    /// What made the original into the text, `pending` included.
    change: Change,
    /// What each edit replaced, in the original.
    touched: Vec<(usize, Range<usize>)>,
}

impl<'a> State<'a> {
    /// Begins with `whole`, of which `original` is the view.
    pub(super) fn new(whole: &'a str, original: &'a View<'a>) -> Self {
        let change = Change::default();
        Self { whole, original, text: None, pending: Vec::new(), change, touched: Vec::new() }
    }

    /// The text now.
    pub(super) fn text(&mut self) -> &str {
        let before = self.text.as_deref().unwrap_or(self.whole);
        if !self.pending.is_empty() {
            let added: usize = self.pending.iter().map(|patch| patch.text.len()).sum();
            let removed: usize = self.pending.iter().map(|patch| patch.range.len()).sum();
            let mut next = String::with_capacity(before.len() - removed + added);
            let mut at = 0;
            for patch in &self.pending {
                next.push_str(cut(before, at..patch.range.start));
                next.push_str(&patch.text);
                at = patch.range.end;
            }
            next.push_str(cut(before, at..before.len()));
            self.text = Some(next);
            self.pending.clear();
        }
        self.text.as_deref().unwrap_or(self.whole)
    }

    /// Looks at the text as it is now.
    pub(super) fn look<T>(&mut self, look: impl FnOnce(&View<'_>) -> T) -> T {
        let original = self.original;
        let is_original = self.text.is_none() && self.pending.is_empty();
        if is_original { look(original) } else { look(&View::new(self.text())) }
    }

    /// Replaces ascending disjoint ranges of the text that was looked at, each by the edit of that index.
    pub(super) fn apply(&mut self, patches: impl IntoIterator<Item = (usize, Patch)>) {
        let mut lengths = Vec::new();
        for (index, patch) in patches {
            self.touched.push((index, self.change.original_range(&patch.range)));
            lengths.push((patch.range.clone(), patch.text.len()));
            self.pending.push(patch);
        }
        self.change.then(&lengths);
    }

    /// The change so far, and the text of each piece of it.
    pub(super) fn splices(&mut self) -> (Vec<Piece>, Vec<Splice>) {
        let pieces = std::mem::take(&mut self.change.pieces);
        let mut patches = self.pending.iter().peekable();
        let only_pending = self.text.is_none();
        let splices = pieces.iter().map(|piece| {
            let text = if only_pending {
                let mut text = String::with_capacity(piece.new.len());
                while let Some(patch) = patches.next_if(|patch| patch.range.end <= piece.old.end) {
                    text.push_str(&patch.text);
                }
                text
            } else {
                String::new()
            };
            Splice { range: piece.old.clone(), text }
        });
        let mut splices: Vec<Splice> = splices.collect();
        if !only_pending {
            let text = self.text();
            for (splice, piece) in splices.iter_mut().zip(&pieces) {
                cut(text, piece.new.clone()).clone_into(&mut splice.text);
            }
        }
        (pieces, splices)
    }

    /// The text at the end.
    pub(super) fn into_text(mut self) -> String {
        self.text();
        self.text.unwrap_or_else(|| self.whole.to_owned())
    }

    /// A text that was not found, but was in the original where an earlier edit replaced it.
    pub(super) fn meets_earlier(
        &self,
        error: EditError,
        edit: &Edit,
        options: &Options,
    ) -> EditError {
        if error.kind != ErrorKind::NotFound || self.touched.is_empty() {
            return error;
        }
        let view = self.original;
        let (search, _) = given(view, edit);
        let mut hits = exact(view, &search, Hits::new(NAMED, None));
        if hits.count == 0 {
            let options =
                options.clone().max_level(Level::Trim.min(options.max_level)).min_similarity(None);
            match loosely(view, &search, "", &options, &Hits::new(NAMED, None)) {
                Some(found) => hits = found.hits,
                None => return error,
            }
        }
        for place in &hits.places {
            let range = view.raw_range(&place.range);
            let met = self
                .touched
                .iter()
                .find(|(_, touched)| range.start < touched.end && touched.start < range.end);
            if let Some((earlier, _)) = met {
                let mut overlap = EditError::new(ErrorKind::Overlap, error.edit_index);
                overlap.detail.overlaps_edit = Some(*earlier);
                overlap.detail.candidates = vec![span(view, place)];
                return overlap;
            }
        }
        error
    }
}
