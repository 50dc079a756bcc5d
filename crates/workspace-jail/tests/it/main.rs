//! Behaviour of the jail: one module a subject, the attack cases as data beside them.
//!
//! Races and killed writers are chance: `WORKSPACE_JAIL_RACE_OPERATIONS=200000 WORKSPACE_JAIL_KILLS=1000`
//! gives them more of it, and with `--nocapture` they tell what they met.

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
mod killed;
mod list;
mod model;
mod naive;
mod oracle;
mod ordinary_user;
mod paths;
mod protect;
mod race;
mod read_page;
mod rename;
mod rerun;
mod state;
mod tools;
mod without_openat2;
mod write;

use testkit::Fixture;
use workspace_jail::{Jail, Options};

/// Opens a fixture's workspace with the defaults.
fn open(fixture: &Fixture) -> Jail {
    Jail::open(&fixture.root(), Options::new()).expect("the workspace is a directory")
}
