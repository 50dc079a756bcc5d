//! `serve`: the server on stdio, until its input ends or it is told to stop.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Args;
use rmcp::ServiceExt as _;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::{log_to_stderr, runtime};
use crate::config::Config;
use crate::server::Server;
use crate::transport::Lines;
use crate::workspace::Workspace;

/// How long a call may take to end after its command was told to.
const ENDING: Duration = Duration::from_secs(2);

#[derive(Debug, Clone, Args)]
pub(super) struct Options {
    /// Not in this version: streamable HTTP
    #[arg(long, value_name = "HOST:PORT", hide = true)]
    http: Option<String>,
    /// stdio; anything else is not in this version
    #[arg(long, env = "MCP_TRANSPORT", value_name = "NAME", hide = true)]
    transport: Option<String>,
}

impl Options {
    /// What counts when the command is left out and clap reads no variables for it.
    pub(super) fn from_environment() -> Self {
        Self { http: None, transport: std::env::var("MCP_TRANSPORT").ok() }
    }
}

pub(super) fn run(options: &Options, config: Config) -> anyhow::Result<ExitCode> {
    let transport = options.transport.as_deref().map_or("", str::trim);
    if options.http.is_some() || !(transport.is_empty() || transport == "stdio") {
        bail!("this version serves stdio alone; leave MCP_TRANSPORT unset and --http out");
    }
    log_to_stderr(&config);
    proc_sandbox::harden_self().context("cannot close this process to its commands")?;
    let workspace = Arc::new(Workspace::open(config)?);
    workspace.announce();
    let runtime = runtime()?;
    let served = runtime.block_on(serve(Arc::clone(&workspace)));
    workspace.jobs.end_all();
    {
        let _within = runtime.enter();
        workspace.disposables.end_all();
    }
    // A blocked read of stdin cannot be taken back; it must not hold the process.
    runtime.shutdown_timeout(Duration::from_millis(100));
    served.map(|()| ExitCode::SUCCESS)
}

async fn serve(workspace: Arc<Workspace>) -> anyhow::Result<()> {
    let ending = CancellationToken::new();
    let mut terminate = signal(SignalKind::terminate()).context("cannot wait for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot wait for SIGINT")?;
    let (read, write) = rmcp::transport::io::stdio_pipes();
    let lines = Lines::new(read, write, ending.clone());
    let server = Server::new(workspace, ending.clone());

    let session = async {
        match server.serve(lines).await {
            Ok(running) => {
                let reason = running.waiting().await;
                tracing::info!(?reason, "session ended");
            }
            // A client that leaves before it says hello is no failure of ours.
            Err(error) => tracing::info!(%error, "no session"),
        }
    };
    tokio::pin!(session);
    let stop = async {
        tokio::select! {
            _ = terminate.recv() => "SIGTERM",
            _ = interrupt.recv() => "SIGINT",
        }
    };
    tokio::select! {
        () = &mut session => {}
        name = stop => {
            tracing::info!(signal = name, "ending");
            ending.cancel();
            // Calls end with their commands; what hangs longer is left to the process's own end.
            if tokio::time::timeout(ENDING, session).await.is_err() {
                tracing::info!("the client keeps the session open; leaving it");
            }
        }
    }
    Ok(())
}
