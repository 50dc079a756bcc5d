//! `list_directory`: rows L1 and L2 of the behaviour table.

use serde_json::json;

use crate::harness::Session;

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
