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
fn a_mark_before_the_text_is_no_part_of_its_first_line() {
    let fixture = Fixture::new("");
    let long = "x\n".repeat(64 * 1024);
    fixture.write("long", format!("\u{feff}first\n{long}last\n").as_bytes());
    fixture.write("short", "\u{feff}first\nlast\n".as_bytes());
    let none = GrepOptions::default();
    check(&fixture, "^first", ".", &none, &["long:1:first", "short:1:first", "2 in 2"]);
    check(&fixture, "last", ".", &none, &["long:65538:last", "short:2:last", "2 in 2"]);
}

#[test]
fn a_pattern_is_parsed_as_it_was_written() {
    let jail = open(&fixture());
    let said =
        |pattern: &str| jail.grep(pattern, ".", &GrepOptions::default()).unwrap_err().to_string();
    assert!(said("a)(b").ends_with("error: unopened group"), "{}", said("a)(b"));
    let expected = "invalid pattern '\\': regex parse error:\n    \\\n    ^\n\
                    error: incomplete escape sequence, reached end of pattern prematurely";
    assert_eq!(said("\\"), expected);
    let bytes = GrepOptions::default();
    check(&fixture(), r"(?-u)\xff|two", ".", &bytes, &["b.txt:2:two", "1 in 1"]);
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

#[test]
fn an_error_does_not_repeat_a_pattern_of_any_length() {
    let jail = open(&fixture());
    let said = |pattern: &str| {
        let error = jail.grep(pattern, ".", &GrepOptions::default()).unwrap_err();
        error.to_string()
    };
    assert!(said("(").ends_with("error: unclosed group"));
    let long = said(&"(".repeat(100_000));
    assert!(long.starts_with("invalid pattern '((((") && long.len() < 400, "{long}");
    let path = jail.read(&"\0".repeat(100_000), 1).unwrap_err().to_string();
    assert!(path.len() < 2000, "{path}");
}

/// What one thread would find that reads every file whole.
fn expected(files: &[(String, String)], limit: usize) -> (Vec<String>, u64) {
    let mut sorted = files.to_vec();
    sorted.sort();
    let lines: Vec<String> = sorted
        .iter()
        .flat_map(|(path, text)| {
            let hits = text.lines().enumerate().filter(|(_, line)| line.ends_with("needle"));
            hits.map(move |(index, _)| format!("{path}:{}", index + 1))
        })
        .collect();
    let total = lines.len() as u64;
    (lines.into_iter().take(limit).collect(), total)
}

#[test]
fn many_threads_find_what_one_would() {
    let fixture = Fixture::new("");
    let mut files = Vec::new();
    for index in 0..900 {
        let path = format!("d{}/e{}/f{index}", index % 7, index % 40);
        let hits = "a needle\n".repeat(index % 3);
        // Files around the size of the buffer, and lines that do not fit into it.
        let text = match index % 100 {
            50 => format!("{}\n{hits}", "x".repeat(64 * 1024 - 1 - hits.len() - index % 2)),
            51 => format!("{hits}{}{}needle\n{hits}", "y\n".repeat(40_000), "z".repeat(2_000_000)),
            _ => format!("one\n{hits}two\n"),
        };
        fixture.write(&path, text.as_bytes());
        files.push((path, text));
    }
    let jail = open(&fixture);
    for limit in [0, 1, 50, 10_000] {
        let options = GrepOptions::default().limit(limit);
        let found = jail.grep("needle$", ".", &options).unwrap();
        let shown: Vec<String> = found
            .files
            .iter()
            .flat_map(|file| {
                let path = file.path.display().to_string();
                file.lines.iter().map(move |line| format!("{path}:{}", line.number))
            })
            .collect();
        assert_eq!((shown, found.total), expected(&files, limit), "limit {limit}");
        assert_eq!(found.unreadable, 0);
    }
}
