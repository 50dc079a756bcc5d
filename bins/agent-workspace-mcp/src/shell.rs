//! How commands are run here: the shell, its environment, and the confinement that was tried out at start: a native rung,
//! or a container (`container_shell.rs`).
//!
//! The rung that a result names is what the sandbox's helper reported for that command, not what was meant.
//! Below the operator's floor nothing runs.

mod words;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::JoinHandle;

use anyhow::Context as _;
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use egress_proxy::{Denied, Event, Proxy};
use proc_runner::{Command, Outcome};
use proc_sandbox::{Helper, Layer, Net, Policy, Report, Rung, Sandbox, State, Status, Target};
use serde::Serialize;
use workspace_jail::Jail;

use crate::config::{Config, InContainer, Network};
#[cfg(feature = "container")]
use crate::container_shell::{ContainerShell, Line};
use crate::disposables::Scratch;
use crate::environment::{self, Identity};
use crate::locked::lock;
use crate::progress::Heard;
use crate::reply::{ErrorKind, Failure};
use crate::state;

pub use words::Words;

/// What runs commands.
#[derive(Debug)]
pub struct Shell {
    confinement: OnceLock<Kind>,
    /// What tries it out, until somebody wants to know.
    trial: Mutex<Option<JoinHandle<anyhow::Result<Kind>>>>,
    program: PathBuf,
    network: Network,
    identity: OnceLock<Identity>,
}

#[derive(Debug)]
enum Kind {
    Confined {
        sandbox: Box<Sandbox>,
        report: Report,
        /// The way out, where there is an allow-list.
        proxy: Option<(Proxy, SocketAddr)>,
    },
    /// By the operator's word, with a private home all the same.
    Bare(Box<Scratch>),
    /// In a container, which was tried out, or could not be yet: each command tries again.
    #[cfg(feature = "container")]
    Contained { shell: Arc<ContainerShell>, trial: Result<Vec<Tried>, Failure> },
    /// Below the floor. `reason` is the operator's to read; `told` is a model's, and names no host path.
    Refused { reason: String, told: String, layers: Vec<Layer> },
}

/// The rung of commands in a container, in facts and records.
pub const CONTAINER: &str = "container";

/// A command, ready to run.
#[derive(Debug)]
pub enum Ready {
    /// On this machine.
    Native {
        /// For [`proc_runner::run`].
        command: Command,
        /// Where to read afterwards what was enforced; `None` on the rung `none`.
        status: Option<Status>,
    },
    /// In a container.
    #[cfg(feature = "container")]
    Contained(Box<Line>),
}

impl Ready {
    /// The same, telling `heard` what it waits for before it begins. What runs on this machine waits for nothing.
    #[must_use]
    #[cfg_attr(
        not(feature = "container"),
        expect(unused_variables, reason = "nothing but a container is waited for")
    )]
    pub fn heard(self, heard: &Heard) -> Self {
        match self {
            #[cfg(feature = "container")]
            Self::Contained(line) => Self::Contained(Box::new(line.heard(heard))),
            native @ Self::Native { .. } => native,
        }
    }

    /// The same, so that it can go on beside other commands.
    #[must_use]
    pub fn apart(self) -> Self {
        match self {
            #[cfg(feature = "container")]
            Self::Contained(line) => Self::Contained(Box::new(line.apart())),
            native @ Self::Native { .. } => native,
        }
    }
}

/// One layer of protection, as it was tried out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Tried {
    /// Its name.
    pub name: String,
    /// Whether it holds.
    pub state: State,
    /// How that was found out, or what is missing.
    pub detail: String,
    /// What the operator can do about a missing one.
    pub remedy: Option<String>,
}

impl From<&Layer> for Tried {
    fn from(layer: &Layer) -> Self {
        Self {
            name: layer.name.clone(),
            state: layer.state,
            detail: layer.detail.clone(),
            remedy: layer.remedy.clone(),
        }
    }
}

impl Shell {
    /// Begins to try out what this machine offers, on a thread of its own: a client is greeted meanwhile, and the first
    /// command waits for the rest of it. Native rungs alone.
    ///
    /// # Errors
    ///
    /// When the workspace's descriptor cannot be duplicated, or there is no thread.
    pub fn new(config: &Config, jail: &Jail) -> anyhow::Result<Self> {
        let mut native = config.clone();
        native.containers.commands = InContainer::Never;
        Self::with_containers(&native, jail, channel().1)
    }

    /// The same, and containers where the operator wants them; they are told the protected names when these are known.
    ///
    /// # Errors
    ///
    /// As [`Self::new`].
    pub fn with_containers(
        config: &Config,
        jail: &Jail,
        masks: Receiver<Vec<PathBuf>>,
    ) -> anyhow::Result<Self> {
        let workspace = jail.dir().try_clone_to_owned().context("no descriptor")?;
        let settings = config.clone();
        let trial = std::thread::Builder::new()
            .name("trial".to_owned())
            .spawn(move || match (settings.containers.commands, settings.ceiling) {
                (InContainer::Always, _) => Ok(contained(&settings, workspace, &masks)),
                (_, Rung::None) => bare(&workspace),
                _ => try_out(&settings, workspace, &masks),
            })
            .context("no thread")?;
        let program = ["/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash"]
            .into_iter()
            .map(PathBuf::from)
            .find(|shell| shell.is_file())
            .unwrap_or_else(|| "/bin/sh".into());
        Ok(Self {
            confinement: OnceLock::new(),
            trial: Mutex::new(Some(trial)),
            program,
            network: config.network.clone(),
            identity: OnceLock::new(),
        })
    }

    /// What was found out; waits for it.
    fn confinement(&self) -> &Kind {
        self.confinement.get_or_init(|| {
            let trial = lock(&self.trial).take();
            let found = match trial.map(JoinHandle::join) {
                Some(Ok(found)) => found.map_err(|error| format!("{error:#}")),
                Some(Err(_)) => {
                    Err("trying the sandbox out failed in the server itself".to_owned())
                }
                None => Err("the sandbox was not tried out".to_owned()),
            };
            found.unwrap_or_else(|reason| {
                let told = "the sandbox cannot be set up here".to_owned();
                Kind::Refused { reason, told, layers: Vec::new() }
            })
        })
    }

    /// The native rung on which commands run, as it was tried out.
    pub fn rung(&self) -> Rung {
        match self.confinement() {
            Kind::Confined { report, .. } => report.rung,
            _ => Rung::None,
        }
    }

    /// What commands run on, by the name of a rung: a native one's, or [`CONTAINER`].
    pub fn standing(&self) -> String {
        match self.confinement() {
            #[cfg(feature = "container")]
            Kind::Contained { .. } => CONTAINER.to_owned(),
            _ => self.rung().to_string(),
        }
    }

    /// Removes the containers that commands ran in; to be called when none runs any more.
    pub fn end(&self) {
        #[cfg(feature = "container")]
        if let Some(Kind::Contained { shell, .. }) = self.confinement.get() {
            shell.end();
        }
    }

    /// Whether commands find protected places read-only.
    pub fn has_mounts(&self) -> bool {
        self.rung() >= Rung::NativeNoproc
    }

    /// What commands wanted of the network and did not get, since this was last asked.
    pub fn denials(&self) -> Vec<Denied> {
        match self.confinement() {
            Kind::Confined { proxy: Some((proxy, _)), .. } => proxy.denials(),
            _ => Vec::new(),
        }
    }

    /// Why no command is run, if none is.
    pub fn refusal(&self) -> Option<String> {
        match self.confinement() {
            Kind::Refused { reason, .. } => Some(reason.clone()),
            #[cfg(feature = "container")]
            Kind::Contained { trial: Err(failure), .. } => Some(failure.to_string()),
            _ => None,
        }
    }

    /// The answer to every command, where none is run.
    pub fn refused(&self) -> Option<Failure> {
        match self.confinement() {
            Kind::Refused { told, .. } => Some(unavailable(told)),
            _ => None,
        }
    }

    /// What was found out about this machine by trying, layer by layer; nothing where nothing is to be enforced.
    pub fn layers(&self) -> Vec<Tried> {
        match self.confinement() {
            Kind::Confined { report: Report { layers, .. }, .. } | Kind::Refused { layers, .. } => {
                layers.iter().map(Tried::from).collect()
            }
            #[cfg(feature = "container")]
            Kind::Contained { trial, .. } => trial.clone().unwrap_or_default(),
            Kind::Bare(_) => Vec::new(),
        }
    }

    /// Makes `line` a command of the shell, confined, in the directory behind `cwd`; `protected` places of the
    /// workspace are read-only to it where there are mounts.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::SandboxUnavailable`] below the floor, or when the sandbox cannot take the command;
    /// [`ErrorKind::InvalidArgs`] for a line that is too long for a shell.
    ///
    /// # Security
    ///
    /// `line` is a language model's and runs as it is; what it may touch is the sandbox's policy.
    pub fn prepare(
        &self,
        line: &str,
        cwd: OwnedFd,
        protected: &[PathBuf],
    ) -> Result<Ready, Failure> {
        let words = Words::of(line)?;
        let arguments = || words.arguments(&self.program.to_string_lossy());
        match self.confinement() {
            Kind::Refused { told, .. } => Err(unavailable(told)),
            #[cfg(feature = "container")]
            Kind::Contained { shell, .. } => {
                let places = [("HOME", "/work"), ("TMPDIR", "/tmp")];
                let places = places.map(|(name, place)| (name.into(), place.into()));
                let ready = shell.prepare(words, &cwd, protected, self.environment(places))?;
                Ok(Ready::Contained(Box::new(ready)))
            }
            Kind::Bare(home) => {
                let command = Command::new(&self.program)
                    .args(arguments())
                    .envs(self.environment(private(home.path())))
                    .cwd(cwd);
                Ok(Ready::Native { command, status: None })
            }
            Kind::Confined { sandbox, proxy, .. } => {
                let mut places = sandbox.environment();
                if let (Some((_, address)), Network::Allow(rules)) = (proxy, &self.network) {
                    places.extend(environment::proxy(*address, rules));
                }
                let target = Target::new(&self.program, cwd)
                    .args(arguments())
                    .protect(protected)
                    .envs(self.environment(places));
                let confined =
                    sandbox.confine(target).map_err(|error| unavailable(&with_source(&error)))?;
                let (spare, stdin) = (confined.spare, confined.stdin);
                let start = move |output| spare.start(stdin, output);
                let command = Command::started_by(confined.program, start);
                Ok(Ready::Native { command, status: Some(confined.status) })
            }
        }
    }

    fn environment(
        &self,
        places: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> BTreeMap<OsString, OsString> {
        let identity = self.identity.get_or_init(Identity::of_operator);
        environment::build(std::env::vars_os(), &self.network, places, identity)
    }
}

/// The rung a command ran on, as its helper reported it, with what the largest process of the command held where that is
/// nearly all of what one process may: both in bytes. How many processes it left is noted in `ran`, by whoever could see
/// them.
///
/// # Errors
///
/// [`ErrorKind::SandboxUnavailable`] when it was not run.
pub fn confinement_of(
    status: Option<&Status>,
    ran: &mut Outcome,
    expected: Rung,
) -> Result<(String, Option<(u64, u64)>), Failure> {
    match status.map(Status::enforced) {
        None => Ok((Rung::None.to_string(), None)),
        Some(Ok(enforced)) => {
            if enforced.rung >= Rung::NativeNoproc {
                // The sandbox knows what lived in its namespace; the runner sees the sandbox's own processes.
                ran.leftovers = enforced.leftovers;
            }
            Ok((enforced.rung.to_string(), enforced.memory_near_limit()))
        }
        // It was ended before it became the command; nothing ran unconfined.
        Some(Err(proc_sandbox::Error::Silent)) if ran.timed_out || ran.cancelled => {
            Ok((expected.to_string(), None))
        }
        Some(Err(error)) => Err(Failure::new(
            ErrorKind::SandboxUnavailable,
            format!("The command was not run: {}", with_source(&error)),
        )),
    }
}

/// The private home of commands that run without a sandbox.
fn private(home: &Path) -> [(OsString, OsString); 2] {
    ["HOME", "TMPDIR"].map(|name| (name.into(), home.into()))
}

fn bare(workspace: &OwnedFd) -> anyhow::Result<Kind> {
    Ok(Kind::Bare(Box::new(Scratch::new(workspace.as_fd())?)))
}

/// Commands in a container, whether one can be had by now or not; a refusal where none ever will do.
#[cfg(feature = "container")]
fn contained(config: &Config, workspace: OwnedFd, masks: &Receiver<Vec<PathBuf>>) -> Kind {
    match ContainerShell::new(config, workspace) {
        Ok(shell) => {
            let shell = Arc::new(shell);
            let trial = shell.try_out(&masks.recv().unwrap_or_default());
            Kind::Contained { shell, trial }
        }
        Err(reason) => Kind::Refused { told: reason.clone(), reason, layers: Vec::new() },
    }
}

#[cfg(not(feature = "container"))]
fn contained(_: &Config, _: OwnedFd, _: &Receiver<Vec<PathBuf>>) -> Kind {
    let reason = "containers are not built into this binary".to_owned();
    Kind::Refused { told: reason.clone(), reason, layers: Vec::new() }
}

/// A container in place of a lower rung: only where one was tried out and found to do.
fn instead(config: &Config, workspace: OwnedFd, masks: &Receiver<Vec<PathBuf>>) -> Option<Kind> {
    let wanted = &config.containers;
    if wanted.commands != InContainer::Auto || wanted.image.is_none() || !wanted.suffices {
        return None;
    }
    let kind = contained(config, workspace, masks);
    let reason = match &kind {
        #[cfg(feature = "container")]
        Kind::Contained { trial: Ok(_), .. } => return Some(kind),
        #[cfg(feature = "container")]
        Kind::Contained { trial: Err(failure), .. } => failure.to_string(),
        Kind::Refused { reason, .. } => reason.clone(),
        Kind::Confined { .. } | Kind::Bare(_) => return None,
    };
    tracing::warn!(%reason, "no container for commands");
    None
}

/// The sandbox if it reaches the floor, else what the operator's floor asks for.
fn try_out(
    config: &Config,
    workspace: OwnedFd,
    masks: &Receiver<Vec<PathBuf>>,
) -> anyhow::Result<Kind> {
    let near = workspace.try_clone().context("no descriptor")?;
    let (reason, told, layers) = match Sandbox::new(policy(config, workspace)) {
        Err(error) => {
            (with_source(&error), "the sandbox cannot be set up here".to_owned(), Vec::new())
        }
        Ok(sandbox) => {
            let report = sandbox.probe();
            // A container stands below the rungs with namespaces and above `landlock`.
            if report.rung < Rung::NativeNoproc
                && let Some(kind) =
                    instead(config, near.try_clone().context("no descriptor")?, masks)
            {
                return Ok(kind);
            }
            if report.rung >= config.floor.max(Rung::Landlock) {
                let proxy = proxy(config, &sandbox)?;
                return Ok(Kind::Confined { sandbox: Box::new(sandbox), report, proxy });
            }
            let reason = missing(config.floor, &report);
            (reason.clone(), reason, report.layers)
        }
    };
    if config.floor == Rung::None {
        tracing::warn!(%reason, "commands run unconfined, as REQUIRE allows");
        return bare(&near);
    }
    Ok(Kind::Refused { reason, told, layers })
}

/// The proxy of the allow-list, listening on the sandbox's own loopback network.
fn proxy(config: &Config, sandbox: &Sandbox) -> anyhow::Result<Option<(Proxy, SocketAddr)>> {
    let Network::Allow(rules) = &config.network else { return Ok(None) };
    let Some(listener) = sandbox.listener() else {
        let rung = sandbox.rung();
        tracing::warn!(%rung, "no allow-list on this rung: commands have no network");
        return Ok(None);
    };
    let listener = listener.try_clone_to_owned().context("no descriptor")?;
    let address = TcpListener::from(listener.try_clone().context("no descriptor")?)
        .local_addr()
        .context("the proxy's address")?;
    let log = Arc::new(|event: &Event<'_>| match event {
        Event::Denied(denied) => tracing::warn!(%denied, "network refused"),
        other => tracing::error!(event = ?other, "network proxy"),
    });
    let proxy = Proxy::start(listener, rules.clone().given_as("--network allow="), log)
        .context("the network proxy")?;
    Ok(Some((proxy, address)))
}

/// Places of certificates that the environment names.
fn environment_places(variable: impl Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    proc_sandbox::environment::certificates()
        .filter_map(|name| variable(name).map(PathBuf::from))
        .filter(|path| path.is_absolute() && path.exists())
        .collect()
}

fn missing(floor: Rung, report: &Report) -> String {
    let floor = floor.max(Rung::Landlock);
    let parts: Vec<_> = report
        .layers
        .iter()
        .filter(|layer| layer.state == State::Unavailable && layer.remedy.is_some())
        .map(|layer| format!("{}: {}", layer.name, layer.detail))
        .collect();
    let rung = report.rung;
    format!(
        "the rung '{floor}' is required and '{rung}' is what there is here ({})",
        parts.join("; ")
    )
}

fn policy(config: &Config, workspace: OwnedFd) -> Policy {
    let scratch = scratch_parent(workspace.as_fd());
    let mut policy = Policy::new(workspace).scratch_parent(scratch).ceiling(config.ceiling).net(
        match config.network {
            Network::Off => Net::Off,
            Network::Allow(_) => Net::Proxy,
            Network::On => Net::On,
        },
    );
    if let Some(home) =
        std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute())
    {
        policy = policy.home(home);
    }
    let certificates = environment_places(|name| std::env::var_os(name));
    policy = policy.extra_read(certificates);
    if let Some(helper) = &config.helper {
        policy = policy.helper(Helper::Program(helper.clone()));
    }
    policy
}

/// A place for temporary files that does not lie in the workspace, where commands could reach all of it.
pub(crate) fn scratch_parent(workspace: BorrowedFd<'_>) -> PathBuf {
    let usual = std::env::temp_dir();
    let places = [usual.clone(), "/var/tmp".into(), "/dev/shm".into()];
    let outside = |place: &PathBuf| {
        Dir::open_ambient_dir(place, ambient_authority())
            .is_ok_and(|dir| matches!(state::is_below(dir.as_fd(), workspace), Ok(false)))
    };
    places.into_iter().find(outside).unwrap_or(usual)
}

fn unavailable(reason: &str) -> Failure {
    Failure::new(
        ErrorKind::SandboxUnavailable,
        format!(
            "Commands are refused: {reason}. `agent-workspace-mcp doctor` tells the operator what helps; \
             the file tools go on working"
        ),
    )
}

/// An error with its cause, which the libraries keep apart.
pub(crate) fn with_source(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}
