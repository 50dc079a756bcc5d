//! Foreign clients drive the real binary through a whole workflow, over stdio and over HTTP with a key: three in
//! Python, both TypeScript SDKs, and the MCP Inspector's command line, which knows one call a process and so no cancel.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use testkit::{Fixture, Missing, require};

use crate::harness::{BINARY, variable};

const EDITED: &str = "def greet():\n    return 'bye'\n";

fn named(name: &str, what: &str) -> Result<PathBuf, Missing> {
    let path = PathBuf::from(variable(name)?);
    let missing = || Missing(format!("{what}: {name} names no file; .ci/setup installs it"));
    path.is_file().then_some(path).ok_or_else(missing)
}

fn shown(output: &Output) -> String {
    format!(
        "{}\n--- stdout\n{}\n--- stderr\n{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// What a client shows over HTTP.
const KEY: &str = "a-key-of-the-tests";

/// How a client reaches the server.
#[derive(Clone, Copy)]
enum Way {
    Stdio,
    Http,
}

const WAYS: &[Way] = if cfg!(feature = "http") { &[Way::Stdio, Way::Http] } else { &[Way::Stdio] };

/// A served workspace, and what a client is told to reach it.
struct Served {
    fixture: Fixture,
    http: Option<Http>,
}

impl Served {
    fn new(way: Way) -> Self {
        let fixture = Fixture::new("//- a.txt\nhello\n");
        let http = match way {
            Way::Stdio => None,
            Way::Http => Some(Http::start(&fixture)),
        };
        Self { fixture, http }
    }

    /// Where the server listens, if it does.
    fn url(&self) -> Option<&str> {
        self.http.as_ref().map(|server| server.url.as_str())
    }

    /// `program` on `script`, with what it needs to know of the server at the end.
    fn run(&self, program: &Path, script: &str, client: &str) {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients").join(script);
        let mut command = Command::new(program);
        command.arg(script).arg(client).env("AUDIT_DIR", self.fixture.base().join("state"));
        match self.url() {
            None => command.arg("stdio").arg(BINARY).arg(self.fixture.root()),
            Some(url) => command.args(["http", url]).env("MCP_API_KEY", KEY),
        };
        let output = command.output().unwrap();
        assert!(output.status.success(), "{client}: {}", shown(&output));
        assert_eq!(self.fixture.read("greet.py"), EDITED, "{client}");
    }
}

/// A server on a free port of its own.
struct Http {
    child: Child,
    url: String,
}

impl Http {
    fn start(fixture: &Fixture) -> Self {
        let mut child = Command::new(BINARY)
            .args(["serve", "--http", "127.0.0.1:0", "--workspace"])
            .arg(fixture.root())
            .env("AUDIT_DIR", fixture.base().join("state"))
            .env("MCP_API_KEY", KEY)
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap());
        let mut said = String::new();
        let url = loop {
            let start = said.len();
            let read = log.read_line(&mut said).unwrap();
            assert!(read > 0, "the server ended before it listened:\n{said}");
            let line = said.get(start..).unwrap();
            let address = line.split("address=").nth(1).and_then(|it| it.split(' ').next());
            if let Some(address) = address {
                break address.trim().to_owned();
            }
        };
        // A full pipe would hold the server up.
        std::thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
        Self { child, url }
    }
}

impl Drop for Http {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

fn python(test: &str, client: &str) {
    let python = named("AGENT_WORKSPACE_TEST_PYTHON", "a Python with the clients' packages");
    let Some(python) = require(test, python) else { return };
    for way in WAYS {
        Served::new(*way).run(&python, "python/workflow.py", client);
    }
}

fn typescript(test: &str, version: &str) {
    let node = named("AGENT_WORKSPACE_TEST_NODE", "a Node with the clients' packages");
    let Some(node) = require(test, node) else { return };
    for way in WAYS {
        Served::new(*way).run(&node, "node/workflow.mjs", version);
    }
}

#[test]
fn the_python_sdk_runs_a_whole_workflow() {
    python("the_python_sdk_runs_a_whole_workflow", "mcp");
}

#[test]
fn fastmcp_runs_a_whole_workflow() {
    python("fastmcp_runs_a_whole_workflow", "fastmcp");
}

/// Every tool's schema must convert to a strict one, too.
#[test]
fn openai_agents_run_a_whole_workflow() {
    python("openai_agents_run_a_whole_workflow", "openai-agents");
}

/// The example in `examples/`, its model replaced by a script.
#[test]
fn the_openai_agents_example_works() {
    let python = named("AGENT_WORKSPACE_TEST_PYTHON", "a Python with the clients' packages");
    let Some(python) = require("the_openai_agents_example_works", python) else { return };
    Served::new(Way::Stdio).run(&python, "python/openai_example.py", "scripted");
}

#[test]
fn the_typescript_sdk_v1_runs_a_whole_workflow() {
    typescript("the_typescript_sdk_v1_runs_a_whole_workflow", "v1");
}

#[test]
fn the_typescript_sdk_v2_runs_a_whole_workflow() {
    typescript("the_typescript_sdk_v2_runs_a_whole_workflow", "v2");
}

/// Calls of the Inspector, one process each.
struct Inspector<'a> {
    node: &'a Path,
    entry: &'a Path,
    served: &'a Served,
}

impl Inspector<'_> {
    /// The exit code, and the result if it is JSON.
    fn inspect(&self, arguments: &[&str]) -> (Option<i32>, Value) {
        let mut command = Command::new(self.node);
        command.arg(self.entry).arg("--cli");
        match self.served.url() {
            None => command
                .args([BINARY, "serve", "--log-level", "error", "--workspace"])
                .arg(self.served.fixture.root()),
            Some(url) => {
                let header = format!("Authorization: Bearer {KEY}");
                command.args([url, "--header", &header])
            }
        };
        let base = self.served.fixture.base();
        let output = command
            .args(arguments)
            // It keeps a catalog of servers in its home.
            .env("HOME", base)
            .env("AUDIT_DIR", base.join("state"))
            .output()
            .unwrap();
        let value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|_| panic!("{arguments:?}: {}", shown(&output)));
        (output.status.code(), value)
    }

    fn call(&self, tool: &str, arguments: &[&str]) -> Value {
        let mut all = vec!["--method", "tools/call", "--tool-name", tool];
        for argument in arguments {
            all.extend(["--tool-arg", argument]);
        }
        self.inspect(&all).1
    }

    /// The text of a call that works.
    fn text(&self, tool: &str, arguments: &[&str]) -> String {
        let result = self.call(tool, arguments);
        assert_eq!(result["isError"], false, "{result}");
        result["content"][0]["text"].as_str().unwrap().to_owned()
    }

    /// The kind of error of a call that is refused.
    fn refused(&self, tool: &str, arguments: &[&str]) -> String {
        let result = self.call(tool, arguments);
        assert_eq!(result["isError"], true, "{result}");
        result["_meta"]["agent-workspace/result"]["error_kind"].as_str().unwrap().to_owned()
    }
}

#[test]
fn the_inspector_lists_and_calls_tools() {
    let test = "the_inspector_lists_and_calls_tools";
    let node = named("AGENT_WORKSPACE_TEST_NODE", "a Node that the Inspector runs on");
    let entry = named("AGENT_WORKSPACE_TEST_INSPECTOR", "the MCP Inspector");
    let both = node.and_then(|node| Ok((node, entry?)));
    let Some((node, entry)) = require(test, both) else { return };
    for way in WAYS {
        let served = Served::new(*way);
        let inspector = Inspector { node: &node, entry: &entry, served: &served };
        // It fails where a schema is not portable between clients.
        let (code, list) = inspector.inspect(&["--method", "tools/list", "--strict"]);
        assert_eq!(code, Some(0), "{list}");
        assert!(list["tools"].as_array().is_some_and(|tools| tools.len() >= 6), "{list}");

        assert!(inspector.text("list_directory", &[]).contains("[F] a.txt"));
        let content = "content=def greet():\n    return 'hi'\n";
        inspector.text("write_file", &["filepath=greet.py", content]);
        assert_eq!(
            inspector.refused("write_file", &["filepath=a.txt", "content=x"]),
            "already_exists"
        );
        assert_eq!(inspector.text("read_file", &["filepath=a.txt"]), "hello\n");
        assert!(inspector.text("search_workspace", &["pattern=*.py"]).contains("greet.py"));
        let edit = r#"edits=[{"old": "return 'hi'", "new": "return 'bye'"}]"#;
        inspector.text("search_and_replace", &["filepath=greet.py", edit]);
        let broken = r#"edits=[{"old": "def greet():", "new": "def greet(:"}]"#;
        assert_eq!(
            inspector.refused("search_and_replace", &["filepath=greet.py", broken]),
            "syntax_invalid"
        );
        let ran = inspector.text("run_bash", &["command=echo from bash"]);
        assert_eq!(ran, "[Exit code: 0]\nfrom bash\n");
        assert_eq!(served.fixture.read("greet.py"), EDITED);
    }
}
