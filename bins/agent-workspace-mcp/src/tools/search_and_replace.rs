//! `search_and_replace`: edits that land where they were meant, shown as a diff, or not at all.

use std::path::Path;

use fuzzy_edit::{Edit, EditError, Limits, Options, Plan, Unchecked, Validate, Warning};
use rmcp::model::JsonObject;
use serde::Deserialize;
use workspace_jail::{Error, Intent};

use super::{Effect, Row, VALIDATE};
use crate::arguments::decode;
use crate::files::Files;
use crate::reply::{ErrorKind, Facts, Failure, Reply};
use crate::schema::{Argument, FILE_ALIASES, Kind};
use crate::workspace::Session;

const FIELDS: &[Argument] = &[
    Argument::required("old", Kind::Text, "the text to replace, copied from the file")
        .also(&["old_str", "old_string", "oldText", "old_text", "search"])
        .answered_by_tool(),
    Argument::required("new", Kind::Text, "the text to put there; empty deletes")
        .also(&["new_str", "new_string", "newText", "new_text", "replace"])
        .answered_by_tool(),
    Argument::optional("replace_all", Kind::Boolean, "replace every place (default false)"),
    Argument::optional(
        "expected_count",
        Kind::Integer,
        "replace every place, if there are so many",
    ),
    Argument::optional("at_line", Kind::Integer, "1-based line where the wanted place begins"),
];

const ARGUMENTS: &[Argument] = &[
    Argument::required("filepath", Kind::Text, "the file, relative to the workspace root")
        .also(FILE_ALIASES),
    Argument::required("edits", Kind::Objects(FIELDS), "edits, applied in order, all or none")
        .answered_by_tool(),
    Argument::optional("dry_run", Kind::Boolean, "show the diff and write nothing (default false)"),
    VALIDATE,
    Argument::optional(
        "min_similarity",
        Kind::Number,
        "0 to 1: accept context lines that differ a little (default: off)",
    ),
    Argument::optional("expected_sha256", Kind::Text, "edit only this version"),
];

pub(super) const ROW: Row = Row {
    name: "search_and_replace",
    title: "Edit file",
    description: "Replaces text in a file. Each old must name one place; wrong indentation and blanks are \
forgiven and the file's own kept. Ambiguous or missing text and results that do not parse are refused, \
and then nothing is written. Answers with a diff.",
    effect: Effect::Writes,
    arguments: ARGUMENTS,
    call,
};

/// The most bytes of a diff in one answer.
const DIFF_BYTES: usize = 64 * 1024;

#[derive(Deserialize)]
struct Arguments {
    filepath: String,
    #[serde(default)]
    edits: Vec<Fields>,
    #[serde(default)]
    dry_run: bool,
    validate: Option<String>,
    min_similarity: Option<f32>,
    expected_sha256: Option<String>,
}

#[derive(Deserialize)]
struct Fields {
    old: Option<String>,
    new: Option<String>,
    #[serde(default)]
    replace_all: bool,
    expected_count: Option<i64>,
    at_line: Option<i64>,
}

fn call(session: &Session, given: JsonObject) -> Result<Reply, Failure> {
    let Arguments { filepath, edits, dry_run, validate, min_similarity, expected_sha256 } =
        decode(ARGUMENTS, given)?;
    let expected = expected_sha256.as_deref().map(super::parse_sha256).transpose()?;
    let similar = min_similarity.is_some_and(|least| !(0.0..=1.0).contains(&least));
    if similar {
        return Err(Failure::invalid_args("argument 'min_similarity' must lie between 0 and 1"));
    }
    let (jail, config) = (&session.workspace.jail, &session.workspace.config);
    let max_bytes = config.max_write_bytes.saturating_mul(10);

    // A missing file is missing before it is protected.
    let allowed = jail.check_write(&filepath, Intent::Replace, 0, max_bytes);
    let before = match (allowed, jail.read_text(&filepath, max_bytes)) {
        (_, Err(missing @ Error::NotFound { .. })) => {
            return Err(Files::workspace(session).not_found(missing));
        }
        (Err(refused), _) => return Err(refused.into()),
        (Ok(()), Err(Error::TooLarge { size, max, .. })) => {
            return Err(Failure::new(
                ErrorKind::TooLarge,
                format!(
                    "'{filepath}' has {size} bytes, which exceeds ten times MAX_WRITE_SIZE_BYTES ({max})"
                ),
            ));
        }
        (Ok(()), before) => before?,
    };
    if expected.is_some_and(|expected| expected != before.sha256) {
        return Err(Error::Stale { path: filepath }.into());
    }

    let edits = edits.into_iter().enumerate().map(edit).collect::<Result<Vec<_>, _>>()?;
    let limits = Limits::default()
        .file_bytes(usize::try_from(max_bytes).unwrap_or(usize::MAX))
        .diff_bytes(DIFF_BYTES);
    let options = Options::default()
        .limits(limits)
        .min_similarity(min_similarity)
        .validate(if validate.as_deref() == Some("off") { Validate::Off } else { Validate::Auto });
    let plan = fuzzy_edit::plan(before.text.as_bytes(), Path::new(&filepath), &edits, &options)?;

    let sha256 = if dry_run || !plan.changed {
        workspace_jail::Sha256::of(&plan.text)
    } else {
        jail.replace(&filepath, &plan.text, Some(before.sha256))?.sha256
    };
    Ok(answer(&filepath, &plan, dry_run, &sha256.to_string()))
}

fn edit((index, fields): (usize, Fields)) -> Result<Edit, EditError> {
    let Fields { old, new, replace_all, expected_count, at_line } = fields;
    let refuse = |reason: &str| EditError::invalid_edit(Some(index), reason);
    let (Some(old), Some(new)) = (old, new) else {
        return Err(refuse("an edit needs 'old' and 'new'"));
    };
    let positive = |name: &str, value: Option<i64>| {
        value
            .map(|value| usize::try_from(value).ok().filter(|value| *value > 0))
            .map(|value| value.ok_or_else(|| refuse(&format!("'{name}' must be at least 1"))))
            .transpose()
    };
    let mut edit = Edit::new(old, new);
    edit.replace_all = replace_all;
    edit.expected_count = positive("expected_count", expected_count)?;
    edit.at_line = positive("at_line", at_line)?;
    Ok(edit)
}

fn answer(filepath: &str, plan: &Plan, dry_run: bool, sha256: &str) -> Reply {
    let count = plan.applied.len();
    let matched = format!("({} exact, {} fuzzy-matched)", plan.stats.exact, plan.stats.fuzzy);
    let mut text = if dry_run {
        format!("DRY RUN, nothing written: {count} edits {matched} would apply to '{filepath}':")
    } else {
        format!("Successfully applied {count} edits {matched} to '{filepath}':")
    };
    if plan.changed {
        text.push('\n');
        text.push_str(&plan.diff);
        if plan.diff_truncated {
            text.push_str("\n[the diff goes on; read the file to see the rest]");
        }
    } else {
        text.push_str("\n[no change: the file already reads like this]");
    }
    // That a text file has no syntax to check is no news.
    let unknown = Warning::NotValidated(Unchecked::UnknownLanguage);
    for warning in plan.warnings.iter().filter(|warning| **warning != unknown) {
        if !text.ends_with('\n') {
            text.push('\n');
        }
        text.extend(["[", &warning.to_string(), "]\n"]);
    }
    let levels: Vec<_> = plan.applied.iter().map(|applied| applied.level.name()).collect();
    let lines: Vec<_> = plan
        .applied
        .iter()
        .flat_map(|applied| applied.lines.iter().map(|span| span.first))
        .collect();
    let warnings: Vec<_> = plan.warnings.iter().map(Warning::name).collect();
    let facts = Facts::default()
        .with("levels", levels)
        .with("count", plan.stats.replacements)
        .with("lines", lines)
        .with("changed", plan.changed)
        .with("warnings", warnings)
        .with("sha256", sha256);
    Reply::text(text).facts(facts)
}
