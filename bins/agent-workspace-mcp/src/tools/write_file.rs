//! `write_file`: a whole file, checked before it is written and replaced at once or not at all.

use std::path::Path;

use fuzzy_edit::Verdict;
use rmcp::model::JsonObject;
use serde::Deserialize;
use workspace_jail::{Error, Intent, Jail, Sha256, Written};

use super::{Effect, Row, VALIDATE};
use crate::arguments::decode;
use crate::files::{Files, Where};
use crate::reply::{ErrorKind, Facts, Failure, Reply};
use crate::schema::{Argument, FILE_ALIASES, Kind, SANDBOX};
use crate::workspace::Session;

const ARGUMENTS: &[Argument] = &[
    Argument::required("filepath", Kind::Text, "the file, relative to the workspace root")
        .also(FILE_ALIASES),
    Argument::required("content", Kind::Text, "the whole content"),
    Argument::optional(
        "create_only",
        Kind::Boolean,
        "refuse when the file exists; false overwrites it (default true)",
    ),
    VALIDATE,
    Argument::optional("expected_sha256", Kind::Text, "overwrite only this version"),
    SANDBOX,
];

pub(super) const ROW: Row = Row {
    name: "write_file",
    title: "Write file",
    description: "Writes a whole file; missing directories are made. To change a part of an existing file use \
search_and_replace. A refusal leaves everything as it was.",
    effect: Effect::Writes,
    arguments: ARGUMENTS,
    call,
};

#[derive(Deserialize)]
struct Arguments {
    filepath: String,
    content: String,
    create_only: Option<bool>,
    validate: Option<String>,
    expected_sha256: Option<String>,
    sandbox_id: Option<String>,
}

/// A write that was made.
struct Done {
    bytes: u64,
    created: bool,
    sha256: Sha256,
}

fn call(session: &Session, given: JsonObject) -> Result<Reply, Failure> {
    let arguments: Arguments = decode(ARGUMENTS, given)?;
    let expected = arguments.expected_sha256.as_deref().map(super::parse_sha256).transpose()?;
    // A version to overwrite says that the file is meant to be there.
    let create_only = arguments.create_only.unwrap_or(expected.is_none());
    let intent = if create_only { Intent::Create } else { Intent::Replace };
    let files = Files::of(session, arguments.sandbox_id.as_deref())?;
    let (done, seen) = match files.place() {
        Where::Jail(jail) => (in_jail(session, jail, &arguments, intent, expected)?, None),
        #[cfg(feature = "container")]
        Where::Container(contained) => {
            in_container(session, &files, contained, &arguments, intent, expected)?
        }
    };
    files.written(seen);
    let facts = Facts::default()
        .with("bytes", done.bytes)
        .with("created", done.created)
        .with("sha256", done.sha256.to_string());
    Ok(Reply::text(format!("Successfully wrote {} bytes to {}", done.bytes, arguments.filepath))
        .facts(facts))
}

fn in_jail(
    session: &Session,
    jail: &Jail,
    arguments: &Arguments,
    intent: Intent,
    expected: Option<Sha256>,
) -> Result<Done, Failure> {
    let Arguments { filepath, content, .. } = arguments;
    let max = session.workspace.config.max_write_bytes;
    jail.check_write(filepath, intent, content.len() as u64, max).map_err(|error| match error {
        Error::TooLarge { size, max, .. } => too_large(size, max),
        error => error.into(),
    })?;
    check_syntax(arguments)?;
    let Written { bytes, created, sha256, .. } = match intent {
        Intent::Create => jail.create(filepath, content.as_bytes())?,
        _ => jail.replace(filepath, content.as_bytes(), expected)?,
    };
    Ok(Done { bytes, created, sha256 })
}

/// The same in a container, in the same order.
#[cfg(feature = "container")]
fn in_container(
    session: &Session,
    files: &Files<'_>,
    contained: &crate::contained::Contained,
    arguments: &Arguments,
    intent: Intent,
    expected: Option<Sha256>,
) -> Result<(Done, Option<crate::seen::Seen>), Failure> {
    let Arguments { filepath, content, .. } = arguments;
    let (bytes, max) = (content.len() as u64, session.workspace.config.max_write_bytes);
    let create = intent == Intent::Create;
    match contained.check_write(filepath, create, &session.cancel) {
        Err(failure) if failure.kind() != ErrorKind::AlreadyExists => return Err(failure),
        _ if bytes > max => return Err(too_large(bytes, max)),
        checked => checked?,
    }
    check_syntax(arguments)?;
    if let Some(expected) = expected {
        let stale = || Failure::from(Error::Stale { path: filepath.clone() });
        let there = match files.readable(filepath) {
            Err(failure) if failure.kind() == ErrorKind::NotFound => return Err(stale()),
            there => there?,
        };
        if there.read(Jail::sha256)? != expected {
            return Err(stale());
        }
    }
    let (created, seen) = contained.store(filepath, content, create, &session.cancel)?;
    let sha256 = Sha256::of(content.as_bytes());
    Ok((Done { bytes, created, sha256 }, Some(seen)))
}

fn too_large(size: u64, max: u64) -> Failure {
    Failure::new(
        ErrorKind::TooLarge,
        format!(
            "The content has {size} bytes, which exceeds MAX_WRITE_SIZE_BYTES ({max}); write it in parts"
        ),
    )
}

fn check_syntax(arguments: &Arguments) -> Result<(), Failure> {
    let Arguments { filepath, content, validate, .. } = arguments;
    if validate.as_deref() != Some("off")
        && let Verdict::Invalid(issue) =
            fuzzy_edit::validate(Path::new(filepath), content.as_bytes())
    {
        return Err(Failure::new(
            ErrorKind::SyntaxInvalid,
            format!("{issue}\nNothing was written. Mend the content, or pass validate=\"off\"."),
        )
        .facts(Facts::default().with("line", issue.line).with("column", issue.column)));
    }
    Ok(())
}
