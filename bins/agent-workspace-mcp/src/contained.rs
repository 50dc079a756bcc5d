//! A disposable sandbox in a container: the asynchronous engine, driven from the threads that tools run on.
//!
//! Tools run on blocking threads of the runtime; a call into the engine blocks its thread until the engine has
//! answered, which it does within bounded time.

use std::future::Future;
use std::path::Path;
use std::time::Duration;

use container_sandbox::{Command, Container, Engine, Error, Hardening, Owner};
use proc_runner::Cancel;

use crate::reply::{ErrorKind, Failure};
use crate::running::{Ended, Output};
use crate::shell::with_source;

/// Whose containers they are, to the engine.
const OWNER: &str = "agent-workspace-mcp";
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
    /// Starts a container of an image that the engine holds. Leftovers of killed servers go before.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::EngineUnavailable`] when no engine answers, has the image or makes the container.
    pub fn start(image: &str) -> Result<Self, Failure> {
        block_on(async {
            let engine = Engine::discover().await.map_err(|error| unavailable(&error))?;
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

    /// Whether the image has a program of that name.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::EngineUnavailable`] when the engine fails or the container has ended.
    pub fn has(&self, program: &str) -> Result<bool, Failure> {
        let command = Command::new(["sh", "-c", "command -v \"$1\"", "sh", program], AUXILIARY);
        let outcome = block_on(self.container.exec(&command)).map_err(|error| lost(&error))?;
        Ok(outcome.exit_code == Some(0))
    }

    /// Runs a shell line to its end.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::EngineUnavailable`] when the engine fails or the container had ended.
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
        let began = std::time::Instant::now();
        block_on(async {
            let mut run =
                std::pin::pin!(self.container.exec_with(&command, |bytes| output.push(bytes)));
            let outcome = loop {
                tokio::select! {
                    outcome = &mut run => break outcome.map_err(|error| lost(&error))?,
                    () = tokio::time::sleep(LOOK), if cancel.is_cancelled() => {
                        // Its future is given up; what it started is not.
                        return Ok(Ended {
                            exit_code: 137,
                            signal: None,
                            timed_out: false,
                            cancelled: true,
                            leftovers: None,
                            duration: began.elapsed(),
                        });
                    }
                    () = tokio::time::sleep(LOOK) => {}
                }
            };
            let exit_code = outcome.exit_code.unwrap_or(137);
            Ok(Ended {
                exit_code,
                signal: None,
                timed_out: outcome.timed_out,
                cancelled: false,
                leftovers: Some(outcome.leftovers),
                duration: outcome.duration,
            })
        })
        .and_then(|ended: Ended| {
            if ended.cancelled {
                block_on(self.container.clear()).map_err(|error| lost(&error))?;
            }
            Ok(ended)
        })
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
    Failure::new(
        ErrorKind::EngineUnavailable,
        format!("{error}; stop this sandbox and open another"),
    )
}

/// This process, so that another server can tell whether it lives: its number and when it was started.
fn instance() -> String {
    let pid = std::process::id();
    format!("{pid}-{}", started(pid).unwrap_or_default())
}

fn is_alive(instance: &str) -> bool {
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
