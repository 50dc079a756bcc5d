//! Behaviour of the jail: one module a subject, the attack cases as data beside them.

#![expect(
    clippy::disallowed_methods,
    clippy::panic,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "tests look at the real file system from outside the jail, and stop at what they do not expect"
)]

mod cases;
mod find;
mod gitignore;
mod grep;
mod list;
mod model;
mod oracle;
mod paths;
mod protect;
mod race;
mod read_page;
mod rename;
mod tools;
mod write;

use testkit::Fixture;
use workspace_jail::{Jail, Options};

/// Opens a fixture's workspace with the defaults.
fn open(fixture: &Fixture) -> Jail {
    Jail::open(&fixture.root(), Options::new()).expect("the workspace is a directory")
}
