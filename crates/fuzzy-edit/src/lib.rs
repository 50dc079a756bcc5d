//! Search-and-replace edits that land where they were meant, or say exactly why not.
//!
//! An editor driven by a language model gets a piece of text and its replacement. The text is often nearly
//! that of the file: another indentation, blanks at line ends, straight quotes for curly ones. Refusing all
//! of that costs a round trip each time; guessing edits the wrong place. This crate looks for the text
//! through a cascade of [levels](Level), counts every place at the strictest level that has one, refuses to
//! choose between two, and writes the replacement in the file's own indentation, spelling and line endings.
//! The outcome is a [`Plan`] with the new bytes and a diff, or an [`EditError`] with the nearest lines.
//!
//! ```
//! use fuzzy_edit::{Edit, Options, plan};
//! use std::path::Path;
//!
//! let file = b"class A:\r\n    def f(self):\r\n        return 1\r\n";
//! let edit = Edit::new("def f(self):\n  return 1", "def f(self):\n  x = 1\n  return x");
//! let plan = plan(file, Path::new("a.py"), &[edit], &Options::default())?;
//! assert_eq!(
//!     plan.text,
//!     b"class A:\r\n    def f(self):\r\n        x = 1\r\n        return x\r\n"
//! );
//! # Ok::<(), fuzzy_edit::EditError>(())
//! ```
//!
//! # The levels
//!
//! Each example finds its text at the level named, because no stricter one does.
//!
//! ```
//! use fuzzy_edit::{Edit, Level, Options, plan};
//! use std::path::Path;
//!
//! #[track_caller]
//! fn check(level: Level, file: &str, old: &str, new: &str, after: &str) {
//!     let options = Options::default().min_similarity(Some(0.85));
//!     let plan = plan(file.as_bytes(), Path::new("a.txt"), &[Edit::new(old, new)], &options).unwrap();
//!     assert_eq!((plan.applied[0].level, plan.text.as_slice()), (level, after.as_bytes()));
//! }
//!
//! // The text itself, anywhere; the replacement is inserted as it is.
//! check(Level::Exact, "a = f(x)\n", "f(x)", "g(x)", "a = g(x)\n");
//! // Blanks at line ends do not count. Lines that the edit keeps are the file's, blanks included.
//! check(Level::TrailingWs, "a  \nb\n", "a\nb \n", "a\nc\n", "a  \nc\n");
//! // One consistent difference in indentation: a shift, or another unit.
//! check(Level::Indent, "if x:\n\ta()\n", "    a()\n", "    b()\n", "if x:\n\tb()\n");
//! // Any difference in indentation; a changed line stands where the one it replaces stood.
//! check(Level::Trim, "  a\nb\n    c\n", "a\nb\nc", "a\nb\nd", "  a\nb\n    d\n");
//! // Typographic quotes, dashes and blanks, invisible characters, composed and decomposed letters.
//! check(Level::Unicode, "say “go” — now\n", "\"go\" - now", "\"go\" - later", "say “go” — later\n");
//! // Runs of blanks inside a line; the alignment around the change stays.
//! check(Level::InnerWs, "x    = 1  # keep\n", "x = 1 # keep", "x = 2 # keep", "x    = 2  # keep\n");
//! // The number of blank lines in a block.
//! check(Level::BlankLines, "a\n\nb\n", "a\nb", "a\nc", "a\n\nc\n");
//! // Numbers copied from a listing, if they are the numbers of these lines.
//! check(Level::LineNumbers, "a\nb\n", "2 | b", "2 | c", "a\nc\n");
//! // Opt-in: what the edit changes is there, lines it leaves alone have drifted and stay the file's.
//! check(Level::Similar, "begin\nx = 1\nz = 3\nend\n", "begin\nx = 1\nz = 33\nend", "begin\nx = 2\nz = 33\nend", "begin\nx = 2\nz = 3\nend\n");
//! ```
//!
//! # Guarantees
//!
//! - All edits or none: an error leaves nothing to write. Edits apply in order, each to the text before it.
//! - Every byte outside the matches stays: line endings (also mixed ones), byte-order mark, a missing last
//!   newline. Lines of the match that the edit keeps stay as well.
//! - Two places are never narrowed to one by a guess. Overlapping places are two. The refusal says in what
//!   each one stands, such as `class A > def m`, `jobs.build.steps[2].run` or `[package] name`: [`Detail::scopes`].
//! - A placeholder such as `// ... existing code ...` is refused, not interpreted.
//! - An edit that makes a valid file invalid, or an invalid one worse, is refused. The verdict is that of
//!   the language's real parser.
//! - [`Plan::diff`] turns the original into the new text with `patch`, unless [`Plan::diff_truncated`].
//! - No panic on any bytes. Time grows linearly with file and edit; memory is bounded by [`Limits`].
//!
//! # Speed
//!
//! An edit reads the file about as often as it takes to check that it is UTF-8 and to look for the text; the
//! fuzzy levels look for the longest line of the text first and compare lines only around it. What is left
//! for a large file is the memory of the new text: [`Options::keep_text`] and [`Plan::chunks`] do without.
//!
//! ```
//! use fuzzy_edit::{Edit, Options, plan};
//! use std::path::Path;
//!
//! let file = "some line\n".repeat(100_000) + "the last one\n";
//! let options = Options::default().keep_text(false);
//! let edits = [Edit::new("the last one", "another")];
//! let plan = plan(file.as_bytes(), Path::new("big.log"), &edits, &options)?;
//! let mut out = Vec::new();
//! for chunk in plan.chunks(file.as_bytes()) {
//!     std::io::Write::write_all(&mut out, chunk).unwrap();
//! }
//! assert_eq!(out, file.replace("the last one", "another").into_bytes());
//! # Ok::<(), fuzzy_edit::EditError>(())
//! ```
//!
//! From eight edits in one call on, those that are found exactly and touch no line twice are searched for in
//! one pass: 500 of them cost a few milliseconds in a file of 1 MB, and what they cost grows with the file
//! plus the edits, not their product. Others see the text one at a time, like any single edit.
//!
//! # Non-goals
//!
//! No I/O: reading, locking and atomic writing are the caller's, and so is a preview, which is a plan that
//! is not written. No regular expressions, no case folding, no repair of escapes or of syntax, no merge of
//! three versions beyond [`Level::Similar`].
//!
//! # Threats
//!
//! File, edits and path may all be hostile. `path` is only read as a name. Parsers are the risk: they run
//! on a thread with a large stack, behind bounds of size and depth, and one that panics is no verdict.
//! [tree-sitter-yaml aborts the process](https://github.com/tree-sitter-grammars/tree-sitter-yaml) on blocks
//! nested 254 deep, and the scanner of
//! [tree-sitter-python](https://github.com/tree-sitter/tree-sitter-python) writes beyond its buffer at some 500
//! levels of indentation, so neither sees a text with such a line.
//!
//! # Features
//!
//! - `python`, `json`, `toml`, `yaml` (default): the parser that gives the verdict and the tree-sitter grammar
//!   that names scopes. Without one, files of that language are edited with the warning
//!   [`Warning::NotValidated`], and places are told by line alone.
//! - `serde`: `Serialize` and `Deserialize` for the public types.

mod compose;
mod diff;
mod edit;
mod elide;
mod emit;
mod error;
mod fold;
mod hits;
mod indent;
mod line_diff;
mod locate;
mod nearest;
mod outcome;
mod plan;
mod syntax;
mod text;

pub use edit::{Edit, Level, Limits, Options, Validate};
pub use error::{Closest, Detail, EditError, ErrorKind, Hint, LineDiff};
pub use outcome::{Applied, LineSpan, Plan, Splice, Stats, Warning};
pub use plan::plan;
pub use syntax::{Language, SyntaxIssue, Unchecked, Verdict, validate};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeDoctests;
