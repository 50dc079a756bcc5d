//! What the audit log tells: calls, failures, refusals, the slowest ones, and the tokens that were saved.
//!
//! One pass over the log in memory that does not grow with it: a bounded number of days, tools and calls. Lines that
//! cannot be read are counted, never guessed at; whether they were tampered with is [`crate::audit::chain`]'s matter.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, BufRead as _, BufReader, Read as _};

use cap_std::fs::Dir;
use serde::{Deserialize, Serialize};

use crate::audit::files;

/// Slowest calls that are told.
const SLOWEST: usize = 5;
/// Days that are told, the last ones.
const DAYS: usize = 31;
/// Moments of the timeline, the last ones.
const MOMENTS: usize = 500;
/// How far before a call's line its refusal is looked for: calls of one server may be answered at one time.
const NEAR: usize = 32;
/// Longer lines are skipped and counted as unreadable.
const MAX_LINE: u64 = 1024 * 1024;

/// What the log tells.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Summary {
    /// Time of the first line, RFC 3339.
    pub from: Option<String>,
    /// Time of the last one.
    pub to: Option<String>,
    /// Calls and their ends, by tool.
    pub tools: BTreeMap<String, Figures>,
    /// The same, by day of UTC: the last 31 of the log.
    pub days: BTreeMap<String, Figures>,
    /// Failed calls, by `error_kind`.
    pub failures: BTreeMap<String, u64>,
    /// Attempts to leave the workspace, to touch what is protected, to reach what the network does not allow.
    pub refusals: u64,
    /// The slowest calls, the slowest first.
    pub slowest: Vec<Slow>,
    /// Lines that are no lines of this log.
    pub unreadable: u64,
    /// The last starts, calls and refusals in the order of the log, with their arguments: for people, not for sums.
    #[serde(skip)]
    pub timeline: VecDeque<Moment>,
}

/// One line of the log that a person may want to see.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Moment {
    /// When it ended, RFC 3339.
    pub time: String,
    /// The server's process, which tells the runs apart.
    pub pid: u64,
    /// `start` of a server, `call`, or what was refused outside of a call's own answer: `escape`, `denied`, `protected`.
    pub event: String,
    /// Whether it is a call that was refused as an attempt: its own line and the refusal's are one moment.
    pub is_refused: bool,
    /// The tool, where there is one.
    pub tool: Option<String>,
    /// Why it failed, where it did.
    pub error_kind: Option<String>,
    /// How long it took.
    pub duration_ms: u64,
    /// Tokens that were printed and not shown; negative where an answer was longer.
    pub saved: i64,
    /// How the command ended.
    pub exit_code: Option<i64>,
    /// The arguments as the log has them: cut, without what looks like a secret. Without a call: what was denied or changed.
    pub arguments: serde_json::Value,
}

impl Moment {
    /// Whether this is the refusal that `call`, one of the next lines of the same server, was answered with.
    fn is_refusal_of(&self, call: &Line) -> bool {
        matches!(self.event.as_str(), "escape" | "denied")
            && self.pid == call.pid
            && self.tool.is_some()
            && self.tool == call.tool
            && self.error_kind == call.error_kind
            && Some(&self.arguments) == call.arguments.as_ref()
    }
}

/// Sums over some calls.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Figures {
    /// Calls in all.
    pub calls: u64,
    /// Those that were answered with an error.
    pub failed: u64,
    /// Milliseconds they took together.
    pub duration_ms: u64,
    /// Tokens of all answers.
    pub tokens_out: u64,
    /// Tokens that commands printed.
    pub raw_tokens: u64,
    /// Those that were shown of them.
    pub shown_tokens: u64,
}

impl Figures {
    /// Tokens that commands printed and answers did not repeat; negative where an answer was longer.
    pub fn saved(&self) -> i64 {
        i64::try_from(self.raw_tokens)
            .unwrap_or(i64::MAX)
            .saturating_sub_unsigned(self.shown_tokens)
    }

    fn add(&mut self, line: &Line) {
        self.join(&Self {
            calls: 1,
            failed: u64::from(line.outcome.as_deref() == Some("error")),
            duration_ms: line.duration_ms,
            tokens_out: line.tokens_out,
            raw_tokens: line.raw_tokens,
            shown_tokens: line.out_tokens,
        });
    }

    /// Sums stop at the largest number: a line that was tampered with may hold any.
    fn join(&mut self, other: &Self) {
        let sums = [
            (&mut self.calls, other.calls),
            (&mut self.failed, other.failed),
            (&mut self.duration_ms, other.duration_ms),
            (&mut self.tokens_out, other.tokens_out),
            (&mut self.raw_tokens, other.raw_tokens),
            (&mut self.shown_tokens, other.shown_tokens),
        ];
        for (sum, figure) in sums {
            *sum = sum.saturating_add(figure);
        }
    }
}

/// One slow call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Slow {
    /// How long it took.
    pub duration_ms: u64,
    /// Its tool.
    pub tool: String,
    /// When it ended.
    pub time: String,
    /// Its arguments as the log has them, as one line of JSON.
    pub arguments: String,
}

/// What is read of a line; further fields are other readers'.
#[derive(Deserialize)]
struct Line {
    time: String,
    event: String,
    tool: Option<String>,
    outcome: Option<String>,
    error_kind: Option<String>,
    #[serde(default)]
    duration_ms: u64,
    #[serde(default)]
    tokens_out: u64,
    #[serde(default)]
    raw_tokens: u64,
    #[serde(default)]
    out_tokens: u64,
    arguments: Option<serde_json::Value>,
    network: Option<serde_json::Value>,
    changes: Option<serde_json::Value>,
    #[serde(default)]
    pid: u64,
    exit_code: Option<i64>,
}

impl Summary {
    /// Reads the log in `dir`, rotated files included.
    ///
    /// # Errors
    ///
    /// When a file cannot be read.
    pub fn of(dir: &Dir) -> io::Result<Self> {
        let mut summary = Self::default();
        for (_, file) in files(dir) {
            let mut lines = BufReader::new(file?);
            let mut line = Vec::new();
            loop {
                line.clear();
                if lines.by_ref().take(MAX_LINE).read_until(b'\n', &mut line)? == 0 {
                    break;
                }
                match serde_json::from_slice(&line) {
                    Ok(line) => summary.add(line),
                    Err(_) => summary.unreadable += 1,
                }
            }
        }
        while summary.days.len() > DAYS {
            summary.days.pop_first();
        }
        Ok(summary)
    }

    /// Sums over all tools.
    pub fn total(&self) -> Figures {
        let mut total = Figures::default();
        self.tools.values().for_each(|figures| total.join(figures));
        total
    }

    fn add(&mut self, line: Line) {
        self.from.get_or_insert_with(|| line.time.clone());
        self.to = Some(line.time.clone());
        self.keep_moment(&line);
        match (line.event.as_str(), &line.tool) {
            ("escape" | "denied", _) => self.refusals += 1,
            ("call", Some(tool)) => {
                self.tools.entry(tool.clone()).or_default().add(&line);
                let day: String = line.time.chars().take(10).collect();
                self.days.entry(day).or_default().add(&line);
                if self.days.len() > DAYS * 2 {
                    self.days.pop_first();
                }
                if let Some(kind) = &line.error_kind {
                    *self.failures.entry(kind.clone()).or_default() += 1;
                }
                self.keep_if_slow(line);
            }
            _ => {}
        }
    }

    fn keep_moment(&mut self, line: &Line) {
        let kept = ["start", "call", "escape", "denied", "protected"];
        if !kept.contains(&line.event.as_str()) {
            return;
        }
        let is_call = line.event == "call";
        let refusal = self.timeline.iter().rposition(|it| is_call && it.is_refusal_of(line));
        let refusal = refusal.filter(|at| at + NEAR >= self.timeline.len());
        let is_refused = refusal.and_then(|at| self.timeline.remove(at)).is_some();
        if self.timeline.len() == MOMENTS {
            self.timeline.pop_front();
        }
        let mut figures = Figures::default();
        figures.add(line);
        let others = [("network", &line.network), ("changes", &line.changes)];
        let other = || others.into_iter().find_map(|(name, it)| Some((name, it.clone()?)));
        let told = || other().map(|(name, it)| serde_json::json!({ name: it }));
        self.timeline.push_back(Moment {
            time: line.time.clone(),
            pid: line.pid,
            event: line.event.clone(),
            is_refused,
            tool: line.tool.clone(),
            error_kind: line.error_kind.clone(),
            duration_ms: line.duration_ms,
            saved: figures.saved(),
            exit_code: line.exit_code,
            arguments: line.arguments.clone().or_else(told).unwrap_or_default(),
        });
    }

    fn keep_if_slow(&mut self, line: Line) {
        let at = self.slowest.partition_point(|slow| slow.duration_ms >= line.duration_ms);
        if at >= SLOWEST {
            return;
        }
        let slow = Slow {
            duration_ms: line.duration_ms,
            tool: line.tool.unwrap_or_default(),
            time: line.time,
            arguments: line.arguments.map_or_else(String::new, |it| it.to_string()),
        };
        self.slowest.insert(at, slow);
        self.slowest.truncate(SLOWEST);
    }
}

#[cfg(test)]
mod tests {
    use cap_std::ambient_authority;

    use super::*;

    fn check(lines: &[&str]) -> Summary {
        let place = tempfile::tempdir().unwrap();
        let dir = Dir::open_ambient_dir(place.path(), ambient_authority()).unwrap();
        dir.write(crate::audit::FILE, lines.join("\n")).unwrap();
        Summary::of(&dir).unwrap()
    }

    #[test]
    fn an_empty_log_tells_nothing() {
        assert_eq!(check(&[]), Summary::default());
    }

    #[test]
    fn calls_are_summed_by_tool_and_day() {
        let summary = check(&[
            r#"{"time":"2026-11-29T23:00:00.000Z","event":"start"}"#,
            r#"{"time":"2026-11-29T23:59:59.000Z","event":"call","tool":"run_bash","outcome":"ok","duration_ms":900,"tokens_out":60,"raw_tokens":1000,"out_tokens":50,"arguments":{"command":"make"}}"#,
            r#"{"time":"2026-11-30T00:00:00.000Z","event":"escape","tool":"read_file"}"#,
            r#"{"time":"2026-11-30T00:00:01.000Z","event":"call","tool":"read_file","outcome":"error","error_kind":"outside_workspace","duration_ms":1}"#,
            "torn",
        ]);
        assert_eq!(summary.days.keys().collect::<Vec<_>>(), ["2026-11-29", "2026-11-30"]);
        assert_eq!(summary.tools["run_bash"].saved(), 950);
        assert_eq!(summary.tools["read_file"].failed, 1);
        assert_eq!(summary.failures["outside_workspace"], 1);
        assert_eq!((summary.refusals, summary.unreadable), (1, 1));
        assert_eq!(summary.slowest[0].arguments, r#"{"command":"make"}"#);
        assert_eq!(summary.total().calls, 2);
        let moments: Vec<_> =
            summary.timeline.iter().map(|it| (it.event.as_str(), it.saved)).collect();
        assert_eq!(moments, [("start", 0), ("call", 950), ("escape", 0), ("call", 0)]);
    }

    #[test]
    fn a_refusal_and_its_call_are_one_moment() {
        let refusal = r#"{"time":"t","event":"escape","pid":1,"tool":"read_file","error_kind":"outside_workspace","arguments":{"filepath":"../x"}}"#;
        let call = refusal.replace("escape", "call");
        let of_another = call.replace(r#""pid":1"#, r#""pid":2"#);
        let denied = r#"{"time":"t","event":"denied","pid":1,"network":["a.example:443"]}"#;
        let summary = check(&[refusal, &of_another, denied, &call]);
        let moments: Vec<_> =
            summary.timeline.iter().map(|it| (it.event.as_str(), it.pid, it.is_refused)).collect();
        assert_eq!(moments, [("call", 2, false), ("denied", 1, false), ("call", 1, true)]);
        assert_eq!(summary.timeline[1].arguments.to_string(), r#"{"network":["a.example:443"]}"#);
        assert_eq!(summary.refusals, 2);
    }

    #[test]
    fn figures_beyond_all_measure_are_no_fault() {
        let line = format!(
            r#"{{"time":"t","event":"call","tool":"t","duration_ms":{0},"tokens_out":{0},"raw_tokens":{0},"out_tokens":0}}"#,
            u64::MAX
        );
        let total = check(&[&line, &line]).total();
        assert_eq!((total.calls, total.duration_ms, total.saved()), (2, u64::MAX, i64::MAX));
    }

    #[test]
    fn the_timeline_keeps_the_last_of_many() {
        let lines: Vec<String> = (0..MOMENTS + 3)
            .map(|ms| format!(r#"{{"time":"t","event":"call","tool":"t","duration_ms":{ms}}}"#))
            .collect();
        let timeline = check(&lines.iter().map(String::as_str).collect::<Vec<_>>()).timeline;
        assert_eq!((timeline.len(), timeline[0].duration_ms), (MOMENTS, 3));
    }

    #[test]
    fn only_the_slowest_are_kept_in_order() {
        let lines: Vec<String> = [3, 9, 1, 7, 5, 8, 2]
            .iter()
            .map(|ms| {
                format!(
                    r#"{{"time":"2026-11-30T00:00:00.000Z","event":"call","tool":"t","duration_ms":{ms}}}"#
                )
            })
            .collect();
        let summary = check(&lines.iter().map(String::as_str).collect::<Vec<_>>());
        let slowest: Vec<_> = summary.slowest.iter().map(|slow| slow.duration_ms).collect();
        assert_eq!(slowest, [9, 8, 7, 5, 3]);
    }
}
