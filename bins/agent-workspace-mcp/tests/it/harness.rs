//! A server in this process behind an SDK client over a pipe, and the real binary driven by raw lines.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use agent_workspace_mcp::config::Config;
use agent_workspace_mcp::reply::FACTS;
use agent_workspace_mcp::server::Server;
use agent_workspace_mcp::transport::Lines;
use agent_workspace_mcp::workspace::Workspace;
use rmcp::ServiceExt as _;
use rmcp::model::{CallToolRequestParams, Tool};
use rmcp::service::{RoleClient, RunningService};
use serde_json::{Value, json};
use testkit::{Fixture, Missing, Snapshot};
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

/// The binary under test.
pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_agent-workspace-mcp");

/// Longer than any answer takes; a test that meets it has found an unanswered call.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

/// What one of the project's scripts sets for wider tests; which script, where it is not set.
pub(crate) fn variable(name: &str) -> Result<String, Missing> {
    let is_engine = name.ends_with("_ENGINE") || name.ends_with("_IMAGE");
    let (what, script) =
        if is_engine { ("a container engine", ".ci/engine") } else { ("wider tests", ".ci/setup") };
    std::env::var(name)
        .map_err(|_| Missing(format!("{what}: {name} is not set; {script} says what it is")))
}

/// A workspace, its server in this process, and a client connected to it.
pub(crate) struct Session {
    pub(crate) fixture: Fixture,
    runtime: Runtime,
    client: Option<RunningService<RoleClient, ()>>,
    outside: Snapshot,
}

/// What a call gave.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Answer {
    pub(crate) text: String,
    pub(crate) facts: Value,
    pub(crate) is_error: bool,
}

impl Session {
    /// A server with default settings over the files of `fixture`.
    pub(crate) fn new(fixture: &str) -> Self {
        Self::with(fixture, |_| {})
    }

    /// A server whose settings `change` has seen.
    pub(crate) fn with(fixture: &str, change: impl FnOnce(&mut Config)) -> Self {
        let fixture = Fixture::new(fixture);
        let mut config = Config::new(fixture.root());
        config.audit_dir = Some(fixture.base().join("state"));
        config.helper = Some(PathBuf::from(BINARY));
        change(&mut config);
        let workspace = Arc::new(Workspace::open(config).unwrap());
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let client = runtime.block_on(async {
            let (ours, theirs) = tokio::io::duplex(64 * 1024);
            let (read, write) = tokio::io::split(theirs);
            let ending = CancellationToken::new();
            let lines = Lines::new(read, write, ending.clone());
            tokio::spawn(async move {
                let running = Server::new(workspace, ending).serve(lines).await.unwrap();
                running.waiting().await.unwrap();
            });
            ().serve(ours).await.unwrap()
        });
        let outside = Snapshot::of(&fixture.outside());
        Self { fixture, runtime, client: Some(client), outside }
    }

    fn client(&self) -> &RunningService<RoleClient, ()> {
        self.client.as_ref().unwrap()
    }

    /// The tools as a client sees them.
    pub(crate) fn tools(&self) -> Vec<Tool> {
        self.runtime.block_on(self.client().list_all_tools()).unwrap()
    }

    /// Calls a tool; the answer is one text block, or the test fails.
    pub(crate) fn call(&self, tool: &'static str, arguments: Value) -> Answer {
        let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
        let request = CallToolRequestParams::new(tool).with_arguments(arguments);
        let call = async { tokio::time::timeout(PATIENCE, self.client().call_tool(request)).await };
        let result = self.runtime.block_on(call).expect("no answer").unwrap();
        let result = serde_json::to_value(result).unwrap();
        let content = result["content"].as_array().unwrap();
        assert_eq!(content.len(), 1, "an answer is one block: {result}");
        assert!(result.get("structuredContent").is_none(), "and no second copy: {result}");
        Answer {
            text: content[0]["text"].as_str().unwrap().to_owned(),
            facts: result["_meta"][FACTS].clone(),
            is_error: result["isError"] == true,
        }
    }

    /// A call that must succeed; its text.
    pub(crate) fn ok(&self, tool: &'static str, arguments: Value) -> String {
        let answer = self.call(tool, arguments);
        assert!(!answer.is_error, "{answer:?}");
        answer.text
    }

    /// A call that must be refused with `kind`, leaving workspace and outside as they are; its text.
    pub(crate) fn refused(&self, tool: &'static str, arguments: Value, kind: &str) -> String {
        let before = Snapshot::of(&self.fixture.root());
        let answer = self.call(tool, arguments);
        assert!(answer.is_error, "{answer:?}");
        assert_eq!(answer.facts["error_kind"], kind, "{answer:?}");
        assert!(Snapshot::of(&self.fixture.root()) == before, "the workspace changed: {answer:?}");
        assert!(!answer.text.contains(Fixture::CANARY), "{answer:?}");
        answer.text
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        drop(self.client.take());
        if !std::thread::panicking() {
            assert!(Snapshot::of(&self.fixture.outside()) == self.outside, "the outside changed");
        }
    }
}

/// The real binary, its stdin and stdout in our hands.
pub(crate) struct Binary {
    child: Child,
    /// The server's process, where the child is a client that leads to it.
    server: Option<u32>,
    input: Option<ChildStdin>,
    output: Receiver<String>,
}

impl Binary {
    /// Starts the binary with these arguments and environment variables beside its own.
    pub(crate) fn start(fixture: &Fixture, arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        let mut command = Command::new(BINARY);
        command
            .args(["serve", "--workspace"])
            .arg(fixture.root())
            .env("AUDIT_DIR", fixture.base().join("state"))
            .args(arguments)
            .envs(variables.iter().copied());
        Self::spawn(&mut command)
    }

    /// Starts the binary by a command that becomes it.
    pub(crate) fn spawn(command: &mut Command) -> Self {
        Self::spawn_with(command, Stdio::null())
    }

    /// The same, its log going to `log`.
    pub(crate) fn spawn_with(command: &mut Command, log: Stdio) -> Self {
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let input = child.stdin.take();
        let stdout = child.stdout.take().unwrap();
        let (lines, output) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines() {
                if lines.send(line.unwrap()).is_err() {
                    break;
                }
            }
        });
        Self { child, server: None, input, output }
    }

    /// Starts it and says hello.
    pub(crate) fn connected(fixture: &Fixture) -> Self {
        let mut server = Self::start(fixture, &[], &[]);
        server.hello("2025-11-25");
        server
    }

    /// The handshake; the server's answer.
    pub(crate) fn hello(&mut self, version: &str) -> Value {
        let params = json!({
            "protocolVersion": version,
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "0"},
        });
        let answer = self.request(0, "initialize", params);
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string());
        answer
    }

    pub(crate) fn pid(&self) -> u32 {
        self.server.unwrap_or(self.child.id())
    }

    /// Says that the child leads to a server elsewhere, whose process this is.
    pub(crate) fn stands_for(&mut self, server: u32) {
        self.server = Some(server);
    }

    /// Writes one line.
    pub(crate) fn send(&mut self, line: &str) {
        let input = self.input.as_mut().unwrap();
        input.write_all(line.as_bytes()).unwrap();
        input.write_all(b"\n").unwrap();
        input.flush().unwrap();
    }

    /// Writes bytes that need not be a line.
    pub(crate) fn send_raw(&mut self, bytes: &[u8]) {
        let input = self.input.as_mut().unwrap();
        input.write_all(bytes).unwrap();
        input.flush().unwrap();
    }

    /// The next line the server writes; every one must be JSON-RPC.
    pub(crate) fn receive(&self) -> Value {
        self.receive_within(PATIENCE).expect("no answer")
    }

    /// The same; nothing if no line comes in time, or none will come any more.
    pub(crate) fn receive_within(&self, patience: Duration) -> Option<Value> {
        let line = self.output.recv_timeout(patience).ok()?;
        let value: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("stdout: {line}"));
        assert_eq!(value["jsonrpc"], "2.0", "{line}");
        Some(value)
    }

    /// Sends a request and waits for the answer with its id.
    pub(crate) fn request(&mut self, id: u64, method: &str, params: Value) -> Value {
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.send(&request.to_string());
        loop {
            let answer = self.receive();
            if answer["id"] == id {
                return answer;
            }
        }
    }

    pub(crate) fn call(&mut self, id: u64, tool: &str, arguments: Value) -> Value {
        self.request(id, "tools/call", json!({"name": tool, "arguments": arguments}))
    }

    /// Closes the server's stdin.
    pub(crate) fn close_input(&mut self) {
        drop(self.input.take());
    }

    /// Waits for the server's end; whether it was a success, and how long it took.
    pub(crate) fn ended(&mut self) -> (bool, Duration) {
        let started = std::time::Instant::now();
        let success = self.ends_within(PATIENCE).expect("the server does not end");
        (success, started.elapsed())
    }

    /// Whether it ended with success; nothing if it has not ended in time.
    pub(crate) fn ends_within(&mut self, patience: Duration) -> Option<bool> {
        let started = std::time::Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return Some(status.success());
            }
            if started.elapsed() > patience {
                return None;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Binary {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Whether a process whose command line begins with `mark` is there.
pub(crate) fn is_running(mark: &str) -> bool {
    std::fs::read_dir("/proc").unwrap().flatten().any(|entry| {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        line.starts_with(mark.as_bytes())
    })
}
