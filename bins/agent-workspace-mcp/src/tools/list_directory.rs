//! `list_directory`: what is in one directory, directories first, noise left out and counted.

use std::ffi::OsString;

use rmcp::model::JsonObject;
use serde::Deserialize;
#[cfg(feature = "container")]
use workspace_jail::NOISE;
use workspace_jail::{EntryKind, Escaped, Listing};

use super::{Effect, Row};
use crate::arguments::decode;
use crate::files::{Files, Where};
use crate::reply::{Facts, Failure, Reply, counted};
use crate::schema::{Argument, DIRECTORY_ALIASES, Kind, SANDBOX};
use crate::workspace::Session;

const ARGUMENTS: &[Argument] = &[
    Argument::optional("path", Kind::Text, "the directory (default: the workspace root)")
        .also(DIRECTORY_ALIASES),
    Argument::optional("offset", Kind::Integer, "entries to pass over (default 0)"),
    Argument::optional("limit", Kind::Integer, "entries to return (default 1000)"),
    SANDBOX,
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
    sandbox_id: Option<String>,
}

/// Entries in the order they are shown, wherever they are.
struct Shown {
    entries: Vec<(EntryKind, OsString)>,
    total: u64,
    left_out: Vec<OsString>,
    next_offset: Option<u64>,
    /// There are entries beyond the total, which the container would not tell.
    more: bool,
}

impl From<Listing> for Shown {
    fn from(listing: Listing) -> Self {
        Self {
            entries: listing.entries.into_iter().map(|entry| (entry.kind, entry.name)).collect(),
            total: listing.total,
            left_out: listing.left_out,
            next_offset: listing.next_offset,
            more: false,
        }
    }
}

#[cfg(feature = "container")]
impl Shown {
    /// What a container told, as the jail would have listed it.
    fn of_container(told: crate::contained::Entries, offset: u64, limit: u64) -> Self {
        let is_noise = |name: &OsString| NOISE.iter().any(|noise| name == *noise);
        let (noise, mut entries): (Vec<_>, Vec<_>) =
            told.entries.into_iter().partition(|(_, name)| is_noise(name));
        let mut left_out: Vec<_> = noise.into_iter().map(|(_, name)| name).collect();
        left_out.sort();
        entries.sort_by(|(kind, name), (other_kind, other_name)| {
            let order = |kind: &EntryKind| *kind != EntryKind::Directory;
            (order(kind), name).cmp(&(order(other_kind), other_name))
        });
        let (total, end) = (entries.len() as u64, offset.saturating_add(limit));
        let index = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        let entries = entries.into_iter().skip(index(offset)).take(index(limit)).collect();
        let next_offset = (end < total).then_some(end);
        Self { entries, total, left_out, next_offset, more: told.more }
    }
}

fn root() -> String {
    ".".into()
}

fn call(session: &Session, given: JsonObject) -> Result<Reply, Failure> {
    const DEFAULT_LIMIT: i64 = 1000;
    let Arguments { path, offset, limit, sandbox_id } = decode(ARGUMENTS, given)?;
    let count = |name: &str, value: i64| {
        u64::try_from(value)
            .map_err(|_| Failure::invalid_args(format!("argument '{name}' must not be negative")))
    };
    let offset = count("offset", offset)?;
    let limit = count("limit", limit.unwrap_or(DEFAULT_LIMIT))?;
    let files = Files::of(session, sandbox_id.as_deref())?;
    let listing: Shown = match files.place() {
        Where::Jail(jail) => {
            jail.list(&path, offset, limit).map_err(|error| files.not_found(error))?.into()
        }
        #[cfg(feature = "container")]
        Where::Container(contained) => {
            Shown::of_container(contained.list(&path, &session.cancel)?, offset, limit)
        }
    };

    let mut lines: Vec<String> = listing
        .entries
        .iter()
        .map(|(kind, name)| {
            let kind = match kind {
                EntryKind::Directory => "D",
                EntryKind::Link => "L",
                _ => "F",
            };
            format!("[{kind}] {}", Escaped::new(name))
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
    if listing.more {
        lines.push("[there are more entries; list them with code]".into());
    }
    if !listing.left_out.is_empty() {
        let names: Vec<_> =
            listing.left_out.iter().map(|name| Escaped::new(name).to_string()).collect();
        lines.push(format!("[left out: {}; list one by its name]", names.join(", ")));
    }
    if listing.entries.is_empty() && listing.total > 0 {
        let total = counted(listing.total, "entry", "entries");
        lines.insert(0, format!("[no entry at offset {offset}: the directory has {total}]"));
    }
    if lines.is_empty() {
        lines.push("[empty directory]".into());
    }
    let facts = Facts::default()
        .with("count", listing.entries.len())
        .with_some("next_offset", listing.next_offset);
    Ok(Reply::text(lines.join("\n")).facts(facts))
}
