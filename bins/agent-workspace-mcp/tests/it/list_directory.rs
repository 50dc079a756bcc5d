//! `list_directory`: rows L1 and L2 of the behaviour table.

use serde_json::{Value, json};
use testkit::Fixture;

use crate::harness::{Binary, PATIENCE, Session};

#[test]
fn l1_kinds_and_noise() {
    let session = Session::new("//- file.txt\n//- subdir/\n//- .git/HEAD\n//- .hidden\n");
    session.fixture.symlink("link", "../outside/secret.txt");
    let text = session.ok("list_directory", json!({}));
    assert_eq!(
        text,
        "[D] subdir\n[F] .hidden\n[F] file.txt\n[L] link\n[left out: .git; list one by its name]"
    );
    assert_eq!(session.ok("list_directory", json!({"path": ".git"})), "[F] HEAD");
}

#[test]
fn l2_missing() {
    let session = Session::new("//- a\n");
    let text = session.refused("list_directory", json!({"path": "missing"}), "not_found");
    assert!(text.contains("Path 'missing' not found"), "{text}");
}

#[test]
fn pages_say_how_to_go_on() {
    let session = Session::new("//- a\n//- b\n//- c\n");
    let answer = session.call("list_directory", json!({"limit": 2}));
    assert_eq!(answer.text, "[F] a\n[F] b\n[entries 1-2 of 3; continue with offset=2]");
    assert_eq!(answer.facts["next_offset"], 2);
    assert_eq!(session.ok("list_directory", json!({"offset": 2})), "[F] c");
    let past = session.ok("list_directory", json!({"offset": 3}));
    assert_eq!(past, "[no entry at offset 3: the directory has 3 entries]");
    session.fixture.write("d/one", b"");
    assert_eq!(
        session.ok("list_directory", json!({"path": "d", "offset": 9})),
        "[no entry at offset 9: the directory has 1 entry]"
    );
}

#[test]
fn what_stands_in_for_missing_protected_names_while_a_command_runs_is_not_listed() {
    let fixture = Fixture::new("//- a\n//- .claude/notes.md\n");
    let mut server = Binary::connected(&fixture);
    // It sees the placeholders itself, or there was nothing to hide.
    let command = "test -d .envrc && test -d .codex && echo held > held; cat fifo";
    let made = std::process::Command::new("mkfifo").arg(fixture.root().join("fifo")).status();
    assert!(made.unwrap().success());
    let call = json!({"name": "run_bash", "arguments": {"command": command}});
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call});
    server.send(&request.to_string());
    let started = std::time::Instant::now();
    while !fixture.exists("held") {
        assert!(started.elapsed() < PATIENCE, "no placeholder, or no command");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let text = |answer: Value| answer["result"]["content"][0]["text"].as_str().unwrap().to_owned();
    let listed = text(server.call(2, "list_directory", json!({})));
    assert_eq!(listed, "[D] .claude\n[F] a\n[F] fifo\n[F] held");
    assert_eq!(text(server.call(3, "list_directory", json!({"path": ".claude"}))), "[F] notes.md");
    let read = server.call(4, "read_file", json!({"filepath": ".envrc"}));
    assert_eq!(read["result"]["_meta"]["agent-workspace/result"]["error_kind"], "not_found");
    // The command ends when somebody writes.
    std::fs::write(fixture.root().join("fifo"), "done").unwrap();
    assert!(text(server.receive()).contains("done"));
}

#[test]
fn a_name_with_a_line_break_is_one_line() {
    let session = Session::new("//- a\n");
    session.fixture.write("x\n[D] forged", b"");
    let text = session.ok("list_directory", json!({}));
    assert_eq!(text.lines().count(), 2, "{text}");
}

#[test]
fn a_file_is_not_a_directory_and_the_outside_is_not_listed() {
    let session = Session::new("//- a\n");
    session.refused("list_directory", json!({"path": "a"}), "not_a_directory");
    session.refused("list_directory", json!({"path": ".."}), "outside_workspace");
}
