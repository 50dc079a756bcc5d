//! What several benches share; each bench is a file of its own. Run them with `cargo bench -p benches`.
//!
//! Each measures a baseline beside the work itself, so that the figure to read is the ratio within one run.
#![expect(
    clippy::disallowed_methods,
    reason = "a bench starts the programs it measures, and writes into pages of the repository"
)]

pub mod figures;
pub mod session;
