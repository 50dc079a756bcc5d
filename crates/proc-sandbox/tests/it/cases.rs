//! The case files, as far as they are about a confined command and not about a server's answers.
//!
//! A case that needs a layer this machine does not report as active is skipped and named. Cases marked `danger`
//! are never run here: they are for a harness with a guard of its own around them.

use std::path::Path;
use std::time::{Duration, Instant};

use proc_runner::{Cancel, Command, End, Limits, Outcome, run};
use proc_sandbox::{Report, Sandbox, Target};
use serde::Deserialize;
use serde_json::Value;
use testkit::{Fixture, Snapshot};

use crate::{directory, policy, start};

/// The machine may be busy with other tests.
const SLOWNESS: u64 = 5;
/// Set in the process that plays the server, with secrets in its environment.
const INNER: &str = "PROC_SANDBOX_CASES";

#[derive(Debug, Clone, Deserialize)]
struct Case {
    id: String,
    #[serde(default)]
    setup: Vec<String>,
    call: Option<Call>,
    expect: serde_json::Map<String, Value>,
    #[serde(default)]
    verify: Vec<String>,
    #[serde(default)]
    requires: Vec<String>,
    #[serde(default)]
    danger: bool,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Call {
    tool: String,
    args: Value,
    repeat: Option<u32>,
    parallel: Option<bool>,
    cancel_after_ms: Option<u64>,
}

/// Layers a case needs beside those it names, found by what it does.
fn also_requires(id: &str) -> Option<&'static str> {
    // Changing modes outside is a layer of its own in the report.
    (id == "proc-chmod-outside").then_some("fs_metadata_outside")
}

/// Why a case is not run here, if it is not.
fn reason_to_skip(case: &Case, report: &Report) -> Option<String> {
    let servers = ["error_kind", "truncated", "count_ok", "all", "result"];
    let unmet = |layer: &&str| *layer != "env_scrub" && !report.is_active(layer);
    let required = case.requires.iter().map(String::as_str).chain(also_requires(&case.id));
    let Some(call) = &case.call else { return Some("several calls".to_owned()) };
    let script = call.args.get("command").and_then(Value::as_str);
    let text = format!("{script:?} {:?}", case.verify);
    if case.danger {
        Some("it is dangerous where the sandbox is broken".to_owned())
    } else if call.tool != "run_bash" || script.is_none() || call.args.get("cwd").is_some() {
        Some("its arguments are the server's to understand".to_owned())
    } else if call.repeat.is_some() || call.parallel.is_some() || call.cancel_after_ms.is_some() {
        Some("several calls, or a cancelled one".to_owned())
    } else if servers.iter().any(|key| case.expect.contains_key(*key)) {
        Some("it is about a server's answer".to_owned())
    } else if ["$SERVER_PORT", "$SERVER_UDP", "$AUDIT", "$SERVER_EXE"]
        .iter()
        .any(|n| text.contains(n))
    {
        Some("it needs a whole server".to_owned())
    } else if call.args["timeout"].as_f64().is_none_or(|seconds| !(0.5..=60.0).contains(&seconds)) {
        Some("its time-out is the server's to choose".to_owned())
    } else {
        required.into_iter().find(unmet).map(|layer| format!("{layer} is not active here"))
    }
}

#[test]
fn every_case_that_is_about_a_command_holds() {
    if std::env::var_os(INNER).is_none() {
        let command = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "cases::every_case_that_is_about_a_command_holds", "--nocapture"])
            .envs(std::env::vars_os())
            .env(INNER, "1")
            .env("SERVER_SECRET_TOKEN", "SECRET-CANARY-ENV")
            .env("AWS_SECRET_ACCESS_KEY", "SECRET-CANARY-ENV");
        let ran = start(command, Duration::from_mins(5));
        assert!(ran.text.contains("1 passed"), "{}", ran.text);
        println!("{}", ran.text);
        return;
    }
    let files = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let (mut held, mut failures) = (0, Vec::new());
    for case in testkit::cases::<Case>(&files) {
        match check(&case.body) {
            Ok(()) => held += 1,
            Err(Problem::Skipped(reason)) => println!("SKIPPED {}: {reason}", case.body.id),
            Err(Problem::Broken(what)) => failures.push(format!("{}: {what}", case.body.id)),
        }
    }
    assert_eq!(failures, Vec::<String>::new());
    // On every machine on which the rung is reached; fewer would mean that the harness skips what it should run.
    assert!(held >= 35, "{held}");
    println!("{held} cases held");
}

#[derive(Debug)]
enum Problem {
    Skipped(String),
    Broken(String),
}

fn check(case: &Case) -> Result<(), Problem> {
    let fixture = Fixture::new("");
    let home = fixture.base().join("home");
    std::fs::create_dir_all(home.join(".ssh")).unwrap();
    std::fs::write(home.join(".ssh/id_ed25519"), "SECRET-CANARY-KEY\n").unwrap();
    let sandbox = Sandbox::new(policy(&fixture.root()).home(&home)).unwrap();
    if let Some(reason) = reason_to_skip(case, &sandbox.probe()) {
        return Err(Problem::Skipped(reason));
    }
    let mark = format!("{}-{}", case.id, std::process::id());
    let named = |text: &str| {
        let text = text.replace("$BASE", fixture.base().to_str().unwrap());
        let text = text.replace("$MARK", &mark);
        let text = text.replace("$SERVER_PID", &std::process::id().to_string());
        let outside = fixture.outside();
        let text = replace_name(&text, "$W", fixture.root().to_str().unwrap());
        replace_name(&text, "$S", outside.to_str().unwrap())
    };
    let outside_shell = |script: &str| {
        let command = Command::new("/bin/bash")
            .args(["-e", "-c", &named(script)])
            .env("PATH", "/usr/bin:/bin")
            .cwd(directory(&fixture.root()));
        start(command, Duration::from_secs(30)).outcome.end == End::Exited(0)
    };
    for line in &case.setup {
        assert!(outside_shell(line), "{}: {line}", case.id);
    }
    let before = (Snapshot::of(&fixture.outside()), Snapshot::of(&home));
    let args = &case.call.as_ref().unwrap().args;
    let timeout = Duration::from_secs_f64(args["timeout"].as_f64().unwrap());
    let began = Instant::now();
    let (outcome, text) =
        run_confined(&sandbox, &fixture, &named(args["command"].as_str().unwrap()), timeout);
    let took = began.elapsed();
    let after = (Snapshot::of(&fixture.outside()), Snapshot::of(&home));

    for (key, expected) in &case.expect {
        let expected_text = || named(expected.as_str().unwrap());
        let milliseconds = || expected.as_u64().unwrap();
        let holds = match key.as_str() {
            // Of these a server makes something, and the command nothing.
            "ok" | "server_alive" | "no_zombies" | "max_response_bytes" | "workspace_unchanged" => {
                true
            }
            "exit_code" => expected.as_u64() == code(&outcome),
            "signal" => expected.as_i64() == signal(&outcome),
            "timed_out" => expected.as_bool() == Some(outcome.timed_out),
            "stdout" => text.trim_end() == expected_text().trim_end(),
            "stdout_contains" | "stderr_contains" => text.contains(&expected_text()),
            "stdout_not_contains" => !text.contains(&expected_text()),
            "must_contain" | "must_not_contain" => {
                let each = expected.as_array().unwrap().iter();
                let found = |one: &Value| text.contains(&named(one.as_str().unwrap()));
                let wanted = key == "must_contain";
                each.clone().all(|one| found(one) == wanted)
            }
            "outside_unchanged" => before == after,
            "max_wall_ms" => took < Duration::from_millis(milliseconds() * SLOWNESS),
            "min_wall_ms" => took >= Duration::from_millis(milliseconds()),
            "no_survivor_matching" => !crate::processes::survives(&expected_text()),
            other => {
                return Err(Problem::Skipped(format!("it expects {other}, which is a server's")));
            }
        };
        if !holds {
            return Err(Problem::Broken(format!("{key} {expected}: {text}\n{outcome:?}")));
        }
    }
    match case.verify.iter().find(|line| !outside_shell(line)) {
        Some(line) => Err(Problem::Broken(format!("{line}: {text}"))),
        None => Ok(()),
    }
}

fn run_confined(
    sandbox: &Sandbox,
    fixture: &Fixture,
    script: &str,
    timeout: Duration,
) -> (Outcome, String) {
    let target = Target::new("/bin/bash", directory(&fixture.root()))
        .args(["-c", script])
        // The second is what a server adds.
        .envs([("PATH", "/usr/bin:/bin"), ("GIT_TERMINAL_PROMPT", "0")])
        .envs(sandbox.environment());
    let confined = sandbox.confine(target).unwrap();
    let command = Command::new(confined.program).args(confined.args).stdin(confined.stdin);
    let mut bytes = Vec::new();
    let mut sink = |chunk: &[u8]| {
        bytes.extend_from_slice(chunk);
        Ok(())
    };
    let outcome = run(command, &Limits::new(timeout), &Cancel::new().unwrap(), &mut sink).unwrap();
    confined.status.enforced().unwrap();
    (outcome, String::from_utf8_lossy(&bytes).into_owned())
}

fn code(outcome: &Outcome) -> Option<u64> {
    match outcome.end {
        End::Exited(code) => Some(code.into()),
        End::Signaled(_) => None,
    }
}

fn signal(outcome: &Outcome) -> Option<i64> {
    match outcome.end {
        End::Exited(_) => None,
        End::Signaled(signal) => Some(signal.into()),
    }
}

/// Replaces a short name where no letter or underscore follows.
fn replace_name(text: &str, name: &str, value: &str) -> String {
    let mut parts = text.split(name);
    let mut replaced = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let goes_on = part.starts_with(|next: char| next.is_ascii_alphabetic() || next == '_');
        replaced.push_str(if goes_on { name } else { value });
        replaced.push_str(part);
    }
    replaced
}
