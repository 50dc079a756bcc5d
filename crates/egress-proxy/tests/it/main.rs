//! The proxy from outside.
#![expect(clippy::unwrap_used, reason = "tests end where something is not as it should be")]

mod bounds;
mod proxy;
