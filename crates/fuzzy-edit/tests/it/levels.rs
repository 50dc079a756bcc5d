//! What each level accepts, refuses and writes, beyond the case files.

use fuzzy_edit::{Edit, ErrorKind, Level, Options, plan};

use crate::support::{patch, plan_text, text};

/// Checks one edit: the level that found it and the text it makes.
#[track_caller]
fn check(file: &str, old: &str, new: &str, level: Level, after: &str) {
    let plan = plan_text(file, &[Edit::new(old, new)]).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(text(&plan), after);
    assert_eq!(plan.applied[0].level, level);
    assert_eq!(patch(file, &plan.diff), after);
}

#[track_caller]
fn refused(file: &str, old: &str, new: &str, kind: ErrorKind) {
    let error = plan_text(file, &[Edit::new(old, new)]).map(|plan| text(&plan).to_owned());
    assert_eq!(error.unwrap_err().kind, kind);
}

#[test]
fn other_bytes_stay_whatever_they_are() {
    for noise in ["a\u{c}b\n", "x\u{85}y\n", "p\u{2028}q\n", "1%\r2%\n", "w\r\n", "z\n\r\n\n"] {
        let file = format!("{noise}target\n{noise}end");
        check(&file, "target", "hit", Level::Exact, &format!("{noise}hit\n{noise}end"));
        check(&file, "  target ", "hit", Level::Indent, &format!("{noise}hit\n{noise}end"));
    }
    let latin = plan(b"a\xe9\nb\n", "a.txt".as_ref(), &[Edit::new("b", "c")], &Options::default());
    assert_eq!(latin.unwrap_err().kind, ErrorKind::NotUtf8);
}

#[test]
fn a_hit_inside_the_indentation_keeps_it() {
    let file = "if a:\n        go()\n";
    check(file, "    go()", "    stop()", Level::Indent, "if a:\n        stop()\n");
    check(
        file,
        "    go()\n",
        "    stop()\n    wait()\n",
        Level::Indent,
        "if a:\n        stop()\n        wait()\n",
    );
    check(file, "    go(", "stop(", Level::Exact, "if a:\n        stop(\u{29}\n");
    check(file, "    go(", "    stop(", Level::Exact, "if a:\n        stop()\n");
}

#[test]
fn a_fuzzy_deletion_takes_the_lines_with_their_endings() {
    let file = "class A:\r\n    def f(self):\r\n        pass\r\n    x = 1\r\n";
    let after = "class A:\r\n    x = 1\r\n";
    check(file, "def f(self):\n    pass", "", Level::Indent, after);
    check(file, "def f(self):\n    pass\n", "", Level::Indent, after);
    check("a\n  b\nc", " c ", "", Level::Indent, "a\n  b\n");
    check("a\n\u{201c}b\u{201d}\nc\n", "\"b\"", "", Level::Unicode, "a\nc\n");
}

#[test]
fn the_files_own_step_is_used() {
    let file = "class A:\n    def f(self):\n        a()\n";
    check(
        file,
        "  a()\n",
        "  if x:\n    a()\n\n  b()\n",
        Level::Indent,
        "class A:\n    def f(self):\n        if x:\n            a()\n\n        b()\n",
    );
    let tabs = "class A {\n\tvoid f() {\n\t\ta();\n\t}\n}\n";
    check(
        tabs,
        "  void f() {\n    a();\n  }\n",
        "  void f() {\n    if (x) {\n      a();\n    }\n  }\n",
        Level::Indent,
        "class A {\n\tvoid f() {\n\t\tif (x) {\n\t\t\ta();\n\t\t}\n\t}\n}\n",
    );
    let list = "on:\n    steps:\n        - run: a\n";
    check(
        list,
        "- run: a\n",
        "- name: n\n  run: a\n",
        Level::Exact,
        "on:\n    steps:\n        - name: n\n  run: a\n",
    );
    check(
        list,
        "  - run: a\n",
        "  - name: n\n    run: a\n",
        Level::Indent,
        "on:\n    steps:\n        - name: n\n          run: a\n",
    );
}

#[test]
fn blank_lines_keep_the_files_layout_where_the_edit_has_none() {
    let file = "a\n\n\nb\n\nc\n";
    check(file, "a\nb\nc", "a\nB\nc", Level::BlankLines, "a\n\n\nB\n\nc\n");
    check(file, "a\nb", "a\nx\nb", Level::BlankLines, "a\n\n\nx\nb\n\nc\n");
    check(file, "a\nb", "a\n\nx\n\nb", Level::BlankLines, "a\n\nx\n\nb\n\nc\n");
    check(file, "\na\nb\n\n", "\na\nB\n\n", Level::BlankLines, "a\n\n\nB\n\nc\n");
    check(file, "a\nb\n", "", Level::BlankLines, "\nc\n");
}

#[test]
fn typography_of_the_file_survives() {
    let file = "\u{201c}a\u{201d} \u{2014} \u{2018}b\u{2019}\r\nend\r\n";
    check(
        file,
        "\"a\" - 'b'\n",
        "\"a\" - 'c'\n",
        Level::Unicode,
        "\u{201c}a\u{201d} \u{2014} \u{2018}c\u{2019}\r\nend\r\n",
    );
    check(
        file,
        "- 'b'",
        "- 'b' or 'd'",
        Level::Unicode,
        "\u{201c}a\u{201d} \u{2014} \u{2018}b\u{2019} or 'd'\r\nend\r\n",
    );
    // A change of the typography itself is a change.
    check("a \u{2013} b\n", "a - b", "a \u{2014} b", Level::Unicode, "a \u{2014} b\n");
}

#[test]
fn placeholders_are_not_guessed() {
    refused("a\nb\n", "a\n", "// ... existing code ...\n", ErrorKind::Elided);
    refused("a\nb\nc\n", "a\n    # \u{2026}\nc", "x", ErrorKind::Elided);
    check("a\n# ... more\n", "a\n# ... more", "b\n# ... more", Level::Exact, "b\n# ... more\n");
}

#[test]
fn line_numbers_must_agree() {
    let file = "a\n\tb\nc\n";
    check(file, "2\t\tb\n3\tc", "2\t\tB\n3\tc\n4\td", Level::LineNumbers, "a\n\tB\nc\nd\n");
    check(file, "2: \tb", "\tB", Level::LineNumbers, "a\n\tB\nc\n");
    refused(file, "1\t\tb", "x", ErrorKind::NotFound);
    refused(file, "1\ta\n3\tc", "x", ErrorKind::NotFound);
}

#[test]
fn contradictions_are_refused() {
    for edit in [
        Edit::new("a", "b").expected_count(0),
        Edit::new("a", "b").at_line(1).replace_all(),
        Edit::new("a", "b").at_line(1).expected_count(2),
    ] {
        assert_eq!(plan_text("a\na\n", &[edit]).unwrap_err().kind, ErrorKind::InvalidEdit);
    }
    let chosen = plan_text("a\na\n", &[Edit::new("a", "b").at_line(2).expected_count(1)]).unwrap();
    assert_eq!(text(&chosen), "a\nb\n");
    assert_eq!(plan_text("a\n", &[]).unwrap_err().kind, ErrorKind::InvalidEdit);
}

#[test]
fn the_last_line_without_newline_is_marked() {
    let plan = plan_text("a\nb", &[Edit::new("b", "c")]).unwrap();
    insta::assert_snapshot!(plan.diff, @r"
    --- a/file.txt
    +++ b/file.txt
    @@ -1,2 +1,2 @@
     a
    -b
    \ No newline at end of file
    +c
    \ No newline at end of file
    ");
}
