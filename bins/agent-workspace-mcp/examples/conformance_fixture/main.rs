//! A server with the tools, resources and prompts that the protocol's conformance suite asks for by name, behind this
//! project's own gate: what the suite measures is the HTTP stack that the product ships.
//!
//! `cargo xtask conformance` runs it. Listens on a free port of 127.0.0.1 and says which; `MCP_API_KEY` is its key.
//! Names and expected contents are those of <https://github.com/modelcontextprotocol/conformance>.
//! Non-goal: to be of use to anybody else.

mod asking;
mod prompts;
mod resources;
mod server;
mod tools;

use std::time::Duration;

use agent_workspace_mcp::http::{Gate, Key, Names, PATH, serve};
use anyhow::Context as _;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use self::server::Fixture;

/// No tool of the fixture takes longer.
const LONGEST: Duration = Duration::from_secs(30);

fn main() -> anyhow::Result<()> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_ansi(false).init();
    let key = std::env::var("MCP_API_KEY").context("MCP_API_KEY")?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let bound = listener.local_addr()?;
        // The suite comes through a forwarder, and names the forwarder's port in its origin.
        let names = Names::new(bound, &["127.0.0.1".to_owned(), "localhost".to_owned()]);
        let fixture = Fixture::default();
        let gate =
            Gate::new(names, LONGEST).admit("suite", Key::new(&key), move || fixture.session());
        tracing::info!(address = %format_args!("http://{bound}{PATH}"), "listening");
        serve(listener, gate, CancellationToken::new()).await;
        Ok(())
    })
}
