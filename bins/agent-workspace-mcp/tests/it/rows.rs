//! Rows of the behaviour table that no module of one tool holds, each through the server as a client meets it.

use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use testkit::Fixture;

use crate::harness::{BINARY, Binary, Session};

/// One edit of one file; the answer.
fn edit(session: &Session, file: &str, old: &str, new: &str) -> String {
    let edits = json!([{"old": old, "new": new}]);
    session.ok("search_and_replace", json!({"filepath": file, "edits": edits}))
}

/// What one edit makes of a file.
fn edited(file: &str, before: &str, old: &str, new: &str) -> String {
    let session = Session::new("//- other\n");
    session.fixture.write(file, before.as_bytes());
    edit(&session, file, old, new);
    session.fixture.read(file)
}

fn mode(fixture: &Fixture, file: &str) -> u32 {
    use std::os::unix::fs::PermissionsExt as _;

    fixture.root().join(file).metadata().unwrap().permissions().mode() & 0o7777
}

fn set_mode(fixture: &Fixture, file: &str, mode: u32) {
    use std::os::unix::fs::PermissionsExt as _;

    let permissions = std::fs::Permissions::from_mode(mode);
    std::fs::set_permissions(fixture.root().join(file), permissions).unwrap();
}

#[test]
fn r10_a_wrong_name_is_answered_with_those_near_it() {
    let session = Session::new("//- src/settings.py\nDEBUG = True\n//- README.md\n");
    let text = session.refused("read_file", json!({"filepath": "src/setings.py"}), "not_found");
    assert!(text.contains("list_directory") && text.contains("Similar: src/settings.py"), "{text}");
    assert_eq!(session.ok("read_file", json!({"filepath": "src/settings.py"})), "DEBUG = True\n");
}

#[test]
fn e9_x14_line_ends_and_odd_bytes_stay_as_they_are() {
    let both = edited("a.txt", "line1\r\nline2\r\n", "line1\nline2", "one\ntwo");
    assert_eq!(both, "one\r\ntwo\r\n");
    let mixed = "crlf\r\nlone\rcr\nff\u{c}nel\u{85}ls\u{2028}\nold\nno end";
    assert_eq!(edited("a.txt", mixed, "old", "new"), mixed.replace("old", "new"));
}

#[test]
fn e15_several_values_of_a_yaml_file_change_in_one_call() {
    let session = Session::new("//- a.yaml\nname: one\nport: 80\n");
    let edits = json!([{"old": "one", "new": "two"}, {"old": "80", "new": "8080"}]);
    session.ok("search_and_replace", json!({"filepath": "a.yaml", "edits": edits}));
    assert_eq!(session.fixture.read("a.yaml"), "name: two\nport: 8080\n");
}

#[test]
fn x2_x19_a_planted_or_a_users_temporary_name_is_left_alone() {
    let session = Session::new("//- f.txt\nold\n//- g.txt\nold\n//- g.txt.tmp\nmine\n");
    for name in ["d.txt.tmp", ".d.txt.tmp", "f.txt.tmp"] {
        session.fixture.symlink(name, "../outside/victim.txt");
    }
    let write = |file| json!({"filepath": file, "content": "new\n", "create_only": false});
    for file in ["d.txt", "f.txt", "g.txt"] {
        session.ok("write_file", write(file));
        assert_eq!(session.fixture.read(file), "new\n");
        assert!(session.fixture.root().join(file).symlink_metadata().unwrap().is_file());
    }
    assert_eq!(session.fixture.read("g.txt.tmp"), "mine\n");
    // The outside is compared when the session ends.
}

#[test]
fn x11_special_files_are_refused_at_once() {
    let session = Session::new("//- a\n");
    let fifo = session.fixture.root().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let _socket = std::os::unix::net::UnixListener::bind(session.fixture.root().join("socket"));
    for file in ["fifo", "socket"] {
        // A call that waits for a writer is not answered, and the harness ends the test.
        let read = json!({"filepath": file});
        session.refused("read_file", read, "not_a_regular_file");
        let edits = json!([{"old": "a", "new": "b"}]);
        let edit = json!({"filepath": file, "edits": edits});
        session.refused("search_and_replace", edit, "not_a_regular_file");
        let write = json!({"filepath": file, "content": "x", "create_only": false});
        session.refused("write_file", write, "not_a_regular_file");
    }
    session.ok("read_file", json!({"filepath": "a"}));
}

#[test]
fn x13_two_stars_recurse_and_what_is_found_is_sorted() {
    let tree = "//- q/r/s/t/d.py\n//- q/a.py\n//- q/r/b.py\n//- q/r/s/c.py\n//- other.py\n";
    let text = Session::new(tree).ok("search_workspace", json!({"pattern": "q/**/*.py"}));
    assert_eq!(text, "Found 4 matches\nq/a.py\nq/r/b.py\nq/r/s/c.py\nq/r/s/t/d.py");
}

#[test]
fn x15_x17_indentation_is_the_files_own() {
    let part = edited("a.txt", "        deep\n", "    deep", "    deeper");
    assert_eq!(part, "        deeper\n");
    let unit = edited(
        "a.py",
        "class A:\n    def f(self):\n        return 1\n\n    x = 1\n",
        "  def f(self):\n    return 1\n",
        "  def f(self):\n    if self:\n      return 2\n\n    return 3\n",
    );
    let expected = "class A:\n    def f(self):\n        if self:\n            return 2\n\n        return 3\n\n    x = 1\n";
    assert_eq!(unit, expected);
    let tabs =
        edited("a.go", "f {\n\tif x {\n\t\ty\n\t}\n}\n", "  if x {\n    y\n", "  if x {\n    z\n");
    assert_eq!(tabs, "f {\n\tif x {\n\t\tz\n\t}\n}\n");
}

#[test]
fn x16_a_fuzzy_deletion_takes_whole_lines() {
    assert_eq!(edited("a.txt", "one\n    two\nthree\n", "  two  \n", ""), "one\nthree\n");
}

#[test]
fn x18_the_mode_of_a_file_is_kept() {
    let session = Session::new("//- run.sh\necho old\n");
    set_mode(&session.fixture, "run.sh", 0o755);
    let write = json!({"filepath": "run.sh", "content": "echo mid\n", "create_only": false});
    session.ok("write_file", write);
    assert_eq!(mode(&session.fixture, "run.sh"), 0o755);
    edit(&session, "run.sh", "mid", "new");
    assert_eq!(mode(&session.fixture, "run.sh"), 0o755);
    session.ok("write_file", json!({"filepath": "fresh", "content": ""}));
    assert_eq!(mode(&session.fixture, "fresh"), 0o644);
}

#[test]
fn x20_a_file_over_the_limit_of_one_answer_is_paged() {
    let session = Session::new("//- a\n");
    let entries: Vec<String> = (0..131_072).map(|line| format!("entry {line:08}\n")).collect();
    let log = entries.concat();
    assert!(log.len() > 1_900_000);
    session.fixture.write("big.log", log.as_bytes());
    let page = json!({"filepath": "big.log", "offset": 100_000, "limit": 2});
    let answer = session.call("read_file", page);
    let expected = "entry 00100000\nentry 00100001\n[lines 100001-100002 of 131072; continue with offset=100002]";
    assert_eq!(answer.text, expected);
    assert_eq!(answer.facts["total_lines"], 131_072);
    assert_eq!(answer.facts["next_offset"], 100_002);
    let whole = json!({"filepath": "big.log", "limit": 131_072});
    let text = session.refused("read_file", whole, "too_large");
    assert!(text.contains("exceeds MAX_READ_SIZE_BYTES"), "{text}");
}

#[test]
fn x21_text_that_is_not_there_is_answered_with_the_nearest_lines() {
    let session = Session::new("//- a.py\ndef first():\n    return compute_total(1)\n");
    let edits = json!([{"old": "return compute_totel(1)", "new": "return 2"}]);
    let arguments = json!({"filepath": "a.py", "edits": edits});
    let text = session.refused("search_and_replace", arguments, "no_match");
    assert!(text.contains("return compute_total(1)"), "{text}");
}

#[test]
fn x25_a_diff_of_a_last_line_without_its_end_is_one_that_patch_takes() {
    let session = Session::new("//- a\n");
    let before = "a\nb";
    session.fixture.write("f.txt", before.as_bytes());
    let text = edit(&session, "f.txt", "b", "c");
    let (_, diff) = text.split_once("--- ").expect("a diff");
    let diff = format!("--- {diff}");
    assert!(diff.contains("\\ No newline at end of file"), "{diff}");
    session.fixture.write("f.txt", before.as_bytes());
    session.fixture.write("f.diff", format!("{}\n", diff.trim_end()).as_bytes());
    let patched = Command::new("patch")
        .args(["f.txt", "f.diff"])
        .current_dir(session.fixture.root())
        .output()
        .expect("patch is installed");
    assert!(patched.status.success(), "{patched:?}");
    assert_eq!(session.fixture.read("f.txt"), "a\nc");
}

#[test]
fn x28_several_yaml_documents_and_custom_tags_are_yaml() {
    let session = Session::new("//- a\n");
    let content = "---\nbucket: !Ref Bucket\n---\nname: !Sub '${A}-b'\n";
    session.ok("write_file", json!({"filepath": "stack.yaml", "content": content}));
    assert_eq!(session.fixture.read("stack.yaml"), content);
}

#[test]
fn k3_a_long_listing_keeps_the_names_and_not_the_total() {
    let session = Session::new("//- dir/report.txt\nx\n//- dir/other.txt\n");
    let text = session.ok("run_bash", json!({"command": "ls -la dir/report.txt"}));
    assert!(text.contains("report.txt") && !text.contains("total"), "{text}");
}

/// A server that logs to a file beside the workspace.
fn logging(fixture: &Fixture, variables: &[(&str, &str)]) -> Binary {
    let mut command = Command::new(BINARY);
    command
        .arg("--workspace")
        .arg(fixture.root())
        .env("AUDIT_DIR", fixture.base().join("state"))
        .envs(variables.iter().copied());
    let log = std::fs::File::create(fixture.base().join("log")).unwrap();
    let mut server = Binary::spawn_with(&mut command, Stdio::from(log));
    server.hello("2025-11-25");
    server
}

fn log_of(fixture: &Fixture) -> String {
    std::fs::read_to_string(fixture.base().join("log")).unwrap()
}

#[test]
fn p3_p7_stdio_is_the_default_and_carries_the_protocol_alone() {
    let fixture = Fixture::new("//- a\n");
    for transport in [None, Some("stdio"), Some("STDIO")] {
        let mut variables = vec![("LOG_LEVEL", "Trace")];
        variables.extend(transport.map(|name| ("MCP_TRANSPORT", name)));
        let mut server = logging(&fixture, &variables);
        let print =
            json!({"command": "echo printed; echo printed >&2; echo printed > /dev/stderr"});
        server.call(1, "run_bash", print);
        server.call(2, "read_file", json!({"filepath": "missing"}));
        server.send("no request");
        server.request(3, "ping", json!({}));
        server.close_input();
        // The harness takes nothing but JSON-RPC; and there is no line without a request.
        assert_eq!(server.receive_within(Duration::from_secs(10)), None);
        assert!(server.ended().0);
        let log = log_of(&fixture);
        assert!(log.contains("TOOL_CALL") && log.contains("ignored what is no request"), "{log}");
    }
}

#[test]
fn p4_without_a_place_for_its_record_the_server_starts_and_says_so() {
    let fixture = Fixture::new("//- a\nx\n");
    fixture.write("../file", b"");
    let home = fixture.base().join("file");
    let mut command = Command::new(BINARY);
    command.arg("--workspace").arg(fixture.root());
    command.env_remove("AUDIT_DIR").env_remove("XDG_STATE_HOME").env("HOME", home);
    let log = std::fs::File::create(fixture.base().join("log")).unwrap();
    let mut server = Binary::spawn_with(&mut command, Stdio::from(log));
    server.hello("2025-11-25");
    let answer = server.call(1, "read_file", json!({"filepath": "a"}));
    assert_eq!(answer["result"]["content"][0]["text"], "x\n");
    assert!(log_of(&fixture).contains("WARN"), "{}", log_of(&fixture));
}

#[test]
fn p5_p6_each_call_leaves_a_line_before_and_one_after_it() {
    let fixture = Fixture::new("//- a\none\ntwo\n//- b\nsingle");
    let mut server = logging(&fixture, &[]);
    server.call(1, "read_file", json!({"filepath": "a"}));
    server.call(2, "read_file", json!({"filepath": "b"}));
    let content = "y".repeat(700);
    server.call(3, "write_file", json!({"filepath": "../c", "content": content}));
    server.close_input();
    assert!(server.ended().0);
    let log = log_of(&fixture);
    let of = |word: &str| log.lines().filter(|line| line.contains(word)).collect::<Vec<_>>();
    let (calls, done) = (of("TOOL_CALL"), of("TOOL_DONE"));
    assert_eq!((calls.len(), done.len()), (3, 3), "{log}");
    assert!(calls[0].contains("read_file") && calls[0].contains("filepath"), "{log}");
    assert!(calls[2].contains("(700 characters)") && calls[2].len() < 1000, "{log}");
    for part in ["INFO", "[OK]", "duration_ms=", "summary=\"one\"", "snippet=\"one\\ntwo"] {
        assert!(done[0].contains(part), "{part}: {log}");
    }
    assert!(done[1].contains("summary=\"single\"") && !done[1].contains("snippet"), "{log}");
    for part in ["WARN", "[FAIL]", "outside_workspace"] {
        assert!(done[2].contains(part), "{part}: {log}");
    }
    // One record a call, whatever its arguments hold.
    let records: Vec<Value> = std::fs::read_to_string(fixture.base().join("state/audit.jsonl"))
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(records.iter().filter(|record| record["event"] == "call").count(), 3);
}
