//! `execute_code`: runs code in a disposable sandbox, and answers like `run_bash`.

use std::time::Duration;

use rmcp::model::JsonObject;
use serde::Deserialize;

use super::{Effect, Row, initialize_sandbox};
use crate::arguments::decode;
use crate::disposables::{Native, Place};
use crate::languages::{self, LANGUAGES, Language};
use crate::reply::{ErrorKind, Failure, Reply};
use crate::running::{self, Ended, Output};
use crate::schema::{Argument, Kind};
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
there between calls. Answers with the exit code and the output, like run_bash.",
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
    let (id, place) = if let Some(found) = workspace.disposables.get(sandbox_id.as_deref())? {
        found
    } else {
        let native = initialize_sandbox::native(workspace, false)?;
        workspace.disposables.add(Place::Native(Box::new(native)))?
    };
    let mut output = Output::begin(session)?;
    let (ended, sandbox) = match &*place {
        Place::Native(native) => in_native(session, native, language, &code, timeout, &mut output)?,
        #[cfg(feature = "container")]
        Place::Container(contained) => {
            if !contained.has(language.program)? {
                return Err(missing(language, "the image"));
            }
            contained.write(language.file, &code)?;
            let ended = contained.run(language.line, timeout, &session.cancel, &mut output)?;
            (ended, "container".to_owned())
        }
    };
    let answered = running::answer(language.line, timeout, &ended, output, &sandbox, Vec::new());
    let named =
        |facts: crate::reply::Facts| facts.with("sandbox_id", &id).with("backend", place.backend());
    match answered {
        Ok(mut reply) => {
            reply.facts = named(reply.facts);
            Ok(reply)
        }
        Err(failure) => Err(failure.map_facts(named)),
    }
}

fn in_native(
    session: &Session,
    native: &Native,
    language: &Language,
    code: &str,
    timeout: Duration,
    output: &mut Output<'_>,
) -> Result<(Ended, String), Failure> {
    let workspace: &Workspace = &session.workspace;
    let rung = native.shell.rung();
    let prepare = |line: &str| native.shell.prepare(line, native.jail.open_dir(".")?, &[]);
    let look = format!("command -v {} >/dev/null", language.program);
    let mut ignored = Output::begin(session)?;
    let (found, _) = running::run(
        prepare(&look)?,
        workspace.config.command_timeout,
        &session.cancel,
        &mut ignored,
        rung,
    )?;
    if found.exit_code != 0 && !found.cancelled {
        return Err(missing(language, "this machine, as far as sandboxes see it,"));
    }
    native.jail.replace(language.file, code.as_bytes(), None)?;
    running::run(prepare(language.line)?, timeout, &session.cancel, output, rung)
}

fn missing(language: &Language, place: &str) -> Failure {
    let Language { name, program, brought_by, .. } = language;
    Failure::new(
        ErrorKind::InterpreterMissing,
        format!("{place} has no {program}, which runs {name}; {brought_by} would bring it"),
    )
}
