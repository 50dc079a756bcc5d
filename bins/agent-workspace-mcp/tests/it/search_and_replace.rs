//! `search_and_replace`: rows E1–E8 and E10–E13 of the behaviour table, and what programs read beside the text.

use serde_json::json;

use crate::harness::Session;

fn edit(old: &str, new: &str) -> serde_json::Value {
    json!({"old": old, "new": new})
}

#[test]
fn e1_several_exact_edits() {
    let session = Session::new("//- f.py\na = 1\nb = 2\n");
    let edits = [edit("a = 1", "a = 10"), edit("b = 2", "b = 20")];
    let answer = session.call("search_and_replace", json!({"filepath": "f.py", "edits": edits}));
    assert_eq!(
        answer.text,
        "Successfully applied 2 edits (2 exact, 0 fuzzy-matched) to 'f.py':\n--- a/f.py\n+++ b/f.py\n\
         @@ -1,2 +1,2 @@\n-a = 1\n+a = 10\n-b = 2\n+b = 20\n"
    );
    assert_eq!(answer.facts["levels"], json!(["exact", "exact"]));
    assert_eq!((&answer.facts["count"], &answer.facts["lines"]), (&json!(2), &json!([1, 2])));
    assert_eq!(session.fixture.read("f.py"), "a = 10\nb = 20\n");
}

#[test]
fn e2_dry_run() {
    let session = Session::new("//- f.txt\nhello\n");
    let arguments =
        json!({"filepath": "f.txt", "edits": [edit("hello", "world")], "dry_run": true});
    let text = session.ok("search_and_replace", arguments);
    for part in ["DRY RUN", "-hello", "+world"] {
        assert!(text.contains(part), "{text}");
    }
    assert_eq!(session.fixture.read("f.txt"), "hello\n");
}

#[test]
fn e3_syntax_gate() {
    let session = Session::new("//- f.py\ndef f():\n    return 1\n");
    let arguments = json!({"filepath": "f.py", "edits": [edit("def f():", "def f(:")]});
    let text = session.refused("search_and_replace", arguments, "syntax_invalid");
    assert!(text.contains("Python syntax error"), "{text}");
}

#[test]
fn e4_not_found() {
    let session = Session::new("//- f.txt\nsome text\n");
    let arguments = json!({"filepath": "f.txt", "edits": [edit("absent entirely", "x")]});
    let text = session.refused("search_and_replace", arguments, "no_match");
    assert!(text.contains("Edit 0") && text.contains("not found"), "{text}");
}

#[test]
fn e5_yaml_gate() {
    let session = Session::new("//- f.yaml\nkey: value\n");
    let arguments = json!({"filepath": "f.yaml", "edits": [edit("value", "a: b: c")]});
    let text = session.refused("search_and_replace", arguments, "syntax_invalid");
    assert!(text.contains("YAML parse error"), "{text}");
    session
        .ok("search_and_replace", json!({"filepath": "f.yaml", "edits": [edit("value", "good")]}));
    assert_eq!(session.fixture.read("f.yaml"), "key: good\n");
}

#[test]
fn e6_wrong_outer_whitespace() {
    let session = Session::new("//- f.txt\nfirst\n    target line\nlast\n");
    let arguments =
        json!({"filepath": "f.txt", "edits": [edit("  target line  ", "  changed line  ")]});
    let text = session.ok("search_and_replace", arguments);
    assert!(text.contains("1 fuzzy-matched"), "{text}");
    assert!(session.fixture.read("f.txt").starts_with("first\n    changed line"));
}

#[test]
fn e7_indent_of_a_block_kept() {
    let session = Session::new("//- f.py\nclass A:\n    def m(self):\n        return 1\n");
    let edits = [edit("  def m(self):\n    return 1", "def m(self):\n    return 2")];
    session.ok("search_and_replace", json!({"filepath": "f.py", "edits": edits}));
    assert_eq!(session.fixture.read("f.py"), "class A:\n    def m(self):\n        return 2\n");
}

#[test]
fn e8_fuzzy_ambiguous() {
    let session = Session::new("//- f.txt\n item\nother\n   item\n");
    let arguments = json!({"filepath": "f.txt", "edits": [edit("  item  ", "x")]});
    let answer = session.call("search_and_replace", arguments.clone());
    let text = session.refused("search_and_replace", arguments, "ambiguous");
    assert!(text.contains("Found 2 fuzzy matches"), "{text}");
    assert_eq!((&answer.facts["count"], &answer.facts["lines"]), (&json!(2), &json!([1, 3])));
}

#[test]
fn e10_exact_and_fuzzy_in_one_call() {
    let session = Session::new("//- f.txt\nalpha\n    beta\n");
    let edits = [edit("alpha", "ALPHA"), edit("  beta  ", "  BETA")];
    let text = session.ok("search_and_replace", json!({"filepath": "f.txt", "edits": edits}));
    assert!(text.contains("1 exact, 1 fuzzy-matched"), "{text}");
    assert_eq!(session.fixture.read("f.txt"), "ALPHA\n    BETA\n");
    assert!(!text.contains("not checked"), "a text file has no syntax: {text}");
}

#[test]
fn an_ambiguous_place_says_in_what_it_stands() {
    let session = Session::new("//- f.py\nclass A:\n    x = 1\n\n\nclass B:\n    x = 1\n");
    let arguments = json!({"filepath": "f.py", "edits": [edit("x = 1", "x = 2")]});
    let text = session.refused("search_and_replace", arguments, "ambiguous");
    assert!(text.contains("line 2 in class A") && text.contains("line 6 in class B"), "{text}");
}

#[test]
fn e11_dry_run_counts_fuzzy() {
    let session = Session::new("//- f.txt\nstart\n    second\n");
    let edits = [edit("start\nsecond", "start\nnew line\nsecond")];
    let arguments = json!({"filepath": "f.txt", "edits": edits, "dry_run": true});
    let text = session.ok("search_and_replace", arguments);
    for part in ["DRY RUN", "0 exact, 1 fuzzy-matched", "new line"] {
        assert!(text.contains(part), "{text}");
    }
    assert_eq!(session.fixture.read("f.txt"), "start\n    second\n");
}

#[test]
fn e12_tab_indent_kept() {
    let session = Session::new("//- f.txt\nhead\n\tvalue = 1\n");
    let arguments = json!({"filepath": "f.txt", "edits": [edit("    value = 1", "    value = 2")]});
    session.ok("search_and_replace", arguments);
    assert_eq!(session.fixture.read("f.txt"), "head\n\tvalue = 2\n");
}

#[test]
fn e13_empty_old() {
    let session = Session::new("//- f.txt\nx\n");
    let arguments = json!({"filepath": "f.txt", "edits": [edit("", "x")]});
    let text = session.refused("search_and_replace", arguments, "empty_search");
    assert!(text.contains("empty 'old' text"), "{text}");
}

#[test]
fn e14_preview_then_the_same_call_applied() {
    let session = Session::new("//- f.txt\none\ntwo\n");
    let mut arguments = json!({"filepath": "f.txt", "edits": [edit("one", "1"), edit("two", "2")], "dry_run": true});
    session.ok("search_and_replace", arguments.clone());
    arguments["dry_run"] = json!(false);
    session.ok("search_and_replace", arguments);
    assert_eq!(session.fixture.read("f.txt"), "1\n2\n");
}

#[test]
fn bent_edits_are_accepted_and_broken_ones_refused_by_kind() {
    let session = Session::new("//- f.txt\nx\n");
    let text = "[{\"old_string\": \"x\", \"new_string\": \"y\"}]";
    session.ok("search_and_replace", json!({"path": "f.txt", "edits": text}));
    assert_eq!(session.fixture.read("f.txt"), "y\n");
    for edits in [json!([]), json!(null), json!([{"old": "y"}]), json!([{"new": "y"}])] {
        let arguments = json!({"filepath": "f.txt", "edits": edits});
        session.refused("search_and_replace", arguments, "invalid_edit");
    }
    session.refused("search_and_replace", json!({"filepath": "f.txt", "edits": 5}), "invalid_args");
    let arguments = json!({"filepath": "nothing.txt", "edits": [edit("a", "b")]});
    session.refused("search_and_replace", arguments, "not_found");
}

#[test]
fn an_expected_version_edits_that_version_alone() {
    let session = Session::new("//- f.txt\nx\n");
    let wrong = "0".repeat(64);
    let arguments =
        json!({"filepath": "f.txt", "edits": [edit("x", "y")], "expected_sha256": wrong});
    session.refused("search_and_replace", arguments, "stale");
}

#[test]
fn an_edit_that_changes_nothing_says_so() {
    let session = Session::new("//- f.txt\nx\n");
    let answer =
        session.call("search_and_replace", json!({"filepath": "f.txt", "edits": [edit("x", "x")]}));
    assert!(!answer.is_error && answer.text.contains("no change"), "{answer:?}");
    assert_eq!(answer.facts["changed"], false);
}

#[test]
fn protected_names_are_not_edited() {
    let session = Session::new("//- .git/config\n[core]\n");
    let arguments = json!({"filepath": ".git/config", "edits": [edit("[core]", "[evil]")]});
    session.refused("search_and_replace", arguments, "protected_path");
}
