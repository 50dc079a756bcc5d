//! Replaces a piece of text in a file: the diff, or why not: `edit FILE OLD NEW`. Writes nothing.
//!
//! `cargo run -p fuzzy-edit --example edit -- src/main.rs 'fn main()' 'pub fn main()' | patch -p1`
#![expect(clippy::disallowed_methods, reason = "an example reads the file that its user names")]

use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;

use fuzzy_edit::{Edit, Options, plan};

fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [file, old, new] = arguments.as_slice() else { return Err("edit FILE OLD NEW".into()) };
    let path = Path::new(file);
    match plan(&std::fs::read(path)?, path, &[Edit::new(old, new)], &Options::default()) {
        Ok(done) => {
            io::stdout().write_all(done.diff.as_bytes())?;
            for warning in &done.warnings {
                writeln!(io::stderr(), "{warning}")?;
            }
            Ok(ExitCode::SUCCESS)
        }
        // What a model has to read to do better: the places, or the nearest text.
        Err(refusal) => {
            writeln!(io::stderr(), "{refusal}")?;
            Ok(ExitCode::FAILURE)
        }
    }
}
