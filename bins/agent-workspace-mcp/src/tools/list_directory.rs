//! `list_directory`: what is in one directory, directories first, noise left out and counted.

use rmcp::model::JsonObject;
use serde::Deserialize;
use workspace_jail::{EntryKind, Escaped};

use super::{Effect, Row, not_found};
use crate::arguments::decode;
use crate::reply::{Facts, Failure, Reply};
use crate::schema::{Argument, DIRECTORY_ALIASES, Kind};
use crate::workspace::Session;

const ARGUMENTS: &[Argument] = &[
    Argument::optional("path", Kind::Text, "the directory (default: the workspace root)")
        .also(DIRECTORY_ALIASES),
    Argument::optional("offset", Kind::Integer, "entries to pass over (default 0)"),
    Argument::optional("limit", Kind::Integer, "entries to return (default 1000)"),
];

pub(super) const ROW: Row = Row {
    name: "list_directory",
    title: "List directory",
    description: "Lists one directory: [D] directories, [F] files, [L] links. Hidden and ignored entries are shown; \
.git, node_modules and the like are left out unless you list them by name.",
    effect: Effect::Reads,
    arguments: ARGUMENTS,
    call,
};

#[derive(Deserialize)]
struct Arguments {
    #[serde(default = "root")]
    path: String,
    #[serde(default)]
    offset: i64,
    limit: Option<i64>,
}

fn root() -> String {
    ".".into()
}

fn call(session: &Session, given: JsonObject) -> Result<Reply, Failure> {
    const DEFAULT_LIMIT: i64 = 1000;
    let Arguments { path, offset, limit } = decode(ARGUMENTS, given)?;
    let count = |name: &str, value: i64| {
        u64::try_from(value)
            .map_err(|_| Failure::invalid_args(format!("argument '{name}' must not be negative")))
    };
    let offset = count("offset", offset)?;
    let limit = count("limit", limit.unwrap_or(DEFAULT_LIMIT))?;
    let listing = session
        .workspace
        .jail
        .list(&path, offset, limit)
        .map_err(|error| not_found(session, error))?;

    let mut lines: Vec<String> = listing
        .entries
        .iter()
        .map(|entry| {
            let kind = match entry.kind {
                EntryKind::Directory => "D",
                EntryKind::Link => "L",
                _ => "F",
            };
            format!("[{kind}] {}", entry.shown())
        })
        .collect();
    if let Some(next) = listing.next_offset {
        lines.push(format!(
            "[entries {}-{} of {}; continue with offset={next}]",
            offset + 1,
            offset + listing.entries.len() as u64,
            listing.total
        ));
    }
    if !listing.left_out.is_empty() {
        let names: Vec<_> =
            listing.left_out.iter().map(|name| Escaped::new(name).to_string()).collect();
        lines.push(format!("[left out: {}; list one by its name]", names.join(", ")));
    }
    if lines.is_empty() {
        lines.push("[empty directory]".into());
    }
    let facts = Facts::default()
        .with("count", listing.entries.len())
        .with_some("next_offset", listing.next_offset);
    Ok(Reply::text(lines.join("\n")).facts(facts))
}
