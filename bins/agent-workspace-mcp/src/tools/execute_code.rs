//! `execute_code`: runs code in a disposable sandbox, and answers like `run_bash`.

use std::time::Duration;

use rmcp::model::JsonObject;
use serde::Deserialize;

use super::{Effect, Row, initialize_sandbox};
use crate::arguments::decode;
use crate::disposables::{Backend, Native, Place};
use crate::languages::{self, LANGUAGES, Language};
use crate::reply::{ErrorKind, Facts, Failure, Reply};
use crate::running::{self, Ended, Output};
use crate::schema::{Argument, Kind};
use crate::seen::Changes;
use crate::workspace::{Session, Workspace};

const ARGUMENTS: &[Argument] = &[
    Argument::required("code", Kind::Text, "the code to run").also(&["source", "script"]),
    Argument::optional(
        "language",
        Kind::Text,
        "python, bash, sh, javascript, typescript, ruby, perl, php, go, rust, c or java (default python)",
    )
    .also(&["lang"]),
    Argument::optional(
        "sandbox_id",
        Kind::Text,
        "where to run it (default: the only open sandbox, or a new native one)",
    )
    .also(&["id"]),
    Argument::optional("timeout", Kind::Integer, "seconds until it is ended (default 60)"),
];

pub(super) const ROW: Row = Row {
    name: "execute_code",
    title: "Run code in a sandbox",
    description: "Runs code in a disposable sandbox, away from the workspace and without network; files it makes stay \
there between calls and are named in the answer. Answers with the exit code and the output, like run_bash.",
    effect: Effect::Runs,
    arguments: ARGUMENTS,
    call,
};

#[derive(Deserialize)]
struct Arguments {
    code: String,
    language: Option<String>,
    sandbox_id: Option<String>,
    timeout: Option<i64>,
}

fn call(session: &Session, given: JsonObject) -> Result<Reply, Failure> {
    let Arguments { code, language, sandbox_id, timeout } = decode(ARGUMENTS, given)?;
    let workspace = &session.workspace;
    if code.trim().is_empty() || code.contains('\0') {
        return Err(Failure::invalid_args("argument 'code' must be code, without NUL"));
    }
    let language = language.as_deref().unwrap_or("python");
    let language = languages::find(language).ok_or_else(|| {
        let known: Vec<_> = LANGUAGES.iter().map(|language| language.name).collect();
        Failure::invalid_args(format!(
            "unknown language '{language}'; the languages are {}",
            known.join(", ")
        ))
    })?;
    if code.len() as u64 > workspace.config.max_write_bytes {
        return Err(Failure::new(
            ErrorKind::TooLarge,
            format!("the code exceeds MAX_WRITE_SIZE_BYTES ({})", workspace.config.max_write_bytes),
        ));
    }
    let timeout = running::timeout(workspace, timeout)?.unwrap_or(workspace.config.command_timeout);
    let disposables = &workspace.disposables;
    let place = if let Some(found) = disposables.get(sandbox_id.as_deref(), &session.cancel)? {
        found
    } else {
        let native = initialize_sandbox::native(workspace, false)?;
        disposables.add(Place::new(Backend::Native(Box::new(native))), &session.cancel)?
    };
    let mut output = Output::begin(session)?;
    let number = place.number();
    let (file, line) = language.names(number.get());
    let job = Job { session, language, file: &file, line: &line, code: &code, timeout };
    let mut notes = Vec::new();
    let (ended, sandbox, changes) = match &place.backend {
        Backend::Native(native) => {
            let (ended, sandbox) = in_native(&job, &place, native, &mut output)?;
            notes.extend(denials(workspace, native));
            (ended, sandbox, Some(native.look(&place)))
        }
        #[cfg(feature = "container")]
        Backend::Container(contained) => {
            let ended = in_container(&job, &place, contained, &mut output)?;
            // What has ended with its container has no files; who has cancelled asks for none.
            let seen = (!ended.cancelled).then(|| contained.seen(&session.cancel).ok()).flatten();
            (ended, "container".to_owned(), seen.map(|seen| place.look(seen)))
        }
    };
    notes.extend(changes.as_ref().and_then(|changes| changes.note(&place.id)));
    let answered = running::answer(&line, timeout, &ended, output, &sandbox, notes);
    let named = |facts: Facts| {
        facts
            .with("sandbox_id", &place.id)
            .with("backend", place.backend())
            .with_some("changed_files", changes.as_ref().and_then(Changes::count))
    };
    match answered {
        Ok(mut reply) => {
            reply.facts = named(reply.facts);
            Ok(reply)
        }
        Err(failure) => Err(failure.map_facts(named)),
    }
}

/// What the code wanted of the network and did not get.
fn denials(workspace: &Workspace, native: &Native) -> Vec<String> {
    let denials: Vec<_> = native.shell.denials().iter().map(ToString::to_string).collect();
    if !denials.is_empty() {
        workspace.audit.denied_network(&denials);
    }
    denials.iter().map(|denied| format!("[network: {denied}]")).collect()
}

/// Code to be run.
struct Job<'c> {
    session: &'c Session,
    language: &'static Language,
    /// Where the code goes.
    file: &'c str,
    /// What runs it.
    line: &'c str,
    code: &'c str,
    timeout: Duration,
}

fn in_native(
    job: &Job<'_>,
    place: &Place,
    native: &Native,
    output: &mut Output<'_>,
) -> Result<(Ended, String), Failure> {
    let Job { session, language, file, line, code, timeout } = *job;
    let rung = native.shell.rung();
    let prepare = |line: &str| {
        let line = format!("{}{line}", native.preamble);
        native.shell.prepare(&line, native.jail().open_dir(".")?, &[])
    };
    if !place.knows(language) {
        let mut ignored = Output::begin(session)?;
        let most = session.workspace.config.command_timeout;
        let (found, _) =
            running::run(prepare(&language.look())?, most, &session.cancel, &mut ignored, rung)?;
        match found.exit_code {
            0 => place.learn(language),
            _ if found.cancelled => {}
            _ => return Err(missing(language, "this machine, as far as sandboxes see it,")),
        }
    }
    native.jail().replace(file, code.as_bytes(), None)?;
    running::run(prepare(line)?, timeout, &session.cancel, output, rung)
}

#[cfg(feature = "container")]
fn in_container(
    job: &Job<'_>,
    place: &Place,
    contained: &crate::contained::Contained,
    output: &mut Output<'_>,
) -> Result<Ended, Failure> {
    let Job { session, language, file, line, code, timeout } = *job;
    if !place.knows(language) {
        if !contained.has(language)? {
            return Err(missing(language, "the image"));
        }
        place.learn(language);
    }
    contained.write(file, code)?;
    contained.run(line, timeout, &session.cancel, output)
}

fn missing(language: &Language, place: &str) -> Failure {
    let Language { name, program, brought_by, trial, .. } = language;
    let which = if trial.is_empty() { ", which" } else { " of a version that" };
    Failure::new(
        ErrorKind::InterpreterMissing,
        format!("{place} has no {program}{which} runs {name}; {brought_by} would bring it"),
    )
}
