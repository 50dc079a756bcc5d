//! What runs in a container besides the two processes that keep it, and how that is ended.
//!
//! An engine can start a command in a running container and cannot end one: there is no such request. The
//! process ids it tells are the host's, which this process may not signal. So three means, each tried when the
//! one before did not leave the container clean, the engine's own process list being the judge every time:
//!
//! 1. The **warder**: a shell started beforehand as the commands' user, waiting on its standard input. A line
//!    makes it `kill(-1, SIGKILL)`, which the kernel carries out for all processes of that user in the container
//!    at once, so nothing can fork out of it. It needs no new process, so a full pids limit does not stop it.
//! 2. A new warder, if the commands killed the first.
//! 3. Ending the container: its process namespace dies with its first process, and no process outlives it. The
//!    files in it are lost, and the outcome says so.
//!
//! The two processes that keep the container have another user id, without capabilities to cross: commands
//! cannot end them, and neither can the warder.
//!
//! Invariant: "clean" is the engine's view from outside, never a claim made in the container, where the
//! commands could trace the warder and speak for it.

use std::pin::Pin;
use std::time::Duration;

use bollard::container::LogOutput;
use bollard::exec::{StartExecOptions, StartExecResults};
use bollard::models::ExecConfig;
use bollard::query_parameters::TopOptionsBuilder;
use futures_util::StreamExt as _;
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::time::Instant;

use crate::container::{Container, ENDING};
use crate::engine::{Engine, EngineKind};
use crate::error::{EngineFault, Error};
use crate::session::Session;

/// What is known of a container's processes.
#[derive(Default)]
pub(crate) struct Processes {
    /// Ids, as the engine lists them, of init and of the process that keeps the container.
    keepers: Vec<String>,
    warder: Option<Warder>,
    /// A command was begun and its end not seen.
    pub(crate) unclear: bool,
}

struct Warder {
    exec: String,
    pid: String,
    input: Pin<Box<dyn AsyncWrite + Send>>,
}

/// How clearing went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cleared {
    /// Nothing but the keepers runs.
    Clean,
    /// The container had to be ended for that.
    Ended,
}

/// Says a line when it is at its post. Its last word is for the case that this process dies: the input ends,
/// and what runs is ended.
const WARDER: &str = "[ -w /work ] || exit 77; echo ready; \
    while read -r line; do kill -KILL -1; done 2>/dev/null; kill -KILL -1";
const NOT_WRITABLE: i64 = 77;

/// How long a warder may take to its post. A tenth of a second, on a machine with nothing else to do.
const POSTING: Duration = Duration::from_secs(10);

/// How long killed processes may take to vanish. One that frees gigabytes takes some tenths.
const VANISH: Duration = Duration::from_secs(3);

impl Container {
    /// Ends everything that was started in the container, except what keeps it. Waits for a running
    /// [`Container::exec`]; drop that first to cut it short.
    ///
    /// # Errors
    ///
    /// [`Error::Gone`] if the container has ended, or had to be ended because its processes could not be ended
    /// one by one; [`Error::ExecFailed`], [`Error::RemoveFailed`] and [`Error::Timeout`] if the engine does not
    /// do its part: then the next command tries again before it begins.
    pub async fn clear(&self) -> Result<(), Error> {
        let mut processes = self.processes.lock().await;
        self.alive()?;
        match self.end_all(&mut processes).await? {
            Cleared::Clean => Ok(()),
            Cleared::Ended => Err(Error::Gone),
        }
    }

    /// Learns which processes keep the container, and posts the warder.
    pub(crate) async fn settle(&self) -> Result<(), Error> {
        let mut processes = self.processes.lock().await;
        let deadline = Instant::now() + VANISH;
        let keepers = loop {
            let listed = match self.listed().await {
                Ok(listed) => listed,
                Err(Error::Gone) => {
                    let source = "the container ended at once; its image may lack `sleep`".into();
                    return Err(Error::StartFailed { source });
                }
                Err(error) => return Err(error),
            };
            // Init, and what it started. Before there are two, the runtime is still at work.
            if listed.len() == 2 {
                break listed;
            }
            if Instant::now() >= deadline {
                let source = format!("{} processes where init and one more belong", listed.len());
                return Err(Error::StartFailed { source: source.into() });
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        };
        processes.keepers = keepers;
        // An image without `sh` has no warder; there a command that must be ended ends its container.
        processes.warder = self.post_warder().await?;
        Ok(())
    }

    /// The ids of what runs besides keepers and warder.
    pub(crate) async fn survivors(&self, processes: &mut Processes) -> Result<Vec<String>, Error> {
        let mut listed = self.listed().await?;
        listed.retain(|pid| !processes.keepers.contains(pid));
        let warder = processes.warder.as_ref().filter(|warder| listed.contains(&warder.pid));
        if let Some((exec, pid)) = warder.map(|warder| (warder.exec.clone(), warder.pid.clone()))
            && self.is_running(&exec).await?
        {
            // Asked for, since a dead warder's number could have been taken by what the commands started.
            listed.retain(|listed| *listed != pid);
        }
        Ok(listed)
    }

    /// Ends all survivors, by the first of the three means that does it.
    pub(crate) async fn end_all(&self, processes: &mut Processes) -> Result<Cleared, Error> {
        processes.unclear = true;
        for fresh in [false, true] {
            if fresh {
                processes.warder = self.post_warder().await?;
            }
            let Some(warder) = &mut processes.warder else { continue };
            if warder.strike().await && self.becomes_clean(processes).await? {
                processes.unclear = false;
                return Ok(Cleared::Clean);
            }
        }
        self.remove().await?;
        Ok(Cleared::Ended)
    }

    async fn becomes_clean(&self, processes: &mut Processes) -> Result<bool, Error> {
        let deadline = Instant::now() + VANISH;
        let mut pause = Duration::from_millis(2);
        while !self.survivors(processes).await?.is_empty() {
            let warder = processes.warder.as_ref().map(|warder| warder.exec.as_str());
            let posted = match warder {
                Some(exec) => self.is_running(exec).await?,
                None => false,
            };
            if !posted || Instant::now() >= deadline {
                return Ok(false);
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(Duration::from_millis(100));
        }
        Ok(true)
    }

    /// Starts a warder; `None` where the image or the pids limit does not let one run.
    async fn post_warder(&self) -> Result<Option<Warder>, Error> {
        let docker = self.engine.docker();
        let config = ExecConfig {
            attach_stdin: Some(true),
            attach_stdout: Some(true),
            cmd: Some(["sh", "-c", WARDER].map(str::to_owned).into()),
            user: Some(self.user.clone()),
            working_dir: Some("/".into()),
            ..ExecConfig::default()
        };
        let exec = match Engine::within("exec", docker.create_exec(&self.id, config)).await? {
            Ok(created) => created.id,
            Err(refusal) => return Err(self.refused(refusal).await),
        };
        let start = docker.start_exec(&exec, None::<StartExecOptions>);
        let Ok(StartExecResults::Attached { mut output, input }) =
            Engine::within("exec", start).await?
        else {
            return Ok(None);
        };
        let word = tokio::time::timeout(POSTING, output.next()).await;
        let at_post = matches!(word, Ok(Some(Ok(LogOutput::StdOut { .. }))));
        let deadline = Instant::now() + POSTING;
        while Instant::now() < deadline {
            match self.session(&exec).await? {
                Session::Running(pid) if at_post => return Ok(Some(Warder { exec, pid, input })),
                Session::Ended(NOT_WRITABLE) => return Err(Error::WorkNotWritable),
                Session::Ended(_) | Session::Unknown => return Ok(None),
                Session::Running(_) | Session::Pending => {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            }
        }
        Ok(None)
    }

    async fn is_running(&self, exec: &str) -> Result<bool, Error> {
        Ok(matches!(self.session(exec).await?, Session::Running(_)))
    }

    /// The ids of all processes in the container that still do something, as the host numbers them.
    async fn listed(&self) -> Result<Vec<String>, Error> {
        // Podman reads its own columns from outside; given options of ps(1) it would run the image's `ps` inside,
        // which shows what the image likes. Docker runs the host's ps(1) and keeps the container's lines.
        let (columns, id_column) = match self.engine.kind() {
            EngineKind::Podman => ("hpid,state", "HPID"),
            EngineKind::Docker => ("-eo pid,stat", "PID"),
        };
        let deadline = Instant::now() + ENDING;
        loop {
            let options = TopOptionsBuilder::new().ps_args(columns).build();
            let request = self.engine.docker().top_processes(&self.id, Some(options));
            let source: EngineFault = match Engine::within("list processes", request).await? {
                Ok(answer) => {
                    let rows = answer.processes.unwrap_or_default();
                    match running(&answer.titles.unwrap_or_default(), rows, id_column) {
                        Some(ids) => return Ok(ids),
                        None => "the engine's process list cannot be read".into(),
                    }
                }
                Err(_) if self.has_ended().await? => return Err(Error::Gone),
                Err(refusal) => refusal.into(),
            };
            // Podman answers with nothing, or with "?" for an id, when processes come and go while it reads.
            if Instant::now() >= deadline {
                return Err(Error::ExecFailed { source });
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

impl Warder {
    /// Has it kill; false if it no longer hears.
    async fn strike(&mut self) -> bool {
        let word = async {
            self.input.write_all(b"\n").await?;
            self.input.flush().await
        };
        matches!(tokio::time::timeout(VANISH, word).await, Ok(Ok(())))
    }
}

/// The ids in a process list, less the zombies: those have ended and wait for init to take note. `None` if the
/// columns are others, or an id is not a number.
fn running(titles: &[String], rows: Vec<Vec<String>>, id_column: &str) -> Option<Vec<String>> {
    let id = titles.iter().position(|title| title == id_column)?;
    let state = titles.iter().position(|title| title.starts_with("STAT"))?;
    rows.into_iter()
        .filter(|row| row.get(state).is_none_or(|state| !state.starts_with(['Z', 'X'])))
        .map(|row| row.get(id).filter(|id| id.parse::<u32>().is_ok()).cloned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(titles: &[&str], rows: &[&[&str]], id_column: &str, expected: Option<&[&str]>) {
        let own = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
        let rows = rows.iter().map(|row| own(row)).collect();
        assert_eq!(running(&own(titles), rows, id_column), expected.map(own));
    }

    #[test]
    fn zombies_are_not_running() {
        let rows: &[&[&str]] = &[&["7", "S"], &["8", "Z"], &["9", "R+"]];
        check(&["HPID", "STATE"], rows, "HPID", Some(&["7", "9"]));
    }

    #[test]
    fn an_unknown_list_is_no_list() {
        check(&["PID   USER     COMMAND"], &[&["1 10002    sleep"]], "HPID", None);
        check(&["HPID"], &[&["7"]], "HPID", None);
        check(&["STATE", "HPID"], &[&["S"]], "HPID", None);
        check(&["HPID", "STATE"], &[&["7", "S"], &["?", "S"]], "HPID", None);
    }
}
