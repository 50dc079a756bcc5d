//! `cargo xtask api`: what each library shows to the world, as `api.txt` beside its manifest.
//!
//! The listing is read from the source: what `lib.rs` makes public, with the methods and the traits of it, printed as
//! Rust without bodies. A change of it is a change that others see, so tidy fails while a file differs from the
//! source. Non-goals: blanket and automatic implementations, and what a macro would write; the libraries define none.
//! rustdoc's JSON would know these, on a nightly compiler alone.
#![expect(clippy::disallowed_methods, reason = "chores read the source tree itself")]

mod shown;
mod source;

use std::path::Path;

use anyhow::{Context as _, Result};

use self::source::Library;
use crate::run::say;

/// The file's name, in the folder of each library.
const FILE: &str = "api.txt";

/// Writes every listing.
pub(crate) fn run(root: &Path, libraries: &[&str]) -> Result<()> {
    for library in libraries {
        let folder = root.join("crates").join(library);
        std::fs::write(folder.join(FILE), listing(&folder)?)
            .with_context(|| library.to_string())?;
        say(&format!("api: crates/{library}/{FILE} is written"));
    }
    Ok(())
}

/// Names the libraries whose listing is not that of their source.
pub(crate) fn check(root: &Path, libraries: &[&str], faults: &mut Vec<String>) -> Result<()> {
    for library in libraries {
        let folder = root.join("crates").join(library);
        let written = std::fs::read_to_string(folder.join(FILE)).unwrap_or_default();
        if written != listing(&folder)? {
            faults.push(format!("crates/{library}/{FILE}: old or missing: run cargo xtask api"));
        }
    }
    Ok(())
}

fn listing(folder: &Path) -> Result<String> {
    let library = Library::read(&folder.join("src"))?;
    shown::text(&library).with_context(|| folder.display().to_string())
}
