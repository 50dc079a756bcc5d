//! This directory and nothing else.
//!
//! A [`Jail`] holds a directory by descriptor and lends verbs on the files below it to callers whose
//! paths are not trusted. Inside and outside are never decided by comparing text.
//!
//! ```
//! use workspace_jail::{Error, FindOptions, Jail, Options};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let root = tempfile::tempdir()?;
//! let jail = Jail::open(root.path(), Options::new())?;
//! jail.create("src/main.rs", b"fn main() {}\n")?;
//!
//! // An edit: the write is refused if the file is no longer the one that was read.
//! let before = jail.read_text("src/main.rs", 1024 * 1024)?;
//! let after = before.text.replace("{}", "{ run() }");
//! jail.replace("src/main.rs", after.as_bytes(), Some(before.sha256))?;
//! let stale = jail.replace("src/main.rs", b"", Some(before.sha256));
//! assert!(matches!(stale, Err(Error::Stale { .. })));
//!
//! let found = jail.find("*.rs", &[], FindOptions::default())?;
//! assert_eq!(found.paths, ["src/main.rs".as_ref() as &std::path::Path]);
//!
//! let outside = jail.read("../secret", 1024);
//! assert!(matches!(outside, Err(Error::OutsideWorkspace { .. })));
//! # Ok(())
//! # }
//! ```
//!
//! # Paths
//!
//! Relative to the root, or absolute with the root's own path or an alias ([`Options::aliases`]) as
//! leading components. Nothing is expanded or decoded: `~`, `$HOME`, `%2e` and `file:` are names. `..` is
//! resolved after links, as the kernel does. Relative links that stay inside are followed, and a write
//! replaces their target. A step above the root, even one that comes back, and every absolute link are
//! [`Error::OutsideWorkspace`], the same for targets that exist and targets that do not.
//!
//! # Guarantees
//!
//! - Nothing outside the root is read, written, listed or tested for existence, whatever the path, the
//!   links below the root, and the renames made meanwhile: each system call takes one plain name on a
//!   descriptor that was reached the same way, and follows no link (`at.rs`).
//! - Only regular files are read or replaced. Nothing else is opened, but for what takes the place of a
//!   regular file between the look and the opening: that does not block, and is closed unread.
//! - A write is whole or not made. A refusal leaves nothing, no directory and no temporary file either;
//!   what a killed process leaves is removed when the jail is opened next.
//! - Errors name the path as the caller wrote it, and nothing else.
//! - Memory is bounded by what is returned (and for a search by the longest line), descriptors by a
//!   constant.
//!
//! # Non-goals
//!
//! - Confining processes: a command that runs with the caller's rights is not held by this crate.
//! - Quotas, watching, directories as objects of [`Jail::rename`] and [`Jail::remove`].
//! - Systems other than Linux.
//!
//! # Threats
//!
//! The caller of a verb chooses its path, pattern and content. Somebody else may change the tree at the
//! same time: plant links, swap directories for links, make FIFOs, guess temporary names. Both are held.
//! Not held: somebody who moves a directory out of the root *while a verb works in it* (it works on in
//! the directory it holds), and hard links made from outside before (see [`Hardlinks`]).
//!
//! # Two walls
//!
//! Every directory is held as a capability of `cap-std`, which refuses to open what lies outside of it
//! (`openat2(RESOLVE_BENEATH)` where the kernel has it, its own walk elsewhere). On top of that the
//! crate goes one name at a time and follows links itself: a single call would not tell what the path
//! is after links, which [`Protect`] must know, and would open by path again for the rename of an
//! atomic write. The tests compare each answer with `cap-std`'s own for the whole path, and run with and
//! without `openat2`.
//!
//! # Features
//!
//! `serde`: `Serialize` and `Deserialize` for options, requests and [`Sha256`]. Off by default.

mod at;
mod attributes;
mod error;
mod escaped;
mod exposed;
mod find;
mod glob;
mod grep;
mod jail;
mod line_index;
mod list;
mod noise;
mod page;
mod path;
mod placeholder;
mod protect;
mod read;
mod rename;
mod replace;
mod resolve;
mod sha256;
mod similar;
mod smallest;
mod sweep;
mod target;
mod temp;
mod text;
mod trail;
mod walk;

pub use error::{Error, Result};
pub use escaped::Escaped;
pub use find::{FindOptions, Found};
pub use grep::{FileMatches, GrepLine, GrepOptions, Grepped};
pub use jail::{Hardlinks, Jail, Options};
pub use list::{Entry, EntryKind, Listing};
pub use noise::NOISE;
pub use page::{Page, PageRequest};
pub use protect::Protect;
pub use read::{Snapshot, TextSnapshot};
pub use replace::Written;
pub use sha256::{ParseSha256Error, Sha256};
pub use target::Intent;

#[doc = include_str!("../README.md")]
#[cfg(doctest)]
struct ReadmeDoctests;
