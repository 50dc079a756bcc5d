//! `search_content`: matches grouped by file, totals, and what is not searched.

use serde_json::json;

use crate::harness::Session;

const TREE: &str = "//- a.py\nimport os\nx = 1\ny = 2\n//- b.txt\nImport\n//- .gitignore\nskipped\n//- skipped/c.py\nimport\n";

#[test]
fn matches_are_told_by_path_and_line() {
    let session = Session::new(TREE);
    let answer = session.call("search_content", json!({"pattern": "^import"}));
    assert_eq!(answer.text, "Found 1 match in 1 file\na.py:1:import os");
    assert_eq!(answer.facts, json!({"count": 1, "total": 1, "truncated": false}));
    let text = session.ok("search_content", json!({"pattern": "^import", "ignore_case": true}));
    assert_eq!(text, "Found 2 matches in 2 files\na.py:1:import os\nb.txt:1:Import");
    let text = session.ok("search_content", json!({"pattern": "x = ", "context": 1}));
    assert_eq!(text, "Found 1 match in 1 file\na.py-1-import os\na.py:2:x = 1\na.py-3-y = 2");
}

#[test]
fn it_can_be_narrowed_and_says_when_there_is_more() {
    let session = Session::with(TREE, |config| config.max_search_results = 1);
    let text = session.ok("search_content", json!({"pattern": "=", "path": "a.py"}));
    assert_eq!(text, "Found 1 match (truncated, 2 in all, in 1 file)\na.py:2:x = 1");
    let text = session.ok("search_content", json!({"pattern": "import", "glob": "*.txt"}));
    assert_eq!(text, "No matches found");
}

#[test]
fn a_part_of_a_line_is_told_as_a_part() {
    let session = Session::new("//- short\nneedle\n");
    session.fixture.write("long", format!("{}needle\n", "x".repeat(1000)).as_bytes());
    let text = session.ok("search_content", json!({"pattern": "needle"}));
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[1].starts_with("long:1:x") && lines[1].ends_with("needle […]"), "{text}");
    assert_eq!(lines[2], "short:1:needle");
    assert!(lines[3].contains("read_file"), "{text}");
    let whole = session.ok("search_content", json!({"pattern": "needle", "path": "short"}));
    assert_eq!(whole, "Found 1 match in 1 file\nshort:1:needle");
}

#[test]
fn bad_patterns_and_places_are_refused() {
    let session = Session::new(TREE);
    session.refused("search_content", json!({"pattern": "("}), "invalid_args");
    session.refused(
        "search_content",
        json!({"pattern": "x", "path": "../outside"}),
        "outside_workspace",
    );
    session.refused("search_content", json!({"pattern": "x", "path": "none"}), "not_found");
    session.refused("search_content", json!({"pattern": "x", "context": -1}), "invalid_args");
}
