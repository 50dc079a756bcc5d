//! Commands that go on after their call was answered: background jobs.
//!
//! A job is a command as `run_bash` runs it, on a thread of its own, its whole output recorded under the id that
//! names it. Invariants: a job ends with its whole tree, by itself, by `stop_job` or with the server; its output
//! can be read while it runs and afterwards; how many run at once, and how many ended ones are remembered, is
//! bounded.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use proc_runner::Cancel;
use proc_sandbox::Rung;

use crate::locked::lock;
use crate::output_store::{Recording, Stored};
use crate::reply::{ErrorKind, Failure};
use crate::running;
use crate::shell::Ready;

/// Jobs that may run at once.
const MOST_RUNNING: usize = 16;
/// Ended jobs whose end is remembered; their outputs stay as long as every other's.
const MOST_REMEMBERED: usize = 64;
/// How long a job may take to end after it was told to; its grace lies within.
const ENDING: Duration = Duration::from_secs(10);

/// The jobs of one workspace.
#[derive(Debug, Default)]
pub struct Jobs {
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    jobs: BTreeMap<String, Arc<Job>>,
    /// Ids of ended jobs, the first to end first.
    ended: Vec<String>,
    threads: Vec<JoinHandle<()>>,
}

/// One job.
#[derive(Debug)]
pub struct Job {
    id: String,
    started: Instant,
    cancel: Cancel,
    progress: Mutex<Progress>,
    changed: Condvar,
}

#[derive(Debug)]
struct Progress {
    /// `None` once it was stored.
    recording: Option<Recording>,
    /// Why the recording is not whole, if it is not.
    broken: Option<String>,
    ended: Option<Ended>,
}

/// How a job ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Ended {
    /// The command ran, on this rung.
    Ran {
        /// How it ended.
        how: running::Ended,
        /// The rung it ran on.
        sandbox: String,
        /// What was seen when it had ended, in lines of its own.
        warnings: Vec<String>,
    },
    /// It was not run.
    Failed(String),
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = match self {
            Self::Failed(reason) => return write!(f, "not run: {reason}"),
            Self::Ran { how, .. } => how,
        };
        if let Some(reason) = &how.broken {
            return f.write_str(reason);
        }
        if how.timed_out {
            f.write_str("timed out, ")?;
        } else if how.cancelled {
            f.write_str("stopped, ")?;
        }
        write!(f, "Exit code: {}", how.exit_code)?;
        match how.signal {
            Some(signal) => write!(f, ", by signal {signal}"),
            None => Ok(()),
        }
    }
}

impl Ended {
    /// What is told of the end of the job of that id, line by line.
    pub fn lines(&self, job_id: &str, already: bool) -> Vec<String> {
        let already = if already { " had ended already" } else { "" };
        let mut lines = vec![format!("[job {job_id}{already}: {self}]")];
        if let Self::Ran { how, warnings, .. } = self {
            if let Some(count) = how.leftovers.filter(|count| *count > 0) {
                lines.push(format!("[left running and ended with it: {count}]"));
            }
            lines.extend(how.memory_note());
            lines.extend_from_slice(warnings);
        }
        lines
    }
}

impl Jobs {
    /// Starts a command that goes on by itself; the id names the job and its output. When it has ended, `afterwards` says
    /// what else there is to tell.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Busy`] when too many run, [`ErrorKind::Internal`] when no thread or descriptor is left.
    pub fn start(
        &self,
        ready: Ready,
        timeout: Duration,
        rung: Rung,
        recording: Recording,
        afterwards: impl FnOnce() -> Vec<String> + Send + 'static,
    ) -> Result<String, Failure> {
        let internal = |error: &dyn fmt::Display| {
            Failure::new(ErrorKind::Internal, format!("no job: {error}"))
        };
        let mut known = lock(&self.known);
        known.forget();
        if known.jobs.len() - known.ended.len() >= MOST_RUNNING {
            return Err(Failure::new(
                ErrorKind::Busy,
                format!("{MOST_RUNNING} background jobs are running; stop one with stop_job first"),
            ));
        }
        let job = Arc::new(Job {
            id: recording.id().to_owned(),
            started: Instant::now(),
            cancel: Cancel::new().map_err(|error| internal(&error))?,
            progress: Mutex::new(Progress {
                recording: Some(recording),
                broken: None,
                ended: None,
            }),
            changed: Condvar::new(),
        });
        let ours = Arc::clone(&job);
        let thread = std::thread::Builder::new()
            .name("job".to_owned())
            .spawn(move || ours.run(ready, timeout, rung, afterwards))
            .map_err(|error| internal(&error))?;
        known.threads.retain(|thread| !thread.is_finished());
        known.threads.push(thread);
        let id = job.id.clone();
        known.jobs.insert(id.clone(), job);
        Ok(id)
    }

    /// The job of that id.
    pub fn get(&self, id: &str) -> Option<Arc<Job>> {
        let mut known = lock(&self.known);
        known.forget();
        known.jobs.get(id).cloned()
    }

    /// Ends all that run, and waits for their end.
    pub fn end_all(&self) {
        let (jobs, threads) = {
            let mut known = lock(&self.known);
            let jobs: Vec<_> = known.jobs.values().cloned().collect();
            (jobs, std::mem::take(&mut known.threads))
        };
        for job in &jobs {
            job.cancel.cancel();
        }
        let own = std::thread::current().id();
        // A job's own thread may be the last to let the workspace go.
        for thread in threads.into_iter().filter(|thread| thread.thread().id() != own) {
            if thread.join().is_err() {
                tracing::error!("the thread of a job panicked");
            }
        }
    }
}

impl Drop for Jobs {
    fn drop(&mut self) {
        self.end_all();
    }
}

impl Known {
    /// Notes what has ended, and forgets the oldest of it.
    fn forget(&mut self) {
        for (id, job) in &self.jobs {
            if !self.ended.contains(id) && job.ended().is_some() {
                self.ended.push(id.clone());
            }
        }
        let surplus = self.ended.len().saturating_sub(MOST_REMEMBERED);
        for id in self.ended.drain(..surplus) {
            self.jobs.remove(&id);
        }
    }
}

impl Job {
    /// How it ended, if it has.
    pub fn ended(&self) -> Option<Ended> {
        lock(&self.progress).ended.clone()
    }

    /// Since when it runs.
    pub fn age(&self) -> Duration {
        self.started.elapsed()
    }

    /// Its output so far while it runs; `None` once it is stored like every other.
    ///
    /// # Errors
    ///
    /// When the recording cannot be read.
    pub fn read<T>(
        &self,
        read: impl FnOnce(&mut Stored) -> io::Result<T>,
    ) -> io::Result<Option<T>> {
        // The command waits for as long as a page is read, since its output may overwrite what is read.
        let mut progress = lock(&self.progress);
        match &mut progress.recording {
            Some(recording) => Ok(Some(read(&mut recording.so_far()?)?)),
            None => Ok(None),
        }
    }

    /// Ends it and everything it started; how it ended, or `None` when it would not.
    pub fn stop(&self) -> Option<Ended> {
        self.cancel.cancel();
        let progress = lock(&self.progress);
        let waited =
            self.changed.wait_timeout_while(progress, ENDING, |progress| progress.ended.is_none());
        let (progress, _) = waited.unwrap_or_else(PoisonError::into_inner);
        progress.ended.clone()
    }

    fn run(
        &self,
        ready: Ready,
        timeout: Duration,
        rung: Rung,
        afterwards: impl FnOnce() -> Vec<String>,
    ) {
        let mut sink = |bytes: &[u8]| {
            let mut progress = lock(&self.progress);
            if progress.broken.is_none()
                && let Some(recording) = &mut progress.recording
                && let Err(error) = recording.push(bytes)
            {
                tracing::warn!(job = self.id, %error, "the output of a job is no longer recorded");
                progress.broken = Some(error.to_string());
            }
        };
        let ended = match running::follow(ready, timeout, &self.cancel, &mut sink, rung) {
            Ok((how, sandbox)) => Ended::Ran { how, sandbox, warnings: afterwards() },
            Err(failure) => Ended::Failed(failure.to_string()),
        };
        let mut progress = lock(&self.progress);
        if let Some(mut recording) = progress.recording.take() {
            match recording.store() {
                Ok(()) => drop(recording.keep()),
                Err(error) => progress.broken = Some(error.to_string()),
            }
        }
        progress.ended = Some(ended);
        self.changed.notify_all();
    }

    /// Why its output is not whole, if it is not.
    pub fn broken(&self) -> Option<String> {
        lock(&self.progress).broken.clone()
    }
}
