//! A client's side of one case: calls one after the other, at once, or cancelled on the way.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::case::Call;
use super::stage::Stage;
use crate::harness::Binary;

/// Longer than any call of a case may take on a slow machine.
const PATIENCE: Duration = Duration::from_mins(4);

pub(super) struct Talk {
    server: Binary,
    last_id: u64,
}

/// What came of one entry of a case.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) answers: Vec<Value>,
    /// No answer, and the audit log says that it was cancelled.
    pub(super) cancelled: bool,
}

impl Talk {
    /// The server, after the handshake.
    pub(super) fn begin(mut server: Binary) -> Self {
        server.hello("2025-11-25");
        Self { server, last_id: 0 }
    }

    pub(super) fn pid(&self) -> u32 {
        self.server.pid()
    }

    /// Makes the calls of a case; what came of each.
    pub(super) fn make(
        &mut self,
        stage: &Stage<'_>,
        calls: &[Call],
    ) -> Result<Vec<Outcome>, String> {
        let mut outcomes = Vec::new();
        for group in calls.chunk_by(|one, next| one.parallel && next.parallel) {
            match group {
                [call] if !call.parallel => outcomes.push(self.in_turn(stage, call)?),
                _ => outcomes.extend(self.at_once(stage, group)?),
            }
        }
        Ok(outcomes)
    }

    fn in_turn(&mut self, stage: &Stage<'_>, call: &Call) -> Result<Outcome, String> {
        let params = json!({"name": call.tool, "arguments": stage.arguments(&call.args)});
        if let Some(after) = call.cancel_after_ms {
            return self.cancelled(stage, &params, Duration::from_millis(after));
        }
        let (started, times) = (Instant::now(), call.repeat.unwrap_or(1));
        let mut outcome = Outcome::default();
        let goes_on = |made: usize| match call.repeat_for_ms {
            Some(span) => started.elapsed() < Duration::from_millis(span),
            None => (made as u64) < times,
        };
        while goes_on(outcome.answers.len()) {
            let id = self.send("tools/call", &params);
            outcome.answers.append(&mut self.answers(&[id])?);
        }
        Ok(outcome)
    }

    fn at_once(&mut self, stage: &Stage<'_>, group: &[Call]) -> Result<Vec<Outcome>, String> {
        let mut ids = Vec::new();
        for call in group {
            let params = json!({"name": call.tool, "arguments": stage.arguments(&call.args)});
            ids.extend((0..call.repeat.unwrap_or(1)).map(|_| self.send("tools/call", &params)));
        }
        let mut answers = self.answers(&ids)?.into_iter();
        let mut outcomes = Vec::new();
        for call in group {
            let times = usize::try_from(call.repeat.unwrap_or(1)).unwrap();
            outcomes.push(Outcome {
                answers: answers.by_ref().take(times).collect(),
                cancelled: false,
            });
        }
        Ok(outcomes)
    }

    /// A cancelled call gets no answer; that it has ended is in the audit log.
    fn cancelled(
        &mut self,
        stage: &Stage<'_>,
        params: &Value,
        after: Duration,
    ) -> Result<Outcome, String> {
        let id = self.send("tools/call", params);
        if let Some(answer) = self.server.receive_within(after) {
            return Err(format!("answered before it was cancelled: {answer}"));
        }
        let notice = json!({
            "jsonrpc": "2.0",
            "method": "notifications/cancelled",
            "params": {"requestId": id, "reason": "no longer wanted"},
        });
        self.server.send(&notice.to_string());
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(kind) = recorded_end(stage) {
                return Ok(Outcome { answers: Vec::new(), cancelled: kind == "cancelled" });
            }
            if Instant::now() > deadline {
                return Err("the audit log does not say that the call ended".into());
            }
            if let Some(answer) = self.server.receive_within(Duration::from_millis(10)) {
                return Err(format!("an answer to what was cancelled: {answer}"));
            }
        }
    }

    /// Whether the server answers; nothing else may have come in between.
    pub(super) fn ping(&mut self) -> Result<(), String> {
        let id = self.send("ping", &json!({}));
        let answers = self.answers(&[id])?;
        match answers.first() {
            Some(pong) if pong["result"].is_object() => Ok(()),
            other => Err(format!("no answer to a ping: {other:?}")),
        }
    }

    fn send(&mut self, method: &str, params: &Value) -> u64 {
        self.last_id += 1;
        let id = self.last_id;
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.server.send(&request.to_string());
        id
    }

    /// The answers to `ids`, in that order, whatever order they come in. Nothing else may come.
    fn answers(&self, ids: &[u64]) -> Result<Vec<Value>, String> {
        let mut found = vec![Value::Null; ids.len()];
        let deadline = Instant::now() + PATIENCE;
        while found.iter().any(Value::is_null) {
            let left = deadline.saturating_duration_since(Instant::now());
            let answer = self.server.receive_within(left).ok_or("no answer")?;
            if answer.get("id").is_none() {
                continue;
            }
            match ids.iter().position(|id| answer["id"] == *id) {
                Some(place) if found[place].is_null() => found[place] = answer,
                _ => return Err(format!("an answer nobody waits for: {answer}")),
            }
        }
        Ok(found)
    }
}

impl Drop for Talk {
    /// Lets the server tidy up behind itself; one that does not end is killed.
    fn drop(&mut self) {
        self.server.close_input();
        self.server.ends_within(Duration::from_secs(5));
    }
}

/// The kind of error of the call that the audit log holds, once it does.
fn recorded_end(stage: &Stage<'_>) -> Option<String> {
    let log = std::fs::read_to_string(stage.audit_log()).ok()?;
    let last = log.lines().rev().find_map(|line| {
        serde_json::from_str::<Value>(line).ok().filter(|line| line["event"] == "call")
    })?;
    Some(last["error_kind"].as_str().unwrap_or("none").to_owned())
}
