//! Commands of the workspace in a container: the second backend of `run_bash`, beside the native rungs.
//!
//! One container is kept warm for a session, hardened, with the workspace at its own path and nothing else of the
//! machine; every command is an exec in it, as the user who owns the workspace. Since all processes of a container end
//! with each command, one that comes while another runs gets a second container, of at most four; and every
//! background job has one for itself, which goes with it. Files in `/tmp` and in the home are the container's, and a
//! container whose protected names are others by now is replaced: what is to stay belongs into the workspace.
//!
//! Invariants: no command runs in a container whose mounts were not looked at (`container-sandbox` does), nor before
//! one was seen to show this workspace's own files (`trial.rs`); protected names that are there are read-only, and when
//! they are others than at the container's start, it is replaced; when a call is answered, nothing of its command
//! runs, or the answer says that the engine failed; a container that could not be removed is tried again.
//!
//! A directory to run in was resolved by the jail; the runtime resolves its path again, inside the container. A link
//! that is put there meanwhile leads to another place of the container, never out of it.
//!
//! What the native rungs give and this does not: an allow-list of hosts; the signal that ended a command (an engine tells
//! an exit code alone); missing protected names that cannot be made; the loopback network between a job and commands;
//! a refusal of namespaces within, which is the engine's seccomp profile's to decide (Podman's allows them). And one
//! race remains: while a job or another command runs, it can put a link in the path of a protected name between our look
//! and the engine's. The container is then thrown away unused, but Podman may have made an empty directory where the
//! link led.

mod places;
mod trial;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use container_sandbox::{Command, Container, Engine, Error, Hardening, Owner};
use proc_runner::Cancel;
use tokio::runtime::{Handle, Runtime};
use tokio::sync::{Semaphore, SemaphorePermit, oneshot};

use self::places::Places;
use crate::config::{Config, Network, Pull};
use crate::contained::{self, OWNER};
use crate::locked::lock;
use crate::progress::Heard;
use crate::pulling;
use crate::reply::{ErrorKind, Failure};
use crate::running::Ended;
use crate::shell::{Words, with_source};

/// How often a cancellation is looked for.
const LOOK: Duration = Duration::from_millis(50);
/// How long a look around in a container may take.
const AUXILIARY: Duration = Duration::from_secs(30);
/// How long the end of a server waits for an engine to remove what it still has.
const ENDING: Duration = Duration::from_secs(10);
/// Containers for calls at one time; more of them wait. Jobs have a bound of their own.
const AT_ONCE: usize = 4;
/// Bytes of `/tmp`, as the native rungs give.
const TMP: u64 = 512 << 20;

/// What runs commands in containers.
#[derive(Debug)]
pub struct ContainerShell {
    image: String,
    pull: Pull,
    root: OwnedFd,
    /// Where the workspace is, here and in the container.
    directory: String,
    uid: u32,
    gid: u32,
    network: container_sandbox::Network,
    /// Its own, so that jobs and the trial reach it from their threads. `None` once it was let go.
    runtime: Option<Runtime>,
    handle: Handle,
    /// One for each call that may run at one time.
    turns: Semaphore,
    /// Containers that wait for a command, the oldest first.
    idle: Mutex<Vec<Warm>>,
    /// Containers that no command runs in any more and that the engine did not remove.
    doomed: Mutex<Vec<Container>>,
    /// How many were made.
    made: AtomicU64,
    swept: AtomicBool,
    /// Whether a container was seen to show the workspace's own files.
    proven: AtomicBool,
}

/// A container that waits for a command.
#[derive(Debug)]
struct Warm {
    container: Container,
    /// The best shell of its image.
    shell: &'static str,
    /// What was protected in it when it was made.
    places: Places,
    /// When it was made, among the others. The oldest that waits is taken, so that commands one after another meet the
    /// same `/tmp`.
    number: u64,
}

/// One command, ready to run.
#[derive(Debug)]
pub struct Line {
    shell: Arc<ContainerShell>,
    words: Words,
    cwd: String,
    masks: Vec<PathBuf>,
    environment: Vec<(String, String)>,
    heard: Heard,
    apart: bool,
}

impl Line {
    /// The same, telling `heard` what it waits for before it begins.
    #[must_use]
    pub fn heard(mut self, heard: &Heard) -> Self {
        self.heard = heard.clone();
        self
    }

    /// The same in a container of its own, which goes with it.
    #[must_use]
    pub fn apart(mut self) -> Self {
        self.apart = true;
        self
    }

    /// Runs it to its end.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::EngineUnavailable`] and [`ErrorKind::Cancelled`] when it was not started,
    /// [`ErrorKind::InvalidArgs`] and [`ErrorKind::NotFound`] when it could not be. Where the engine fails later,
    /// [`Ended::broken`] says so.
    pub fn run(
        self,
        timeout: Duration,
        cancel: &Cancel,
        sink: &mut (impl FnMut(&[u8]) + Send),
    ) -> Result<Ended, Failure> {
        self.shell.block_on(self.shell.run(&self, timeout, cancel, sink))
    }
}

/// A container until its command is over.
struct Claim<'s> {
    shell: &'s ContainerShell,
    warm: Option<Warm>,
    /// Goes with its command.
    apart: bool,
    _turn: Option<SemaphorePermit<'s>>,
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        let Some(warm) = self.warm.take() else { return };
        if self.apart {
            lock(&self.shell.doomed).push(warm.container);
        } else {
            let mut idle = lock(&self.shell.idle);
            let place = idle.partition_point(|other| other.number < warm.number);
            idle.insert(place, warm);
        }
    }
}

impl ContainerShell {
    /// What runs commands in containers of the operator's image.
    ///
    /// # Errors
    ///
    /// A sentence that says why no container will do here, whatever the engine.
    pub fn new(config: &Config, root: OwnedFd) -> Result<Self, String> {
        let image = config.containers.image.clone();
        let image = image.ok_or("no image is named for it; set CONTAINER_IMAGE")?;
        let network = match config.network {
            Network::Off => container_sandbox::Network::Off,
            Network::On => container_sandbox::Network::Engine,
            Network::Allow(_) => {
                return Err("a container cannot be held to an allow-list of hosts; set NETWORK to off or on, or take a \
                            native rung"
                    .to_owned());
            }
        };
        let stat = rustix::fs::fstat(&root).map_err(|error| error.to_string())?;
        if stat.st_uid == 0 {
            return Err("the workspace belongs to root, and nothing runs as root in the container; give it to an \
                        ordinary user (chown)"
                .to_owned());
        }
        let directory = places::path_of(root.as_fd()).filter(|path| places::is_expressible(path));
        let directory = directory.ok_or(
            "the workspace's path cannot be told to an engine: it is not UTF-8, or has a comma, colon, quote, \
             backslash or control character",
        )?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("engine")
            .enable_all()
            .build()
            .map_err(|error| error.to_string())?;
        Ok(Self {
            image,
            // The operator named it.
            pull: match config.containers.pull {
                Pull::Never => Pull::Never,
                Pull::Missing | Pull::From(_) => Pull::Missing,
            },
            root,
            directory,
            uid: stat.st_uid,
            // Files of root's group in an image are not to be had by the way.
            gid: if stat.st_gid == 0 { stat.st_uid } else { stat.st_gid },
            network,
            handle: runtime.handle().clone(),
            runtime: Some(runtime),
            turns: Semaphore::new(AT_ONCE),
            idle: Mutex::default(),
            doomed: Mutex::default(),
            made: AtomicU64::new(0),
            swept: AtomicBool::new(false),
            proven: AtomicBool::new(false),
        })
    }

    /// Makes the line of `words` a command in the directory behind `cwd`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::OutsideWorkspace`] when that directory was moved out of the workspace meanwhile.
    ///
    /// # Security
    ///
    /// The line is a language model's and runs as it is. Of `environment`, what names a place of this machine does not
    /// pass: the image has a `PATH` and certificates of its own.
    pub fn prepare(
        self: &Arc<Self>,
        words: Words,
        cwd: &OwnedFd,
        masks: &[PathBuf],
        environment: BTreeMap<OsString, OsString>,
    ) -> Result<Line, Failure> {
        let cwd = places::path_of(cwd.as_fd()).filter(|path| {
            std::path::Path::new(path).starts_with(&self.directory) && !path.contains('\0')
        });
        let cwd = cwd.ok_or_else(|| {
            Failure::new(
                ErrorKind::OutsideWorkspace,
                "the directory is not below the workspace any more, or its path is not UTF-8",
            )
        })?;
        let is_place = |name: &OsString| {
            name == "PATH" || proc_sandbox::environment::certificates().any(|known| name == known)
        };
        let environment = environment
            .into_iter()
            .filter(|(name, _)| !is_place(name))
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        Ok(Line {
            shell: Arc::clone(self),
            words,
            cwd,
            masks: masks.to_vec(),
            environment,
            heard: Heard::default(),
            apart: false,
        })
    }

    /// Removes the containers that it has; to be called when no command runs.
    pub fn end(&self) {
        let mut left = std::mem::take(&mut *lock(&self.doomed));
        left.extend(lock(&self.idle).drain(..).map(|warm| warm.container));
        if left.is_empty() {
            return;
        }
        self.block_on(async {
            let removal = async {
                for container in &left {
                    if let Err(error) = container.remove().await {
                        tracing::warn!(
                            error = with_source(&error),
                            "a container is left to its lifetime"
                        );
                    }
                }
            };
            if tokio::time::timeout(ENDING, removal).await.is_err() {
                tracing::warn!("the engine does not answer; containers are left to their lifetime");
            }
        });
    }

    fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.handle.block_on(future)
    }

    /// A container that waits, if there is one; what waits with other protected names is let go.
    async fn claim(&self, places: &Places, apart: bool, cancel: &Cancel) -> Option<Claim<'_>> {
        if apart {
            return Some(Claim { shell: self, warm: None, apart, _turn: None });
        }
        // Never closed, so that there is always a turn to come.
        let turn = until(cancel, self.turns.acquire()).await?.ok();
        let mut idle = lock(&self.idle);
        let outdated = idle.extract_if(.., |warm| warm.places != *places);
        lock(&self.doomed).extend(outdated.map(|warm| warm.container));
        let warm = (!idle.is_empty()).then(|| idle.remove(0));
        Some(Claim { shell: self, warm, apart, _turn: turn })
    }

    async fn run(
        &self,
        line: &Line,
        timeout: Duration,
        cancel: &Cancel,
        sink: &mut (impl FnMut(&[u8]) + Send),
    ) -> Result<Ended, Failure> {
        let places = Places::of(self.root.as_fd(), &line.masks);
        let cancelled = || Failure::new(ErrorKind::Cancelled, "[cancelled] before it began");
        let claim = self.claim(&places, line.apart, cancel).await;
        let mut claim = claim.ok_or_else(cancelled)?;
        loop {
            let was_warm = claim.warm.is_some();
            let warm = match claim.warm.take() {
                Some(warm) => warm,
                None => self.start(&places, cancel, Some(&line.heard)).await?,
            };
            let mut words = line.words.arguments(warm.shell);
            words.insert(0, warm.shell.to_owned());
            let mut command = Command::new(words, timeout).interleaved().keep(0, 0).cwd(&line.cwd);
            for (name, value) in &line.environment {
                command = command.env(name, value);
            }
            let began = Instant::now();
            let ran = until(cancel, warm.container.exec_with(&command, &mut *sink)).await;
            let mut ended = Ended::unseen(began.elapsed());
            match ran {
                Some(Ok(outcome)) => {
                    ended.exit_code = outcome.exit_code.unwrap_or(137);
                    ended.timed_out = outcome.timed_out;
                    ended.leftovers = Some(outcome.leftovers);
                    ended.duration = outcome.duration;
                    if outcome.exit_code.is_none() && !outcome.timed_out {
                        ended.broken = Some(broken("the container ended under the command"));
                    }
                    if outcome.container_ended || claim.apart {
                        self.remove(warm).await;
                    } else {
                        claim.warm = Some(warm);
                    }
                }
                None => {
                    ended.cancelled = true;
                    if !claim.apart && warm.container.clear().await.is_ok() {
                        claim.warm = Some(warm);
                    } else {
                        self.remove(warm).await;
                    }
                }
                // It ended between two commands; nothing of this one was begun.
                Some(Err(Error::Gone)) if was_warm => {
                    self.remove(warm).await;
                    continue;
                }
                Some(Err(error @ Error::InvalidArgument { .. })) => {
                    claim.warm = Some(warm);
                    return Err(Failure::invalid_args(error.to_string()));
                }
                Some(Err(Error::DirectoryMissing { .. })) => {
                    claim.warm = Some(warm);
                    let text =
                        "the directory to run in is gone, or not the workspace owner's to enter";
                    return Err(Failure::new(ErrorKind::NotFound, text));
                }
                Some(Err(error)) => {
                    tracing::warn!(error = with_source(&error), "a container failed");
                    ended.broken = Some(broken(&error.to_string()));
                    // Not removed now: an engine that does not answer would hold up this answer too.
                    lock(&self.doomed).push(warm.container);
                }
            }
            return Ok(ended);
        }
    }

    /// Starts a container and finds out what it is good for.
    async fn start(
        &self,
        places: &Places,
        cancel: &Cancel,
        heard: Option<&Heard>,
    ) -> Result<Warm, Failure> {
        let cancelled = || Failure::new(ErrorKind::Cancelled, "[cancelled] before it began");
        let engine = until(cancel, Engine::discover()).await.ok_or_else(cancelled)?;
        let engine = engine.map_err(|error| unavailable(&error))?;
        self.clear_away(&engine).await;
        if let Some(heard) = heard {
            pulling::bring(&engine, &self.image, &self.pull, cancel, heard).await?;
        }
        let hardening = self.hardening(places).map_err(|error| unavailable(&error))?;
        let image = self.image.clone();
        let (made, waiting) = oneshot::channel();
        // On a task of its own: given up half-way, it would leave a container behind.
        tokio::spawn(async move {
            let started = Container::start(&engine, &image, &hardening).await;
            if let Err(Ok(unwanted)) = made.send(started) {
                drop(unwanted.remove().await);
            }
        });
        let started = until(cancel, waiting).await.ok_or_else(cancelled)?;
        let started = started.map_err(|_| {
            Failure::new(ErrorKind::Internal, "the container's start was abandoned by the server")
        })?;
        let container = started.map_err(|error| unavailable(&error))?;
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        match self.get_ready(&container).await {
            Ok(shell) => Ok(Warm { container, shell, places: places.clone(), number }),
            Err(failure) => {
                lock(&self.doomed).push(container);
                Err(failure)
            }
        }
    }

    /// Sees that it is this workspace that the container shows, and finds its best shell.
    async fn get_ready(&self, container: &Container) -> Result<&'static str, Failure> {
        if !self.proven.load(Ordering::Acquire) {
            trial::prove(container, self.root.as_fd(), &self.directory).await?;
            self.proven.store(true, Ordering::Release);
        }
        let look = Command::new(["sh", "-c", "command -v bash"], AUXILIARY).cwd("/");
        let found = container.exec(&look).await.map_err(|error| unavailable(&error))?;
        Ok(if found.exit_code == Some(0) { "bash" } else { "sh" })
    }

    fn hardening(&self, places: &Places) -> Result<Hardening, Error> {
        let mut hardening = Hardening::new(Owner::new(OWNER, contained::instance())?);
        (hardening.uid, hardening.gid) = (self.uid, self.gid);
        hardening.tmp = TMP;
        hardening.network = self.network;
        hardening.share = Some(places.share(&self.directory));
        // As many as the native rungs: all of them.
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        hardening.cpu_millis = u32::try_from(processors * 1000).unwrap_or(u32::MAX);
        Ok(hardening)
    }

    /// Removes a container that no command runs in any more.
    async fn remove(&self, warm: Warm) {
        if let Err(error) = warm.container.remove().await {
            tracing::warn!(error = with_source(&error), "a container remains for now");
            lock(&self.doomed).push(warm.container);
        }
    }

    /// Removes what killed servers left, once, and what could not be removed before.
    async fn clear_away(&self, engine: &Engine) {
        if !self.swept.swap(true, Ordering::AcqRel)
            && let Err(error) = container_sandbox::sweep(engine, OWNER, contained::is_alive).await
        {
            tracing::warn!(error = with_source(&error), "containers of killed servers remain");
        }
        let doomed = std::mem::take(&mut *lock(&self.doomed));
        for container in doomed {
            if container.remove().await.is_err() {
                lock(&self.doomed).push(container);
            }
        }
    }
}

impl Drop for ContainerShell {
    fn drop(&mut self) {
        // On a thread of its own: the value may go within somebody's runtime, where none may be waited for.
        std::thread::scope(|scope| {
            let end = scope.spawn(|| self.end());
            if end.join().is_err() {
                tracing::error!("the end of the containers panicked");
            }
        });
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Awaits `work`, or gives it up when the call is cancelled.
async fn until<T>(cancel: &Cancel, work: impl Future<Output = T>) -> Option<T> {
    let mut work = std::pin::pin!(work);
    loop {
        tokio::select! {
            biased;
            done = &mut work => return Some(done),
            () = tokio::time::sleep(LOOK) => {
                if cancel.is_cancelled() {
                    return None;
                }
            }
        }
    }
}

fn broken(what: &str) -> String {
    format!("{what}; what it did until then is done, and the next command starts a new container")
}

/// The failure where no container came to be.
fn unavailable(error: &Error) -> Failure {
    tracing::warn!(error = with_source(error), "no container");
    let help = match error {
        Error::EngineUnavailable { .. } => {
            "the operator can start Docker or Podman, point DOCKER_HOST at its socket, or take a native rung"
        }
        Error::ImageMissing { .. } => "the operator can pull it, or let the server do that (PULL)",
        Error::ShareDiffers { .. } => {
            "the engine must run on this machine, and no link may lie in the path; the next command tries again"
        }
        _ => "the operator's log says more; the file tools go on working",
    };
    Failure::new(ErrorKind::EngineUnavailable, format!("{error}; {help}"))
}
