//! `serve` over HTTP: one workspace for each key, one gate for all of them.

use std::net::SocketAddr;
use std::os::fd::AsFd as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context as _, bail};
use tokio::net::{TcpListener, lookup_host};
use tokio_util::sync::CancellationToken;

use super::{Options, end, harden, told_to_stop};
use crate::command::{log_to_stderr, runtime};
use crate::config::Config;
use crate::http::{self, Client, Gate, Key, Names};
use crate::server::Server;
use crate::state::is_below;
use crate::workspace::Workspace;

const HOST: &str = "127.0.0.1";
const PORT: u16 = 8000;

pub(super) fn run(options: &Options, config: &Config) -> anyhow::Result<ExitCode> {
    let clients = clients(options)?;
    let place = address(options)?;
    if let Some(wrong) = options.hosts().find(|host| !Names::is_host(host)) {
        bail!("ALLOWED_HOSTS: '{wrong}' is no host name; write HOST or HOST:PORT, or * for any");
    }
    log_to_stderr(config);
    harden()?;
    let longest_call = config.max_command_timeout;
    let served = clients
        .into_iter()
        .map(|client| open(client, config))
        .collect::<anyhow::Result<Vec<_>>>()?;
    apart(&served)?;

    let runtime = runtime()?;
    let ending = CancellationToken::new();
    let outcome = runtime.block_on(async {
        let listener = bind(&place).await?;
        let bound = listener.local_addr().context("no address")?;
        let hosts: Vec<String> = options.hosts().collect();
        let mut gate = Gate::new(Names::new(bound, &hosts), longest_call);
        for Served { name, key, workspace, .. } in &served {
            let (workspace, ending) = (Arc::clone(workspace), ending.clone());
            gate = gate.admit(name, key.clone(), move || {
                Server::new(Arc::clone(&workspace), ending.clone())
            });
        }
        tracing::info!(address = %format_args!("http://{bound}{}", http::PATH), clients = served.len(), "listening");
        let serving = http::serve(listener, gate, ending.clone());
        tokio::pin!(serving);
        tokio::select! {
            () = &mut serving => {}
            name = told_to_stop() => {
                tracing::info!(signal = name?, "ending");
                ending.cancel();
                serving.await;
            }
        }
        anyhow::Ok(())
    });
    for Served { workspace, announced, .. } in served {
        end(&runtime, &workspace, announced);
    }
    runtime.shutdown_timeout(Duration::from_millis(100));
    outcome.map(|()| ExitCode::SUCCESS)
}

impl Options {
    fn hosts(&self) -> impl Iterator<Item = String> {
        self.allow_host.iter().map(|host| host.trim().to_owned()).filter(|host| !host.is_empty())
    }
}

/// Who may call. The key is never an argument: other users of the machine see those.
fn clients(options: &Options) -> anyhow::Result<Vec<Client>> {
    if let Some(path) = options.api_key_file.as_ref().filter(|path| !path.is_empty()) {
        return Ok(http::read_clients(Path::new(path))?);
    }
    match std::env::var("MCP_API_KEY") {
        Ok(key) if !key.trim().is_empty() => {
            let key =
                Key::parse(&key).map_err(|problem| anyhow::anyhow!("MCP_API_KEY: {problem}"))?;
            Ok(vec![Client { name: "default".into(), key, workspace: None }])
        }
        _ => bail!(
            "HTTP needs a key: set MCP_API_KEY, or name a file with --api-key-file (for one: openssl rand -hex 32)"
        ),
    }
}

/// `HOST:PORT` as it was given, by flag before environment.
fn address(options: &Options) -> anyhow::Result<String> {
    let given = |value: &Option<String>| {
        value.as_deref().map(str::trim).filter(|value| !value.is_empty()).map(str::to_owned)
    };
    if let Some(address) = given(&options.http) {
        return Ok(address);
    }
    let host = given(&options.host).unwrap_or_else(|| HOST.to_owned());
    let port = match given(&options.port) {
        None => PORT,
        Some(port) => {
            port.parse().map_err(|_| anyhow::anyhow!("MCP_PORT: '{port}' is not a port"))?
        }
    };
    let is_bare_v6 = host.contains(':') && !host.starts_with('[');
    Ok(if is_bare_v6 { format!("[{host}]:{port}") } else { format!("{host}:{port}") })
}

async fn bind(place: &str) -> anyhow::Result<TcpListener> {
    let addresses: Vec<SocketAddr> =
        lookup_host(place).await.with_context(|| format!("'{place}' is not HOST:PORT"))?.collect();
    TcpListener::bind(addresses.as_slice())
        .await
        .with_context(|| format!("cannot listen on {place}"))
}

/// One client with its workspace open.
struct Served {
    name: String,
    key: Key,
    workspace: Arc<Workspace>,
    announced: JoinHandle<()>,
}

fn open(client: Client, config: &Config) -> anyhow::Result<Served> {
    let Client { name, key, workspace } = client;
    let mut config = config.clone();
    if let Some(place) = workspace {
        config.workspace = place;
    }
    config.client = Some(name.clone());
    let workspace = Workspace::open(config).with_context(|| format!("client '{name}'"))?;
    let workspace = Arc::new(workspace);
    let announced = workspace.announce()?;
    Ok(Served { name, key, workspace, announced })
}

/// Two clients in one directory, or in one above the other's, would read each other's files.
fn apart(served: &[Served]) -> anyhow::Result<()> {
    for (at, one) in served.iter().enumerate() {
        for other in served.iter().skip(at + 1) {
            let (a, b) = (one.workspace.jail.dir(), other.workspace.jail.dir());
            if is_below(a.as_fd(), b.as_fd())? || is_below(b.as_fd(), a.as_fd())? {
                bail!("the workspaces of '{}' and '{}' meet", one.name, other.name);
            }
        }
    }
    Ok(())
}
