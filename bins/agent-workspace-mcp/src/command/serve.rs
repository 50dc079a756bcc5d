//! `serve`: the server on stdio or streamable HTTP, until its input ends or it is told to stop.

use std::process::ExitCode;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Args;
use rmcp::ServiceExt as _;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::log_to_stderr;
use crate::config::Config;
use crate::server::Server;
use crate::transport::Lines;
use crate::workspace::Workspace;

#[cfg(feature = "http")]
mod over_http;

/// How long a call may take to end after its command was told to.
const ENDING: Duration = Duration::from_secs(2);

#[derive(Debug, Clone, Default, Args)]
pub(super) struct Options {
    /// Serve streamable HTTP at /mcp [default: 127.0.0.1:8000]
    #[arg(long, value_name = "HOST:PORT", num_args = 0..=1, default_missing_value = "")]
    http: Option<String>,
    /// stdio or http [default: stdio]
    #[arg(long, env = "MCP_TRANSPORT", value_name = "NAME")]
    transport: Option<String>,
    /// Address for http
    #[arg(long, env = "MCP_HOST", value_name = "HOST", hide = true)]
    host: Option<String>,
    /// Port for http
    #[arg(long, env = "MCP_PORT", value_name = "PORT", hide = true)]
    port: Option<String>,
    /// File with the key of HTTP clients, or with a table of keys and workspaces; without it the variable `MCP_API_KEY` is the key
    #[arg(long, env = "API_KEY_FILE", value_name = "FILE")]
    api_key_file: Option<std::ffi::OsString>,
    /// Further host names under which HTTP clients reach this server; * for any
    #[arg(long, env = "ALLOWED_HOSTS", value_name = "HOST,HOST", value_delimiter = ',')]
    allow_host: Vec<String>,
}

impl Options {
    /// What counts when the command is left out and clap reads no variables for it.
    pub(super) fn from_environment() -> Self {
        let var = |name| std::env::var(name).ok();
        let hosts = var("ALLOWED_HOSTS").unwrap_or_default();
        Self {
            http: None,
            transport: var("MCP_TRANSPORT"),
            host: var("MCP_HOST"),
            port: var("MCP_PORT"),
            api_key_file: std::env::var_os("API_KEY_FILE"),
            allow_host: hosts.split(',').map(str::to_owned).collect(),
        }
    }

    /// Whether HTTP is asked for.
    fn wants_http(&self) -> anyhow::Result<bool> {
        let transport = self.transport.as_deref().map_or("", str::trim).to_ascii_lowercase();
        match transport.as_str() {
            _ if self.http.is_some() => Ok(true),
            "" | "stdio" => Ok(false),
            "http" | "streamable-http" | "streamable_http" => Ok(true),
            other => bail!("MCP_TRANSPORT: '{other}' is not one of stdio, http"),
        }
    }
}

pub(super) fn run(options: &Options, config: Config) -> anyhow::Result<ExitCode> {
    if options.wants_http()? {
        #[cfg(feature = "http")]
        return over_http::run(options, &config);
        #[cfg(not(feature = "http"))]
        bail!("this build serves stdio alone; leave MCP_TRANSPORT unset and --http out");
    }
    log_to_stderr(&config);
    harden()?;
    let workspace = Arc::new(Workspace::open(config)?);
    let announced = workspace.announce()?;
    // One client, one thread for its lines; calls have threads of their own.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let served = runtime.block_on(on_stdio(Arc::clone(&workspace)));
    end(&runtime, &workspace, announced);
    // A blocked read of stdin cannot be taken back; it must not hold the process.
    runtime.shutdown_timeout(Duration::from_millis(100));
    served.map(|()| ExitCode::SUCCESS)
}

fn harden() -> anyhow::Result<()> {
    proc_sandbox::harden_self().context("cannot close this process to its commands")
}

/// Ends what goes on beyond the calls.
fn end(runtime: &tokio::runtime::Runtime, workspace: &Arc<Workspace>, announced: JoinHandle<()>) {
    // It holds the workspace, whose end clears what the sandbox keeps on disk.
    if announced.join().is_err() {
        tracing::error!("the thread that announces panicked");
    }
    workspace.jobs.end_all();
    let workspace = Arc::clone(workspace);
    // On a thread that may block, while this one drives the engine's connection.
    let ended = runtime.block_on(async {
        tokio::task::spawn_blocking(move || {
            workspace.shell.end();
            workspace.disposables.end_all();
        })
        .await
    });
    if let Err(error) = ended {
        tracing::error!(%error, "containers were not ended");
    }
}

/// Waits for the signal to stop; tells its name.
async fn told_to_stop() -> anyhow::Result<&'static str> {
    let mut terminate = signal(SignalKind::terminate()).context("cannot wait for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot wait for SIGINT")?;
    Ok(tokio::select! {
        _ = terminate.recv() => "SIGTERM",
        _ = interrupt.recv() => "SIGINT",
    })
}

async fn on_stdio(workspace: Arc<Workspace>) -> anyhow::Result<()> {
    let ending = CancellationToken::new();
    let stop = told_to_stop();
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
    tokio::select! {
        biased;
        name = stop => {
            tracing::info!(signal = name?, "ending");
            ending.cancel();
            // Calls end with their commands; what hangs longer is left to the process's own end.
            if tokio::time::timeout(ENDING, session).await.is_err() {
                tracing::info!("the client keeps the session open; leaving it");
            }
        }
        () = &mut session => {}
    }
    Ok(())
}
