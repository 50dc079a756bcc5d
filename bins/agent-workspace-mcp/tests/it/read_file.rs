//! `read_file`: rows R1–R9 of the behaviour table, paging, and what is never opened.

use serde_json::json;

use crate::harness::Session;

const FOUR: &str = "//- f.txt\nline1\nline2\nline3\nline4";

#[test]
fn r1_whole_file_within_the_default_limit() {
    let session = Session::new(FOUR);
    let answer = session.call("read_file", json!({"filepath": "f.txt", "offset": 0, "limit": 100}));
    assert_eq!(answer.text, "line1\nline2\nline3\nline4");
    assert_eq!(answer.facts["total_lines"], 4);
    assert_eq!(answer.facts["sha256"].as_str().map(str::len), Some(64));
}

#[test]
fn r2_limit() {
    let text = Session::new(FOUR).ok("read_file", json!({"filepath": "f.txt", "limit": 2}));
    assert_eq!(text, "line1\nline2\n[lines 1-2 of 4; continue with offset=2]");
}

#[test]
fn r3_offset_and_limit() {
    let session = Session::new(FOUR);
    let text = session.ok("read_file", json!({"filepath": "f.txt", "offset": 2, "limit": 2}));
    assert_eq!(text, "line3\nline4");
}

#[test]
fn r4_missing_file() {
    let session = Session::new("//- mising.txt\nx\n");
    let text = session.refused("read_file", json!({"filepath": "missing.txt"}), "not_found");
    assert!(text.contains("'missing.txt' not found"), "{text}");
    assert!(text.contains("mising.txt"), "a similar name helps: {text}");
}

#[test]
fn r5_binary() {
    let session = Session::new("//- a\n");
    session.fixture.write("b.bin", &[0, 1, 2]);
    let text = session.refused("read_file", json!({"filepath": "b.bin"}), "binary_file");
    assert!(text.contains("appears to be binary"), "{text}");
}

#[test]
fn r6_size_limit_of_one_answer() {
    let session = Session::with("//- f.txt\n12345678", |config| config.max_read_bytes = 5);
    let text = session.refused("read_file", json!({"filepath": "f.txt"}), "too_large");
    assert!(text.contains("exceeds MAX_READ_SIZE_BYTES"), "{text}");
}

#[test]
fn r7_limit_cuts_before_later_text() {
    let session = Session::new("//- s.sh\n#!/bin/sh\na\nb\nc\nd\ne\nSECRET\n");
    let text = session.ok("read_file", json!({"filepath": "s.sh", "limit": 3}));
    assert!(text.starts_with("#!/bin/sh\na\nb\n[") && !text.contains("SECRET"), "{text}");
}

#[test]
fn r8_outside() {
    let session = Session::new(FOUR);
    let text =
        session.refused("read_file", json!({"filepath": "/etc/passwd"}), "outside_workspace");
    assert!(text.contains("outside the workspace boundary"), "{text}");
}

#[test]
fn r9_paging_to_the_last_line() {
    let lines: Vec<_> = (1..=200).map(|n| format!("line {n}\n")).collect();
    let lines = lines.concat();
    let session = Session::new(&format!("//- f.txt\n{lines}"));
    let mut offset = json!(0);
    let mut seen = String::new();
    loop {
        let answer =
            session.call("read_file", json!({"filepath": "f.txt", "offset": offset, "limit": 60}));
        seen.extend(
            answer.text.lines().filter(|line| !line.starts_with('[')).map(|l| format!("{l}\n")),
        );
        offset = answer.facts["next_offset"].clone();
        if offset.is_null() {
            break;
        }
    }
    assert_eq!(seen, lines);
}

#[test]
fn an_empty_file_is_an_empty_text() {
    let session = Session::new("//- e.txt\n");
    assert_eq!(session.ok("read_file", json!({"filepath": "e.txt"})), "");
}

#[test]
fn a_negative_offset_counts_from_the_end() {
    let session = Session::new(FOUR);
    let text = session.ok("read_file", json!({"filepath": "f.txt", "offset": -1}));
    assert_eq!(text, "line4");
}

#[test]
fn line_numbers_count_from_one() {
    let session = Session::new(FOUR);
    let arguments = json!({"filepath": "f.txt", "offset": 2, "line_numbers": true});
    assert_eq!(session.ok("read_file", arguments), "3\tline3\n4\tline4");
}

#[test]
fn an_unchanged_file_says_so_alone() {
    let session = Session::new(FOUR);
    let sha256 = session.call("read_file", json!({"filepath": "f.txt"})).facts["sha256"].clone();
    let known = json!({"filepath": "f.txt", "if_changed_since": sha256});
    assert_eq!(session.ok("read_file", known.clone()), "unchanged");
    session.fixture.write("f.txt", b"other\n");
    assert_eq!(session.ok("read_file", known), "other\n");
}

#[test]
fn bytes_that_are_not_utf8_are_shown_and_said() {
    let session = Session::new("//- a\n");
    session.fixture.write("latin.txt", b"caf\xe9\n");
    let text = session.ok("read_file", json!({"filepath": "latin.txt"}));
    assert!(text.starts_with("caf\u{FFFD}\n[some bytes are not UTF-8"), "{text}");
}

#[test]
fn j3_j4_traversal_and_absolute_paths_outside() {
    let session = Session::new(FOUR);
    for path in ["../../etc/passwd", "../outside/secret.txt", "/etc/passwd", "../../nowhere/at/all"]
    {
        let text = session.refused("read_file", json!({"filepath": path}), "outside_workspace");
        assert!(text.contains("outside the workspace boundary"), "{text}");
    }
}

#[test]
fn j1_j2_relative_and_absolute_paths_inside() {
    let session = Session::new("//- test.py\nx = 1\n//- subdir/file.txt\nf\n");
    assert_eq!(session.ok("read_file", json!({"filepath": "test.py"})), "x = 1\n");
    let absolute = session.fixture.root().join("subdir/file.txt");
    assert_eq!(session.ok("read_file", json!({"filepath": absolute})), "f\n");
    assert_eq!(session.ok("read_file", json!({"filepath": "/workspace/subdir/file.txt"})), "f\n");
    let new = session.fixture.root().join("subdir/new.txt");
    session.ok("write_file", json!({"filepath": new, "content": "n"}));
    assert_eq!(session.fixture.read("subdir/new.txt"), "n");
}

#[test]
fn j5_a_link_to_an_outside_file() {
    let session = Session::new(FOUR);
    session.fixture.symlink("absolute", session.fixture.outside().join("secret.txt"));
    session.fixture.symlink("relative", "../outside/secret.txt");
    session.fixture.symlink("dangling", "../outside/nothing");
    for path in ["absolute", "relative", "dangling"] {
        let text = session.refused("read_file", json!({"filepath": path}), "outside_workspace");
        assert!(text.contains("outside the workspace boundary"), "{text}");
        assert!(!text.contains("secret.txt"), "the target is not told: {text}");
    }
}

#[test]
fn j6_binary_is_a_nul_in_the_beginning() {
    let session = Session::new("//- text.txt\nplain\n");
    session.fixture.write("nul.txt", b"text\0more");
    session.refused("read_file", json!({"filepath": "nul.txt"}), "binary_file");
    session.ok("read_file", json!({"filepath": "text.txt"}));
    session.refused("read_file", json!({"filepath": "none.txt"}), "not_found");
}

#[test]
fn x1_a_sibling_with_the_roots_name_as_prefix() {
    let session = Session::new(FOUR);
    let evil = session.fixture.base().join("ws-evil");
    std::fs::DirBuilder::new().create(&evil).unwrap();
    std::os::unix::fs::symlink(session.fixture.outside().join("secret.txt"), evil.join("secret"))
        .unwrap();
    session.refused("read_file", json!({"filepath": "../ws-evil/secret"}), "outside_workspace");
    let absolute = evil.join("secret");
    session.refused("read_file", json!({"filepath": absolute}), "outside_workspace");
}
