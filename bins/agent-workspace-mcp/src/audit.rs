//! The audit log: one JSON line for each call, in a directory that no command can reach.
//!
//! Invariants: a line is whole or absent, a newline in an argument stays escaped inside its line, and the
//! log's size is bounded by rotation. Several servers may share one log, so each append takes a lock.
//! A log that cannot be written costs the record, never the call.

use std::io::Write as _;

use cap_std::fs::{Dir, OpenOptions, OpenOptionsExt as _};
use chrono::{SecondsFormat, Utc};
use rustix::fs::{FlockOperation, flock};
use serde::Serialize;
use serde_json::{Map, Value};

/// The current file.
pub const FILE: &str = "audit.jsonl";
/// A file that would grow beyond this is rotated first: 16 MiB.
const MAX_FILE: u64 = 16 * 1024 * 1024;
/// Rotated files kept beside the current one.
const KEPT: u32 = 4;
/// Longer argument values are cut to this many characters.
const MAX_VALUE: usize = 500;

/// Appends lines to the log.
#[derive(Debug)]
pub struct Audit {
    dir: Option<Dir>,
}

/// One call, as it is written.
#[derive(Debug, Serialize)]
pub struct Call<'a> {
    /// The tool's name.
    pub tool: &'a str,
    /// The arguments as they were sent, long values cut.
    pub arguments: &'a Value,
    /// `ok` or `error`.
    pub outcome: &'static str,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_kind: Option<&'static str>,
    /// From the request's arrival to its answer.
    pub duration_ms: u128,
    /// Bytes of the arguments.
    pub bytes_in: usize,
    /// Bytes of the answer's text.
    pub bytes_out: usize,
    /// Tokens of a command's raw output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw_tokens: Option<&'a Value>,
    /// Tokens of what was shown of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub out_tokens: Option<&'a Value>,
    /// Rung of the sandbox the command ran in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<&'a Value>,
}

#[derive(Serialize)]
struct Line<'a, T> {
    time: String,
    event: &'a str,
    pid: u32,
    #[serde(flatten)]
    body: &'a T,
}

impl Audit {
    /// A log in `dir`; without one nothing is recorded.
    pub fn new(dir: Option<Dir>) -> Self {
        Self { dir }
    }

    /// Records one call.
    pub fn call(&self, call: &Call<'_>) {
        self.append("call", call);
    }

    /// Records that a server started, and on what terms.
    pub fn start(&self, terms: &Value) {
        self.append("start", terms);
    }

    /// Records that protected names changed while a command ran.
    pub fn protected(&self, changes: &[crate::protected::Change]) {
        self.append("protected", &serde_json::json!({ "changes": changes }));
    }

    fn append(&self, event: &str, body: &impl Serialize) {
        let Some(dir) = &self.dir else { return };
        let time = Utc::now().to_rfc3339_opts(SecondsFormat::Millis, true);
        let line = Line { time, event, pid: std::process::id(), body };
        let written = serde_json::to_vec(&line)
            .map_err(std::io::Error::from)
            .and_then(|line| append_line(dir, line));
        if let Err(error) = written {
            tracing::error!(%error, "audit log not written");
        }
    }
}

fn append_line(dir: &Dir, mut line: Vec<u8>) -> std::io::Result<()> {
    line.push(b'\n');
    let mut options = OpenOptions::new();
    options.append(true).create(true).mode(0o600);
    let lock = dir.open_with("audit.lock", &options)?;
    flock(&lock, FlockOperation::LockExclusive)?;
    let mut file = dir.open_with(FILE, &options)?;
    let length = file.metadata()?.len();
    if length > 0 && length + line.len() as u64 > MAX_FILE {
        rotate(dir)?;
        file = dir.open_with(FILE, &options)?;
    }
    file.write_all(&line)
}

fn rotate(dir: &Dir) -> std::io::Result<()> {
    let name = |number: u32| format!("audit.{number}.jsonl");
    for number in (1..KEPT).rev() {
        match dir.rename(name(number), dir, name(number + 1)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    dir.rename(FILE, dir, name(1))
}

/// Arguments as the log keeps them: strings over 500 characters cut, with their length appended.
pub fn cut(arguments: &Map<String, Value>) -> Value {
    fn cut_value(value: &Value) -> Value {
        match value {
            Value::String(text) => {
                let length = text.chars().count();
                if length <= MAX_VALUE {
                    return value.clone();
                }
                let head: String = text.chars().take(MAX_VALUE).collect();
                format!("{head}… ({length} characters)").into()
            }
            Value::Array(items) => items.iter().map(cut_value).collect(),
            Value::Object(object) => {
                object.iter().map(|(key, value)| (key.clone(), cut_value(value))).collect()
            }
            other => other.clone(),
        }
    }
    arguments.iter().map(|(key, value)| (key.clone(), cut_value(value))).collect()
}

#[cfg(test)]
mod tests {
    use cap_std::ambient_authority;
    use serde_json::json;

    use super::*;

    fn lines(place: &std::path::Path) -> Vec<Value> {
        let dir = Dir::open_ambient_dir(place, ambient_authority()).unwrap();
        let text = dir.read_to_string(FILE).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[test]
    fn a_newline_in_a_value_stays_inside_its_line() {
        let place = tempfile::tempdir().unwrap();
        let dir = Dir::open_ambient_dir(place.path(), ambient_authority()).unwrap();
        let audit = Audit::new(Some(dir));
        audit.start(&json!({"x": "a\n{\"event\":\"forged\"}"}));
        audit.start(&json!({"x": 2}));
        let lines = lines(place.path());
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[0]["x"], "a\n{\"event\":\"forged\"}");
        assert_eq!(lines[1]["event"], "start");
    }

    #[test]
    fn the_log_rotates_and_keeps_a_bounded_number_of_files() {
        let place = tempfile::tempdir().unwrap();
        let dir = Dir::open_ambient_dir(place.path(), ambient_authority()).unwrap();
        let half = vec![b'x'; usize::try_from(MAX_FILE / 2).unwrap() + 1];
        for _ in 0..8 {
            append_line(&dir, half.clone()).unwrap();
        }
        let mut names: Vec<_> = dir
            .entries()
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert_eq!(
            names,
            [
                "audit.1.jsonl",
                "audit.2.jsonl",
                "audit.3.jsonl",
                "audit.4.jsonl",
                "audit.jsonl",
                "audit.lock"
            ]
        );
    }

    #[test]
    fn long_values_are_cut_with_their_length() {
        let Value::Object(arguments) = json!({"a": "é".repeat(501), "b": ["y".repeat(500)]})
        else {
            unreachable!("an object was written")
        };
        let cut = cut(&arguments);
        assert_eq!(cut["a"], format!("{}… (501 characters)", "é".repeat(500)));
        assert_eq!(cut["b"][0], "y".repeat(500));
    }
}
