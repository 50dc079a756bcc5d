//! The format of the jail and process cases: what is prepared, called, and expected.

use serde::Deserialize;
use serde_json::Value;

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Case {
    pub(super) id: String,
    #[serde(rename = "title")]
    _title: String,
    #[serde(rename = "source")]
    _source: String,
    #[serde(rename = "why")]
    _why: String,
    pub(super) setup: Vec<String>,
    call: Option<Call>,
    #[serde(default)]
    calls: Vec<Call>,
    pub(super) expect: Value,
    /// Layers without which the case says nothing.
    #[serde(default)]
    pub(super) requires: Vec<String>,
    #[serde(default)]
    pub(super) verify: Vec<String>,
    /// The other parties of a race.
    #[serde(default)]
    pub(super) during: Vec<String>,
    /// Harms the machine where the sandbox is broken.
    #[serde(default)]
    pub(super) danger: bool,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Call {
    pub(super) tool: String,
    pub(super) args: Value,
    pub(super) expect: Option<Value>,
    pub(super) repeat: Option<u64>,
    /// Instead of a number, how long it is repeated.
    pub(super) repeat_for_ms: Option<u64>,
    /// At once, with its repetitions and with its neighbours that say the same.
    #[serde(default)]
    pub(super) parallel: bool,
    pub(super) cancel_after_ms: Option<u64>,
}

/// The checks this harness knows; a case that asks for another must not pass unseen.
const KNOWN: [&str; 30] = [
    "all",
    "cancelled",
    "count_ok",
    "entries_exclude",
    "entries_include",
    "error_kind",
    "exit_code",
    "files",
    "max_response_bytes",
    "max_server_rss_growth_mb",
    "max_wall_ms",
    "min_wall_ms",
    "modes",
    "must_contain",
    "must_not_contain",
    "no_survivor_matching",
    "no_temp_left",
    "no_zombies",
    "ok",
    "outside_unchanged",
    "result",
    "server_alive",
    "signal",
    "stderr_contains",
    "stdout",
    "stdout_contains",
    "stdout_not_contains",
    "timed_out",
    "truncated",
    "workspace_unchanged",
];

impl Case {
    /// Its calls in order, at least one.
    pub(super) fn calls(&self) -> Vec<Call> {
        let calls: Vec<Call> = self.call.iter().chain(&self.calls).cloned().collect();
        assert!(!calls.is_empty(), "{} has no call", self.id);
        calls
    }

    /// The first check that this harness does not know.
    pub(super) fn unknown_check(&self) -> Option<String> {
        let calls = self.calls();
        let nested = calls.iter().filter_map(|call| call.expect.as_ref());
        let all = self.expect.get("all");
        nested.chain(all).chain([&self.expect]).find_map(|expect| {
            let mut names = expect.as_object()?.keys();
            names.find(|name| !KNOWN.contains(&name.as_str())).cloned()
        })
    }

    /// Whether any part of it speaks of `name`.
    pub(super) fn mentions(&self, name: &str) -> bool {
        let arguments = self.calls().into_iter().map(|call| call.args.to_string());
        arguments.chain(self.verify.iter().cloned()).any(|text| text.contains(name))
    }

    /// Whether it measures what other cases at the same time would disturb, or has much output in little time.
    pub(super) fn wants_quiet(&self) -> bool {
        let measured = ["max_server_rss_growth_mb", "no_zombies", "truncated"];
        measured.iter().any(|check| self.expect.get(check).is_some())
            || self.calls().iter().any(|call| call.parallel)
    }
}
