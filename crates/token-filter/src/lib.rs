//! Command output in, the least text that loses nothing an agent needs out.
//!
//! A command prints 60,000 lines; a language model pays for each of them in tokens and in attention.
//! [`compact`] returns the part that matters: the screen as a terminal would have left it, chatter folded,
//! everything rare or alarming shown, the rest behind markers that name the raw lines they stand for.
//!
//! ```
//! use token_filter::{Meta, Policy, Recovery, compact};
//!
//! let mut raw = String::from("starting\n");
//! for n in 0..5_000 {
//!     raw += &format!("2026-03-04T11:00:00Z INFO worker {n} alive\n");
//! }
//! raw += "2026-03-04T12:00:00Z INFO the third disk turned itself off\n";
//! let policy = Policy::default().with_recovery(Recovery::ReadOutput { output_id: "o1".into() });
//! let answer = compact(&Meta::new("cat app.log", Some(0)), raw.as_bytes(), &policy);
//! assert!(answer.text.contains("the third disk turned itself off"));
//! assert!(answer.text.contains("read_output(output_id=\"o1\", offset="));
//! assert!(answer.stats.out_tokens < 300);
//! ```
//!
//! # Guarantees
//!
//! - **Total and pure.** Any bytes give an answer; no clock, environment, file or network is used and nothing
//!   random decides, so equal arguments give equal answers.
//! - **Never worse.** The answer has at most as many tokens as the raw output, markers included, and is empty
//!   only if the raw output is empty or shows nothing.
//! - **Nothing invented.** Every line is a raw line after screen cleaning, a declared invertible rewriting
//!   of raw lines, or a bracketed marker; their order is the raw order.
//! - **Every gap is accounted for.** Shown lines and [`Compacted::omitted`] partition the raw lines, and with
//!   [`Recovery::ReadOutput`] each marker carries the call that returns exactly its lines.
//! - **Rarity first, words second.** A line unlike the others is shown whatever it says; words such as *error*
//!   come second. Rows of data are never folded, only lines that prove to be chatter; a failing command's
//!   output is folded only when it is over the budget; outputs under 300 tokens are cleaned and left alone.
//! - **Idempotent.** A compacted text passes through unchanged under the same policy.
//! - **Linear time, bounded memory** ([`Stream`]).
//!
//! # Non-goals
//!
//! Running or rewriting commands, storing output, verdicts of its own ("3 tests failed" appears only if the tool printed
//! it), summaries, and masking of secrets.
//!
//! # Threats
//!
//! The output may be written by an adversary. It can cost no more than the budget, cannot make the filter slow, and
//! cannot hide an earlier line behind escapes, since a screen's alarming states are kept. It can print a line that looks like a
//! marker; a caller that must tell them apart compares with [`Compacted::omitted`].
//!
//! # Choices
//!
//! Where measurement spoke against the first design: classes are decided line by line and not by output, so a test run
//! inside a script folds like one alone and a table beside it stays whole; snippets of repeated compiler findings share
//! one marker below them instead of one each; rewritings keep every word whole, since agents search answers for names; a
//! rare row brings its heading (the file of a diff, the folder of a listing); a number of another size makes a row rare. The real
//! tokenizer decides nothing: near equality a margin does, which tests hold against it, since no tokenizer is linear on every input.
//!
//! # Recipes
//!
//! What the form of a line does not show, a recipe can say: `Recipes` are TOML, the built-in ones like those of an
//! operator. A recipe hides no salient line, whoever wrote it; whose recipes are used at all is the caller's decision, and a
//! project's own should stay unused until its operator has trusted them.
//!
//! # Features
//!
//! - `recipes` (default): `Recipes`, the built-in ones among them. Without it lines fold only where their own form proves them chatter.
//! - `serde`: `Serialize` and `Deserialize` for the public types.
//! - `o200k`: `count_tokens`, the real tokenizer, for reports and checks.

mod compact;
#[cfg(feature = "recipes")]
mod error;
mod explain;
mod keyed;
mod mark;
mod marker;
mod meta;
mod page;
mod receipt;
#[cfg(feature = "recipes")]
mod recipes;
mod row;
mod salience;
mod shape;
mod stage;
mod stream;
mod tokens;

pub use compact::{clean_screen, compact, compact_explained};
#[cfg(feature = "recipes")]
pub use error::RecipeError;
pub use explain::{Explanation, LineFate, Taken};
pub use meta::{Meta, Policy, Recovery};
pub use receipt::{Compacted, Omission, OmissionKind, Stage, StageSaving, Stats};
#[cfg(feature = "recipes")]
pub use recipes::Recipes;
pub use stream::Stream;
#[cfg(feature = "o200k")]
pub use tokens::count_tokens;
pub use tokens::{ESTIMATE_ERROR_PERCENT, ESTIMATE_ERROR_TOKENS, estimate_tokens};

#[doc = include_str!("../README.md")]
#[cfg(doctest)]
struct ReadmeDoctests;
