//! A server of this workspace, started on a free port for one run of the suite and ended after it.
#![expect(clippy::disallowed_methods, reason = "chores start the programs under test")]

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;

use anyhow::{Context as _, Result, bail};

use super::forwarder;

/// The binary that is shipped, below the build's folder.
pub(crate) const BINARY: &str = "agent-workspace-mcp";
/// The fixture.
pub(crate) const FIXTURE: &str = "examples/conformance_fixture";

const KEY: &str = "a-key-for-one-run";

/// A running server with a forwarder before it; ended when dropped.
pub(crate) struct Started {
    child: Child,
    url: String,
    _base: tempfile::TempDir,
}

impl Started {
    /// Starts `program` on a new workspace and waits until it listens.
    pub(crate) fn new(root: &Path, program: &str) -> Result<Self> {
        let built =
            std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), Into::into);
        let base = tempfile::tempdir()?;
        let workspace = base.path().join("workspace");
        std::fs::create_dir(&workspace)?;
        let program = built.join("debug").join(program);
        let mut child = Command::new(&program)
            .args(["serve", "--http", "127.0.0.1:0", "--workspace"])
            .arg(&workspace)
            // What an operator says whose clients come through a proxy: the origins name the forwarder's port.
            .env("ALLOWED_HOSTS", "localhost,127.0.0.1")
            .env("AUDIT_DIR", base.path().join("state"))
            .env("MCP_API_KEY", KEY)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        let mut log = BufReader::new(child.stderr.take().context("no stderr")?);
        let mut said = String::new();
        let address: SocketAddr = loop {
            let mut line = String::new();
            if log.read_line(&mut line)? == 0 {
                drop(child.wait());
                bail!("{} ended before it listened:\n{said}", program.display());
            }
            let address =
                line.split("address=http://").nth(1).and_then(|rest| rest.split('/').next());
            if let Some(address) = address {
                break address.parse().with_context(|| line.clone())?;
            }
            said.push_str(&line);
        };
        // A full pipe would hold the server up.
        thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
        let forwarder = forwarder::start(address, KEY)?;
        let url = format!("http://localhost:{}/mcp", forwarder.port());
        Ok(Self { child, url, _base: base })
    }

    /// Where the suite reaches it.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        // It has no state worth an orderly end; one that ended by itself is seen by the suite's misses.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
