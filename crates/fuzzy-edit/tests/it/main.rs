//! Behaviour of `fuzzy_edit`, seen from outside.
#![expect(
    clippy::string_slice,
    clippy::unwrap_used,
    clippy::panic,
    clippy::option_option,
    clippy::format_collect,
    reason = "a fixture that is not as it should be must stop its test; fixtures are built as they read best"
)]

mod cases;
mod hostile;
mod invariants;
mod levels;
mod messages;
mod oracle;
mod patch;
mod scopes;
mod support;
mod syntax;
