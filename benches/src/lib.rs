//! Nothing: this package exists for its benches, one file for each crate. Run them with `cargo bench -p benches`.
//!
//! Each file measures a baseline beside the work itself, so that the figure to read is the ratio within one run.
