//! One command from its start to its answer: run, recorded, shortened, put into words and facts.

use std::io;
use std::time::Duration;

use proc_runner::{Cancel, End, Error, Limits, Outcome};
use proc_sandbox::Rung;
use token_filter::{Compacted, Meta, Recovery, Stream};

use crate::output_store::{OutputStore, Recording};
use crate::progress::Heard;
use crate::reply::{ErrorKind, Facts, Failure, Reply};
#[cfg(feature = "container")]
use crate::shell::CONTAINER;
use crate::shell::{Ready, confinement_of, with_source};
use crate::workspace::{Session, Workspace};

/// How a command ended, whoever ran it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// 128 + S after signal S.
    pub exit_code: i64,
    /// The signal's number.
    pub signal: Option<i32>,
    /// Whether its time was up.
    pub timed_out: bool,
    /// Whether the call was cancelled.
    pub cancelled: bool,
    /// Processes it left running; `None` where nobody could count.
    pub leftovers: Option<usize>,
    /// From its start to its end.
    pub duration: Duration,
    /// What its largest process held and what one may hold, in bytes, where the two are close.
    pub memory: Option<(u64, u64)>,
    /// Why its end was not seen, where what ran it failed meanwhile; a sentence with its remedy.
    pub broken: Option<String>,
}

impl Ended {
    /// One whose end nobody saw, so far: as if it was killed.
    pub fn unseen(duration: Duration) -> Self {
        Self {
            exit_code: 137,
            signal: None,
            timed_out: false,
            cancelled: false,
            leftovers: None,
            duration,
            memory: None,
            broken: None,
        }
    }

    /// The line about memory, where a command failed that had nearly all there is.
    pub fn memory_note(&self) -> Option<String> {
        let (held, limit) = self.memory.filter(|_| self.exit_code != 0)?;
        let [held, limit] = [held, limit].map(|bytes| bytes >> 20);
        Some(format!(
            "[one of its processes held {held} MiB of memory, of {limit} MiB that a process may hold]"
        ))
    }
}

impl From<&Outcome> for Ended {
    fn from(ran: &Outcome) -> Self {
        let (exit_code, signal) = match ran.end {
            End::Exited(code) => (i64::from(code), None),
            End::Signaled(signal) => (128 + i64::from(signal), Some(signal)),
        };
        Self {
            exit_code,
            signal,
            timed_out: ran.timed_out,
            cancelled: ran.cancelled,
            leftovers: ran.leftovers,
            duration: ran.duration,
            memory: None,
            broken: None,
        }
    }
}

/// A timeout as a call gives it, cut to the operator's maximum.
///
/// # Errors
///
/// [`ErrorKind::InvalidArgs`] for a negative one.
pub fn timeout(workspace: &Workspace, given: Option<i64>) -> Result<Option<Duration>, Failure> {
    given
        .map(|seconds| {
            u64::try_from(seconds)
                .map(|seconds| {
                    Duration::from_secs(seconds).min(workspace.config.max_command_timeout)
                })
                .map_err(|_| Failure::invalid_args("argument 'timeout' must not be negative"))
        })
        .transpose()
}

/// Runs a command to its end, its output going to `output`; with the rung it ran on.
///
/// # Errors
///
/// As [`follow`].
pub fn run(
    ready: Ready,
    timeout: Duration,
    cancel: &Cancel,
    output: &mut Output<'_>,
    rung: Rung,
) -> Result<(Ended, String), Failure> {
    follow(ready, timeout, cancel, &mut |bytes| output.push(bytes), rung)
}

/// Runs a command to its end, every piece of its output going to `sink`; with the rung it ran on.
///
/// # Errors
///
/// [`ErrorKind::Cancelled`] and [`ErrorKind::Internal`] when it was not started, [`ErrorKind::SandboxUnavailable`]
/// when its confinement failed, [`ErrorKind::EngineUnavailable`] when there is no container for it.
pub fn follow(
    ready: Ready,
    timeout: Duration,
    cancel: &Cancel,
    sink: &mut (impl FnMut(&[u8]) + Send),
    rung: Rung,
) -> Result<(Ended, String), Failure> {
    let (command, status) = match ready {
        Ready::Native { command, status } => (command, status),
        #[cfg(feature = "container")]
        Ready::Contained(line) => {
            return Ok((line.run(timeout, cancel, sink)?, CONTAINER.to_owned()));
        }
    };
    // The whole goes to `sink`; the runner itself need not keep any of it.
    let limits = Limits::new(timeout).keep(0, 0);
    let mut sink = |bytes: &[u8]| -> io::Result<()> {
        sink(bytes);
        Ok(())
    };
    let mut ran = proc_runner::run(command, &limits, cancel, &mut sink).map_err(|error| {
        let kind = match error {
            Error::Cancelled { .. } => ErrorKind::Cancelled,
            _ => ErrorKind::Internal,
        };
        Failure::new(kind, format!("The command could not be run: {}", with_source(&error)))
    })?;
    let (sandbox, memory) = confinement_of(status.as_ref(), &mut ran, rung)?;
    Ok((Ended { memory, ..Ended::from(&ran) }, sandbox))
}

/// Where the output goes while it arrives: shortened, and recorded so that nothing is lost by that.
#[derive(Debug)]
pub struct Output<'w> {
    store: &'w OutputStore,
    stream: Stream,
    recording: Recording,
    /// Why the recording is not whole, if it is not.
    broken: Option<io::Error>,
    heard: Heard,
}

impl<'w> Output<'w> {
    /// Begins to take an output.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Internal`] when it could not be stored.
    pub fn begin(session: &'w Session) -> Result<Self, Failure> {
        let workspace = &session.workspace;
        let store = &workspace.outputs;
        let recording = store.begin().map_err(|error| {
            Failure::new(ErrorKind::Internal, format!("The output could not be stored: {error}"))
        })?;
        let heard = session.heard.clone();
        let stream = Stream::new(&workspace.policy);
        Ok(Self { store, stream, recording, broken: None, heard })
    }

    /// Takes the next bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.heard.push(bytes);
        self.stream.push(bytes);
        if self.broken.is_none() {
            self.broken = self.recording.push(bytes).err();
        }
    }

    /// Shortens the output. It is stored first: a marker that names it must be redeemable.
    fn finish(self, meta: &Meta<'_>, notes: &mut Vec<String>) -> (Compacted, Option<String>) {
        let Self { store, mut stream, mut recording, mut broken, heard: _ } = self;
        let worth = store.is_available() && recording.is_worth_storing();
        if worth && broken.is_none() {
            broken = recording.store().err();
        }
        if let Some(error) = &broken {
            notes.push(format!("[the whole output could not be stored: {error}]"));
        }
        let stored = worth && broken.is_none();
        if stored {
            stream.recover_by(Recovery::ReadOutput { output_id: recording.id().to_owned() });
        }
        let compacted = stream.finish(meta);
        let output_id = (stored && compacted.truncated).then(|| recording.keep());
        if output_id.is_some() {
            // A server that runs for weeks keeps to the quota too.
            store.sweep();
        }
        (compacted, output_id)
    }
}

/// Puts an end into words and facts, with the output shortened.
///
/// # Errors
///
/// [`ErrorKind::Cancelled`], [`ErrorKind::Timeout`] and [`ErrorKind::EngineUnavailable`], which carry the output so far.
pub fn answer(
    line: &str,
    timeout: Duration,
    ended: &Ended,
    output: Output<'_>,
    sandbox: &str,
    warnings: Vec<String>,
) -> Result<Reply, Failure> {
    let (exit_code, signal) = (ended.exit_code, ended.signal);
    let mut notes = Vec::new();
    let (compacted, output_id) =
        output.finish(&Meta::new(line, i32::try_from(exit_code).ok()), &mut notes);
    match ended.leftovers {
        Some(0) => {}
        Some(1) => notes.push("[1 process that was left running was ended]".into()),
        Some(count) => notes.push(format!("[{count} processes that were left running were ended]")),
        // What was ended from outside is ended whole; how much of it there was need not be known.
        None if ended.timed_out || ended.cancelled || ended.broken.is_some() => {}
        None => notes.push("[what was left running was ended; it could not be counted]".into()),
    }
    notes.extend(ended.memory_note());
    notes.extend(warnings);
    let first = if let Some(reason) = &ended.broken {
        format!("[{reason}]")
    } else if ended.cancelled {
        "[cancelled]".to_owned()
    } else if ended.timed_out {
        format!("[timed out after {}s]", timeout.as_secs())
    } else {
        format!("[Exit code: {exit_code}]")
    };
    let facts = Facts::default()
        .with("exit_code", ended.broken.is_none().then_some(exit_code))
        .with("signal", signal)
        .with("timed_out", ended.timed_out)
        .with("cancelled", ended.cancelled)
        .with("truncated", compacted.truncated)
        .with("duration_ms", ended.duration.as_millis())
        .with("leftovers", ended.leftovers)
        .with_some("output_id", output_id)
        .with("raw_tokens", compacted.stats.raw_tokens)
        .with("out_tokens", compacted.stats.out_tokens)
        .with("sandbox", sandbox);
    let text = text(&first, &compacted, &notes);
    if ended.broken.is_some() {
        return Err(Failure::new(ErrorKind::EngineUnavailable, text).facts(facts));
    }
    if ended.cancelled {
        return Err(Failure::new(ErrorKind::Cancelled, text).facts(facts));
    }
    if ended.timed_out {
        return Err(Failure::new(ErrorKind::Timeout, text).facts(facts));
    }
    Ok(Reply::text(text).facts(facts))
}

fn text(first: &str, compacted: &Compacted, notes: &[String]) -> String {
    let mut text = format!("{first}\n{}", compacted.text);
    for note in notes {
        if !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(note);
    }
    text
}
