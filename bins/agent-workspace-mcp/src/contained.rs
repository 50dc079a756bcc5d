//! A disposable sandbox in a container: the asynchronous engine, driven from the threads that tools run on.
//!
//! Tools run on blocking threads of the runtime; a call into the engine blocks its thread until the engine has
//! answered, which it does within bounded time.

mod files;
mod scripts;

use std::future::Future;
use std::path::Path;
use std::time::Duration;

use container_sandbox::{Command, Container, Engine, Error, Hardening, Owner};
use proc_runner::Cancel;

use crate::config::Pull;
use crate::languages::Language;
use crate::progress::Heard;
use crate::pulling;
use crate::reply::{ErrorKind, Failure};
use crate::running::{Ended, Output};
use crate::shell::with_source;

pub use files::{Entries, MOST_FETCHED};

/// Whose containers they are, to the engine.
pub(crate) const OWNER: &str = "agent-workspace-mcp";
/// What helps where a container is lost.
const ANOTHER: &str = "stop this sandbox and open another";
/// Bytes of code that travel in one argument.
const PIECE: usize = 64 * 1024;
/// How often a cancellation is looked for.
const LOOK: Duration = Duration::from_millis(50);
/// How long an auxiliary command may take.
const AUXILIARY: Duration = Duration::from_secs(30);

/// A container that code runs in.
#[derive(Debug)]
pub struct Contained {
    container: Container,
}

impl Contained {
    /// Starts a container of an image, which is pulled where the engine lacks it and `pull` allows that. Leftovers of
    /// killed servers go before.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::EngineUnavailable`] when no engine answers, brings the image or makes the container,
    /// [`ErrorKind::InvalidArgs`] for what is no image's name.
    pub fn start(
        image: &str,
        pull: &Pull,
        cancel: &Cancel,
        heard: &Heard,
    ) -> Result<Self, Failure> {
        block_on(async {
            let engine = Engine::discover().await.map_err(|error| unavailable(&error))?;
            pulling::bring(&engine, image, pull, cancel, heard).await?;
            if let Err(error) = container_sandbox::sweep(&engine, OWNER, is_alive).await {
                tracing::warn!(error = with_source(&error), "containers of killed servers remain");
            }
            let owner = Owner::new(OWNER, instance()).map_err(|error| unavailable(&error))?;
            let container = Container::start(&engine, image, &Hardening::new(owner))
                .await
                .map_err(|error| unavailable(&error))?;
            Ok(Self { container })
        })
    }

    /// What engine it is, by name and version.
    pub fn engine(&self) -> String {
        let engine = self.container.engine();
        format!("{} {}", engine.kind(), engine.version())
    }

    /// Puts a file into the working directory.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::EngineUnavailable`] when the engine fails or the container has ended.
    pub fn write(&self, name: &str, text: &str) -> Result<(), Failure> {
        let mut rest = text;
        let mut mode = ">";
        loop {
            let (piece, after) = rest.split_at(rest.floor_char_boundary(PIECE.min(rest.len())));
            let script = format!("printf %s \"$1\" {mode} \"$2\"");
            let command = Command::new(["sh", "-c", &script, "sh", piece, name], AUXILIARY);
            let outcome = block_on(self.container.exec(&command)).map_err(|error| lost(&error))?;
            if outcome.exit_code != Some(0) {
                return Err(Failure::new(
                    ErrorKind::NoSpace,
                    format!("the code could not be written into the sandbox: {}", outcome.output),
                ));
            }
            (rest, mode) = (after, ">>");
            if rest.is_empty() {
                return Ok(());
            }
        }
    }

    /// Whether the image has what runs a language.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::EngineUnavailable`] when the engine fails or the container has ended.
    pub fn has(&self, language: &Language) -> Result<bool, Failure> {
        let command = Command::new(["sh", "-c", &language.look()], AUXILIARY);
        let outcome = block_on(self.container.exec(&command)).map_err(|error| lost(&error))?;
        Ok(outcome.exit_code == Some(0))
    }

    /// Runs a shell line to its end.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::EngineUnavailable`] when a cancelled line could not be ended. Where the engine fails or the container
    /// ends, [`Ended::broken`] says so.
    ///
    /// # Security
    ///
    /// `line` is hostile; what holds it is the container.
    pub fn run(
        &self,
        line: &str,
        timeout: Duration,
        cancel: &Cancel,
        output: &mut Output<'_>,
    ) -> Result<Ended, Failure> {
        let command = Command::new(["sh", "-c", line], timeout).interleaved().keep(0, 0);
        let mut ended = Ended::unseen(Duration::ZERO);
        let began = std::time::Instant::now();
        let ran = block_on(async {
            let mut run =
                std::pin::pin!(self.container.exec_with(&command, |bytes| output.push(bytes)));
            loop {
                tokio::select! {
                    outcome = &mut run => break Some(outcome),
                    // Its future is given up; what it started is not.
                    () = tokio::time::sleep(LOOK), if cancel.is_cancelled() => break None,
                    () = tokio::time::sleep(LOOK) => {}
                }
            }
        });
        ended.duration = began.elapsed();
        match ran {
            None => {
                ended.cancelled = true;
                block_on(self.container.clear()).map_err(|error| lost(&error))?;
            }
            Some(Ok(outcome)) => {
                ended.exit_code = outcome.exit_code.unwrap_or(137);
                ended.timed_out = outcome.timed_out;
                ended.leftovers = Some(outcome.leftovers);
                ended.duration = outcome.duration;
                if outcome.exit_code.is_none() && !outcome.timed_out {
                    ended.broken = Some(format!("the container ended under the code; {ANOTHER}"));
                }
            }
            // What it printed until then is told.
            Some(Err(error)) => {
                tracing::warn!(error = with_source(&error), "a container failed");
                ended.broken = Some(format!("{error}; {ANOTHER}"));
            }
        }
        Ok(ended)
    }

    /// Removes the container.
    ///
    /// # Errors
    ///
    /// When the engine does not.
    pub fn remove(&self) -> Result<(), Error> {
        block_on(self.container.remove())
    }
}

/// Drives a future from a thread that may block.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Handle::current().block_on(future)
}

fn unavailable(error: &Error) -> Failure {
    tracing::warn!(error = with_source(error), "no container");
    let help = match error {
        Error::ImageMissing { .. } => "the operator can pull it, or name another",
        _ => "without `image` a native sandbox needs no engine",
    };
    Failure::new(ErrorKind::EngineUnavailable, format!("{error}; {help}"))
}

fn lost(error: &Error) -> Failure {
    tracing::warn!(error = with_source(error), "a container failed");
    Failure::new(ErrorKind::EngineUnavailable, format!("{error}; {ANOTHER}"))
}

/// This process, so that another server can tell whether it lives: its number and when it was started.
pub(crate) fn instance() -> String {
    let pid = std::process::id();
    format!("{pid}-{}", started(pid).unwrap_or_default())
}

pub(crate) fn is_alive(instance: &str) -> bool {
    let Some((pid, then)) = instance.split_once('-') else { return false };
    let pid = pid.parse().ok();
    pid.is_some_and(|pid| started(pid).is_some_and(|started| started == then))
}

/// When a process was started, in the kernel's ticks since it began; see `proc_pid_stat(5)`.
fn started(pid: u32) -> Option<String> {
    let dir = cap_std::fs::Dir::open_ambient_dir("/proc", cap_std::ambient_authority()).ok()?;
    let stat = dir.read_to_string(Path::new(&pid.to_string()).join("stat")).ok()?;
    let (_, after_name) = stat.rsplit_once(") ")?;
    after_name.split(' ').nth(19).map(str::to_owned)
}
