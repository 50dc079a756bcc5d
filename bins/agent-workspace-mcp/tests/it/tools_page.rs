//! `docs/tools.md` is what the code says: `cargo xtask docs` writes it anew.

use std::collections::BTreeSet;
use std::path::Path;

use agent_workspace_mcp::tools::ROWS;
use serde_json::{Value, json};

use crate::harness::Session;

#[path = "../../examples/tools_page/page.rs"]
mod page;

#[test]
fn the_page_in_docs_is_the_one_that_the_code_gives() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/tools.md");
    let written = std::fs::read_to_string(file).unwrap();
    assert!(written == page::page(), "docs/tools.md is old: run cargo xtask docs");
}

/// Every fact that the sources write is on the page, and the page names no other.
#[test]
fn the_page_lists_the_facts_that_are_written() {
    let listed: BTreeSet<String> = ROWS
        .iter()
        .flat_map(|row| page::facts_of(row.name))
        .map(|fact| fact.name.to_owned())
        .chain(["error_kind".to_owned()])
        .collect();
    let mut written = BTreeSet::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut written);
    assert_eq!(written, listed);
}

/// Names in `.with("…"` and `.with_some("…"`, outside of tests.
fn sources(dir: &Path, names: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, names);
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap();
        for after in [".with(", ".with_some("].iter().flat_map(|call| code.split(call).skip(1)) {
            if let Some(name) = after.trim_start().strip_prefix('"') {
                names.insert(name.split('"').next().unwrap().to_owned());
            }
        }
    }
}

/// Answers of each tool carry no fact that its own table does not list.
#[test]
fn answers_carry_the_facts_of_their_tool() {
    let session = Session::new("//- a.py\nx = 1\n");
    let check = |tool: &'static str, arguments: Value| {
        let answer = session.call(tool, arguments);
        let listed: BTreeSet<&str> =
            page::facts_of(tool).map(|fact| fact.name).chain(["error_kind"]).collect();
        let facts = answer.facts.as_object().unwrap();
        assert!(!facts.is_empty(), "{tool}: {answer:?}");
        for name in facts.keys() {
            assert!(listed.contains(name.as_str()), "{tool}: {name} is not on the page");
        }
        answer
    };
    check("read_file", json!({"filepath": "a.py", "limit": 1}));
    check("read_file", json!({"filepath": "../a.py"}));
    check("list_directory", json!({"limit": 1}));
    check("search_workspace", json!({"pattern": "*.py"}));
    check("search_content", json!({"pattern": "x"}));
    check("write_file", json!({"filepath": "b.py", "content": "y = 2\n"}));
    check("write_file", json!({"filepath": "c.py", "content": "y = (\n"}));
    let edits =
        |old: &str, new: &str| json!({"filepath": "a.py", "edits": [{"old": old, "new": new}]});
    check("search_and_replace", edits("x = 1", "x = 2"));
    check("search_and_replace", edits("x = 7", "x = 3"));
    check("search_and_replace", edits("x = 2", "x = ("));
    let ran = check("run_bash", json!({"command": "seq 1 20000"}));
    check("read_output", json!({"output_id": ran.facts["output_id"], "limit": 1}));
    check("read_output", json!({"output_id": ran.facts["output_id"], "pattern": "7"}));
    check("run_bash", json!({"command": "sleep 300", "timeout": 1}));
    let job = check("run_bash", json!({"command": "sleep 300", "background": true}));
    check("read_output", json!({"output_id": job.facts["job_id"]}));
    check("stop_job", json!({"job_id": job.facts["job_id"]}));
    let opened = check("initialize_sandbox", json!({}));
    check("execute_code", json!({"code": "echo hi", "language": "sh"}));
    check("stop_sandbox", json!({"sandbox_id": opened.facts["sandbox_id"]}));
}
