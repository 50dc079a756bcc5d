//! Foreign clients drive the real binary: the Python SDK and the MCP Inspector's command line.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use testkit::{Fixture, Missing, require};

use crate::harness::BINARY;

fn named(variable: &str, what: &str) -> Result<PathBuf, Missing> {
    let missing = |why: &str| Missing(format!("{what}: {variable} {why}; .ci/setup installs it"));
    let path =
        std::env::var_os(variable).map(PathBuf::from).ok_or_else(|| missing("is not set"))?;
    if path.is_file() { Ok(path) } else { Err(missing("names no file")) }
}

fn shown(output: &Output) -> String {
    format!(
        "{}\n--- stdout\n{}\n--- stderr\n{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

#[test]
fn the_python_sdk_runs_a_whole_workflow() {
    let python = named("AGENT_WORKSPACE_TEST_PYTHON", "a Python with the mcp package");
    let Some(python) = require("the_python_sdk_runs_a_whole_workflow", python) else { return };
    let fixture = Fixture::new("//- a.txt\nhello\n");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/python/workflow.py");
    let output = Command::new(python)
        .arg(script)
        .arg(BINARY)
        .arg(fixture.root())
        .env("AUDIT_DIR", fixture.base().join("state"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", shown(&output));
    assert_eq!(fixture.read("greet.py"), "def greet():\n    return 'bye'\n");
}

#[test]
fn the_inspector_lists_and_calls_tools() {
    let inspector = named("AGENT_WORKSPACE_TEST_INSPECTOR", "the MCP Inspector");
    let Some(inspector) = require("the_inspector_lists_and_calls_tools", inspector) else { return };
    let fixture = Fixture::new("//- a.txt\nhello\n");
    let inspect = |arguments: &[&str]| {
        let output = Command::new(&inspector)
            .args(["--cli", BINARY, "serve", "--workspace"])
            .arg(fixture.root())
            .args(arguments)
            .env("AUDIT_DIR", fixture.base().join("state"))
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", shown(&output));
        serde_json::from_slice::<Value>(&output.stdout)
            .unwrap_or_else(|_| panic!("{}", shown(&output)))
    };
    let list = inspect(&["--method", "tools/list"]);
    assert!(list["tools"].as_array().is_some_and(|tools| tools.len() >= 6), "{list}");
    let read =
        ["--method", "tools/call", "--tool-name", "read_file", "--tool-arg", "filepath=a.txt"];
    assert_eq!(inspect(&read)["content"][0]["text"], "hello\n");
    let run = [
        "--method",
        "tools/call",
        "--tool-name",
        "run_bash",
        "--tool-arg",
        "command=echo from bash",
    ];
    assert_eq!(inspect(&run)["content"][0]["text"], "[Exit code: 0]\nfrom bash\n");
}
