//! `read_output`: the exact stored output of a command, by raw line range or by pattern, never compacted.

use std::borrow::Cow;
use std::io;

use regex::bytes::{Regex, RegexBuilder};
use rmcp::model::JsonObject;
use serde::Deserialize;

use super::{Effect, Row};
use crate::arguments::decode;
use crate::output_store::Stored;
use crate::reply::{ErrorKind, Facts, Failure, Reply};
use crate::schema::{Argument, Kind};
use crate::workspace::Session;

const ARGUMENTS: &[Argument] = &[
    Argument::required(
        "output_id",
        Kind::Text,
        "the id that the answer of run_bash names; a job's too",
    )
    .also(&["id", "job_id"]),
    Argument::optional("offset", Kind::Integer, "zero-based raw line to start at (default 0)"),
    Argument::optional("limit", Kind::Integer, "lines to return (default 200)"),
    Argument::optional("pattern", Kind::Text, "regex: only matching lines, as number:line")
        .also(&["query"]),
];

pub(super) const ROW: Row = Row {
    name: "read_output",
    title: "Read stored output",
    description: "Returns the exact stored output of an earlier command or a background job, by line range or regex. \
Use it where an answer says that lines were omitted.",
    effect: Effect::Reads,
    arguments: ARGUMENTS,
    call,
};

const DEFAULT_LIMIT: u64 = 200;
/// A pattern that compiles to more than this is refused: 1 MiB.
const PATTERN_SIZE: usize = 1024 * 1024;

#[derive(Deserialize)]
struct Arguments {
    output_id: String,
    #[serde(default)]
    offset: i64,
    limit: Option<i64>,
    pattern: Option<String>,
}

fn call(session: &Session, given: JsonObject) -> Result<Reply, Failure> {
    let Arguments { output_id, offset, limit, pattern } = decode(ARGUMENTS, given)?;
    let count = |name: &str, value: i64| {
        u64::try_from(value)
            .map_err(|_| Failure::invalid_args(format!("argument '{name}' must not be negative")))
    };
    let offset = count("offset", offset)?;
    let limit = limit.map_or(Ok(DEFAULT_LIMIT), |limit| count("limit", limit))?;
    let pattern = pattern.as_deref().map(compile).transpose()?;
    let workspace = &session.workspace;
    let page = Page { offset, limit, max_bytes: workspace.config.max_read_bytes };
    let show = |stored: &mut Stored| show(stored, pattern.as_ref(), &page);
    let job = workspace.jobs.get(&output_id);
    // While it runs; afterwards its output lies with the others.
    if let Some(job) = &job
        && let Some(reply) = job.read(show).map_err(|error| unreadable(&error))?
    {
        let note = format!("[job {output_id} is running since {} s]", job.age().as_secs());
        return Ok(noted(reply, &note, "running"));
    }
    let opened = workspace.outputs.open(&output_id).map_err(|error| unreadable(&error))?;
    let ended = job.and_then(|job| job.ended());
    let Some(mut stored) = opened else {
        let text = match ended {
            Some(ended) => format!("the output of job {output_id} was not kept; it ended: {ended}"),
            None => format!(
                "no stored output '{output_id}'; it was never stored or has expired: run the command again"
            ),
        };
        return Err(Failure::new(ErrorKind::UnknownId, text));
    };
    let reply = show(&mut stored).map_err(|error| unreadable(&error))?;
    Ok(match ended {
        Some(ended) => noted(reply, &ended.lines(&output_id, false).join("\n"), "finished"),
        None => with_state(reply, "finished"),
    })
}

/// The lines asked for, and the facts about them.
fn show(stored: &mut Stored, pattern: Option<&Regex>, page: &Page) -> io::Result<Reply> {
    let (mut lines, facts) = match pattern {
        Some(pattern) => matching(stored, pattern, page),
        None => range(stored, page),
    }?;
    if stored.dropped_bytes() > 0 {
        lines.push(format!(
            "[{} bytes in the middle of this output were dropped by MAX_OUTPUT_BYTES]\n",
            stored.dropped_bytes()
        ));
    }
    Ok(Reply::text(lines.concat()).facts(facts.with("total_lines", stored.total_lines())))
}

fn with_state(mut reply: Reply, state: &str) -> Reply {
    reply.facts = reply.facts.with("state", state);
    reply
}

/// The reply with a last line about the job.
fn noted(mut reply: Reply, note: &str, state: &str) -> Reply {
    if !reply.text.is_empty() && !reply.text.ends_with('\n') {
        reply.text.push('\n');
    }
    reply.text.push_str(note);
    with_state(reply, state)
}

struct Page {
    offset: u64,
    limit: u64,
    max_bytes: u64,
}

fn compile(pattern: &str) -> Result<Regex, Failure> {
    RegexBuilder::new(pattern)
        .size_limit(PATTERN_SIZE)
        .build()
        .map_err(|error| Failure::invalid_args(format!("unusable pattern: {error}")))
}

fn unreadable(error: &io::Error) -> Failure {
    tracing::error!(%error, "stored output unreadable");
    Failure::new(ErrorKind::Internal, "the stored output cannot be read; run the command again")
}

fn matching(stored: &mut Stored, pattern: &Regex, page: &Page) -> io::Result<(Vec<String>, Facts)> {
    let (found, total) = stored.matching(pattern, page.offset, page.limit, page.max_bytes)?;
    let shown = found.len() as u64;
    let mut lines: Vec<String> = found
        .iter()
        .map(|line| format!("{}:{}\n", line.number, text(&line.bytes).trim_end_matches('\n')))
        .collect();
    let mut next = None;
    if total == 0 {
        lines.push("[no line matches]\n".into());
    } else if total > shown {
        next = found.last().map(|line| line.number + 1);
        let offset = next.map_or_else(String::new, |next| format!("; continue with offset={next}"));
        lines.push(format!("[{shown} of {total} matching lines{offset}]\n"));
    }
    Ok((lines, Facts::default().with("count", total).with_some("next_offset", next)))
}

fn range(stored: &mut Stored, page: &Page) -> io::Result<(Vec<String>, Facts)> {
    let offset = page.offset;
    let total = stored.total_lines();
    let mut lines = Vec::new();
    let mut expected = offset;
    for line in stored.lines(offset, page.limit, page.max_bytes)? {
        if line.number > expected {
            let last = line.number - 1;
            lines.push(format!("[lines {expected}-{last} were dropped by MAX_OUTPUT_BYTES]\n"));
        }
        lines.push(text(&line.bytes).into_owned());
        expected = line.number + 1;
    }
    let next = (expected < total).then_some(expected);
    if next.is_some() {
        if lines.last().is_some_and(|line| !line.ends_with('\n')) {
            lines.push("\n".into());
        }
        let last = expected.saturating_sub(1);
        lines.push(format!("[lines {offset}-{last} of {total}; continue with offset={expected}]"));
    } else if lines.is_empty() {
        lines.push(format!("[no line {offset}: the output has {total} lines]"));
    }
    Ok((lines, Facts::default().with_some("next_offset", next)))
}

fn text(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}
