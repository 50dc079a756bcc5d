//! The chores of this workspace: `cargo xtask ci` and the parts of it by name, `cargo xtask docs`.
//!
//! Ordinary code instead of scripts, so that a chore is read, tested and changed like the rest.

mod api;
mod ci;
mod conformance;
mod docs;
mod examples;
mod fuzz_smoke;
mod msrv;
mod package;
mod run;
mod server_json;
mod tidy;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let root = root()?;
    match words.as_slice() {
        ["ci"] => ci::run(&root),
        ["api"] => api::run(&root, tidy::LIBRARIES),
        ["tidy"] => tidy::run(&root),
        ["docs"] => docs::run(&root),
        ["examples"] => examples::run(&root),
        ["package"] => package::run(&root, tidy::LIBRARIES),
        ["msrv"] => msrv::run(&root),
        ["server-json", given @ ..] => server_json::run(&root, given),
        ["conformance"] => conformance::run(&root),
        ["fuzz-smoke"] => fuzz_smoke::run(&root, fuzz_smoke::SECONDS),
        ["fuzz-smoke", seconds] => {
            fuzz_smoke::run(&root, seconds.parse().context("seconds of each target")?)
        }
        _ => {
            bail!(
                "usage: cargo xtask ci | tidy | api | docs | examples | package | msrv | server-json | conformance | fuzz-smoke [SECONDS]"
            )
        }
    }
}

/// The workspace's top folder, from where this package was built.
fn root() -> Result<PathBuf> {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.ancestors().nth(2).map(Path::to_owned).context("xtask lies two folders below the top")
}
