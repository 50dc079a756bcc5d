//! The behaviour of containers, against a real engine.
//!
//! `AGENT_WORKSPACE_TEST_ENGINE` names its socket (`unix:///path`) and `AGENT_WORKSPACE_TEST_IMAGE` an image
//! it holds; `eval "$(.ci/engine)"` makes both. Without them the tests that need them skip, saying so.
#![expect(clippy::panic, clippy::unwrap_used, reason = "a broken harness must stop its test")]

mod engine;
mod exec;
mod harness;
mod isolation;
mod processes;
mod pull;
mod share;
mod sweep;
