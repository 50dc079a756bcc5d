//! Every jail case of `workspace-jail`, as a client would send it to the real binary.

use std::io::Write as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::{Value, json};
use testkit::{Fixture, Snapshot};

use crate::harness::Binary;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    id: String,
    #[serde(rename = "title")]
    _title: String,
    #[serde(rename = "source")]
    _source: String,
    #[serde(rename = "why")]
    _why: String,
    setup: Vec<String>,
    call: Option<Call>,
    #[serde(default)]
    calls: Vec<Call>,
    expect: Value,
    #[serde(default)]
    requires: Vec<String>,
    #[serde(default)]
    verify: Vec<String>,
    #[serde(default)]
    during: Vec<String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Call {
    tool: String,
    args: Value,
    expect: Option<Value>,
    #[serde(default)]
    repeat: Option<u64>,
    #[serde(default)]
    parallel: bool,
}

/// Machines under load are slow; what is measured here is "at once" against "never".
const SLOWNESS: u64 = 5;

/// The checks this harness knows; a case that asks for another must not pass unseen.
const KNOWN: [&str; 19] = [
    "all",
    "count_ok",
    "entries_exclude",
    "entries_include",
    "error_kind",
    "files",
    "max_response_bytes",
    "max_server_rss_growth_mb",
    "max_wall_ms",
    "modes",
    "must_contain",
    "must_not_contain",
    "no_temp_left",
    "ok",
    "outside_unchanged",
    "result",
    "server_alive",
    "truncated",
    "workspace_unchanged",
];

#[test]
fn every_jail_case_holds_through_the_tools() {
    let cases =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates/workspace-jail/tests/cases");
    let root = rustix::process::geteuid().is_root();
    let mut ran = 0;
    let mut failed = Vec::new();
    for case in testkit::cases::<Case>(&cases) {
        if case.body.requires.iter().any(|what| what == "root_setup") && !root {
            // Not through testkit::require: an ordinary user lacks nothing that a machine could bring.
            writeln!(std::io::stderr(), "SKIPPED {}: its setup needs root", case.body.id).unwrap();
            continue;
        }
        ran += 1;
        if let Err(why) = check(&case.body) {
            failed.push(format!("{} ({}): {why}", case.body.id, case.place));
        }
    }
    assert!(failed.is_empty(), "{} of {ran} failed:\n{}", failed.len(), failed.join("\n"));
}

/// One case's place and server.
struct Run {
    fixture: Fixture,
    server: Binary,
}

impl Run {
    fn begin(case: &Case) -> Result<Self, String> {
        let fixture = Fixture::new("//- x\n");
        std::fs::remove_file(fixture.root().join("x")).unwrap();
        let ssh = fixture.base().join("home/.ssh");
        std::fs::create_dir_all(&ssh).unwrap();
        std::fs::write(ssh.join("id_ed25519"), "SECRET-CANARY-KEY").unwrap();
        for line in &case.setup {
            shell(&fixture, line, None)?;
        }
        let home = fixture.base().join("home");
        let variables = [
            ("SERVER_SECRET_TOKEN", "SECRET-CANARY-ENV"),
            ("HOME", home.to_str().unwrap()),
            ("LOG_LEVEL", "error"),
        ];
        let mut server = Binary::start(&fixture, &[], &variables);
        server.hello("2025-11-25");
        Ok(Self { fixture, server })
    }

    fn outside(&self) -> (Snapshot, Snapshot) {
        (Snapshot::of(&self.fixture.outside()), Snapshot::of(&self.fixture.base().join("home")))
    }

    /// The most memory the server ever had, MiB.
    fn peak(&self) -> u64 {
        let status =
            std::fs::read_to_string(format!("/proc/{}/status", self.server.pid())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
    }
}

fn check(case: &Case) -> Result<(), String> {
    let mut run = Run::begin(case)?;
    let (outside, workspace, peak) = (run.outside(), Snapshot::of(&run.fixture.root()), run.peak());
    let during: Vec<Background> =
        case.during.iter().map(|line| Background::start(&run.fixture, line)).collect();
    let calls: Vec<Call> = case.call.iter().chain(&case.calls).cloned().collect();
    let started = Instant::now();
    let mut answers = Vec::new();
    for call in &calls {
        answers.push(send(&mut run, call));
    }
    let took = started.elapsed();
    drop(during);

    for (call, answers) in calls.iter().zip(&answers) {
        if let Some(expect) = &call.expect {
            answers.iter().try_for_each(|answer| answer_holds(&run, expect, answer))?;
        }
    }
    let last = answers.last().ok_or("the case has no call")?;
    let expect = &case.expect;
    if let Some(unknown) =
        expect.as_object().and_then(|all| all.keys().find(|key| !KNOWN.contains(&key.as_str())))
    {
        return Err(format!("the harness does not know the check '{unknown}'"));
    }
    last.iter().try_for_each(|answer| answer_holds(&run, expect, answer))?;
    if let Some(all) = expect.get("all") {
        last.iter().try_for_each(|answer| answer_holds(&run, all, answer))?;
    }
    if let Some(count) = expect["count_ok"].as_u64() {
        let succeeded = last.iter().filter(|answer| answer["result"]["isError"] != true).count();
        ensure(succeeded as u64 == count, || format!("{succeeded} succeeded, not {count}"))?;
    }
    if let Some(limit) = expect["max_wall_ms"].as_u64() {
        let slow = Duration::from_millis(limit * SLOWNESS);
        ensure(took <= slow, || format!("took {took:?}, at most {slow:?}"))?;
    }
    if let Some(limit) = expect["max_server_rss_growth_mb"].as_u64() {
        let grown = run.peak() - peak;
        ensure(grown <= limit, || format!("memory grew by {grown} MiB, at most {limit}"))?;
    }
    state_holds(&run, expect, &outside, &workspace)?;
    if expect["server_alive"] == true {
        let pong = run.server.request(999_999, "ping", json!({}));
        ensure(pong["result"].is_object(), || "the server does not answer".into())?;
    }
    let pid = run.server.pid();
    case.verify.iter().try_for_each(|line| shell(&run.fixture, line, Some(pid)))
}

/// Sends a call as often as it says; the answers.
fn send(run: &mut Run, call: &Call) -> Vec<Value> {
    let arguments = arguments(&run.fixture, &call.args, run.server.pid());
    let ids: Vec<u64> = (1..=call.repeat.unwrap_or(1)).collect();
    if !call.parallel {
        return ids
            .into_iter()
            .map(|id| run.server.call(id, &call.tool, arguments.clone()))
            .collect();
    }
    for id in &ids {
        let params = json!({"name": call.tool, "arguments": arguments});
        let request = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
        run.server.send(&request.to_string());
    }
    ids.iter().map(|_| run.server.receive()).collect()
}

fn arguments(fixture: &Fixture, given: &Value, pid: u32) -> Value {
    let Value::Object(given) = given else { panic!("arguments are an object") };
    let mut arguments = serde_json::Map::new();
    for (name, value) in given {
        if let Some(base) = name.strip_suffix("_repeat") {
            let (text, times) = (value[0].as_str().unwrap(), value[1].as_u64().unwrap());
            let suffix = given.get(&format!("{base}_suffix")).and_then(Value::as_str).unwrap_or("");
            let text = text.repeat(usize::try_from(times).unwrap()) + suffix;
            arguments.insert(base.into(), text.into());
        } else if !name.ends_with("_suffix") {
            arguments.insert(name.clone(), named(fixture, value, Some(pid)));
        }
    }
    arguments.into()
}

/// The value with the names of the case format replaced.
fn named(fixture: &Fixture, value: &Value, pid: Option<u32>) -> Value {
    match value {
        Value::String(text) => replace(fixture, text, pid).into(),
        Value::Array(items) => items.iter().map(|item| named(fixture, item, pid)).collect(),
        Value::Object(object) => {
            object.iter().map(|(key, value)| (key.clone(), named(fixture, value, pid))).collect()
        }
        other => other.clone(),
    }
}

fn replace(fixture: &Fixture, text: &str, pid: Option<u32>) -> String {
    let show = |path: &Path| path.display().to_string();
    let mut text = text.replace("$BASE", &show(fixture.base()));
    if let Some(pid) = pid {
        text = text.replace("$SERVER_PID", &pid.to_string());
    }
    for (name, value) in [("$W", show(&fixture.root())), ("$S", show(&fixture.outside()))] {
        let mut replaced = String::new();
        let mut rest = text.as_str();
        while let Some((before, after)) = rest.split_once(name) {
            let word = after.starts_with(|next: char| next.is_ascii_alphabetic() || next == '_');
            replaced.push_str(before);
            replaced.push_str(if word { name } else { &value });
            rest = after;
        }
        replaced.push_str(rest);
        text = replaced;
    }
    text
}

fn ensure(holds: bool, why: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(why()) }
}

/// The checks on one answer.
fn answer_holds(run: &Run, expect: &Value, answer: &Value) -> Result<(), String> {
    let result = &answer["result"];
    ensure(result.is_object(), || format!("no result: {answer}"))?;
    let whole = answer.to_string();
    let text = result["content"][0]["text"].as_str().unwrap_or_default();
    let facts = &result["_meta"]["agent-workspace/result"];
    let shown: String = text.chars().take(300).collect();
    if let Some(ok) = expect["ok"].as_bool() {
        ensure((result["isError"] != true) == ok, || format!("ok is not {ok}: {facts} {shown}"))?;
    }
    if !expect["error_kind"].is_null() {
        let kind = &facts["error_kind"];
        let listed = expect["error_kind"].as_array().is_some_and(|kinds| kinds.contains(kind));
        ensure(listed || *kind == expect["error_kind"], || {
            format!("error_kind is {kind}: {shown}")
        })?;
    }
    for part in expect["must_contain"].as_array().into_iter().flatten() {
        let part = replace(&run.fixture, part.as_str().unwrap(), Some(run.server.pid()));
        ensure(whole.contains(&part), || format!("does not contain {part:?}: {shown}"))?;
    }
    for part in expect["must_not_contain"].as_array().into_iter().flatten() {
        let part = replace(&run.fixture, part.as_str().unwrap(), Some(run.server.pid()));
        ensure(!whole.contains(&part), || format!("contains {part:?}: {shown}"))?;
    }
    if let Some(want) = expect["result"].as_str() {
        let same = text.trim_end_matches('\n') == want.trim_end_matches('\n');
        ensure(same, || format!("result is {shown:?}, not {want:?}"))?;
    }
    for (check, wanted) in [("entries_include", true), ("entries_exclude", false)] {
        for name in expect[check].as_array().into_iter().flatten() {
            let name = name.as_str().unwrap();
            let listed = text.lines().any(|line| line.get(4..).unwrap_or_default() == name);
            ensure(listed == wanted, || format!("{check} {name}: {shown}"))?;
        }
    }
    if let Some(limit) = expect["max_response_bytes"].as_u64() {
        ensure(whole.len() as u64 <= limit, || format!("{} bytes, at most {limit}", whole.len()))?;
    }
    if let Some(truncated) = expect["truncated"].as_bool() {
        ensure(facts["truncated"] == truncated, || format!("truncated: {facts}"))?;
    }
    Ok(())
}

/// The checks on what is on disk.
fn state_holds(
    run: &Run,
    expect: &Value,
    outside: &(Snapshot, Snapshot),
    workspace: &Snapshot,
) -> Result<(), String> {
    if expect["outside_unchanged"] == true {
        ensure(run.outside() == *outside, || "the outside changed".into())?;
    }
    if expect["workspace_unchanged"] == true {
        let now = Snapshot::of(&run.fixture.root());
        ensure(now == *workspace, || "the workspace changed".into())?;
    }
    let files = expect["files"].as_object();
    let place = |path: &str| replace(&run.fixture, path, None);
    for (path, want) in files.into_iter().flatten() {
        let got = std::fs::read(place(path)).ok();
        let want = want.as_str().map(|text| text.as_bytes().to_vec());
        ensure(got == want, || format!("{path} holds {got:?}, not {want:?}"))?;
    }
    for (path, want) in expect["modes"].as_object().into_iter().flatten() {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(place(path)).unwrap().permissions().mode() & 0o7777;
        let want = u32::from_str_radix(want.as_str().unwrap().trim_start_matches("0o"), 8).unwrap();
        ensure(mode == want, || format!("{path} has mode {mode:o}, not {want:o}"))?;
    }
    if expect["no_temp_left"] == true {
        let root = run.fixture.root().display().to_string();
        let before: Vec<&str> = workspace.names().collect();
        let now = Snapshot::of(&run.fixture.root());
        let new = now.names().find(|name| {
            let named = files
                .is_some_and(|all| all.keys().any(|key| place(key) == format!("{root}/{name}")));
            !before.contains(name) && !named
        });
        ensure(new.is_none(), || format!("left behind: {new:?}"))?;
    }
    Ok(())
}

fn shell(fixture: &Fixture, line: &str, pid: Option<u32>) -> Result<(), String> {
    let output = Command::new("/bin/bash")
        .args(["-ec", &replace(fixture, line, pid)])
        .current_dir(fixture.root())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    ensure(output.status.success(), || {
        format!("{line}: {} {}", output.status, String::from_utf8_lossy(&output.stderr))
    })
}

/// The other party of a race, ended when the call is over.
struct Background(Child);

impl Background {
    fn start(fixture: &Fixture, line: &str) -> Self {
        use std::os::unix::process::CommandExt as _;
        let child = Command::new("/bin/bash")
            .args(["-c", &replace(fixture, line, None)])
            .current_dir(fixture.root())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .unwrap();
        Self(child)
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        let group = rustix::process::Pid::from_child(&self.0);
        rustix::process::kill_process_group(group, rustix::process::Signal::KILL).ok();
        self.0.wait().ok();
    }
}
