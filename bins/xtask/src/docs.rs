//! `cargo xtask docs`: writes the pages that are made from the code.
//!
//! Today that is `docs/tools.md`, printed by the server's example `tools_page` from the registry of tools. A test of
//! the server fails while the file differs from what the example prints.
#![expect(clippy::disallowed_methods, reason = "chores write into the source tree itself")]

use std::path::Path;

use anyhow::{Context as _, Result};

use crate::run::{printed, say};

const PAGE: &str = "docs/tools.md";
const PRINTS_IT: &str =
    "cargo run --quiet --locked --package agent-workspace-mcp --example tools_page";

pub(crate) fn run(root: &Path) -> Result<()> {
    let page = printed(root, PRINTS_IT)?;
    std::fs::write(root.join(PAGE), page).context(PAGE)?;
    say(&format!("docs: {PAGE} is written"));
    Ok(())
}
