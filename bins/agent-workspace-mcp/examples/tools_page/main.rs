//! Prints `docs/tools.md`, made from the registry that the server answers `tools/list` from.
//!
//! `cargo xtask docs` writes it into its place; a test holds the file against what this prints.

mod page;

use std::io::Write as _;

fn main() -> std::io::Result<()> {
    std::io::stdout().lock().write_all(page::page().as_bytes())
}
