//! Texts made to cost time, memory or the process: each is answered, and soon.

use std::path::Path;
use std::time::{Duration, Instant};

use fuzzy_edit::{
    Edit, EditError, ErrorKind, Limits, Options, Plan, Unchecked, Verdict, plan, validate,
};

use crate::support::{plan_text, text};

/// Runs an edit and holds it to a bound that only a wrong order of growth exceeds in a debug build.
#[track_caller]
fn soon(file: &str, edit: Edit) -> Result<Plan, EditError> {
    let start = Instant::now();
    let result = plan_text(file, &[edit]);
    let took = start.elapsed();
    assert!(took < Duration::from_mins(1), "took {took:?}");
    result
}

#[test]
fn one_line_of_many_bytes() {
    let file = format!("{}needle{}", "x".repeat(2 << 20), " y".repeat(1 << 20));
    let found = soon(&file, Edit::new("needle", "pin")).unwrap();
    assert_eq!(found.text.len(), file.len() - 3);
    assert!(found.diff_truncated && found.diff.len() < 2 << 20);
    assert_eq!(soon(&file, Edit::new("noodle", "pin")).unwrap_err().kind, ErrorKind::NotFound);
    let almost = format!("{}!", &file[..file.len() - 1]);
    assert_eq!(soon(&file, Edit::new(almost, "")).unwrap_err().kind, ErrorKind::NotFound);
}

#[test]
fn many_equal_lines() {
    let file = "x\n".repeat(100_000);
    for search in ["x\n".repeat(50_000), " x\n".repeat(50_000), "x\n\n".repeat(50_000)] {
        let error = soon(&file, Edit::new(&search, "y\n")).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Ambiguous);
        assert!(error.detail.count > 40_000);
        assert_eq!(error.detail.candidates.len(), 20);
        let all = soon(&file, Edit::new(&search, "y\n").replace_all()).unwrap();
        assert!(all.stats.replacements <= 2);
    }
    let chosen = soon(&file, Edit::new("x", "y").at_line(70_000)).unwrap();
    assert_eq!(text(&chosen).lines().position(|line| line == "y"), Some(69_999));
    let all = soon(&file, Edit::new("x", "yy").replace_all()).unwrap();
    assert_eq!(text(&all), "yy\n".repeat(100_000));
    let missing = soon(&file, Edit::new("x\n".repeat(1_000) + "z", "y")).unwrap_err();
    assert_eq!(missing.kind, ErrorKind::NotFound);
}

#[test]
fn a_text_that_overlaps_itself_everywhere() {
    let file = "a".repeat(4 << 20);
    let error = soon(&file, Edit::new("a".repeat(2 << 20), "b")).unwrap_err();
    assert_eq!((error.kind, error.detail.count), (ErrorKind::Ambiguous, (2 << 20) + 1));
    let quotes = "\u{201c}".repeat(100_000);
    let error = soon(&quotes, Edit::new("\"".repeat(50_000), "b")).unwrap_err();
    assert_eq!((error.kind, error.detail.count), (ErrorKind::Ambiguous, 50_001));
}

#[test]
fn marks_and_controls_in_masses() {
    let marks = format!("e{}\nlast\n", "\u{301}".repeat(200_000));
    assert_eq!(soon(&marks, Edit::new("\u{e9}z", "")).unwrap_err().kind, ErrorKind::NotFound);
    let nul = "\0\r".repeat(100_000);
    assert_eq!(soon(&nul, Edit::new("\0 \0", "")).unwrap_err().kind, ErrorKind::NotFound);
    let blank = "\n".repeat(500_000);
    assert_eq!(soon(&blank, Edit::new("x", "")).unwrap_err().kind, ErrorKind::NotFound);
}

#[test]
fn wholly_new_large_blocks() {
    let lines = |name: &str| (0..30_000).map(|i| format!("{name} {i}\n")).collect::<String>();
    let (old, new) = (lines("old"), lines("  new"));
    let file = format!("top\n    {}end\n", old.replace('\n', "\n    ").trim_end_matches(' '));
    let plan = soon(&file, Edit::new(&old, format!("{new}old 29999\n"))).unwrap();
    assert!(text(&plan).starts_with("top\n      new 0\n"));
}

#[test]
fn fifty_megabytes_in_one_line() {
    let mut file = "0123456789 abcdefghijklmnopqrst ".repeat(50 << 15);
    file.push_str("needle");
    let found = soon(&file, Edit::new("needle", "pin")).unwrap();
    assert_eq!(found.text.len(), file.len() - 3);
    assert!(found.diff_truncated && found.diff.len() < 2 << 20);
    for search in ["noodle", "0123456789  abcdefghijklmnopqrst\nneedle", "\u{2013}needle"] {
        let missed = soon(&file, Edit::new(search, "pin")).unwrap_err();
        assert_eq!(missed.kind, ErrorKind::NotFound);
    }
    let twice = soon(&file, Edit::new("0123456789", "x").expected_count(1)).unwrap_err();
    assert_eq!((twice.kind, twice.detail.count), (ErrorKind::TooLarge, 0));
}

#[test]
fn five_hundred_edits_that_feed_each_other() {
    // Each changes the line that the next one looks for, so that none can be made together.
    let mut file: String = (0..500).map(|n| format!("<{n}>\n")).collect();
    file.push_str(&"filler\n".repeat(20_000));
    let edits: Vec<Edit> =
        (0..499).map(|n| Edit::new(format!("<{n}>\n"), format!("<{n}>x<{}", n + 1))).collect();
    let start = Instant::now();
    let result = plan_text(&file, &edits);
    assert!(start.elapsed() < Duration::from_mins(1));
    assert!(text(&result.unwrap()).starts_with("<0>x<1<1>x<2<2>x"));
}

#[test]
fn many_edits_of_large_blocks() {
    let block = |n: usize| format!("{n}\n").repeat(40_000);
    let file: String = (10..30).map(block).collect();
    let edits: Vec<Edit> = (10..30).map(|n| Edit::new(block(n), format!("{n}"))).collect();
    let start = Instant::now();
    let plan = plan_text(&file, &edits).unwrap();
    assert!(start.elapsed() < Duration::from_mins(1));
    assert_eq!(text(&plan), (10..30).map(|n| n.to_string()).collect::<String>());
}

/// Edits a text that is made to break its parser; any answer will do, as long as there is one.
#[track_caller]
fn answered(path: &str, file: &str, search: &str) {
    let start = Instant::now();
    for replace in ["1", "(", "\"", "\n- a", ": "] {
        let edits = [Edit::new(search, replace)];
        let answer = plan(file.as_bytes(), Path::new(path), &edits, &Options::default());
        if let Err(error) = answer {
            assert_eq!(error.kind, ErrorKind::SyntaxInvalid);
        }
    }
    assert!(start.elapsed() < Duration::from_mins(2), "took {:?}", start.elapsed());
}

#[test]
fn an_edit_in_each_known_extreme_is_answered() {
    answered("a.yaml", &"- k: [v, w]\n".repeat(32_769).replacen('w', "END", 1), "END");
    let lines: String = (0..32_769).map(|n| format!("k{n}: v\n")).collect();
    answered("a.yaml", &format!("{lines}last: END"), "END");
    for levels in [253, 254, 255, 10_000] {
        answered("a.yaml", &format!("{}END\n", "- ".repeat(levels)), "END");
        answered("a.yaml", &format!("{}END\n\tb: [", "- ".repeat(levels)), "END");
    }
    answered("a.py", &format!("x = {}END\n", "-".repeat(1_000_000)), "END");
    answered("a.py", &format!("x = a{}.END\n", ".b".repeat(1_000_000)), "END");
    for name in ["a.json", "a.jsonc", "a.jsonl", "tsconfig.json"] {
        answered(
            name,
            &format!("{}\"END\"{}", "[".repeat(100_000), "]".repeat(100_000)),
            "\"END\"",
        );
        answered(name, &format!("{}\"END\"", "{\"a\":".repeat(100_000)), "\"END\"");
    }
}

#[test]
fn bounds_are_kept() {
    let options = Options::default().limits(Limits::default().file_bytes(100).places(5));
    let run = |file: &str, edit: Edit| {
        plan(file.as_bytes(), Path::new("a.txt"), &[edit], &options).map_err(|error| error.kind)
    };
    assert_eq!(run(&"x".repeat(101), Edit::new("x", "")), Err(ErrorKind::TooLarge));
    assert_eq!(run("xxxxxx", Edit::new("x", "").replace_all()), Err(ErrorKind::TooLarge));
    let grow = Edit::new("x", "y".repeat(60)).replace_all();
    assert_eq!(run("xx", grow), Err(ErrorKind::TooLarge));
    assert_eq!(run("x", Edit::new("x", "y".repeat(101))), Err(ErrorKind::TooLarge));
}

#[test]
fn more_than_a_parser_is_given() {
    let large = format!("[{}1]", "1,\n".repeat(3 << 20));
    for path in ["a.py", "a.json", "a.jsonl", "a.toml", "a.yaml"] {
        let reason = Unchecked::TooLarge;
        assert_eq!(verdict(path, &large), Verdict::NotValidated { reason });
    }
}

#[track_caller]
fn verdict(path: &str, text: &str) -> Verdict {
    let start = Instant::now();
    let verdict = validate(Path::new(path), text.as_bytes());
    assert!(start.elapsed() < Duration::from_mins(1), "took {:?}", start.elapsed());
    verdict
}

#[cfg(feature = "python")]
#[test]
fn deep_python_is_parsed_or_left_alone() {
    let deep = Verdict::NotValidated { reason: Unchecked::TooDeep };
    let nest = |n: usize| format!("x = {}{}\n", "(".repeat(n), ")".repeat(n));
    assert_eq!(verdict("a.py", &nest(5_000)), Verdict::Valid);
    assert_eq!(verdict("a.py", &nest(1_000_000)), deep);
    for (text, last, n) in [
        ("-", "1", 49_000),
        ("not ", "1", 49_000),
        ("a.", "b", 24_000),
        ("1 + ", "1", 24_000),
        ("a()[0]", "", 0),
        ("a().b", "", 0),
    ] {
        let text_of = |n: usize| format!("x = {}{last}\n", text.repeat(n));
        assert!(n == 0 || verdict("a.py", &text_of(n)) == Verdict::Valid, "{text}");
        assert_eq!(verdict("a.py", &text_of(300_000)), deep, "{text}");
    }
    for chain in ["()", "[0]", ".b"] {
        let text = format!("x = a{}\n", chain.repeat(12_000));
        assert_eq!(verdict("a.py", &text), Verdict::Valid, "{chain}");
    }
    assert_eq!(
        verdict("a.py", &format!("x = {}1\n", "lambda a, b: ".repeat(4_900))),
        Verdict::Valid
    );
    assert_eq!(verdict("a.py", &format!("x = {}1\n", "lambda a, b: ".repeat(100_000))), deep);
    assert_eq!(
        verdict("a.py", &format!("x = {}1\n", "1 if a else ".repeat(12_000))),
        Verdict::Valid
    );
    let chains = format!("x = {}1\n", format!("{}[x, ", "-".repeat(49_000)).repeat(80));
    assert_eq!(verdict("a.py", &chains), deep);
    let table = format!("x = [{}]\n", "-a.b(c, -d), ".repeat(100_000));
    assert_eq!(verdict("a.py", &table), Verdict::Valid);
    let blocks: String = (0..2_000).map(|i| format!("{}if a:\n", " ".repeat(i))).collect();
    assert_eq!(verdict("a.py", &format!("{blocks}{}b\n", " ".repeat(2_000))), Verdict::Valid);
}

#[cfg(feature = "json")]
#[test]
fn deep_json_is_no_problem() {
    let nest = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
    assert_eq!(verdict("a.json", &nest(1_000_000)), Verdict::Valid);
    assert!(matches!(verdict("a.json", &"[".repeat(1_000_000)), Verdict::Invalid(_)));
    let deep = Verdict::NotValidated { reason: Unchecked::TooDeep };
    assert_eq!(verdict("a.jsonc", &nest(1_000_000)), deep);
    assert!(matches!(verdict("a.jsonl", &"[\n".repeat(10_000)), Verdict::Invalid(_)));
    // Not valid before and after: the fault count is taken on the deep text.
    let broken = format!("{} ", "[".repeat(500_000));
    let edit = Edit::new("[ ", "[1 ");
    let plan = plan(broken.as_bytes(), Path::new("a.json"), &[edit], &Options::default());
    assert_eq!(plan.unwrap().warnings[0].name(), "still_invalid");
}

#[cfg(feature = "toml")]
#[test]
fn deep_toml_is_parsed_or_left_alone() {
    for text in [
        format!("a = {}{}", "[".repeat(500_000), "]".repeat(500_000)),
        "a.".repeat(300_000) + "a = 1",
    ] {
        assert!(!matches!(verdict("a.toml", &text), Verdict::Valid));
    }
}

#[cfg(feature = "yaml")]
#[test]
fn deep_yaml_does_not_abort() {
    for text in [
        "- ".repeat(254),
        "- ".repeat(1_000_000),
        "[".repeat(1_000_000),
        format!("{}a: 1", "? ".repeat(100_000)),
        (0..1_500).map(|i| format!("{}a:\n", " ".repeat(i))).collect(),
        "a: &a [*a]\n".to_owned(),
    ] {
        verdict("a.yaml", &text);
        let tabbed = format!("\tb: 1\n{text}");
        verdict("a.yaml", &tabbed);
        let edit = Edit::new("\tb: 1", "\tb: 2");
        let result = plan(tabbed.as_bytes(), Path::new("a.yaml"), &[edit], &Options::default());
        result.map_or_else(|error| assert_eq!(error.kind, ErrorKind::SyntaxInvalid), |_| ());
    }
    // Not valid before and after, so that faults are counted.
    let nested = format!("{}a\nb: [1\n", "- ".repeat(300));
    let edit = Edit::new("[1", "[2");
    let result = plan(nested.as_bytes(), Path::new("a.yaml"), &[edit], &Options::default());
    assert!(matches!(result.unwrap().warnings[0].name(), "still_invalid" | "not_validated"));
    let many: String = (0..40_000).map(|i| format!("k{i}: {i}\n")).collect();
    assert_eq!(verdict("a.yaml", &many), Verdict::Valid);
    assert_eq!(verdict("a.yaml", &format!("{many}t: |\n  \tx\n")), Verdict::Valid);
}
