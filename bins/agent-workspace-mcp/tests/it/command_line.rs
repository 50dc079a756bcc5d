//! The commands of the command line, each as a user would call it.

use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use testkit::Fixture;

use crate::harness::BINARY;

#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs the binary to its end, its state beside the workspace of `fixture`.
pub(crate) fn run(fixture: &Fixture, arguments: &[&str], stdin: &str) -> Done {
    run_with(fixture, arguments, stdin, &[])
}

fn run_with(
    fixture: &Fixture,
    arguments: &[&str],
    stdin: &str,
    variables: &[(&str, &str)],
) -> Done {
    let mut child = Command::new(BINARY)
        .args(arguments)
        .env("WORKSPACE", fixture.root())
        .env("AUDIT_DIR", fixture.base().join("state"))
        .envs(variables.iter().copied())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    // A command that reads no input may have closed it.
    input.write_all(stdin.as_bytes()).ok();
    drop(input);
    let output = child.wait_with_output().unwrap();
    Done {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

#[test]
fn the_largest_limits_are_limits() {
    let fixture = Fixture::new("//- a\nx\n");
    let most = u64::MAX.to_string();
    let variables: Vec<(&str, &str)> = [
        "COMMAND_TIMEOUT",
        "MAX_COMMAND_TIMEOUT",
        "MAX_CONCURRENT_CALLS",
        "MAX_OUTPUT_BYTES",
        "MAX_READ_SIZE_BYTES",
        "MAX_SEARCH_RESULTS",
        "MAX_WRITE_SIZE_BYTES",
        "OUTPUT_TOKEN_BUDGET",
    ]
    .map(|name| (name, most.as_str()))
    .into();
    for (tool, arguments) in [
        ("run_bash", r#"{"command": "cat a", "timeout": 1e30}"#),
        ("read_file", r#"{"filepath": "a", "limit": 1e30}"#),
        ("search_content", r#"{"pattern": "x"}"#),
    ] {
        let done = run_with(&fixture, &["call", tool, arguments], "", &variables);
        assert!(done.code == 0 && done.stdout.contains('x'), "{tool}: {done:?}");
    }
}

#[test]
fn the_demo_shows_every_step_and_succeeds() {
    let fixture = Fixture::new("//- a\n");
    let done = run(&fixture, &["demo"], "");
    assert_eq!(done.code, 0, "{done:?}");
    for part in [
        "Successfully wrote",
        "1 fuzzy-matched",
        "+        message = f'Hello, {name}!'",
        "Python syntax error",
        "outside the workspace boundary",
        "error: expected a semicolon",
        "The command ran on the rung '",
        "All 5 steps",
    ] {
        assert!(done.stdout.contains(part), "{part}:\n{}", done.stdout);
    }
}

#[test]
fn call_prints_the_text_and_tells_errors_by_its_status() {
    let fixture = Fixture::new("//- a.txt\nhello\n");
    let done = run(&fixture, &["call", "read_file", r#"{"filepath":"a.txt"}"#], "");
    assert_eq!((done.code, done.stdout.as_str()), (0, "hello\n"));
    let done = run(&fixture, &["call", "read_file", r#"{"filepath":"../x"}"#], "");
    assert_eq!(done.code, 1);
    assert!(done.stdout.contains("outside the workspace boundary"), "{done:?}");
    let done = run(&fixture, &["call", "run_bash", r#"{"command":"exit 3"}"#, "--facts"], "");
    assert_eq!(done.code, 0, "a non-zero exit is a result: {done:?}");
    let facts: Value = serde_json::from_str(&done.stderr).unwrap();
    assert_eq!(facts["exit_code"], 3);
    let job =
        run(&fixture, &["call", "run_bash", r#"{"command":"sleep 9","background":true}"#], "");
    assert!(job.code == 0 && job.stderr.contains("ends with this command"), "{job:?}");
    for bad in [&["call", "no_tool"][..], &["call", "read_file", "[]"], &["call", "read_file", "{"]]
    {
        let done = run(&fixture, bad, "");
        assert!(done.code == 1 && done.stdout.is_empty() && !done.stderr.is_empty(), "{done:?}");
    }
}

#[test]
fn doctor_tells_what_it_tried() {
    let fixture = Fixture::new("//- a\n");
    let done = run(&fixture, &["doctor", "--json"], "");
    let value: Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(value["ok"], json!(done.code == 0), "{done:?}");
    assert_ne!(value["rung"], "none");
    assert_eq!(value["floor"], "landlock");
    let layers = value["layers"].as_array().unwrap();
    for layer in layers {
        for field in ["name", "state", "detail"] {
            assert!(layer[field].as_str().is_some_and(|text| !text.is_empty()), "{layer}");
        }
    }
    let state = |name: &str| {
        layers.iter().find(|layer| layer["name"] == name).map(|layer| layer["state"].clone())
    };
    assert_eq!(state("fs_readonly_outside"), Some(json!("active")));
    let own_processes = value["rung"] == "native-full";
    assert_eq!(state("pidns") == Some(json!("active")), own_processes, "{value}");
    let text = run(&fixture, &["doctor"], "");
    let rung = value["rung"].as_str().unwrap();
    assert!(text.stdout.contains(&format!("on the rung '{rung}'")), "{text:?}");
    let lower = run(&fixture, &["doctor", "--json", "--sandbox", "landlock"], "");
    let lower: Value = serde_json::from_str(&lower.stdout).unwrap();
    assert_eq!(lower["rung"], "landlock");
    let above = ["doctor", "--json", "--sandbox", "landlock", "--require", "native-full"];
    assert_eq!(run(&fixture, &above, "").code, 1);
}

#[test]
fn doctor_claims_nothing_where_nothing_is_enforced() {
    let fixture = Fixture::new("//- a\n");
    let done = run(&fixture, &["doctor", "--json", "--sandbox", "none"], "");
    let value: Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!((done.code, &value["rung"]), (0, &json!("none")));
    let layers = value["layers"].as_array().unwrap();
    assert!(layers.iter().all(|layer| layer["state"] != "active"), "{value}");
}

#[test]
fn the_audit_log_is_optional_only_where_nobody_named_it() {
    // HOME inside the workspace: its default place would be too, so there is none, and that is said.
    let fixture = Fixture::new("//- home/\n");
    let home = fixture.root().join("home");
    let variables = [("AUDIT_DIR", ""), ("HOME", home.to_str().unwrap()), ("XDG_STATE_HOME", "")];
    let done = run_with(&fixture, &["doctor", "--json"], "", &variables);
    let value: Value = serde_json::from_str(&done.stdout).unwrap();
    assert!(value["state"].as_str().unwrap().contains("inside the workspace"), "{value}");
    let text =
        run_with(&fixture, &["call", "run_bash", r#"{"command":"seq 1 9 9999"}"#], "", &variables);
    assert!(!text.stdout.contains("read_output"), "no marker without a store: {text:?}");
    assert!(!fixture.exists("home/.local"));
}

#[test]
fn compact_shortens_and_never_loses_the_error() {
    let fixture = Fixture::new("//- a\n");
    let mut lines: Vec<_> =
        (0..4000).map(|number| format!("Compiling unit_{number} v1.0.{number}\n")).collect();
    lines.insert(2345, "error: it broke in src/x.c:12\n".into());
    let raw = lines.concat();
    let done = run(&fixture, &["compact", "--command", "make", "--exit-code", "2", "--json"], &raw);
    let value: Value = serde_json::from_str(&done.stdout).unwrap();
    assert!(value["text"].as_str().unwrap().contains("error: it broke in src/x.c:12"), "{value}");
    assert!(value["out_tokens"].as_u64() < value["raw_tokens"].as_u64(), "{value}");
}

#[test]
fn a_setting_that_cannot_be_used_is_named() {
    let fixture = Fixture::new("//- a\n");
    let done = run(&fixture, &["doctor", "--command-timeout", "soon"], "");
    assert_eq!(done.code, 1);
    assert!(done.stderr.contains("COMMAND_TIMEOUT: 'soon'"), "{done:?}");
    let done = run(&fixture, &["doctor", "--workspace", "/nonexistent/place"], "");
    assert!(done.code == 1 && done.stderr.contains("/nonexistent/place"), "{done:?}");
    for arguments in [&["serve"][..], &[]] {
        let done = run_with(&fixture, arguments, "", &[("MCP_TRANSPORT", "pigeon")]);
        assert!(done.code == 1 && done.stderr.contains("MCP_TRANSPORT: 'pigeon'"), "{done:?}");
        let key = ("MCP_API_KEY", "k");
        let variables = [("MCP_TRANSPORT", "http"), ("MCP_PORT", "many"), key];
        let done = run_with(&fixture, arguments, "", &variables);
        assert!(done.code == 1 && done.stderr.contains("MCP_PORT: 'many'"), "{done:?}");
    }
}
