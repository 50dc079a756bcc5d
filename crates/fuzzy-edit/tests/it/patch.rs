//! The diff as `patch` sees it: what it makes of the original is the new text, byte for byte.
#![expect(clippy::disallowed_methods, reason = "patch is the judge here, and it is a program")]

use std::process::Command;

use fuzzy_edit::{Edit, Options, Plan, Validate, plan};
use testkit::{Fixture, Missing, require};

use crate::support::text;

/// Applies the diff of each edit with patch and compares.
#[track_caller]
fn check(test: &str, cases: &[(&str, &[(&str, &str)])]) {
    let there = Command::new("patch").arg("--version").output();
    let there = there.map(|_| ()).map_err(|error| Missing(format!("patch: {error}")));
    if require(test, there).is_none() {
        return;
    }
    for (file, edits) in cases {
        let edits: Vec<Edit> = edits.iter().map(|(old, new)| Edit::new(*old, *new)).collect();
        let options = Options::default().validate(Validate::Off);
        let plan: Plan = plan(file.as_bytes(), "dir/file.txt".as_ref(), &edits, &options).unwrap();
        assert!(!plan.diff_truncated);
        let fixture = Fixture::new("//- dir/\n");
        fixture.write("dir/file.txt", file.as_bytes());
        fixture.write("change.diff", plan.diff.as_bytes());
        let mut patch = Command::new("patch");
        patch.args(["--strip=1", "--fuzz=0", "--binary", "--input=change.diff"]);
        let output = patch.current_dir(fixture.root()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{file:?}: {said}\n{}", plan.diff);
        assert!(!said.contains("offset"), "{file:?}: {said}\n{}", plan.diff);
        assert_eq!(fixture.read("dir/file.txt"), text(&plan), "{}", plan.diff);
    }
}

#[test]
fn a_last_line_without_newline() {
    let cases: &[(&str, &[(&str, &str)])] = &[
        ("a\nb", &[("b", "c")]),
        ("a\nb", &[("b", "b\n")]),
        ("a\nb\n", &[("b\n", "b")]),
        ("a\nb", &[("a", "c")]),
        ("b", &[("b", "c\nd")]),
        ("a\nb", &[("a\nb", "")]),
        ("a\nb", &[("\nb", "")]),
    ];
    check("a_last_line_without_newline", cases);
}

#[test]
fn carriage_returns_marks_and_odd_breaks() {
    let cases: &[(&str, &[(&str, &str)])] = &[
        ("a\r\nb\r\nc\r\n", &[("b", "x\ny")]),
        ("a\r\nb\nc\r\n", &[("b", "x")]),
        ("\u{feff}a\nb\n", &[("a", "x")]),
        ("a\u{2028}b\u{85}c\u{c}d\n", &[("c", "x")]),
        ("a\rb\rc", &[("b", "x")]),
    ];
    check("carriage_returns_marks_and_odd_breaks", cases);
}

#[test]
fn many_places_in_one_diff() {
    let file: String = (0..400).map(|n| format!("line {n:03}\n")).collect();
    let edits: Vec<(String, String)> =
        (0..40).map(|n| (format!("line {:03}\n", n * 10), "x\n".repeat(n % 3) + "y\n")).collect();
    let edits: Vec<(&str, &str)> =
        edits.iter().map(|(old, new)| (old.as_str(), new.as_str())).collect();
    check("many_places_in_one_diff", &[(&file, &edits)]);
}
