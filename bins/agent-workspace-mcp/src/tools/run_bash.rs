//! `run_bash`: one bash command, confined, bounded in time, its output cut to what matters.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::JsonObject;
use serde::Deserialize;

use super::{Effect, Row};
use crate::arguments::decode;
use crate::protected;
use crate::reply::{ErrorKind, Facts, Failure, Reply};
use crate::running::{self, Output};
use crate::schema::{Argument, Kind};
use crate::shell::Ready;
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
    let given_timeout = running::timeout(workspace, timeout)?;
    let timeout = given_timeout.unwrap_or(workspace.config.command_timeout);
    let directory = workspace.jail.open_dir(&cwd)?;
    let protected = &workspace.protected;
    // Not for a job: what holds a missing name would stay in the operator's sight as long as the job.
    let hold = (!background && workspace.shell.has_mounts()).then(|| protected.hold());
    let ready = workspace.shell.prepare(&line, directory, protected.masks())?;
    let ready = ready.heard(&session.heard);
    if background {
        return start(session, ready, given_timeout);
    }
    let mut output = Output::begin(session)?;
    let (ended, sandbox) =
        running::run(ready, timeout, &session.cancel, &mut output, workspace.shell.rung())?;
    drop(hold);
    running::answer(&line, timeout, &ended, output, &sandbox, afterwards(workspace))
}

/// What is seen when a command has ended, for the record and, line by line, for the answer: protected names that
/// changed, and hosts it did not get.
fn afterwards(workspace: &Workspace) -> Vec<String> {
    let changes = workspace.protected.look(&workspace.jail);
    if !changes.is_empty() {
        workspace.audit.protected(&changes);
    }
    let mut warnings = protected::notes(&changes);
    let denials: Vec<_> = workspace.shell.denials().iter().map(ToString::to_string).collect();
    if !denials.is_empty() {
        workspace.audit.denied_network(&denials);
    }
    warnings.extend(denials.iter().map(|denied| format!("[network: {denied}]")));
    warnings
}

/// Leaves the command running as a job; without a timeout of its own until it is stopped.
fn start(session: &Session, ready: Ready, timeout: Option<Duration>) -> Result<Reply, Failure> {
    let workspace = &session.workspace;
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
    // The workspace ends its jobs, so no job keeps it.
    let place = Arc::downgrade(workspace);
    let seen = move || place.upgrade().map_or_else(Vec::new, |place| afterwards(&place));
    let id = workspace.jobs.start(ready.apart(), timeout, rung, recording, seen)?;
    let text = format!(
        "[background job {id} started]\nread_output(output_id=\"{id}\") returns its output so far, \
         stop_job(job_id=\"{id}\") ends it."
    );
    let facts = Facts::default().with("job_id", id).with("state", "running");
    Ok(Reply::text(text).facts(facts.with("sandbox", workspace.shell.standing())))
}
