//! A disposable sandbox from its opening to its end, native against a container of an engine: `initialize_sandbox`,
//! `execute_code` with one line of shell, `stop_sandbox`, through the server over stdio.
//!
//! Prints the medians and their ratio, the figure to read; a native one should cost at most a twentieth. Samples of the
//! two alternate, so that a busy machine slows both. `.ci/engine` names an engine and an image in two variables; without
//! them the native one is measured alone. Run it with `cargo bench -p benches --bench disposable`, after
//! `cargo build --release`.
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a bench starts the programs it measures, and prints"
)]

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// Sandboxes of each kind.
const SAMPLES: usize = 15;
/// The most that a native one may cost of a container.
const TARGET: f64 = 1.0 / 20.0;

const HELLO: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}"#;
const READY: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
/// How an answer names the sandbox that it opened.
const ID: &str = "\"sandbox_id\":\"";

/// A session with the server.
struct Session {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    id: usize,
}

impl Session {
    fn start(root: &Path, state: &Path, engine: Option<&str>) -> Self {
        let bench = std::env::current_exe().expect("this program's path");
        let built = bench.ancestors().nth(2).expect("target/release/deps/bench");
        let program = built.join("agent-workspace-mcp");
        assert!(program.is_file(), "{} is missing: cargo build --release", program.display());
        let mut child = Command::new(program)
            .args(["serve", "--log-level", "error", "--workspace"])
            .arg(root)
            .env("AUDIT_DIR", state)
            .envs(engine.map(|engine| ("DOCKER_HOST", engine)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("a server");
        let input = child.stdin.take().expect("its input");
        let output = BufReader::new(child.stdout.take().expect("its output"));
        let mut session = Self { child, input, output, id: 0 };
        session.ask(HELLO);
        session.say(READY);
        session
    }

    fn say(&mut self, message: &str) {
        self.input.write_all(format!("{message}\n").as_bytes()).expect("a server that reads");
    }

    /// Sends the request of the present id; its answer, which must be no error.
    fn ask(&mut self, message: &str) -> String {
        self.say(message);
        let ours = [format!("\"id\":{},", self.id), format!("\"id\":{}}}", self.id)];
        let mut line = String::new();
        loop {
            line.clear();
            let read = self.output.read_line(&mut line).expect("a server that answers");
            assert!(read > 0, "the server left");
            if ours.iter().any(|id| line.contains(id)) {
                break;
            }
        }
        assert!(line.contains("\"result\"") && !line.contains("\"isError\":true"), "{line}");
        line
    }

    fn call(&mut self, tool: &str, arguments: &str) -> String {
        self.id += 1;
        let id = self.id;
        self.ask(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}}}}}"#
        ))
    }

    /// One sandbox, opened, used and stopped; the time for that.
    fn dispose(&mut self, opening: &str) -> Duration {
        let started = Instant::now();
        let opened = self.call("initialize_sandbox", opening);
        let (_, rest) = opened.split_once(ID).expect("an id");
        let id = rest.split('"').next().expect("an id").to_owned();
        let code = format!(r#"{{"language":"sh","code":"echo $((6 * 7))","sandbox_id":"{id}"}}"#);
        let ran = self.call("execute_code", &code);
        assert!(ran.contains("[Exit code: 0]\\n42\\n"), "{ran}");
        self.call("stop_sandbox", &format!(r#"{{"sandbox_id":"{id}"}}"#));
        started.elapsed()
    }

    fn end(mut self) {
        drop(self.input);
        // Its end removes what it still has; it is waited for.
        self.child.wait().expect("a server that ended");
    }
}

fn median(samples: &mut [Duration]) -> Duration {
    samples.sort_unstable();
    samples.get(samples.len() / 2).copied().unwrap_or_default()
}

/// An engine's address, and an image with a shell.
fn engine() -> Option<(String, String)> {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    Some((variable("AGENT_WORKSPACE_TEST_ENGINE")?, variable("AGENT_WORKSPACE_TEST_IMAGE")?))
}

fn main() {
    let base = tempfile::tempdir().expect("a folder");
    let (root, state): (PathBuf, PathBuf) = (base.path().join("ws"), base.path().join("state"));
    std::fs::create_dir(&root).expect("a workspace");
    let engine = engine();
    let mut session =
        Session::start(&root, &state, engine.as_ref().map(|(engine, _)| engine.as_str()));
    let opening = engine.as_ref().map(|(_, image)| format!(r#"{{"image":"{image}"}}"#));
    if opening.is_none() {
        println!("SKIPPED the comparison: AGENT_WORKSPACE_TEST_ENGINE and _IMAGE are not set");
    }
    // The first of each finds things cold.
    session.dispose("{}");
    if let Some(opening) = &opening {
        session.dispose(opening);
    }
    let (mut native, mut contained) = (Vec::new(), Vec::new());
    for _ in 0..SAMPLES {
        native.push(session.dispose("{}"));
        contained.extend(opening.iter().map(|opening| session.dispose(opening)));
    }
    session.end();
    let native = median(&mut native);
    if opening.is_some() {
        let contained = median(&mut contained);
        let ratio = native.as_secs_f64() / contained.as_secs_f64();
        let held = if ratio <= TARGET { "held" } else { "MISSED" };
        println!(
            "disposable sandbox   native {native:>10.2?}  engine {contained:>10.2?}  ratio {ratio:.4} (at most {TARGET}: {held})"
        );
    } else {
        println!("disposable sandbox   native {native:>10.2?}");
    }
}
