//! `run_bash`: one bash command, confined, bounded in time, its output cut to what matters.

use std::io;
use std::time::Duration;

use proc_runner::{Cancel, End, Error, Limits, Outcome};
use rmcp::model::JsonObject;
use serde::Deserialize;
use token_filter::{Compacted, Meta, Policy, Recovery, Stream};

use super::{Effect, Row};
use crate::arguments::decode;
use crate::output_store::{OutputStore, Recording};
use crate::protected;
use crate::reply::{ErrorKind, Facts, Failure, Reply};
use crate::schema::{Argument, Kind};
use crate::shell::{Ready, rung_of, with_source};
use crate::workspace::{Session, Workspace};

const ARGUMENTS: &[Argument] = &[
    Argument::required("command", Kind::Text, "the bash command").also(&["cmd", "script"]),
    Argument::optional("timeout", Kind::Integer, "seconds until it is ended (default 60)"),
    Argument::optional("cwd", Kind::Text, "directory to run in (default: the workspace root)")
        .also(&["workdir", "working_directory", "directory"]),
    Argument::optional(
        "background",
        Kind::Boolean,
        "true answers with a job id at once and lets the command go on (default false)",
    )
    .also(&["run_in_background"]),
];

pub(super) const ROW: Row = Row {
    name: "run_bash",
    title: "Run command",
    description: "Runs a bash command in the workspace, confined, without a terminal and with stdin at end of file. \
Answers with the exit code and the merged output; long output is shortened, and each gap names the read_output call \
that returns it. What the command leaves running is ended; for a server that is to stay, use background.",
    effect: Effect::Runs,
    arguments: ARGUMENTS,
    call,
};

#[derive(Deserialize)]
struct Arguments {
    command: String,
    timeout: Option<i64>,
    #[serde(default = "root")]
    cwd: String,
    #[serde(default)]
    background: bool,
}

fn root() -> String {
    ".".into()
}

fn call(session: &Session, given: JsonObject) -> Result<Reply, Failure> {
    let Arguments { command: line, timeout, cwd, background } = decode(ARGUMENTS, given)?;
    if line.trim().is_empty() || line.contains('\0') {
        return Err(Failure::invalid_args("argument 'command' must be a command, without NUL"));
    }
    let workspace = &session.workspace;
    let given_timeout = timeout
        .map(|seconds| {
            u64::try_from(seconds)
                .map(|seconds| {
                    Duration::from_secs(seconds).min(workspace.config.max_command_timeout)
                })
                .map_err(|_| Failure::invalid_args("argument 'timeout' must not be negative"))
        })
        .transpose()?;
    let timeout = given_timeout.unwrap_or(workspace.config.command_timeout);
    let directory = workspace.jail.open_dir(&cwd)?;
    let protected = &workspace.protected;
    // Not for a job: what holds a missing name would stay in the operator's sight as long as the job.
    let hold = (!background && workspace.shell.has_mounts()).then(|| protected.hold());
    let ready = workspace.shell.prepare(&line, directory, protected.masks())?;
    if background {
        return start(workspace, ready, given_timeout);
    }
    let Ready { command, status } = ready;
    let mut output = Output::begin(workspace)?;
    let mut ran = run(command, timeout, &session.cancel, &mut output)?;
    drop(hold);
    let changes = protected.look(&workspace.jail);
    if !changes.is_empty() {
        workspace.audit.protected(&changes);
    }
    let sandbox = rung_of(status.as_ref(), &mut ran, workspace.shell.rung())?;
    let mut warnings = protected::notes(&changes);
    warnings.extend(workspace.shell.denials().iter().map(|denied| format!("[network: {denied}]")));
    answer(&line, timeout, &ran, output, &sandbox, warnings)
}

/// Leaves the command running as a job; without a timeout of its own until it is stopped.
fn start(workspace: &Workspace, ready: Ready, timeout: Option<Duration>) -> Result<Reply, Failure> {
    if !workspace.outputs.is_available() {
        return Err(Failure::new(
            ErrorKind::Internal,
            "a background job's output has no place here, since the server keeps no state; run it without \
             background",
        ));
    }
    let recording = workspace.outputs.begin().map_err(|error| {
        Failure::new(ErrorKind::Internal, format!("The output could not be stored: {error}"))
    })?;
    let rung = workspace.shell.rung();
    let timeout = timeout.unwrap_or(Duration::MAX);
    let id = workspace.jobs.start(ready, timeout, rung, recording)?;
    let text = format!(
        "[background job {id} started]\nread_output(output_id=\"{id}\") returns its output so far, \
         stop_job(job_id=\"{id}\") ends it."
    );
    let facts = Facts::default().with("job_id", id).with("state", "running");
    Ok(Reply::text(text).facts(facts.with("sandbox", rung.to_string())))
}

fn run(
    command: proc_runner::Command,
    timeout: Duration,
    cancel: &Cancel,
    output: &mut Output<'_>,
) -> Result<Outcome, Failure> {
    // The whole goes to `output`; the runner itself need not keep any of it.
    let limits = Limits::new(timeout).keep(0, 0);
    let mut sink = |bytes: &[u8]| -> io::Result<()> {
        output.push(bytes);
        Ok(())
    };
    proc_runner::run(command, &limits, cancel, &mut sink).map_err(|error| {
        let kind = match error {
            Error::Cancelled { .. } => ErrorKind::Cancelled,
            _ => ErrorKind::Internal,
        };
        Failure::new(kind, format!("The command could not be run: {}", with_source(&error)))
    })
}

/// Where the output goes while it arrives: shortened, and recorded so that nothing is lost by that.
struct Output<'w> {
    store: &'w OutputStore,
    stream: Stream,
    recording: Recording,
    /// Why the recording is not whole, if it is not.
    broken: Option<io::Error>,
}

impl<'w> Output<'w> {
    fn begin(workspace: &'w Workspace) -> Result<Self, Failure> {
        let store = &workspace.outputs;
        let recording = store.begin().map_err(|error| {
            Failure::new(ErrorKind::Internal, format!("The output could not be stored: {error}"))
        })?;
        let policy = Policy::default().with_budget_tokens(workspace.config.output_budget);
        Ok(Self { store, stream: Stream::new(&policy), recording, broken: None })
    }

    fn push(&mut self, bytes: &[u8]) {
        self.stream.push(bytes);
        if self.broken.is_none() {
            self.broken = self.recording.push(bytes).err();
        }
    }

    /// Shortens the output. It is stored first: a marker that names it must be redeemable.
    fn finish(self, meta: &Meta<'_>, notes: &mut Vec<String>) -> (Compacted, Option<String>) {
        let Self { store, mut stream, mut recording, mut broken } = self;
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

fn answer(
    line: &str,
    timeout: Duration,
    ran: &Outcome,
    output: Output<'_>,
    sandbox: &str,
    warnings: Vec<String>,
) -> Result<Reply, Failure> {
    let (exit_code, signal) = match ran.end {
        End::Exited(code) => (i32::from(code), None),
        End::Signaled(signal) => (128 + signal, Some(signal)),
    };
    let mut notes = Vec::new();
    let (compacted, output_id) = output.finish(&Meta::new(line, Some(exit_code)), &mut notes);
    match ran.leftovers {
        Some(0) => {}
        Some(1) => notes.push("[1 process that was left running was ended]".into()),
        Some(count) => notes.push(format!("[{count} processes that were left running were ended]")),
        // What was ended from outside is ended whole; how much of it there was need not be known.
        None if ran.timed_out || ran.cancelled => {}
        None => notes.push("[what was left running was ended; it could not be counted]".into()),
    }
    notes.extend(warnings);
    let first = if ran.cancelled {
        "[cancelled]".to_owned()
    } else if ran.timed_out {
        format!("[timed out after {}s]", timeout.as_secs())
    } else {
        format!("[Exit code: {exit_code}]")
    };
    let facts = Facts::default()
        .with("exit_code", exit_code)
        .with("signal", signal)
        .with("timed_out", ran.timed_out)
        .with("cancelled", ran.cancelled)
        .with("truncated", compacted.truncated)
        .with("duration_ms", ran.duration.as_millis())
        .with("leftovers", ran.leftovers)
        .with_some("output_id", output_id)
        .with("raw_tokens", compacted.stats.raw_tokens)
        .with("out_tokens", compacted.stats.out_tokens)
        .with("sandbox", sandbox);
    let text = text(&first, &compacted, &notes);
    if ran.cancelled {
        return Err(Failure::new(ErrorKind::Cancelled, text).facts(facts));
    }
    if ran.timed_out {
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
