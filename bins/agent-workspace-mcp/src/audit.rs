//! The audit log: one JSON line for each call and each refusal that matters, where no command can reach it.
//!
//! Invariants: a line is whole or absent, a newline in an argument stays escaped inside its line, the log's size is
//! bounded by rotation, each line names the digest of the one before it, and what looks like a secret is not
//! written. Several servers may share one log, so each append takes a lock. A log that cannot be written costs the
//! record, never the call.

pub mod chain;
mod redact;

use std::io::{Seek as _, SeekFrom, Write as _};
use std::sync::Mutex;

use cap_std::fs::{Dir, File, MetadataExt as _, OpenOptions, OpenOptionsExt as _};
use chrono::{SecondsFormat, Utc};
use rustix::fs::{FlockOperation, flock};
use serde::Serialize;
use serde_json::{Map, Value};

use self::chain::Link;
use self::redact::redact;
use crate::locked;

/// The current file.
pub const FILE: &str = "audit.jsonl";
/// A file that would grow beyond this is rotated first: 16 MiB.
const MAX_FILE: u64 = 16 * 1024 * 1024;
/// Rotated files kept beside the current one.
const KEPT: u32 = 4;
/// Longer argument values are cut to this many characters.
const MAX_VALUE: usize = 500;
/// Arguments that are longer than this in all are cut as one value: 32 KiB.
const MAX_ARGUMENTS: usize = 32 * 1024;

/// Appends lines to the log.
#[derive(Debug)]
pub struct Audit {
    log: Option<Mutex<Log>>,
    client: Option<String>,
}

/// The log's directory, and what this process knows of the current file since its last append.
#[derive(Debug)]
struct Log {
    dir: Dir,
    lock: Option<File>,
    known: Option<Known>,
}

/// The current file as it was left; while nobody else appends, nothing of it need be read again.
#[derive(Debug)]
struct Known {
    file: File,
    inode: u64,
    length: u64,
    seq: u64,
    digest: String,
}

/// One call, as it is written.
#[derive(Debug, Serialize)]
pub struct Call<'a> {
    /// The tool's name.
    pub tool: &'a str,
    /// The arguments as they were sent, long values cut, secrets redacted.
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
    /// Tokens of the arguments, estimated.
    pub tokens_in: u64,
    /// Tokens of the answer's text, estimated.
    pub tokens_out: u64,
    /// Tokens of a command's raw output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw_tokens: Option<&'a Value>,
    /// Tokens of what was shown of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub out_tokens: Option<&'a Value>,
    /// How the command ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<&'a Value>,
    /// Rung of the sandbox the command ran in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<&'a Value>,
}

#[derive(Serialize)]
struct Line<'a, T> {
    #[serde(flatten)]
    link: Link,
    time: String,
    event: &'a str,
    pid: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    client: Option<&'a str>,
    #[serde(flatten)]
    body: &'a T,
}

impl Audit {
    /// A log in `dir`; without one nothing is recorded. `client` is named in every line, where there are several.
    pub fn new(dir: Option<Dir>, client: Option<String>) -> Self {
        let log = dir.map(|dir| Mutex::new(Log { dir, lock: None, known: None }));
        Self { log, client }
    }

    /// Records one call.
    pub fn call(&self, call: &Call<'_>) {
        self.append("call", call);
    }

    /// Records that a server started, and on what terms.
    pub fn start(&self, terms: &Value) {
        self.append("start", terms);
    }

    /// Records the rung that commands run on, or why none is run.
    pub fn sandbox(&self, rung: &str, refusal: Option<&str>) {
        self.append("sandbox", &serde_json::json!({ "sandbox": rung, "refused": refusal }));
    }

    /// Records that protected names changed while a command ran.
    pub fn protected(&self, changes: &[crate::protected::Change]) {
        self.append("protected", &serde_json::json!({ "changes": changes }));
    }

    /// Records that a call tried to leave the workspace, or to touch what is protected.
    pub fn refused(&self, tool: &str, error_kind: &str, arguments: &Value) {
        let event = if error_kind == "outside_workspace" { "escape" } else { "denied" };
        let body =
            serde_json::json!({ "tool": tool, "error_kind": error_kind, "arguments": arguments });
        self.append(event, &body);
    }

    /// Records what a command asked of the network and did not get.
    pub fn denied_network(&self, denials: &[String]) {
        self.append("denied", &serde_json::json!({ "network": denials }));
    }

    fn append(&self, event: &str, body: &impl Serialize) {
        let Some(log) = &self.log else { return };
        let time = Utc::now().to_rfc3339_opts(SecondsFormat::Millis, true);
        let (pid, client) = (std::process::id(), self.client.as_deref());
        let written = locked::lock(log).append(|link| {
            let line = Line { link, time, event, pid, client, body };
            serde_json::to_vec(&line).map_err(std::io::Error::from)
        });
        if let Err(error) = written {
            tracing::error!(%error, "audit log not written");
        }
    }
}

impl Log {
    /// Appends the line that `make` gives for its place in the chain.
    fn append(
        &mut self,
        make: impl FnOnce(Link) -> std::io::Result<Vec<u8>>,
    ) -> std::io::Result<()> {
        let lock = match self.lock.take() {
            Some(lock) => lock,
            None => self.dir.open_with("audit.lock", &appending())?,
        };
        flock(&lock, FlockOperation::LockExclusive)?;
        let done = self.append_locked(make);
        flock(&lock, FlockOperation::Unlock)?;
        self.lock = Some(lock);
        done
    }

    fn append_locked(
        &mut self,
        make: impl FnOnce(Link) -> std::io::Result<Vec<u8>>,
    ) -> std::io::Result<()> {
        let dir = &self.dir;
        // Another server may have appended or rotated meanwhile.
        let now = dir.metadata(FILE).ok().map(|meta| (meta.ino(), meta.len()));
        let known = self.known.take().filter(|known| now == Some((known.inode, known.length)));
        let (mut file, next, mut length) = if let Some(known) = known {
            let next = Link { seq: known.seq + 1, prev: known.digest };
            (known.file, next, known.length)
        } else {
            let mut file = dir.open_with(FILE, &appending())?;
            let next = chain::next(dir, &mut file)?;
            let mut length = file.seek(SeekFrom::End(0))?;
            if length > 0 && !ends_in_newline(&mut file, length)? {
                // A server was ended in the middle of a line. What it wrote stays, and the next line stands alone.
                file.write_all(b"\n")?;
                length += 1;
            }
            (file, next, length)
        };
        let seq = next.seq;
        let mut line = make(next)?;
        let digest = chain::digest(&line);
        line.push(b'\n');
        if length > 0 && length + line.len() as u64 > MAX_FILE {
            rotate(dir)?;
            file = dir.open_with(FILE, &appending())?;
            length = 0;
        }
        file.write_all(&line)?;
        chain::keep_head(dir, seq, &digest)?;
        let (inode, length) = (file.metadata()?.ino(), length + line.len() as u64);
        self.known = Some(Known { file, inode, length, seq, digest });
        Ok(())
    }
}

fn appending() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.append(true).read(true).create(true).mode(0o600);
    options
}

fn ends_in_newline(file: &mut File, length: u64) -> std::io::Result<bool> {
    let mut last = [0];
    file.seek(SeekFrom::Start(length - 1))?;
    std::io::Read::read_exact(file, &mut last)?;
    Ok(last == *b"\n")
}

fn rotate(dir: &Dir) -> std::io::Result<()> {
    for number in (1..KEPT).rev() {
        match dir.rename(rotated(number), dir, rotated(number + 1)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    dir.rename(FILE, dir, rotated(1))
}

fn rotated(number: u32) -> String {
    format!("audit.{number}.jsonl")
}

/// The log's files that are there, the oldest first.
pub(crate) fn files(dir: &Dir) -> impl Iterator<Item = (String, std::io::Result<File>)> {
    let names = (1..=KEPT).rev().map(rotated).chain([FILE.to_owned()]);
    names.filter_map(|name| match dir.open(&name) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        opened => Some((name, opened)),
    })
}

/// Arguments as the log keeps them: strings over 500 characters cut, with their length appended, and what looks like
/// a secret replaced.
pub fn cut(arguments: &Map<String, Value>) -> Value {
    let cut: Value =
        arguments.iter().map(|(key, value)| (key.clone(), cut_value(key, value))).collect();
    let text = cut.to_string();
    if text.len() <= MAX_ARGUMENTS { cut } else { cut_text(&text).into() }
}

fn cut_value(key: &str, value: &Value) -> Value {
    match value {
        Value::String(text) if redact::is_secret_name(key) && !text.is_empty() => {
            redact::REDACTED.into()
        }
        Value::String(text) => cut_text(text).into(),
        Value::Array(items) => items.iter().map(|item| cut_value(key, item)).collect(),
        Value::Object(object) => {
            object.iter().map(|(key, value)| (key.clone(), cut_value(key, value))).collect()
        }
        other => other.clone(),
    }
}

fn cut_text(text: &str) -> String {
    // A secret that begins within what is kept is seen whole, or as good as.
    let looked_at: String = text.chars().take(MAX_VALUE * 4).collect();
    let clean = redact(&looked_at);
    let length = text.chars().count();
    if length <= MAX_VALUE && clean.chars().count() <= MAX_VALUE {
        return clean.into_owned();
    }
    let head: String = clean.chars().take(MAX_VALUE).collect();
    format!("{head}… ({length} characters)")
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
        let audit = Audit::new(Some(dir), None);
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
        let mut log = Log { dir: dir.try_clone().unwrap(), lock: None, known: None };
        let half = vec![b'x'; usize::try_from(MAX_FILE / 2).unwrap() + 1];
        for _ in 0..8 {
            log.append(|_| Ok(half.clone())).unwrap();
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
                "audit.head",
                "audit.jsonl",
                "audit.lock"
            ]
        );
    }

    #[test]
    fn two_servers_append_to_one_chain() {
        let place = tempfile::tempdir().unwrap();
        let dir = || Dir::open_ambient_dir(place.path(), ambient_authority()).unwrap();
        let audits = [Audit::new(Some(dir()), None), Audit::new(Some(dir()), Some("b".into()))];
        std::thread::scope(|scope| {
            for audit in &audits {
                scope.spawn(|| (0..300).for_each(|n| audit.start(&json!({ "n": n }))));
            }
        });
        let verdict = chain::verify(&dir()).unwrap();
        assert_eq!((verdict.faults, verdict.lines), (vec![], 600));
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

    #[test]
    fn many_short_values_are_bounded_too() {
        let many: Map<String, Value> = (0..5000).map(|n| (n.to_string(), "x".into())).collect();
        let Value::String(text) = cut(&many) else { panic!("not cut") };
        assert!(text.len() < 600 && text.ends_with(" characters)"), "{text}");
    }

    #[test]
    fn a_secret_is_not_written_by_value_or_by_name() {
        let Value::Object(arguments) = json!({
            "command": "curl -H 'Authorization: Bearer abcdefgh12345678' https://u:p4ssw0rd@example.net",
            "password": "hunter2",
        }) else {
            unreachable!("an object was written")
        };
        let text = cut(&arguments).to_string();
        for secret in ["abcdefgh12345678", "p4ssw0rd", "hunter2"] {
            assert!(!text.contains(secret), "{text}");
        }
        assert!(text.contains("example.net"), "{text}");
    }
}
