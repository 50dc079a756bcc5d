//! The server as a client meets it, beside the filesystem server of the npm registry: from its start to the answer of
//! `initialize`, and the reading of a small file.
//!
//! Prints medians and their ratios, the figures to read. Samples of the two alternate, so that a busy machine slows
//! both. `.ci/setup` names the other server and its Node in two variables; without them ours is measured alone.
//! Run it with `cargo bench -p benches --bench server`, after `cargo build --release`.
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a bench starts the programs it measures, and prints"
)]

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// Starts of each server.
const STARTS: usize = 40;
/// Reads of each server, in one session.
const READS: usize = 2000;
/// What is read.
const FILE: &str = "small.txt";

const HELLO: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}"#;
const READY: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// A server's command line, and the arguments with which it reads the file.
struct Server {
    program: PathBuf,
    arguments: Vec<PathBuf>,
    tool: &'static str,
    read: String,
}

/// A session with one started server.
struct Session {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    line: String,
}

impl Session {
    /// Starts the server and says hello; the time until its answer.
    fn start(server: &Server, state: &Path) -> (Self, Duration) {
        let started = Instant::now();
        let mut child = Command::new(&server.program)
            .args(&server.arguments)
            .env("AUDIT_DIR", state)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("a server");
        let input = child.stdin.take().expect("its input");
        let output = BufReader::new(child.stdout.take().expect("its output"));
        let mut session = Self { child, input, output, line: String::new() };
        session.ask(HELLO, 0);
        let took = started.elapsed();
        session.say(READY);
        (session, took)
    }

    fn say(&mut self, message: &str) {
        self.input.write_all(format!("{message}\n").as_bytes()).expect("a server that reads");
    }

    /// Sends a request and waits for its answer, which must be no error.
    fn ask(&mut self, message: &str, id: usize) {
        self.say(message);
        let ours = [format!("\"id\":{id},"), format!("\"id\":{id}}}")];
        loop {
            self.line.clear();
            let read = self.output.read_line(&mut self.line).expect("a server that answers");
            assert!(read > 0, "the server left");
            if ours.iter().any(|id| self.line.contains(id)) {
                break;
            }
        }
        assert!(self.line.contains("\"result\""), "{}", self.line);
        assert!(!self.line.contains("\"isError\":true"), "{}", self.line);
    }

    /// Reads the file; the time until its content is there.
    fn read(&mut self, server: &Server, id: usize) -> Duration {
        let Server { tool, read, .. } = server;
        let request = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{read}}}}}"#
        );
        let started = Instant::now();
        self.ask(&request, id);
        let took = started.elapsed();
        assert!(self.line.contains("line 7 of a small file"), "{}", self.line);
        took
    }

    fn end(mut self) {
        drop(self.input);
        drop(self.output);
        self.child.kill().expect("a server to end");
        self.child.wait().expect("a server that ended");
    }
}

fn median(mut samples: Vec<Duration>) -> Duration {
    samples.sort_unstable();
    samples.get(samples.len() / 2).copied().unwrap_or_default()
}

/// The binary that a release build leaves beside this bench's own folder.
fn ours(root: &Path) -> Server {
    let bench = std::env::current_exe().expect("this program's path");
    let built = bench.ancestors().nth(2).expect("target/release/deps/bench");
    let program = built.join("agent-workspace-mcp");
    assert!(program.is_file(), "{} is missing: cargo build --release", program.display());
    let arguments = ["serve", "--log-level", "error", "--workspace"].map(PathBuf::from);
    let arguments = arguments.into_iter().chain([root.to_owned()]).collect();
    Server { program, arguments, tool: "read_file", read: format!(r#"{{"filepath":"{FILE}"}}"#) }
}

fn peer(root: &Path) -> Option<Server> {
    let program = PathBuf::from(std::env::var_os("AGENT_WORKSPACE_TEST_NODE")?);
    let entry = PathBuf::from(std::env::var_os("AGENT_WORKSPACE_TEST_PEER")?);
    let read = format!(r#"{{"path":"{}"}}"#, root.join(FILE).display());
    let arguments = vec![entry, root.to_owned()];
    Some(Server { program, arguments, tool: "read_text_file", read })
}

fn main() {
    let base = tempfile::tempdir().expect("a folder");
    let (root, state) = (base.path().join("workspace"), base.path().join("state"));
    std::fs::create_dir(&root).expect("a workspace");
    let lines: Vec<_> = (0..20).map(|line| format!("line {line} of a small file")).collect();
    let text = lines.join("\n");
    std::fs::write(root.join(FILE), text).expect("a small file");

    let mut servers = vec![ours(&root)];
    match peer(&root) {
        Some(peer) => servers.push(peer),
        None => println!("SKIPPED the comparison: AGENT_WORKSPACE_TEST_NODE and _PEER are not set"),
    }
    let mut starts = vec![Vec::new(); servers.len()];
    for _ in 0..STARTS {
        for (server, starts) in servers.iter().zip(&mut starts) {
            let (session, took) = Session::start(server, &state);
            starts.push(took);
            session.end();
        }
    }
    let mut reads = vec![Vec::new(); servers.len()];
    let mut sessions: Vec<_> =
        servers.iter().map(|server| Session::start(server, &state).0).collect();
    for id in 1..=READS {
        for ((server, session), reads) in servers.iter().zip(&mut sessions).zip(&mut reads) {
            reads.push(session.read(server, id));
        }
    }
    sessions.into_iter().for_each(Session::end);

    for (what, samples) in [("start to initialize", starts), ("read_file, small", reads)] {
        let medians: Vec<Duration> = samples.into_iter().map(median).collect();
        match medians.as_slice() {
            [ours, peer] => {
                let ratio = ours.as_secs_f64() / peer.as_secs_f64();
                println!("{what:20} ours {ours:>10.2?}  peer {peer:>10.2?}  ratio {ratio:.4}");
            }
            _ => println!("{what:20} ours {:>10.2?}", medians.first().copied().unwrap_or_default()),
        }
    }
}
