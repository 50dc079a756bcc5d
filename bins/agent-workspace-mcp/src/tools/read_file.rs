//! `read_file`: lines of a text file, exactly; a page costs what the page holds.
//!
//! From a disposable sandbox also a picture, as code that plots makes one. In the workspace a picture is a binary file
//! like any other: answers there are one block of text, always.

use std::fmt::Write as _;

use rmcp::model::JsonObject;
use serde::Deserialize;
use workspace_jail::{Error, Escaped, Jail, PageRequest};

use super::{Effect, Row};
use crate::arguments::decode;
use crate::files::{Files, Readable};
use crate::reply::{ErrorKind, Facts, Failure, Image, Reply, counted};
use crate::schema::{Argument, FILE_ALIASES, Kind, SANDBOX};
use crate::workspace::Session;

/// Bytes of a picture. As text it is a third longer, and clients take five million of that.
const MOST_OF_PICTURE: u64 = 3_500_000;

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
    SANDBOX,
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
    sandbox_id: Option<String>,
}

fn call(session: &Session, given: JsonObject) -> Result<Reply, Failure> {
    const DEFAULT_LIMIT: u64 = 100;
    let Arguments { filepath, offset, limit, line_numbers, if_changed_since, sandbox_id } =
        decode(ARGUMENTS, given)?;
    let limit = match limit {
        None => DEFAULT_LIMIT,
        Some(limit) => u64::try_from(limit)
            .map_err(|_| Failure::invalid_args("argument 'limit' must not be negative"))?,
    };
    let files = Files::of(session, sandbox_id.as_deref())?;
    let file = files.readable(&filepath)?;
    if let Some(known) = if_changed_since
        && file.read(Jail::sha256).map_err(|error| files.not_found(error))?.to_string()
            == known.to_ascii_lowercase()
    {
        return Ok(Reply::text("unchanged").facts(Facts::default().with("sha256", known)));
    }

    let request =
        PageRequest::new(offset, limit).max_bytes(session.workspace.config.max_read_bytes);
    let page = match file.read(|jail, path| jail.read_page(path, &request)) {
        // What code made is not only text.
        Err(Error::BinaryFile { .. })
            if !files.are_workspace()
                && let Some(image) = picture(&file)? =>
        {
            return Ok(image);
        }
        page => page,
    };
    let page = page.map_err(|error| match error {
        Error::TooLarge { path, size, max } => Failure::new(
            ErrorKind::TooLarge,
            format!(
                "These lines of '{path}' have {size} bytes or more, which exceeds MAX_READ_SIZE_BYTES ({max}); \
                 ask for fewer with limit, or cut long lines with a command of run_bash"
            ),
        ),
        error => files.not_found(error),
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
            (None, _) => counted(page.lines, "line", "lines"),
        };
        notes.push(format!("[{shown}; continue with offset={next}]"));
    } else if page.lines == 0 && page.size > 0 {
        let total = page.total_lines.map(|total| counted(total, "line", "lines"));
        let total = total.unwrap_or_else(|| "fewer lines".to_owned());
        notes.push(format!("[no line at offset {offset}: the file has {total}]"));
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

/// The file as a picture, if it is one that clients show.
fn picture(file: &Readable<'_>) -> Result<Option<Reply>, Failure> {
    let snapshot = match file.read(|jail, path| jail.read(path, MOST_OF_PICTURE)) {
        Ok(snapshot) => snapshot,
        Err(Error::TooLarge { path, size, max }) => {
            return Err(Failure::new(
                ErrorKind::TooLarge,
                format!(
                    "'{}' is binary and has {size} bytes; a picture of up to {max} bytes can be shown: make a smaller one",
                    Escaped::new(&path)
                ),
            ));
        }
        Err(error) => return Err(error.into()),
    };
    let bytes = snapshot.bytes;
    let mime_type = match bytes.as_slice() {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => "image/png",
        [0xff, 0xd8, 0xff, ..] => "image/jpeg",
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => "image/gif",
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => "image/webp",
        _ => return Ok(None),
    };
    let facts = Facts::default()
        .with("mime_type", mime_type)
        .with("bytes", bytes.len())
        .with("sha256", snapshot.sha256.to_string());
    let text = format!("[{mime_type}, {} bytes]", bytes.len());
    Ok(Some(Reply::text(text).facts(facts).image(Image { mime_type, bytes })))
}

fn numbered(text: &str, first: u64) -> String {
    let mut numbered = String::with_capacity(text.len() + text.len() / 8);
    for (number, line) in (first + 1..).zip(text.split_inclusive('\n')) {
        // Writing to a string cannot fail.
        let _written = write!(numbered, "{number}\t{line}");
    }
    numbered
}
