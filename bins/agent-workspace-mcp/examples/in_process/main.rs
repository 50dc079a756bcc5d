//! The tools inside an agent runtime of your own, without MCP: no client, no server, no pipe.
//!
//! `cargo run -p agent-workspace-mcp --example in_process [DIRECTORY]` plays an agent's turns in a directory, a
//! scratch one if none is named. `workshop.rs` is what an agent runtime would take over; the model is a script.

mod workshop;

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use agent_workspace_mcp::config::Config;

use self::workshop::{Workshop, play};

fn main() -> anyhow::Result<ExitCode> {
    // Before anything else: commands are confined by this program, started anew. A runtime whose `main` is not its own
    // names the server's binary in `Config::helper` instead.
    proc_sandbox::helper::dispatch();

    let scratch = tempfile::tempdir()?;
    let named = std::env::args_os().nth(1).map(PathBuf::from);
    let mut config = Config::new(named.unwrap_or_else(|| scratch.path().join("workspace")));
    if !config.workspace.exists() {
        let dir = cap_std::fs::Dir::open_ambient_dir(scratch.path(), cap_std::ambient_authority())?;
        dir.create_dir("workspace")?;
        config.audit_dir = Some(scratch.path().join("state"));
    }
    let workshop = Workshop::open(config)?;
    // The runtime of the agent; calls run on its blocking threads.
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let story = runtime.block_on(play(&workshop))?;
    std::io::stdout().lock().write_all(story.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}
