//! Runs one case and holds what came of it against what the case expects.

use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant};

use serde_json::Value;
use testkit::Snapshot;

use super::case::{Call, Case};
use super::launch::Launch;
use super::stage::{Rival, Stage};
use super::talk::{Outcome, Talk};

/// Machines under load are slow; what is measured here is "at once" against "never".
const SLOWNESS: u64 = 5;
/// How long after an answer something may still be on its way out.
const LINGERING: Duration = Duration::from_millis(500);
/// And where an engine has to be asked for its end, on a machine that builds something besides.
const LINGERING_IN_CONTAINERS: Duration = Duration::from_secs(10);

/// Runs `case` on a server of its own; why it does not hold.
///
/// `rung` is what every result of a command must name.
pub(super) fn check(case: &Case, launch: &Launch, rung: Option<&str>) -> Result<(), String> {
    if let Some(unknown) = case.unknown_check() {
        return Err(format!("the harness does not know the check '{unknown}'"));
    }
    let calls = case.calls();
    let mut stage = Stage::new(case, launch)?;
    let server = stage.serve(variables(&calls));
    let mut talk = Talk::begin(server);
    // Only where it is compared: a case may have made a file of many gigabytes.
    let compared = ["workspace_unchanged", "no_temp_left"];
    let compared = compared.iter().any(|check| case.expect.get(check).is_some());
    let workspace = compared.then(|| Snapshot::of(&stage.fixture.root()));
    let outside = stage.outside();
    let peak = peak_memory(talk.pid());
    let during: Vec<Rival> = case.during.iter().map(|line| stage.rival(line)).collect();
    let started = Instant::now();
    let outcomes = talk.make(&stage, &calls)?;
    let (took, answered) = (started.elapsed(), Instant::now());
    drop(during);
    let expect = &case.expect;
    // Looked at now, said after what the answers say.
    let lingering = nothing_lingers(&stage, expect, talk.pid(), answered);

    for (call, outcome) in calls.iter().zip(&outcomes) {
        for answer in &outcome.answers {
            let found = &answer["result"]["_meta"]["agent-workspace/result"]["sandbox"];
            let other = rung.filter(|rung| !found.is_null() && found != rung);
            ensure(other.is_none(), || format!("ran on the rung {found}, not on {other:?}"))?;
        }
        if let Some(expect) = &call.expect {
            answers_hold(&stage, expect, outcome)?;
        }
    }
    // What stands side by side is the last all together.
    let side_by_side = calls.iter().rev().take_while(|call| call.parallel).count();
    for last in outcomes.iter().rev().take(side_by_side.max(1)) {
        answers_hold(&stage, expect, last)?;
        answers_hold(&stage, expect.get("all").unwrap_or(&Value::Null), last)?;
        if let Some(count) = expect["count_ok"].as_u64() {
            let good = last.answers.iter().filter(|answer| answer["result"]["isError"] != true);
            let good = good.count() as u64;
            ensure(good == count, || format!("{good} succeeded, not {count}"))?;
        }
    }
    if let Some(limit) = expect["max_wall_ms"].as_u64() {
        let slow = Duration::from_millis(limit * SLOWNESS);
        ensure(took <= slow, || format!("took {took:?}, at most {slow:?}"))?;
    }
    if let Some(limit) = expect["min_wall_ms"].as_u64() {
        let limit = Duration::from_millis(limit);
        ensure(took >= limit, || format!("took {took:?}, at least {limit:?}"))?;
    }
    lingering?;
    if let Some(limit) = expect["max_server_rss_growth_mb"].as_u64() {
        let grown = peak_memory(talk.pid()) - peak;
        ensure(grown <= limit, || format!("memory grew by {grown} MiB, at most {limit}"))?;
    }
    if expect["outside_unchanged"] == true {
        ensure(stage.outside() == outside, || "the outside changed".into())?;
    }
    if let Some(before) = &workspace {
        workspace_holds(&stage, expect, before)?;
    }
    files_hold(&stage, expect)?;
    if expect["server_alive"] == true {
        talk.ping()?;
    }
    stage.note_datagrams();
    case.verify.iter().try_for_each(|line| stage.shell(line))
}

/// What a case wants to be different from the defaults.
fn variables(calls: &[Call]) -> &'static [(&'static str, &'static str)] {
    // "Not given" is what it is about, so the time for that is what it waits for; a minute of it proves no more.
    let zero = calls.iter().any(|call| call.args["timeout"] == 0);
    if zero { &[("COMMAND_TIMEOUT", "5")] } else { &[] }
}

pub(super) fn ensure(holds: bool, why: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(why()) }
}

fn answers_hold(stage: &Stage<'_>, expect: &Value, outcome: &Outcome) -> Result<(), String> {
    if outcome.cancelled || outcome.answers.is_empty() {
        return ensure(outcome.cancelled && expect["cancelled"] != false, || {
            "the call ended otherwise than by being cancelled".into()
        });
    }
    outcome.answers.iter().try_for_each(|answer| answer_holds(stage, expect, answer))
}

fn answer_holds(stage: &Stage<'_>, expect: &Value, answer: &Value) -> Result<(), String> {
    let result = &answer["result"];
    ensure(result.is_object(), || format!("no result: {answer}"))?;
    let whole = answer.to_string();
    let text = result["content"][0]["text"].as_str().unwrap_or_default();
    let facts = &result["_meta"]["agent-workspace/result"];
    let shown = || text.chars().take(300).collect::<String>();
    if let Some(ok) = expect["ok"].as_bool() {
        let is = result["isError"] != true;
        ensure(is == ok, || format!("ok is not {ok}: {facts} {}", shown()))?;
    }
    if !expect["error_kind"].is_null() {
        let kind = &facts["error_kind"];
        let listed = expect["error_kind"].as_array().is_some_and(|kinds| kinds.contains(kind));
        let holds = listed || *kind == expect["error_kind"];
        ensure(holds, || format!("error_kind is {kind}: {}", shown()))?;
    }
    for fact in ["exit_code", "signal", "timed_out", "cancelled", "truncated"] {
        if let Some(want) = expect.get(fact) {
            ensure(facts[fact] == *want, || format!("{fact} is not {want}: {facts} {}", shown()))?;
        }
    }
    let output = text.split_once('\n').map_or("", |(_, output)| output);
    for (check, place, wanted) in [
        ("must_contain", whole.as_str(), true),
        ("must_not_contain", whole.as_str(), false),
        ("stdout_contains", output, true),
        ("stderr_contains", output, true),
        ("stdout_not_contains", output, false),
    ] {
        for part in texts(&expect[check]) {
            let part = stage.fill(part);
            ensure(place.contains(&part) == wanted, || format!("{check} {part:?}: {}", shown()))?;
        }
    }
    for (check, is) in [("result", text), ("stdout", output)] {
        if let Some(want) = expect[check].as_str() {
            let same = is.trim_end_matches('\n') == stage.fill(want).trim_end_matches('\n');
            ensure(same, || format!("{check} is {:?}, not {want:?}", shown()))?;
        }
    }
    for (check, wanted) in [("entries_include", true), ("entries_exclude", false)] {
        for name in texts(&expect[check]) {
            let listed = text.lines().any(|line| line.get(4..).unwrap_or_default() == name);
            ensure(listed == wanted, || format!("{check} {name}: {}", shown()))?;
        }
    }
    if let Some(limit) = expect["max_response_bytes"].as_u64() {
        ensure(whole.len() as u64 <= limit, || format!("{} bytes, at most {limit}", whole.len()))?;
    }
    Ok(())
}

/// One text, or a list of them.
fn texts(value: &Value) -> impl Iterator<Item = &str> {
    let one = value.is_string().then_some(value);
    one.into_iter().chain(value.as_array().into_iter().flatten()).map(|text| text.as_str().unwrap())
}

/// The checks on what is in the workspace.
fn workspace_holds(stage: &Stage<'_>, expect: &Value, before: &Snapshot) -> Result<(), String> {
    let now = Snapshot::of(&stage.fixture.root());
    if expect["workspace_unchanged"] == true {
        ensure(now == *before, || "the workspace changed".into())?;
    }
    if expect["no_temp_left"] == true {
        let root = stage.fixture.root().display().to_string();
        let files = expect["files"].as_object();
        let old: Vec<&str> = before.names().collect();
        let new = now.names().find(|name| {
            let path = format!("{root}/{name}");
            let named = files.is_some_and(|all| all.keys().any(|key| stage.fill(key) == path));
            !old.contains(name) && !named
        });
        ensure(new.is_none(), || format!("left behind: {new:?}"))?;
    }
    Ok(())
}

/// The checks on files that are named.
fn files_hold(stage: &Stage<'_>, expect: &Value) -> Result<(), String> {
    for (path, want) in expect["files"].as_object().into_iter().flatten() {
        let got = std::fs::read(stage.fill(path)).ok();
        let want = want.as_str().map(|text| text.as_bytes().to_vec());
        ensure(got == want, || format!("{path} holds {got:?}, not {want:?}"))?;
    }
    for (path, want) in expect["modes"].as_object().into_iter().flatten() {
        let mode = std::fs::metadata(stage.fill(path)).unwrap().permissions().mode() & 0o7777;
        let want = u32::from_str_radix(want.as_str().unwrap().trim_start_matches("0o"), 8).unwrap();
        ensure(mode == want, || format!("{path} has mode {mode:o}, not {want:o}"))?;
    }
    Ok(())
}

/// What a call started is gone in time, and what is gone was reaped.
fn nothing_lingers(
    stage: &Stage<'_>,
    expect: &Value,
    server: u32,
    answered: Instant,
) -> Result<(), String> {
    let mark = expect["no_survivor_matching"].as_str().map(|text| stage.fill(text));
    let zombies = expect["no_zombies"] == true;
    let most = if stage.is_in_containers() { LINGERING_IN_CONTAINERS } else { LINGERING };
    loop {
        let left: Vec<String> = processes()
            .filter(|process| {
                let marked = mark.as_ref().is_some_and(|mark| process.line.contains(mark));
                marked || (zombies && process.parent == server && process.state == "Z")
            })
            .map(|process| format!("{} {} {}", process.id, process.state, process.line))
            .collect();
        if left.is_empty() {
            return Ok(());
        }
        ensure(answered.elapsed() < most, || format!("still there: {left:?}"))?;
        std::thread::sleep(Duration::from_millis(10));
    }
}

struct Process {
    id: u32,
    parent: u32,
    state: String,
    line: String,
}

/// All that are seen from here; what ends meanwhile is left out.
fn processes() -> impl Iterator<Item = Process> {
    std::fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let place = entry.ok()?.path();
        let id = place.file_name()?.to_str()?.parse().ok()?;
        let stat = std::fs::read(place.join("stat")).ok()?;
        let stat = String::from_utf8_lossy(&stat).into_owned();
        // The name before it may hold anything.
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
        let state = fields.next()?.to_owned();
        let parent = fields.next()?.parse().ok()?;
        let line = std::fs::read(place.join("cmdline")).ok()?;
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        Some(Process { id, parent, state, line })
    })
}

/// The most memory a process ever had, MiB.
fn peak_memory(id: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").trim().parse::<u64>().unwrap() / 1024
}
