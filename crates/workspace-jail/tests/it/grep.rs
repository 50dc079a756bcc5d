//! Searching file contents.

use testkit::Fixture;
use workspace_jail::GrepOptions;

use crate::open;

fn check(fixture: &Fixture, pattern: &str, path: &str, options: &GrepOptions, expected: &[&str]) {
    let found = open(fixture).grep(pattern, path, options).unwrap();
    let mut lines = Vec::new();
    for file in &found.files {
        for line in &file.lines {
            let mark = if line.is_match { ':' } else { '-' };
            lines.push(format!("{}{mark}{}{mark}{}", file.path.display(), line.number, line.text));
        }
    }
    lines.push(format!("{} in {}", found.total, found.total_files));
    assert_eq!(lines, expected, "{pattern}");
}

fn fixture() -> Fixture {
    let fixture = Fixture::new(
        "//- b.txt\none needle\ntwo\nneedle three\n//- a/x.rs\nNeedle\r\nneedle\r\n//- .gitignore\n*.log\n//- x.log\nneedle\n",
    );
    fixture.write("binary", b"\0needle");
    fixture.symlink("leak", "../outside/secret.txt");
    fixture
}

#[test]
fn matching_lines_are_told_in_path_order() {
    let none = GrepOptions::default();
    let all = ["a/x.rs:2:needle", "b.txt:1:one needle", "b.txt:3:needle three", "3 in 2"];
    check(&fixture(), "needle", ".", &none, &all);
    check(&fixture(), "^needle$", ".", &none, &["a/x.rs:2:needle", "1 in 1"]);
    check(&fixture(), "needle", "a", &none, &["a/x.rs:2:needle", "1 in 1"]);
    check(&fixture(), "two", "b.txt", &none, &["b.txt:2:two", "1 in 1"]);
    check(&fixture(), "CANARY", ".", &none, &["0 in 0"]);
}

#[test]
fn options_widen_and_narrow() {
    let mut options = GrepOptions::default();
    options.ignore_case = true;
    options.glob = Some("*.rs".to_owned());
    check(&fixture(), "needle", ".", &options, &["a/x.rs:1:Needle", "a/x.rs:2:needle", "2 in 1"]);
    let mut options = GrepOptions::default();
    options.include_ignored = true;
    check(&fixture(), "^needle", "x.log", &options, &["x.log:1:needle", "1 in 1"]);
    options.glob = Some("*.log".to_owned());
    check(&fixture(), "^needle", ".", &options, &["x.log:1:needle", "1 in 1"]);
    let mut options = GrepOptions::default();
    options.context = 1;
    let lines = ["b.txt-1-one needle", "b.txt:2:two", "b.txt-3-needle three", "1 in 1"];
    check(&fixture(), "two", ".", &options, &lines);
}

#[test]
fn the_first_lines_are_told_and_all_are_counted() {
    let mut options = GrepOptions::default();
    for limit in 0..4 {
        options.limit = limit;
        let mut expected = vec!["a/x.rs:2:needle", "b.txt:1:one needle", "b.txt:3:needle three"];
        expected.truncate(limit);
        expected.push("3 in 2");
        check(&fixture(), "needle", ".", &options, &expected);
    }
}

#[test]
fn long_lines_are_cut_around_the_match() {
    let fixture = Fixture::new("");
    fixture.write("long", format!("{}needle{}", "ä".repeat(5000), "ö".repeat(5000)).as_bytes());
    let found = open(&fixture).grep("needle", ".", &GrepOptions::default()).unwrap();
    let line = &found.files[0].lines[0];
    assert!(line.is_cut && line.text.len() <= 400, "{}", line.text.len());
    assert!(line.text.contains("needle") && !line.text.contains('\u{fffd}'), "{}", line.text);
}

#[test]
fn refusals_have_names() {
    let fixture = fixture();
    let jail = open(&fixture);
    let kind =
        |pattern, path| jail.grep(pattern, path, &GrepOptions::default()).unwrap_err().kind();
    assert_eq!(kind("(", "."), "invalid_pattern");
    assert_eq!(kind("x", "../outside"), "outside_workspace");
    assert_eq!(kind("x", "leak"), "outside_workspace");
    assert_eq!(kind("x", "no-such"), "not_found");
    assert_eq!(kind("x", "binary"), "binary_file");
}
