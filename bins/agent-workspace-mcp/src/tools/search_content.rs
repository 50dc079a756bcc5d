//! `search_content`: lines of text files by regular expression, grouped by file, with the true totals.

use rmcp::model::JsonObject;
use serde::Deserialize;
use workspace_jail::{Error, Escaped, GrepOptions, Grepped};

use super::{Effect, Row};
use crate::arguments::decode;
use crate::files::Files;
use crate::reply::{Facts, Failure, Reply, counted};
use crate::schema::{Argument, Kind};
use crate::workspace::Session;

const ARGUMENTS: &[Argument] = &[
    Argument::required("pattern", Kind::Text, "regular expression; linear time, no look-around")
        .also(&["query", "regex"]),
    Argument::optional("path", Kind::Text, "directory or file to search (default: the workspace)")
        .also(&["directory", "dir", "filepath"]),
    Argument::optional("glob", Kind::Text, "only files that match, such as *.py"),
    Argument::optional(
        "context",
        Kind::Integer,
        "lines shown before and after each match (default 0)",
    ),
    Argument::optional("ignore_case", Kind::Boolean, "letter case does not count (default false)"),
    Argument::optional(
        "include_ignored",
        Kind::Boolean,
        "also what .gitignore, .git, node_modules and the like leave out (default false)",
    ),
];

pub(super) const ROW: Row = Row {
    name: "search_content",
    title: "Search in files",
    description: "Searches text files for a regular expression. Answers path:line:text, long lines cut around the match.",
    effect: Effect::Reads,
    arguments: ARGUMENTS,
    call,
};

/// What stands behind a line of which only a part is shown.
const CUT: &str = " […]";

/// More context than this is what `read_file` is for.
const MAX_CONTEXT: usize = 50;

#[derive(Deserialize)]
struct Arguments {
    pattern: String,
    #[serde(default = "root")]
    path: String,
    glob: Option<String>,
    #[serde(default)]
    context: i64,
    #[serde(default)]
    ignore_case: bool,
    #[serde(default)]
    include_ignored: bool,
}

fn root() -> String {
    ".".into()
}

fn call(session: &Session, given: JsonObject) -> Result<Reply, Failure> {
    let Arguments { pattern, path, glob, context, ignore_case, include_ignored } =
        decode(ARGUMENTS, given)?;
    let mut options = GrepOptions::default();
    options.glob = glob;
    options.context = usize::try_from(context)
        .map_err(|_| Failure::invalid_args("argument 'context' must not be negative"))?
        .min(MAX_CONTEXT);
    options.ignore_case = ignore_case;
    options.include_ignored = include_ignored;
    options.limit = session.workspace.config.max_search_results;
    let found =
        session.workspace.jail.grep(&pattern, &path, &options).map_err(|error| match error {
            Error::InvalidPattern { reason, .. } => {
                Failure::invalid_args(format!("Unusable pattern: {reason}"))
            }
            error => Files::workspace(session).not_found(error),
        })?;
    let lines = found.files.iter().flat_map(|file| &file.lines);
    let count = lines.filter(|line| line.is_match).count();
    let truncated = found.total > count as u64;
    let facts = Facts::default()
        .with("count", count)
        .with("total", found.total)
        .with("truncated", truncated);
    Ok(Reply::text(render(&found, count, truncated)).facts(facts))
}

fn render(found: &Grepped, count: usize, truncated: bool) -> String {
    let matches = counted(count as u64, "match", "matches");
    let files = counted(found.total_files, "file", "files");
    let mut lines = vec![match (count, truncated) {
        (0, _) => "No matches found".to_owned(),
        (_, false) => format!("Found {matches} in {files}"),
        (_, true) => format!("Found {matches} (truncated, {} in all, in {files})", found.total),
    }];
    for file in &found.files {
        let path = Escaped::new(&file.path);
        let mut next = None;
        for line in &file.lines {
            // As grep marks a jump between groups of context.
            if next.is_some_and(|next| next != line.number)
                && file.lines.iter().any(|l| !l.is_match)
            {
                lines.push("--".into());
            }
            next = Some(line.number + 1);
            let mark = if line.is_match { ':' } else { '-' };
            let cut = if line.is_cut { CUT } else { "" };
            lines.push(format!("{path}{mark}{}{mark}{}{cut}", line.number, line.text));
        }
    }
    if found.files.iter().flat_map(|file| &file.lines).any(|line| line.is_cut) {
        lines.push(format!(
            "[lines that end in{CUT} are parts of longer ones; read_file returns them whole]"
        ));
    }
    if found.unreadable > 0 {
        let unread = counted(found.unreadable, "file or directory", "files or directories");
        lines.push(format!("[{unread} could not be read]"));
    }
    lines.join("\n")
}
