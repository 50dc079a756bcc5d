//! Verdicts on whole texts, the words of their messages, and what counts as worse.

use std::path::Path;

use fuzzy_edit::{Edit, ErrorKind, Options, Unchecked, Verdict, plan, validate};

/// Checks a text; `expected` begins the message, or is `valid` or `unchecked`.
#[track_caller]
fn check(path: &str, text: &str, expected: &str) {
    let got = match validate(Path::new(path), text.as_bytes()) {
        Verdict::Valid => "valid".to_owned(),
        Verdict::NotValidated { .. } => "unchecked".to_owned(),
        Verdict::Invalid(issue) => issue.to_string(),
        other => format!("{other:?}"),
    };
    assert!(got.starts_with(expected), "{path} {text:?}: expected {expected}, got {got}");
}

/// Checks an edit: `ok`, a warning's name, or `refused`.
#[track_caller]
fn check_edit(path: &str, before: &str, search: &str, replace: &str, expected: &str) {
    let edit = Edit::new(search, replace);
    let got = match plan(before.as_bytes(), Path::new(path), &[edit], &Options::default()) {
        Ok(plan) => {
            plan.warnings.iter().map(fuzzy_edit::Warning::name).collect::<Vec<_>>().join(" ")
        }
        Err(error) if error.kind == ErrorKind::SyntaxInvalid => "refused".to_owned(),
        Err(error) => error.to_string(),
    };
    assert_eq!(got, expected, "{path} {before:?} {search:?} -> {replace:?}");
}

#[test]
fn names_without_a_parser_are_said() {
    for path in ["a.txt", "Makefile", ".py", "a.py.bak", "a.json5"] {
        let reason = Unchecked::UnknownLanguage;
        assert_eq!(validate(Path::new(path), b"{ ("), Verdict::NotValidated { reason });
        check(path, "{ (", "unchecked");
    }
    check_edit("a.txt", "a", "a", "{ (", "not_validated");
    check_edit("a.txt", "a", "a", "a", "");
}

#[test]
fn a_parser_left_out_is_said() {
    for (path, built) in [
        ("a.py", cfg!(feature = "python")),
        ("a.json", cfg!(feature = "json")),
        ("a.jsonc", cfg!(feature = "json")),
        ("a.jsonl", cfg!(feature = "json")),
        ("a.toml", cfg!(feature = "toml")),
        ("a.yaml", cfg!(feature = "yaml")),
    ] {
        let reason = Unchecked::FeatureOff;
        let left_out = validate(Path::new(path), b"}") == Verdict::NotValidated { reason };
        assert_eq!(left_out, !built, "{path}");
    }
}

#[cfg(feature = "python")]
#[test]
fn python() {
    check("a.py", "", "valid");
    check("a.py", "\u{feff}x = 1\r\n", "valid");
    check("a.py", "x = 1\ry = 2\r", "valid");
    check("a.PYI", "def f(): ...\n", "valid");
    check("a.py", "def f(\n", "Python syntax error at line 1");
    check("a.py", "def f():\nx = 1\n", "Python syntax error at line 2, column 1");
    check("a.py", "if a:\n        x\n    y\n", "Python syntax error at line 3");
    check("a.py", "print 'x'\n", "Python syntax error at line 1");
    check("a.py", "é = (\n1\n]\n", "Python syntax error at line 3, column 1");
    check("a.py", "try:\n    a()\nexcept A, B:\n    b()\n", "valid");
    check("a.py", "t = t\"{x}\"\n", "valid");
    check_edit("a.py", "def a(:\n    pass\nx = 1\n", "x = 1", "x = 2", "still_invalid");
    check_edit("a.py", "def a(:\n    pass\nx = 1\n", "x = 1", "x = )", "refused");
}

#[cfg(feature = "json")]
#[test]
fn json() {
    check("a.json", "{\"a\": 1}", "valid");
    check("a.json", "\u{feff}{\"a\": 1}", "valid");
    check("a.json", "{\"a\": 1", "JSON parse error at line 1");
    check("a.json", "{\n  \"a\": 1,\n}\n", "JSON parse error at line 3, column 1");
    check("a.json", "{} // x", "JSON parse error at line 1");
    check("tsconfig.json", "{} // x", "valid");
    check("a.jsonc", "[\"a\tb\"]", "JSON parse error at line 1, column 4");
    check("a.jsonc", "{'a': 1}", "JSON parse error");
    check("a.jsonl", "{\"a\": 1}\n\n[1]\r\n2", "valid");
    check("a.jsonl", "{\"a\": 1}\n{oops\n{\n", "JSONL parse error at line 2");
    check("a.ndjson", "{\n}\n", "JSONL parse error at line 1");
    check_edit("a.json", "{\"a\": 1}", "1}", "1, \"a\": 2}", "duplicate_key");
    check_edit("a.json", "{\"a\": 1, \"a\": 2}", "2}", "3}", "");
    check_edit("a.json", "{\"a\": NaN,\n\"b\": 1}\n", "\"b\": 1", "\"b\": ]", "refused");
    check_edit("a.json", "{\n\"a\": 1\n\"b\": 1}\n", "1\n\"b", "1,\n\"b", "");
    // Above an old fault there may be no new one.
    check_edit("a.json", "[\n1,\n2,\n3 4\n]\n", "2,", "2", "refused");
    // Of lines, one may not break while another is mended.
    let lines = "{\"a\": }\n{\"b\": 1}\n{\"c\": 1}\n{\"d\": }\n";
    check_edit("a.jsonl", lines, "{\"b\": 1}", "{\"b\": }", "refused");
    let edits = [Edit::new("{\"a\": }", "{}"), Edit::new("{\"c\": 1}", "{\"c\"}")];
    let swapped = plan(lines.as_bytes(), Path::new("a.jsonl"), &edits, &Options::default());
    let issue = swapped.unwrap_err().detail.syntax.unwrap();
    assert_eq!(issue.line, 3);
}

#[cfg(feature = "toml")]
#[test]
fn toml() {
    check("a.toml", "a = 1\n[b]\nc = \"d\"\n", "valid");
    check("a.toml", "a = \"x\n", "TOML parse error at line 1");
    check("a.toml", "a = 1\n\na = 2\n", "TOML parse error at line 3");
    check_edit("a.toml", "a = {b = 1}\n", "1}", "1, }", "toml_1_1");
    check_edit("a.toml", "a = {b = 1, }\nc = 1\n", "c = 1", "c = 2", "");
    check_edit("a.toml", "a = \nb = 1\n", "b = 1", "b = ", "refused");
}

#[cfg(feature = "yaml")]
#[test]
fn yaml() {
    check("a.yaml", "a: 1\n---\nb: !Ref x\nc: .inf\n", "valid");
    check("a.yml", "\u{feff}a: 1\r\nb: 2\r\n", "valid");
    check("a.yaml", "", "valid");
    check("a.yaml", "# only a comment\n", "valid");
    check("a.yaml", "a:\n\tb: 1\n", "YAML parse error at line 2");
    check("a.yaml", "a:\n  \tb: 1\n", "YAML parse error at line 2");
    check("a.yaml", "a: b: c\n", "YAML parse error at line 1");
    check("a.yaml", "a: [1\n", "YAML parse error");
    check("a.yaml", "s: |\n  \ttab\n  x\n", "valid");
    check("a.yaml", "a: !!int \"x\"\n", "unchecked");
    check("a.yaml", "? [a, b]\n: c\n", "valid");
    check("a.yaml", "- &a x\n- *a\n- {k: [*a, {}]}\n", "valid");
    check("a.yaml", "%YAML 1.2\n---\na: 1\n...\n", "valid");
    check("a.yaml", "<<: {a: 1}\nb: >-\n  folded\n  text\n", "valid");
    check_edit("a.yaml", "a: 1\n---\nb: !Ref x\n---\nc: !Sub [d]\n", "!Ref x", "!GetAtt y.z", "");
    check_edit("a.yaml", "a: [1\nb: 2\n", "b: 2", "b: 3", "still_invalid");
    check_edit("a.yaml", "a: 1\nb: 2\n", "b: 2", "b: {x: 2", "refused");
}
