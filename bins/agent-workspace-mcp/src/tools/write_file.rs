//! `write_file`: a whole file, checked before it is written and replaced at once or not at all.

use std::path::Path;

use fuzzy_edit::Verdict;
use rmcp::model::JsonObject;
use serde::Deserialize;
use workspace_jail::{Error, Intent};

use super::{Effect, Row, VALIDATE};
use crate::arguments::decode;
use crate::reply::{ErrorKind, Facts, Failure, Reply};
use crate::schema::{Argument, FILE_ALIASES, Kind};
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
}

fn call(session: &Session, given: JsonObject) -> Result<Reply, Failure> {
    let Arguments { filepath, content, create_only, validate, expected_sha256 } =
        decode(ARGUMENTS, given)?;
    let expected = expected_sha256.as_deref().map(super::parse_sha256).transpose()?;
    // A version to overwrite says that the file is meant to be there.
    let create_only = create_only.unwrap_or(expected.is_none());
    let intent = if create_only { Intent::Create } else { Intent::Replace };
    let (jail, config) = (&session.workspace.jail, &session.workspace.config);

    jail.check_write(&filepath, intent, content.len() as u64, config.max_write_bytes).map_err(
        |error| match error {
            Error::TooLarge { size, max, .. } => Failure::new(
                ErrorKind::TooLarge,
                format!(
                    "The content has {size} bytes, which exceeds MAX_WRITE_SIZE_BYTES ({max}); write it in parts"
                ),
            ),
            error => error.into(),
        },
    )?;
    if validate.as_deref() != Some("off")
        && let Verdict::Invalid(issue) =
            fuzzy_edit::validate(Path::new(&filepath), content.as_bytes())
    {
        return Err(Failure::new(
            ErrorKind::SyntaxInvalid,
            format!("{issue}\nNothing was written. Mend the content, or pass validate=\"off\"."),
        )
        .facts(Facts::default().with("line", issue.line).with("column", issue.column)));
    }
    let written = match intent {
        Intent::Create => jail.create(&filepath, content.as_bytes())?,
        _ => jail.replace(&filepath, content.as_bytes(), expected)?,
    };
    let facts = Facts::default()
        .with("bytes", written.bytes)
        .with("created", written.created)
        .with("sha256", written.sha256.to_string());
    Ok(Reply::text(format!("Successfully wrote {} bytes to {filepath}", written.bytes))
        .facts(facts))
}
