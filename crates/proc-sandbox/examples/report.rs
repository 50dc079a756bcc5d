//! Says what this machine can keep from commands, layer by layer: `cargo run --example report`.

use std::fs::File;
use std::io::{self, Write as _};

use proc_sandbox::{Policy, Sandbox};

#[expect(clippy::disallowed_methods, reason = "the workspace is opened once, by whoever names it")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Before anything else: this may be the helper.
    proc_sandbox::helper::dispatch();

    let sandbox = Sandbox::new(Policy::new(File::open(".")?.into()))?;
    let report = sandbox.probe();
    let mut out = io::stdout().lock();
    writeln!(out, "{}", report.rung)?;
    for layer in report.layers {
        writeln!(out, "{:<22} {:?}: {}", layer.name, layer.state, layer.detail)?;
    }
    Ok(())
}
