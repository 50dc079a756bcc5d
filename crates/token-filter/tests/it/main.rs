//! Behaviour of the filter, seen from outside.
#![expect(
    clippy::disallowed_methods,
    clippy::panic,
    clippy::unwrap_used,
    reason = "the corpus is read from the file system, and a broken one must stop its test"
)]

mod case;
mod compact;
mod corpus;
mod expand;
mod explain;
mod invariants;
mod metamorphic;
#[cfg(feature = "recipes")]
mod recipes;
mod stream;
mod tokens;
