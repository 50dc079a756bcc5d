//! One command in a running container: begun, followed to its end, and nothing of it left running.
//!
//! Invariants: an answer is given only after the container is clean again, or ended; the engine's word on the
//! command's end is asked for, since the output may end earlier (the program closed it) or later (a process it
//! left holds it). Non-goals: standard input, terminals, two commands at once.

use std::pin::Pin;
use std::time::Duration;

use bollard::container::LogOutput;
use bollard::errors::Error as Refusal;
use bollard::exec::{StartExecOptions, StartExecResults};
use bollard::models::ExecConfig;
use futures_util::{Stream, StreamExt as _};
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::command::Command;
use crate::container::Container;
use crate::engine::Engine;
use crate::error::{EngineFault, Error};
use crate::output::{Capture, Output};
use crate::processes::{Cleared, Processes};
use crate::session::Session;

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExecOutcome {
    /// 0 to 255; 128 + S after signal S. `None` if it was ended for its timeout, or with its container.
    pub exit_code: Option<i64>,
    /// It ran out of time, and all it had started was killed.
    pub timed_out: bool,
    /// What it wrote.
    pub output: Output,
    /// How many processes it left behind, which were killed.
    pub leftovers: usize,
    /// The container ended: under the command, or because its processes could not be ended otherwise. Its files
    /// are lost, and the next command is answered with [`Error::Gone`].
    pub container_ended: bool,
    /// From the request to the end of the command.
    pub duration: Duration,
}

type Pieces = Pin<Box<dyn Stream<Item = Result<LogOutput, Refusal>> + Send>>;

enum End {
    Exited(i64),
    TimedOut,
    ContainerGone,
    Broken(EngineFault),
}

/// A command's end, with nothing of it running any more.
struct Cleaned {
    end: End,
    container_ended: bool,
    leftovers: usize,
}

impl Container {
    /// Runs one command and waits for its end. Commands of one container take turns.
    ///
    /// What the command leaves running is killed: its own end ends the call. At the timeout all is killed at once.
    /// Dropping the future leaves the command running until [`Container::clear`], the next command or
    /// [`Container::remove`], whichever is first.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`], [`Error::ProgramMissing`], [`Error::DirectoryMissing`],
    /// [`Error::Gone`] if the container had ended before, [`Error::ExecFailed`] and [`Error::Timeout`] if the
    /// engine does not do its part.
    ///
    /// # Security
    ///
    /// Everything in `command` may come from an attacker. It runs as an unprivileged user within the
    /// container's limits, is given nothing of this process's environment, descriptors or terminal, and finds
    /// its standard input at end of file. What it prints can imitate the engine's "no such program".
    pub async fn exec(&self, command: &Command) -> Result<ExecOutcome, Error> {
        self.exec_with(command, |_| {}).await
    }

    /// As [`Container::exec`], and hands every piece of output to `sink` as it arrives, those too that the
    /// outcome does not keep. The sink is called on the task; while it is busy, nothing is read.
    ///
    /// # Errors
    ///
    /// As [`Container::exec`].
    pub async fn exec_with(
        &self,
        command: &Command,
        mut sink: impl FnMut(&[u8]) + Send,
    ) -> Result<ExecOutcome, Error> {
        command.check()?;
        let mut processes = self.processes.lock().await;
        self.alive()?;
        if processes.unclear && self.end_all(&mut processes).await? == Cleared::Ended {
            return Err(Error::Gone);
        }
        let began = Instant::now();
        let deadline = began + command.timeout().min(FOREVER);
        processes.unclear = true;
        let (exec, mut pieces) = self.begin(command).await?;
        let mut capture = Capture::new(command.bounds());
        let mut take = |piece: &[u8]| {
            sink(piece);
            capture.push(piece);
        };
        let followed = self.follow(&exec, &mut pieces, deadline, &mut take).await;
        let duration = began.elapsed();
        let cleaned = match followed {
            Ok(end) => self.clean_up(end, &mut processes).await,
            Err(error) => Err(error),
        };
        // Of a command whose end is not known, too: what it wrote is on its way.
        drain(&mut pieces, &mut take).await;
        let Cleaned { end, container_ended, leftovers } = cleaned?;
        let output = capture.finish();
        let timed_out = matches!(end, End::TimedOut);
        let exit_code = match end {
            End::Exited(code) => {
                if let Some(error) = engine_refusal(code, &output, command) {
                    return Err(error);
                }
                Some(code)
            }
            End::Broken(source) if !container_ended => return Err(Error::ExecFailed { source }),
            End::TimedOut | End::ContainerGone | End::Broken(_) => None,
        };
        Ok(ExecOutcome { exit_code, timed_out, output, leftovers, container_ended, duration })
    }

    /// Ends what a command left running, and counts it where it was not the timeout that ended the command.
    async fn clean_up(&self, mut end: End, processes: &mut Processes) -> Result<Cleaned, Error> {
        let mut container_ended = matches!(end, End::ContainerGone);
        let mut leftovers = 0;
        if !container_ended {
            match self.survivors(processes).await {
                Ok(left) if left.is_empty() => processes.unclear = false,
                Ok(left) => {
                    if !matches!(end, End::TimedOut) {
                        leftovers = left.len();
                    }
                    container_ended = self.end_all(processes).await? == Cleared::Ended;
                }
                // Its exit code is then the container's end, not its own.
                Err(Error::Gone) => (end, container_ended) = (End::ContainerGone, true),
                Err(error) => return Err(error),
            }
        }
        Ok(Cleaned { end, container_ended, leftovers })
    }

    async fn begin(&self, command: &Command) -> Result<(String, Pieces), Error> {
        let docker = self.engine.docker();
        let config = ExecConfig {
            attach_stdin: Some(false),
            attach_stdout: Some(true),
            attach_stderr: Some(true),
            tty: Some(false),
            privileged: Some(false),
            cmd: Some(command.words()),
            env: Some(command.variables()),
            user: Some(self.user.clone()),
            working_dir: Some(command.directory().to_owned()),
            ..ExecConfig::default()
        };
        let exec = match Engine::within("exec", docker.create_exec(&self.id, config)).await? {
            Ok(created) => created.id,
            Err(refusal) => return Err(self.refused(refusal).await),
        };
        let start = docker.start_exec(&exec, None::<StartExecOptions>);
        match Engine::within("exec", start).await? {
            Ok(StartExecResults::Attached { output, .. }) => Ok((exec, output)),
            Ok(StartExecResults::Detached) => {
                Err(Error::ExecFailed { source: "the engine detached from the command".into() })
            }
            // Docker says so in the answer, Podman in the output.
            Err(refusal) => Err(match refusal_kind(&refusal.to_string(), command) {
                Some(error) => error,
                None => self.refused(refusal).await,
            }),
        }
    }

    /// Takes output until the engine says that the command has ended, or time is up.
    async fn follow(
        &self,
        exec: &str,
        pieces: &mut Pieces,
        deadline: Instant,
        take: &mut (impl FnMut(&[u8]) + Send),
    ) -> Result<End, Error> {
        let mut open = true;
        let mut broken = None;
        let mut pause = Duration::from_millis(50);
        let mut next_look = Instant::now() + pause;
        loop {
            // Looked at in every round: a command that never stops writing must not outrun its time.
            let now = Instant::now();
            if now >= deadline {
                return Ok(End::TimedOut);
            }
            if now >= next_look {
                if let Some(end) = self.look(exec, &mut broken).await? {
                    return Ok(end);
                }
                pause = (pause * 2).min(Duration::from_millis(500));
                next_look = Instant::now() + pause;
            }
            let until = deadline.min(next_look);
            if !open {
                sleep_until(until).await;
                continue;
            }
            match timeout_at(until, pieces.next()).await {
                Ok(Some(Ok(piece))) => take(piece.as_ref()),
                Ok(ended) => {
                    broken = ended.and_then(Result::err).map(EngineFault::from);
                    open = false;
                    (pause, next_look) = (Duration::from_millis(5), Instant::now());
                }
                Err(_elapsed) => {}
            }
        }
    }

    /// Asks the engine whether the command has ended.
    async fn look(
        &self,
        exec: &str,
        broken: &mut Option<EngineFault>,
    ) -> Result<Option<End>, Error> {
        Ok(match self.session(exec).await? {
            Session::Ended(code) => Some(End::Exited(code)),
            Session::Unknown => Some(End::ContainerGone),
            // If the stream broke, the command goes on unseen: its output would have a hole.
            Session::Running(_) => broken.take().map(End::Broken),
            // Either the engine is slow to note the beginning, or there is no more container to begin in.
            Session::Pending if self.has_ended().await? => Some(End::ContainerGone),
            Session::Pending => None,
        })
    }
}

/// Takes what is still on its way after everything that could write has ended.
async fn drain(pieces: &mut Pieces, take: &mut (impl FnMut(&[u8]) + Send)) {
    let deadline = Instant::now() + Duration::from_secs(1);
    while let Ok(Some(Ok(piece))) = timeout_at(deadline, pieces.next()).await {
        take(piece.as_ref());
        if Instant::now() >= deadline {
            break;
        }
    }
}

/// The engine's "could not start it" in place of a command's output, if that is what this is. Engines put the
/// runtime's message on the command's standard error and exit with a shell's codes for it.
fn engine_refusal(code: i64, output: &Output, command: &Command) -> Option<Error> {
    if !(125..=127).contains(&code) || output.truncated() || output.head.len() > 4096 {
        return None;
    }
    refusal_kind(&String::from_utf8_lossy(&output.head), command)
}

/// Reads the runtime's message: runc's and crun's, as Docker and Podman pass them on.
fn refusal_kind(message: &str, command: &Command) -> Option<Error> {
    let of_runtime = message.contains("unable to start container process")
        || message.contains("OCI runtime")
        || message.contains("OCI permission denied");
    if !of_runtime {
        return None;
    }
    let says = |words: &[&str]| words.iter().any(|word| message.contains(word));
    Some(if says(&["chdir to cwd", "chdir to `"]) {
        Error::DirectoryMissing { directory: command.directory().to_owned() }
    } else if says(&["not found", "no such file", "permission denied", "exec format error"]) {
        Error::ProgramMissing { program: command.words().swap_remove(0) }
    } else {
        Error::ExecFailed { source: message.to_owned().into() }
    })
}

/// Longer than any container lives.
const FOREVER: Duration = Duration::from_hours(2 * 366 * 24);
