//! `write_file`: rows W1–W7 of the behaviour table, and what a refusal leaves.

use serde_json::json;

use crate::harness::Session;

#[test]
fn w1_create() {
    let session = Session::new("//- a\n");
    let answer = session.call("write_file", json!({"filepath": "d/new.txt", "content": "content"}));
    assert_eq!(answer.text, "Successfully wrote 7 bytes to d/new.txt");
    assert_eq!((&answer.facts["bytes"], &answer.facts["created"]), (&json!(7), &json!(true)));
    assert_eq!(session.fixture.read("d/new.txt"), "content");
}

#[test]
fn w2_create_only_protects() {
    let session = Session::new("//- f.txt\nold\n");
    let arguments = json!({"filepath": "f.txt", "content": "new"});
    let text = session.refused("write_file", arguments, "already_exists");
    assert!(text.contains("already exists"), "{text}");
}

#[test]
fn w3_overwrite_on_request() {
    let session = Session::new("//- f.txt\nold\n");
    session.ok("write_file", json!({"filepath": "f.txt", "content": "new", "create_only": false}));
    assert_eq!(session.fixture.read("f.txt"), "new");
}

#[test]
fn w4_size_guard() {
    let session = Session::with("//- a\n", |config| config.max_write_bytes = 5);
    let arguments = json!({"filepath": "deep/f.txt", "content": "123456"});
    let text = session.refused("write_file", arguments, "too_large");
    assert!(text.contains("exceeds MAX_WRITE_SIZE_BYTES"), "{text}");
}

#[test]
fn w5_python_is_checked_before_writing() {
    let session = Session::new("//- a\n");
    let arguments = json!({"filepath": "new/bad.py", "content": "def f(:\n    pass\n"});
    let text = session.refused("write_file", arguments, "syntax_invalid");
    assert!(text.contains("Python syntax error"), "{text}");
}

#[test]
fn w6_valid_python() {
    let session = Session::new("//- a\n");
    session.ok("write_file", json!({"filepath": "good.py", "content": "def f():\n    pass\n"}));
}

#[test]
fn w7_jsonl_is_checked_per_line() {
    let session = Session::new("//- a\n");
    let arguments = json!({"filepath": "x.jsonl", "content": "{\"a\": 1}\n{broken\n"});
    let text = session.refused("write_file", arguments, "syntax_invalid");
    assert!(text.contains("JSONL parse error at line 2"), "{text}");
}

#[test]
fn validation_can_be_switched_off() {
    let session = Session::new("//- a\n");
    session.ok("write_file", json!({"filepath": "bad.py", "content": "def (", "validate": "off"}));
    assert_eq!(session.fixture.read("bad.py"), "def (");
}

#[test]
fn an_expected_version_overwrites_that_version_alone() {
    let session = Session::new("//- f.txt\nold\n");
    let sha256 = session.call("read_file", json!({"filepath": "f.txt"})).facts["sha256"].clone();
    session.fixture.write("f.txt", b"changed meanwhile\n");
    let arguments = json!({"filepath": "f.txt", "content": "new", "expected_sha256": sha256});
    session.refused("write_file", arguments, "stale");
    session.fixture.write("f.txt", b"old\n");
    let arguments = json!({"filepath": "f.txt", "content": "new", "expected_sha256": sha256});
    session.ok("write_file", arguments);
    assert_eq!(session.fixture.read("f.txt"), "new");
}

#[test]
fn nothing_is_written_outside_or_to_protected_names() {
    let session = Session::new("//- a\n");
    session.fixture.symlink("out", "../outside");
    for path in ["../outside/x", "out/victim.txt", "/etc/x", "missing/../../outside/x"] {
        let arguments = json!({"filepath": path, "content": "PWNED", "create_only": false});
        let answer = session.call("write_file", arguments);
        assert!(answer.is_error, "{path}: {answer:?}");
    }
    for path in [".git/hooks/pre-commit", ".vscode/tasks.json", ".envrc", "sub/.GIT/config"] {
        let arguments = json!({"filepath": path, "content": "x"});
        session.refused("write_file", arguments, "protected_path");
    }
}

#[test]
fn empty_content_is_content() {
    let session = Session::new("//- a\n");
    session.ok("write_file", json!({"filepath": "empty.txt", "content": ""}));
    assert_eq!(session.fixture.read("empty.txt"), "");
}
