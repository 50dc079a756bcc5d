//! The example of a runtime that drives the tools in this process, run.

use std::path::PathBuf;

use agent_workspace_mcp::config::Config;
use testkit::Fixture;

use crate::harness::BINARY;

#[path = "../../examples/in_process/workshop.rs"]
mod workshop;

#[test]
fn an_agent_runtime_drives_the_tools_without_mcp() {
    let fixture = Fixture::new("//- a.txt\nhello\n");
    let mut config = Config::new(fixture.root());
    config.audit_dir = Some(fixture.base().join("state"));
    config.helper = Some(PathBuf::from(BINARY));
    let workshop = workshop::Workshop::open(config).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let story = runtime.block_on(workshop::play(&workshop)).unwrap();
    insta::assert_snapshot!(story, @r#"
    12 tools for the model
    write_file: done: Successfully wrote 45 bytes to greet.py
    search_and_replace: done: Successfully applied 1 edits (1 exact, 0 fuzzy-matched) to 'greet.py':
    search_and_replace: refused: Python syntax error at line 1, column 11: Expected a parameter or the end of the parameter list
        "syntax_invalid"
    read_file: refused: Path '../secret.txt' leads outside the workspace boundary; use a path relative to the workspace root
        "outside_workspace"
    run_bash: done: [Exit code: 3]
        3
    "#);
    let unknown = runtime.block_on(workshop.answer("no_such", "{}"));
    assert_eq!(unknown.unwrap_err(), "no tool 'no_such'");
    assert!(runtime.block_on(workshop.answer("read_file", "[1]")).is_err());
}
