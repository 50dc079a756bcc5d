//! `search_workspace`: rows S1–S7, J7 and J8 of the behaviour table.

use serde_json::json;

use crate::harness::Session;

const TREE: &str = "//- test1.py\n//- test.txt\n//- subdir/test2.py\n";

#[test]
fn s1_glob_at_the_root_and_one_level_down() {
    let text = Session::new(TREE).ok("search_workspace", json!({"pattern": "**/*.py"}));
    assert_eq!(text, "Found 2 matches\nsubdir/test2.py\ntest1.py");
}

#[test]
fn s2_user_exclusion() {
    let arguments = json!({"pattern": "**/*.py", "exclude_patterns": ["test1.py"]});
    let text = Session::new(TREE).ok("search_workspace", arguments);
    assert_eq!(text, "Found 1 matches\nsubdir/test2.py");
}

#[test]
fn s3_built_in_exclusion() {
    let session = Session::new("//- .venv_container/x.py\n//- a.py\n");
    let text = session.ok("search_workspace", json!({"pattern": "*.py"}));
    assert_eq!(text, "Found 1 matches\na.py");
    let all = session.ok("search_workspace", json!({"pattern": "*.py", "include_ignored": true}));
    assert!(all.contains(".venv_container/x.py"), "{all}");
}

#[test]
fn s4_exactly_the_limit() {
    let session =
        Session::with("//- a.py\n//- b.py\n//- c.py\n", |config| config.max_search_results = 3);
    let text = session.ok("search_workspace", json!({"pattern": "*.py"}));
    assert_eq!(text, "Found 3 matches\na.py\nb.py\nc.py");
}

#[test]
fn s5_over_the_limit() {
    let session =
        Session::with("//- a.py\n//- b.py\n//- c.py\n", |config| config.max_search_results = 2);
    let answer = session.call("search_workspace", json!({"pattern": "*.py"}));
    assert_eq!(answer.text, "Found 2 matches (truncated, 3 in all)\na.py\nb.py");
    assert_eq!(answer.facts, json!({"count": 2, "total": 3, "truncated": true}));
}

#[test]
fn s6_traversal_in_the_pattern() {
    let session = Session::new(TREE);
    let text =
        session.refused("search_workspace", json!({"pattern": "../../**/*.py"}), "invalid_args");
    assert!(text.contains("Path traversal or absolute paths are not allowed"), "{text}");
}

#[test]
fn s7_exclusion_by_path() {
    let session = Session::new("//- src/main.py\n");
    let arguments = json!({"pattern": "**/*.py", "exclude_patterns": ["src/main.py"]});
    assert_eq!(session.ok("search_workspace", arguments), "No files found");
}

#[test]
fn j7_good_patterns() {
    let session = Session::new("//- src/a/b.py\n//- tests/test_x.py\n//- x..y\n");
    for (pattern, found) in [
        ("*.py", "src/a/b.py"),
        ("src/**/*.py", "src/a/b.py"),
        ("tests/test_*.py", "tests/test_x.py"),
        ("x..y", "x..y"),
        ("*.{rs,py}", "tests/test_x.py"),
    ] {
        let text = session.ok("search_workspace", json!({"pattern": pattern}));
        assert!(text.contains(found), "{pattern}: {text}");
    }
}

#[test]
fn j8_bad_patterns() {
    let session = Session::new(TREE);
    for pattern in ["../x", "/x", "~/x", "a/../x"] {
        let text = session.refused("search_workspace", json!({"pattern": pattern}), "invalid_args");
        assert!(text.contains("Invalid glob pattern"), "{pattern}: {text}");
    }
}

#[test]
fn gitignore_counts_without_a_repository_and_links_are_not_descended() {
    let session =
        Session::new("//- .gitignore\n*.log\n!keep.log\n//- a.log\n//- keep.log\n//- sub/b.log\n");
    session.fixture.symlink("out", "../outside");
    let text = session.ok("search_workspace", json!({"pattern": "*.{log,txt}"}));
    assert_eq!(text, "Found 1 matches\nkeep.log");
}
