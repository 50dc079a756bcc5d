//! What a recipe says of a row.

/// The class that a recipe gives a row, with the number of the form that matched it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(not(feature = "recipes"), expect(dead_code, reason = "recipes alone make marks"))]
pub(crate) enum Mark {
    /// No recipe has a say.
    #[default]
    None,
    /// Shown before others if not all can be.
    Summary(u16),
    /// Never folded, and shown before unmarked rows.
    Keep(u16),
    /// One more row of its form.
    Group(u16),
    /// Not worth showing.
    Drop(u16),
}

impl Mark {
    /// Whether the row must not be folded.
    pub(crate) fn is_kept(self) -> bool {
        matches!(self, Self::Summary(_) | Self::Keep(_))
    }
}
