//! `search_workspace`: file names by glob, sorted, with the true total when there are more.

use rmcp::model::JsonObject;
use serde::Deserialize;
use workspace_jail::{Error, Escaped, FindOptions};

use super::{Effect, Row};
use crate::arguments::decode;
use crate::reply::{Facts, Failure, Reply, counted};
use crate::schema::{Argument, Kind};
use crate::workspace::Session;

const ARGUMENTS: &[Argument] = &[
    Argument::required("pattern", Kind::Text, "glob such as *.py, src/**/*.{ts,tsx}")
        .also(&["query", "glob"]),
    Argument::optional("exclude_patterns", Kind::Texts, "globs to leave out").also(&["exclude"]),
    Argument::optional(
        "include_ignored",
        Kind::Boolean,
        "also what .gitignore, .git, node_modules and the like leave out (default false)",
    ),
];

pub(super) const ROW: Row = Row {
    name: "search_workspace",
    title: "Find files",
    description: "Finds files by name. ** crosses directories; a pattern without / matches the name at any depth; \
.gitignore is respected and hidden files count.",
    effect: Effect::Reads,
    arguments: ARGUMENTS,
    call,
};

#[derive(Deserialize)]
struct Arguments {
    pattern: String,
    #[serde(default)]
    exclude_patterns: Vec<String>,
    #[serde(default)]
    include_ignored: bool,
}

fn call(session: &Session, given: JsonObject) -> Result<Reply, Failure> {
    let Arguments { pattern, exclude_patterns, include_ignored } = decode(ARGUMENTS, given)?;
    let excludes: Vec<&str> = exclude_patterns.iter().map(String::as_str).collect();
    let options = FindOptions::default()
        .limit(session.workspace.config.max_search_results)
        .include_ignored(include_ignored);
    let found =
        session.workspace.jail.find(&pattern, &excludes, options).map_err(|error| match error {
            Error::InvalidPattern { reason, .. } => {
                Failure::invalid_args(format!("Invalid glob pattern: {reason}"))
            }
            error => error.into(),
        })?;

    let count = found.paths.len();
    let truncated = found.total > count as u64;
    let mut lines = vec![match (count, truncated) {
        (0, _) => "No files found".to_owned(),
        (_, false) => format!("Found {count} matches"),
        (_, true) => format!("Found {count} matches (truncated, {} in all)", found.total),
    }];
    lines.extend(found.paths.iter().map(|path| Escaped::new(path).to_string()));
    if found.unreadable > 0 {
        let unread = counted(found.unreadable, "directory", "directories");
        lines.push(format!("[{unread} could not be read]"));
    }
    let facts = Facts::default()
        .with("count", count)
        .with("total", found.total)
        .with("truncated", truncated);
    Ok(Reply::text(lines.join("\n")).facts(facts))
}
