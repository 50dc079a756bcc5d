//! One started server of the protocol, ours or a peer, spoken to by raw lines.
//!
//! Non-goal: an SDK's client, whose own time would be measured with the server's. What is not as it should be ends the bench.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// A server that is measured, and what its tools are called.
#[derive(Debug)]
pub struct Server {
    /// What a table calls it.
    pub name: &'static str,
    /// What is started.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<PathBuf>,
    /// Variables of its environment, beside this program's.
    pub variables: Vec<(&'static str, String)>,
    /// The call that does a task here; nothing where there is no such tool.
    pub calls: fn(&Task, root: &Path) -> Option<(&'static str, Value)>,
}

/// What every server is asked to do, in its own words.
#[derive(Debug)]
pub enum Task {
    /// The whole of a file, of so many lines.
    Read(String, u64),
    /// The names in a directory.
    List(String),
    /// Files named so, below a directory.
    Find(String, String),
    /// A file with this content.
    Write(String, String),
    /// The one place of this text becomes that one.
    Edit(String, String, String),
    /// Lines that match an expression, in one file.
    Search(String, String),
    /// A program and its arguments.
    Run(Vec<String>),
}

/// The binary that a release build leaves beside the bench's own folder.
///
/// # Panics
///
/// If it is not there.
pub fn built() -> PathBuf {
    let bench = std::env::current_exe().expect("this program's path");
    let built = bench.ancestors().nth(2).expect("target/release/deps/bench");
    let program = built.join("agent-workspace-mcp");
    assert!(program.is_file(), "{} is missing: cargo build --release", program.display());
    program
}

/// A session with one started server.
#[derive(Debug)]
pub struct Session<'s> {
    server: &'s Server,
    root: PathBuf,
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    line: String,
    id: u64,
}

/// The id of an answer, which stands before the result or after it.
fn id_of(line: &str) -> Option<u64> {
    const KEY: &str = "\"id\":";
    let at = line.find(KEY).filter(|at| *at < 40).or_else(|| line.rfind(KEY))?;
    let (_, rest) = line.split_at(at + KEY.len());
    let (id, _) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit())?);
    id.parse().ok()
}

impl<'s> Session<'s> {
    /// Starts the server and says hello; the time until its answer. `state` is where ours keeps its record.
    ///
    /// # Panics
    ///
    /// If it does not start or answer.
    pub fn start(server: &'s Server, root: &Path, state: &Path) -> (Self, Duration) {
        let started = Instant::now();
        let mut child = Command::new(&server.program)
            .args(&server.arguments)
            .envs(server.variables.iter().map(|(name, value)| (name, value)))
            .env("AUDIT_DIR", state)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("a server");
        let input = child.stdin.take().expect("its input");
        let output = BufReader::new(child.stdout.take().expect("its output"));
        let line = String::new();
        let mut session = Self { server, root: root.to_owned(), child, input, output, line, id: 0 };
        let client = json!({"name": "bench", "version": "1"});
        let hello =
            json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
        session.ask("initialize", &hello);
        let took = started.elapsed();
        session.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        (session, took)
    }

    fn say(&mut self, message: &Value) {
        let line = format!("{message}\n");
        self.input.write_all(line.as_bytes()).expect("a server that reads");
    }

    /// The next answer, of whatever request; notifications are passed over.
    fn receive(&mut self) -> u64 {
        loop {
            self.line.clear();
            let read = self.output.read_line(&mut self.line).expect("a server that answers");
            assert!(read > 0, "{} left", self.server.name);
            // The id alone is read: what a client does with a long answer is not the server's time.
            if let Some(id) = id_of(&self.line) {
                return id;
            }
        }
    }

    fn ask(&mut self, method: &str, params: &Value) {
        let id = self.send(method, params);
        while self.receive() != id {}
        self.must_be_fine();
    }

    fn send(&mut self, method: &str, params: &Value) -> u64 {
        self.id += 1;
        let id = self.id;
        self.say(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    fn must_be_fine(&self) {
        let shown: String = self.line.chars().take(400).collect();
        assert!(self.line.contains("\"result\""), "{}: {shown}", self.server.name);
        assert!(!self.line.contains("\"isError\":true"), "{}: {shown}", self.server.name);
    }

    fn params(&self, task: &Task) -> Option<Value> {
        let (tool, arguments) = (self.server.calls)(task, &self.root)?;
        Some(json!({"name": tool, "arguments": arguments}))
    }

    /// Does a task; the time until its answer is there, or nothing where the server has no tool for it.
    ///
    /// # Panics
    ///
    /// If the answer is an error, or none; so do the others.
    pub fn time(&mut self, task: &Task) -> Option<Duration> {
        let params = self.params(task)?;
        let started = Instant::now();
        self.ask("tools/call", &params);
        Some(started.elapsed())
    }

    /// Calls a tool of ours; the time until its answer.
    ///
    /// # Panics
    ///
    /// If the server is not there, or answers with an error.
    pub fn call(&mut self, tool: &str, arguments: &Value) -> Duration {
        let started = Instant::now();
        self.ask("tools/call", &json!({"name": tool, "arguments": arguments}));
        started.elapsed()
    }

    /// The last answer, as the line it was.
    pub fn answer(&self) -> &str {
        &self.line
    }

    /// Begins a call without waiting for its answer.
    ///
    /// # Panics
    ///
    /// If the server is not there, or answers with an error.
    pub fn begin(&mut self, tool: &str, arguments: &Value) {
        self.send("tools/call", &json!({"name": tool, "arguments": arguments}));
    }

    /// Asks for a task so often at one time; the time until the last answer.
    ///
    /// # Panics
    ///
    /// If the server is not there, or answers with an error.
    pub fn pipeline(&mut self, task: &Task, times: u64) -> Option<Duration> {
        let params = self.params(task)?;
        let started = Instant::now();
        for _ in 0..times {
            self.send("tools/call", &params);
        }
        for _ in 0..times {
            self.receive();
            self.must_be_fine();
        }
        Some(started.elapsed())
    }

    /// KiB of the server that are in memory: now, and at most so far.
    ///
    /// # Panics
    ///
    /// If the server is not there, or answers with an error.
    pub fn memory(&self) -> (u32, u32) {
        let status = format!("/proc/{}/status", self.child.id());
        let status = std::fs::read_to_string(status).expect("a process");
        let kib = |name: &str| {
            let line = status.lines().find(|line| line.starts_with(name)).expect("a line of it");
            line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).unwrap_or(0)
        };
        (kib("VmRSS:"), kib("VmHWM:"))
    }

    /// Ends the server at once.
    ///
    /// # Panics
    ///
    /// If it has ended before.
    pub fn end(mut self) {
        drop(self.input);
        drop(self.output);
        self.child.kill().expect("a server to end");
        self.child.wait().expect("a server that ended");
    }

    /// Takes leave, and waits until the server has put away what it still has.
    ///
    /// # Panics
    ///
    /// If its end cannot be seen.
    pub fn leave(mut self) {
        drop(self.input);
        self.child.wait().expect("a server that ended");
    }
}
