//! What the caller asks for: edits, options and limits.
//!
//! Plain data. Nothing here looks at a file; [`crate::plan`] does.

/// One replacement: find `search`, put `replace` in its place.
///
/// Line endings are not part of either text: `\r\n` and `\n` are the same, and the file keeps its own.
///
/// ```
/// use fuzzy_edit::Edit;
///
/// let edit = Edit::new("port = 80", "port = 8080").at_line(12);
/// assert_eq!(edit.at_line, Some(12));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Edit {
    /// The text to find; never empty. On the wire also called `old`.
    #[cfg_attr(feature = "serde", serde(alias = "old"))]
    pub search: String,
    /// The text to put there, inserted literally: no `$1`, no escapes. On the wire also called `new`.
    #[cfg_attr(feature = "serde", serde(alias = "new"))]
    pub replace: String,
    /// Replaces every place instead of asking for a unique one.
    #[cfg_attr(feature = "serde", serde(default))]
    pub replace_all: bool,
    /// Replaces every place, if there are exactly this many; at least 1.
    #[cfg_attr(feature = "serde", serde(default))]
    pub expected_count: Option<usize>,
    /// The 1-based first line of the wanted place, to choose among several; at least 1.
    #[cfg_attr(feature = "serde", serde(default))]
    pub at_line: Option<usize>,
}

impl Edit {
    /// Makes an edit of one unique place.
    pub fn new(search: impl Into<String>, replace: impl Into<String>) -> Self {
        Self { search: search.into(), replace: replace.into(), ..Self::default() }
    }

    /// Replaces every place.
    #[must_use]
    pub fn replace_all(mut self) -> Self {
        self.replace_all = true;
        self
    }

    /// Replaces every place, provided there are `count` of them.
    #[must_use]
    pub fn expected_count(mut self, count: usize) -> Self {
        self.expected_count = Some(count);
        self
    }

    /// Chooses the place that starts on this 1-based line.
    #[must_use]
    pub fn at_line(mut self, line: usize) -> Self {
        self.at_line = Some(line);
        self
    }
}

/// How far a match may be from the text that was given, strictest first.
///
/// The first level with a hit decides; looser ones are then never used, not even to break a tie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Level {
    /// The text itself, anywhere, line endings aside.
    Exact,
    /// Whole lines, blanks at their ends ignored.
    TrailingWs,
    /// Whole lines, with an indentation that differs in one consistent way.
    Indent,
    /// Whole lines, blanks at both ends ignored.
    Trim,
    /// Typographic quotes, dashes, blanks, invisible characters and canonical equivalence ignored.
    Unicode,
    /// Whole lines, each run of blanks equal to any other.
    InnerWs,
    /// Whole lines, the number of blank lines between them ignored.
    BlankLines,
    /// Line numbers copied from a listing, if they agree with the place.
    LineNumbers,
    /// Context lines may have drifted; only with [`Options::min_similarity`].
    Similar,
}

impl Level {
    /// The level's name on the wire, in snake case.
    pub fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::TrailingWs => "trailing_ws",
            Self::Indent => "indent",
            Self::Trim => "trim",
            Self::Unicode => "unicode",
            Self::InnerWs => "inner_ws",
            Self::BlankLines => "blank_lines",
            Self::LineNumbers => "line_numbers",
            Self::Similar => "similar",
        }
    }

    /// How sure a match of this level is, 0 to 1; for reports, never a gate.
    pub(crate) fn confidence(self) -> f32 {
        match self {
            Self::Exact => 1.0,
            Self::TrailingWs => 0.99,
            Self::Indent => 0.97,
            Self::Unicode | Self::LineNumbers => 0.95,
            Self::BlankLines => 0.93,
            Self::InnerWs => 0.92,
            Self::Trim => 0.9,
            Self::Similar => 0.0,
        }
    }
}

/// Whether the new text must parse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Validate {
    /// By the last extension of the path, where there is a parser for it.
    #[default]
    Auto,
    /// Never.
    Off,
}

/// Choices of the caller; [`Options::default`] is what an agent's tool wants.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Options {
    /// The loosest level that may be used; [`Level::LineNumbers`] by default.
    pub max_level: Level,
    /// Turns [`Level::Similar`] on for blocks at least this alike, 0 to 1; off by default.
    pub min_similarity: Option<f32>,
    /// Whether the new text must parse.
    pub validate: Validate,
    /// Lines of context in the diff; 3 by default.
    pub context: usize,
    /// Whether [`crate::Plan::text`] is filled in; on by default. For a large file and an edit or two,
    /// putting the text together is most of the work: a caller that writes with [`crate::Plan::chunks`]
    /// turns it off.
    pub keep_text: bool,
    /// Upper bounds of time and memory.
    pub limits: Limits,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            max_level: Level::LineNumbers,
            min_similarity: None,
            validate: Validate::Auto,
            context: 3,
            keep_text: true,
            limits: Limits::default(),
        }
    }
}

impl Options {
    /// Turns validation on or off.
    #[must_use]
    pub fn validate(mut self, validate: Validate) -> Self {
        self.validate = validate;
        self
    }

    /// Sets the similarity from which [`Level::Similar`] may be used.
    #[must_use]
    pub fn min_similarity(mut self, similarity: Option<f32>) -> Self {
        self.min_similarity = similarity;
        self
    }

    /// Sets the loosest level that may be used.
    #[must_use]
    pub fn max_level(mut self, level: Level) -> Self {
        self.max_level = level;
        self
    }

    /// Sets whether the plan has the new text in one piece.
    #[must_use]
    pub fn keep_text(mut self, keep: bool) -> Self {
        self.keep_text = keep;
        self
    }

    /// Sets the upper bounds.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }
}

/// Upper bounds; beyond them [`crate::ErrorKind::TooLarge`], except for `validated_bytes`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Bytes of the file before and after any edit; 64 MiB by default.
    pub file_bytes: usize,
    /// Places one edit may replace; 1,000,000 by default.
    pub places: usize,
    /// Bytes up to which a text is parsed; larger ones are not validated. 8 MiB by default.
    pub validated_bytes: usize,
    /// Bytes of the diff; a longer one ends with a line that says so. 1 MiB by default.
    pub diff_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            file_bytes: 64 << 20,
            places: 1_000_000,
            validated_bytes: 8 << 20,
            diff_bytes: 1 << 20,
        }
    }
}

impl Limits {
    /// Sets the bound of the file's size.
    #[must_use]
    pub fn file_bytes(mut self, bytes: usize) -> Self {
        self.file_bytes = bytes;
        self
    }

    /// Sets the bound of the places one edit may replace.
    #[must_use]
    pub fn places(mut self, places: usize) -> Self {
        self.places = places;
        self
    }

    /// Sets the size up to which a text is parsed.
    #[must_use]
    pub fn validated_bytes(mut self, bytes: usize) -> Self {
        self.validated_bytes = bytes;
        self
    }

    /// Sets the bound of the diff's size.
    #[must_use]
    pub fn diff_bytes(mut self, bytes: usize) -> Self {
        self.diff_bytes = bytes;
        self
    }
}
