//! Fixtures, canaries and case files for the tests of this workspace. Never published.
//!
//! Three things live here because every crate's tests need them: a directory written from one string
//! ([`Fixture`]), the proof that nothing outside it moved ([`Snapshot`]), and case files read as data
//! ([`cases`]). Non-goal: anything a library would use at run time.
#![expect(
    clippy::disallowed_methods,
    clippy::missing_panics_doc,
    clippy::panic,
    reason = "fixtures are made on the real file system, and a broken fixture must stop its test"
)]

mod case;
mod fixture;
mod require;
mod snapshot;

pub use case::{Case, cases};
pub use fixture::Fixture;
pub use require::{Missing, program, require};
pub use snapshot::Snapshot;
