//! `read_file`: lines of a text file, exactly; a page costs what the page holds.

use std::fmt::Write as _;

use rmcp::model::JsonObject;
use serde::Deserialize;
use workspace_jail::{Error, PageRequest};

use super::{Effect, Row, not_found};
use crate::arguments::decode;
use crate::reply::{ErrorKind, Facts, Failure, Reply};
use crate::schema::{Argument, FILE_ALIASES, Kind};
use crate::workspace::Session;

const ARGUMENTS: &[Argument] = &[
    Argument::required("filepath", Kind::Text, "the file, relative to the workspace root")
        .also(FILE_ALIASES),
    Argument::optional(
        "offset",
        Kind::Integer,
        "zero-based line to start at, negative counts from the end (default 0)",
    ),
    Argument::optional("limit", Kind::Integer, "lines to return (default 100)"),
    Argument::optional(
        "line_numbers",
        Kind::Boolean,
        "put N<tab> before each line (default false)",
    ),
    Argument::optional(
        "if_changed_since",
        Kind::Text,
        "sha256 of the version you know; answers 'unchanged' if it still holds",
    ),
];

pub(super) const ROW: Row = Row {
    name: "read_file",
    title: "Read file",
    description: "Returns lines of a text file exactly as they are. A last bracketed line tells how to go on when \
more lines follow.",
    effect: Effect::Reads,
    arguments: ARGUMENTS,
    call,
};

#[derive(Deserialize)]
struct Arguments {
    filepath: String,
    #[serde(default)]
    offset: i64,
    limit: Option<i64>,
    #[serde(default)]
    line_numbers: bool,
    if_changed_since: Option<String>,
}

fn call(session: &Session, given: JsonObject) -> Result<Reply, Failure> {
    const DEFAULT_LIMIT: u64 = 100;
    let Arguments { filepath, offset, limit, line_numbers, if_changed_since } =
        decode(ARGUMENTS, given)?;
    let limit = match limit {
        None => DEFAULT_LIMIT,
        Some(limit) => u64::try_from(limit)
            .map_err(|_| Failure::invalid_args("argument 'limit' must not be negative"))?,
    };
    let jail = &session.workspace.jail;
    if let Some(known) = if_changed_since
        && jail.sha256(&filepath).map_err(|error| not_found(session, error))?.to_string()
            == known.to_ascii_lowercase()
    {
        return Ok(Reply::text("unchanged").facts(Facts::default().with("sha256", known)));
    }

    let request =
        PageRequest::new(offset, limit).max_bytes(session.workspace.config.max_read_bytes);
    let page = jail.read_page(&filepath, &request).map_err(|error| match error {
        Error::TooLarge { path, size, max } => Failure::new(
            ErrorKind::TooLarge,
            format!(
                "These lines of '{path}' have {size} bytes or more, which exceeds MAX_READ_SIZE_BYTES ({max}); \
                 ask for fewer with limit, or cut long lines with a command of run_bash"
            ),
        ),
        error => not_found(session, error),
    })?;

    let lossy = page.text();
    let mut text = match (line_numbers, page.first_line) {
        (true, Some(first)) => numbered(&lossy, first),
        // Without a known first line there is no honest number to give.
        _ => lossy.to_string(),
    };
    let mut notes = Vec::new();
    if let Some(next) = page.next_offset {
        let first = page.first_line.map(|line| line + 1);
        let shown = match (first, page.total_lines) {
            (Some(first), Some(total)) => {
                format!("lines {first}-{} of {total}", first + page.lines.saturating_sub(1))
            }
            (Some(first), None) => {
                format!("lines {first}-{}", first + page.lines.saturating_sub(1))
            }
            (None, _) => format!("{} lines", page.lines),
        };
        notes.push(format!("[{shown}; continue with offset={next}]"));
    } else if page.lines == 0 && page.size > 0 {
        let total = page.total_lines.map_or_else(String::new, |total| format!(" {total}"));
        notes.push(format!("[no line at offset {offset}: the file has{total} lines]"));
    }
    if matches!(lossy, std::borrow::Cow::Owned(_)) {
        notes.push("[some bytes are not UTF-8 and are shown as \u{FFFD}]".into());
    }
    for note in notes {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&note);
    }
    let facts = Facts::default()
        .with_some("total_lines", page.total_lines)
        .with_some("next_offset", page.next_offset)
        .with_some("sha256", page.sha256.map(|sha256| sha256.to_string()));
    Ok(Reply::text(text).facts(facts))
}

fn numbered(text: &str, first: u64) -> String {
    let mut numbered = String::with_capacity(text.len() + text.len() / 8);
    for (number, line) in (first + 1..).zip(text.split_inclusive('\n')) {
        // Writing to a string cannot fail.
        let _written = write!(numbered, "{number}\t{line}");
    }
    numbered
}
