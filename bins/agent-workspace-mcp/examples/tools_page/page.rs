//! The page about the tools as text.
//!
//! Names, titles, descriptions, arguments, hints and kinds of error come from the code; the facts of a result, which
//! no schema lists, are described here and a test compares them with what the tools write. Non-goal: a tutorial.

use std::fmt::Write as _;

use agent_workspace_mcp::schema::{Argument, Kind, Presence};
use agent_workspace_mcp::server::describe;
use agent_workspace_mcp::tools::{Effect, ROWS, Row};

const OPENING: &str = "\
<!-- Written by `cargo xtask docs` from the server's own registry. Change that, not this. -->

# The tools

Paths are relative to the workspace, or absolute below it. `null`, `\"\"` and `0` mean \"not given\" for optional
arguments, `\"5\"` is 5, `\"true\"` is true, a list may come as JSON text, and the other names in the tables below are
taken too; an unknown argument is refused by name, with the valid ones. Limits are the operator's: no argument raises one.

An answer is one text. What programs want lies in `_meta[\"agent-workspace/result\"]`, a flat object of the facts listed
with each tool; models never see it. A call that fails is an ordinary result with `isError`, and the fact
`error_kind` says why: see [the end of this page](#error_kind).
";

/// Facts of a command that was run.
const RAN: &[Fact] = &[
    fact("exit_code", "number", "of the shell; 128+S after signal S"),
    fact("signal", "number or null", "what ended it"),
    fact("timed_out", "boolean", "its time was up"),
    fact("cancelled", "boolean", "the caller or the server's end ended it"),
    fact("duration_ms", "number", "from its start to its end"),
    fact(
        "leftovers",
        "number or null",
        "processes it left running, ended with it; null: could not be counted",
    ),
    fact(
        "sandbox",
        "string",
        "the rung it ran on: `native-full`, `native-noproc`, `landlock`, `none`; or `container`",
    ),
];
/// And of what it printed.
const PRINTED: &[Fact] = &[
    fact("truncated", "boolean", "some raw line is left out, folded or cut"),
    fact("output_id", "string", "`read_output` takes it; absent where nothing was stored"),
    fact("raw_tokens", "number", "tokens of the raw output, estimated"),
    fact("out_tokens", "number", "tokens of what is shown of it"),
];
const SEARCHED: &[Fact] = &[
    fact("count", "number", "matches shown"),
    fact("total", "number", "matches there are"),
    fact("truncated", "boolean", "there are more than are shown"),
];
const PLACE: &[Fact] = &[
    fact("sandbox_id", "string", "the sandbox"),
    fact("backend", "string", "`native` or `container`"),
];
const CHANGED_FILES: Fact = fact(
    "changed_files",
    "number",
    "files that the code made or changed; absent where there are too many files to tell",
);
const FAULT: &[Fact] = &[
    fact("line", "number", "on `syntax_invalid`: where the would-be file breaks, from 1"),
    fact("column", "number", "on `syntax_invalid`: the same, the column"),
];
const NEXT: Fact = fact("next_offset", "number", "where to go on; absent at the end");
const SHA256: Fact = fact("sha256", "string", "version of the whole file, for `expected_sha256`");

/// The facts of each tool, beside `error_kind`.
const FACTS: &[(&str, &[&[Fact]])] = &[
    ("execute_code", &[RAN, PRINTED, PLACE, &[CHANGED_FILES]]),
    ("initialize_sandbox", &[PLACE]),
    ("list_directory", &[&[fact("count", "number", "entries shown"), NEXT]]),
    (
        "read_file",
        &[&[
            fact(
                "total_lines",
                "number",
                "lines of the file; absent where counting would cost too much",
            ),
            NEXT,
            fact(
                "sha256",
                "string",
                "version of the whole file; absent where the file was not read whole",
            ),
            fact("mime_type", "string", "of a picture in a sandbox, which comes as one"),
            fact("bytes", "number", "of a picture"),
        ]],
    ),
    (
        "read_output",
        &[&[
            fact("total_lines", "number", "raw lines of the output, so far"),
            fact("count", "number", "with `pattern`: lines that match"),
            NEXT,
            fact("state", "string", "`running` or `finished`"),
        ]],
    ),
    (
        "run_bash",
        &[
            RAN,
            PRINTED,
            &[
                fact("job_id", "string", "with `background`: `read_output` and `stop_job` take it"),
                fact("state", "string", "with `background`: `running`"),
            ],
        ],
    ),
    (
        "search_and_replace",
        &[
            &[
                fact(
                    "levels",
                    "list",
                    "how each edit was found: `exact`, or how far its text was off",
                ),
                fact(
                    "count",
                    "number",
                    "replacements in all; on `ambiguous` and `count_mismatch`: places found",
                ),
                fact("lines", "list", "where each replacement or place begins, from 1"),
                fact("changed", "boolean", "the text differs from what it was"),
                fact("warnings", "list", "names of what the text says in brackets"),
                SHA256,
                fact("edit_index", "number", "on errors: the first edit that fails, from 0"),
            ],
            FAULT,
            &[
                fact(
                    "closest_line",
                    "number or null",
                    "on `no_match`: where the nearest text begins",
                ),
                fact(
                    "first_diff_line",
                    "number",
                    "on `no_match`: the first line that differs there",
                ),
                fact("hint", "string", "`over_escaped`, `already_applied` or `line_number_prefix`"),
                fact("overlaps_edit", "number", "on `overlap`: the other edit"),
            ],
        ],
    ),
    ("search_content", &[SEARCHED]),
    ("search_workspace", &[SEARCHED]),
    (
        "stop_job",
        &[&[fact("job_id", "string", "the job"), fact("state", "string", "`finished`")], RAN],
    ),
    ("stop_sandbox", &[PLACE]),
    (
        "write_file",
        &[
            &[
                fact("bytes", "number", "bytes written"),
                fact("created", "boolean", "the file is new"),
                SHA256,
            ],
            FAULT,
        ],
    ),
];

/// One fact of a result.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fact {
    pub(crate) name: &'static str,
    kind: &'static str,
    meaning: &'static str,
}

const fn fact(name: &'static str, kind: &'static str, meaning: &'static str) -> Fact {
    Fact { name, kind, meaning }
}

/// The facts that the page lists for `tool`.
pub(crate) fn facts_of(tool: &str) -> impl Iterator<Item = &'static Fact> {
    let groups = FACTS.iter().filter(move |(name, _)| *name == tool);
    groups.flat_map(|(_, groups)| groups.iter().copied().flatten())
}

/// The whole page.
pub(crate) fn page() -> String {
    let mut page = format!("{OPENING}\n| tool | what it is | effect |\n| --- | --- | --- |\n");
    for row in ROWS {
        let effect = match row.effect {
            Effect::Reads => "reads",
            Effect::Writes => "writes files",
            Effect::Runs => "runs something",
        };
        line(&mut page, &format!("| [`{0}`](#{0}) | {1} | {effect} |", row.name, row.title));
    }
    for row in ROWS {
        tool(&mut page, row);
    }
    page.push_str("\n## error_kind\n\n| kind | when |\n| --- | --- |\n");
    for (name, meaning) in error_kinds() {
        line(&mut page, &format!("| `{name}` | {} |", cell(&meaning)));
    }
    page
}

fn line(page: &mut String, text: &str) {
    page.push_str(text);
    page.push('\n');
}

fn tool(page: &mut String, row: &Row) {
    let hints = describe(row).annotations.unwrap_or_default();
    let hint = |name: &str, is: Option<bool>| {
        is.map_or_else(|| format!("`{name}` not said"), |is| format!("`{name}` {is}"))
    };
    let hints = [
        hint("readOnlyHint", hints.read_only_hint),
        hint("destructiveHint", hints.destructive_hint),
        hint("idempotentHint", hints.idempotent_hint),
        hint("openWorldHint", hints.open_world_hint),
    ];
    line(page, &format!("\n## {}\n\n**{}.** {}\n", row.name, row.title, plain(row.description)));
    arguments(page, row.arguments);
    for argument in row.arguments {
        if let Kind::Objects(fields) = argument.kind {
            line(page, &format!("\nEach of `{}`:\n", argument.name));
            arguments(page, fields);
        }
    }
    page.push_str("\n| fact | type | meaning |\n| --- | --- | --- |\n");
    for Fact { name, kind, meaning } in facts_of(row.name) {
        line(page, &format!("| `{name}` | {kind} | {meaning} |"));
    }
    line(page, &format!("\nHints: {}.", hints.join(", ")));
}

fn arguments(page: &mut String, arguments: &[Argument]) {
    page.push_str(
        "| argument | type | default | meaning | also taken |\n| --- | --- | --- | --- | --- |\n",
    );
    for argument in arguments {
        let (meaning, default) = parted(argument.description);
        let default = match argument.presence {
            Presence::Optional => default.unwrap_or("–"),
            Presence::Required | Presence::RequiredByTool => "(required)",
        };
        let aliases: Vec<_> = argument.aliases.iter().map(|name| format!("`{name}`")).collect();
        let kind = kind(argument.kind);
        let (default, meaning, aliases) = (cell(default), cell(meaning), aliases.join(", "));
        let cells = format!("| `{}` | {kind} | {default} | {meaning} | {aliases}", argument.name);
        line(page, &format!("{} |", cells.trim_end()));
    }
}

/// A description, and the default it ends with.
fn parted(description: &str) -> (&str, Option<&str>) {
    let parted = description
        .strip_suffix(')')
        .and_then(|text| text.rsplit_once(" (default"))
        .map(|(meaning, default)| (meaning, default.trim_start_matches([':', ' '])));
    parted.map_or((description, None), |(meaning, default)| (meaning, Some(default)))
}

fn kind(kind: Kind) -> String {
    match kind {
        Kind::Text => "string".into(),
        Kind::Choice(names) => {
            names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" or ")
        }
        Kind::Integer => "integer".into(),
        Kind::Number => "number".into(),
        Kind::Boolean => "boolean".into(),
        Kind::Texts => "list of strings".into(),
        Kind::Objects(_) => "list of objects".into(),
    }
}

/// A text in which nothing is markup by accident; what stands in backticks is meant.
fn plain(text: &str) -> String {
    let parts = text.split('`').enumerate();
    let parts: Vec<_> = parts
        .map(|(at, part)| {
            if at % 2 == 1 {
                part.to_owned()
            } else {
                part.replace('*', "\\*").replace('<', "&lt;")
            }
        })
        .collect();
    parts.join("`")
}

/// A text that stays inside its cell of a table.
fn cell(text: &str) -> String {
    plain(text).replace('|', "\\|")
}

/// The kinds of error with what their documentation says, read from the enum itself.
fn error_kinds() -> Vec<(String, String)> {
    let source = include_str!("../../src/reply.rs");
    let body = source.split("pub enum ErrorKind {").nth(1).and_then(|it| it.split('}').next());
    let mut kinds = Vec::new();
    let mut meaning = String::new();
    for text in body.unwrap_or_default().lines().map(str::trim) {
        if let Some(said) = text.strip_prefix("///") {
            let blank = if meaning.is_empty() { "" } else { " " };
            // Writing to a string cannot fail.
            let _written = write!(meaning, "{blank}{}", said.trim());
        } else if let Some(variant) = text.strip_suffix(',') {
            kinds.push((snake_case(variant), std::mem::take(&mut meaning)));
        }
    }
    kinds
}

fn snake_case(variant: &str) -> String {
    let mut name = String::new();
    for letter in variant.chars() {
        if letter.is_ascii_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.push(letter.to_ascii_lowercase());
    }
    name
}
