//! What a refusal says, as it follows `Edit N: ` in an answer.

use std::path::Path;

use fuzzy_edit::{Edit, EditError, Options, plan};

use crate::support::{plan_text, text};

/// Checks the message of a refused edit.
#[track_caller]
fn refusal(file: &str, edit: Edit) -> String {
    plan_text(file, &[edit]).unwrap_err().to_string()
}

#[test]
fn not_found_shows_the_nearest_lines() {
    let file = "def one():\n    return bar(1)\n\ndef two():\n\treturn bar(2)\n";
    insta::assert_snapshot!(refusal(file, Edit::new("def two():\n    return baz(2)", "")), @r"
    the 'old' text was not found in the file; closest: lines 4-5 (96 % alike), first difference in line 5:
      'old': ····return baz(2)
      file:  →return bar(2)
             ^
    ");
    insta::assert_snapshot!(refusal("alpha\n", Edit::new("completely different", "x")), @"the 'old' text was not found in the file; read the file and copy the lines");
}

#[test]
fn hints_say_what_went_wrong() {
    assert!(refusal("a\nb\n", Edit::new("a\\nb", "c")).contains("one level of escaping less"));
    assert!(
        refusal("mode = fast\n", Edit::new("mode = slow", "mode = fast"))
            .contains("already in the file")
    );
    assert!(refusal("a\nb\n", Edit::new("7 | b", "c")).contains("without the line numbers"));
}

#[test]
fn ambiguous_names_all_places() {
    insta::assert_snapshot!(refusal("item\nitem\n", Edit::new("item", "new")), @"Found 2 matches of the 'old' text at lines 1 and 2; add neighbouring lines to 'old' until it is unique, or say which with at_line, or replace_all");
    assert!(
        refusal("item\nitem\n", Edit::new("  item  ", "new")).starts_with("Found 2 fuzzy matches")
    );
    assert!(
        refusal("v v\n", Edit::new("v", "w").expected_count(3))
            .starts_with("Found 2 matches of the 'old' text at line 1, expected 3")
    );
}

#[cfg(feature = "python")]
#[test]
fn places_are_told_apart_by_their_scope() {
    let refusal = |file: &str, edit: Edit| {
        let path = Path::new("a.py");
        plan(file.as_bytes(), path, &[edit], &Options::default()).unwrap_err().to_string()
    };
    let file = "class A:\n    def m(self):\n        v = v\n\nclass B:\n    v = 1\nv = 2\n";
    insta::assert_snapshot!(refusal(file, Edit::new("v", "w")), @r"
    Found 4 matches of the 'old' text at lines 3, 6 and 7; add neighbouring lines to 'old' until it is unique, or say which with at_line, or replace_all
      line 3 in class A > def m
      line 6 in class B
    ");
    insta::assert_snapshot!(refusal(file, Edit::new("v = 1", "w").expected_count(2)), @r"
    Found 1 match of the 'old' text at line 6, expected 2; give the count there is, or an 'old' that has as many
      line 6 in class B
    ");
    let many = format!("def f():\n{}", "    x\n".repeat(30));
    let told = refusal(&many, Edit::new("x", "y"));
    assert!(told.contains("line 10 in def f") && told.lines().count() == 11, "{told}");
}

#[test]
fn the_rest_is_said_in_a_sentence() {
    assert!(refusal("a", Edit::new("", "x")).starts_with("empty 'old' text"));
    insta::assert_snapshot!(refusal("a\nb\nc\n", Edit::new("a\n...\nc", "x")), @r#""..." in 'old' is a placeholder, not text of the file; give the lines it stands for, or a smaller edit"#);
    let error =
        plan_text("one two three\n", &[Edit::new("one two", "1"), Edit::new("two three", "2")]);
    insta::assert_snapshot!(error.unwrap_err(), @"the 'old' text was in the file, but edit 0 has replaced it; edits apply in order, so match the new text or merge the two");
    let latin = plan(b"caf\xe9", Path::new("a.txt"), &[Edit::new("a", "b")], &Options::default());
    insta::assert_snapshot!(latin.unwrap_err(), @"the file is not UTF-8 text: invalid byte at offset 3; convert it first, or edit it with a command");
    assert_eq!(EditError::invalid_edit(Some(0), "no 'new' text").to_string(), "no 'new' text");
    assert_eq!(refusal("a", Edit::new("a", "b").at_line(0)), "at_line counts from 1");
}

#[cfg(feature = "python")]
#[test]
fn a_result_that_does_not_parse_names_both_ways_out() {
    let edit = Edit::new("x = 1", "x = (");
    let error = plan(b"x = 1\n", Path::new("a.py"), &[edit], &Options::default());
    insta::assert_snapshot!(error.unwrap_err(), @r#"
    Python syntax error at line 1, column 6: unexpected EOF while parsing
      x = (
    Mend the edits, or pass validate="off".
    "#);
}

/// Matching by stripped lines with the first line's indentation is what people know; its results hold.
#[test]
fn compatible_with_matching_by_stripped_lines() {
    let edited = |file: &str, old: &str, new: &str| {
        let plan = plan_text(file, &[Edit::new(old, new)]).unwrap();
        (text(&plan).to_owned(), plan.stats.fuzzy)
    };
    let outer = edited("def f():\n    print('a')\n", "  print('a')  ", "print('b')");
    assert_eq!(outer, ("def f():\n    print('b')\n".to_owned(), 1));
    let block = edited(
        "class A:\n    def m(self):\n        pass\n",
        "  def m(self):\n    pass",
        "def n(self):\n    return True",
    );
    assert_eq!(block.0, "class A:\n    def n(self):\n        return True\n");
    assert_eq!(edited("line1\n  line2\n", "line1\nline2", "new1\nnew2").1, 1);
    let tab = edited("def f():\n\tprint('tabs')\n", "    print('tabs')", "print('still tabs')");
    assert_eq!(tab.0, "def f():\n\tprint('still tabs')\n");
}
