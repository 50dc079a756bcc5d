//! Arbitrary lines after the hello, through the real transport to the real server: every well-formed request gets one
//! answer, and the server lives.
//!
//! The server is read-only, so that no input runs a command or writes. Answers are counted by id; ids that stand on
//! two requests, and requests that the client takes back or that stay open by design, may go without.
#![no_main]

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use agent_workspace_mcp::config::Config;
use agent_workspace_mcp::server::Server;
use agent_workspace_mcp::transport::Lines;
use agent_workspace_mcp::workspace::Workspace;
use libfuzzer_sys::fuzz_target;
use rmcp::ServiceExt as _;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio_util::sync::CancellationToken;

/// An answer that takes longer is none.
const PATIENCE: Duration = Duration::from_secs(8);
/// The fuzzer's own requests; an input that uses the same ids is left alone.
const HELLO: &str = "fuzz: hello";
const LIVES: &str = "fuzz: are you there?";

struct Stage {
    runtime: tokio::runtime::Runtime,
    workspace: Arc<Workspace>,
    _base: tempfile::TempDir,
}

static STAGE: LazyLock<Stage> = LazyLock::new(|| {
    let base = tempfile::tempdir().expect("a folder");
    let root = base.path().join("workspace");
    std::fs::create_dir(&root).expect("a workspace");
    std::fs::write(root.join("a.txt"), "hello\n").expect("a file");
    let mut config = Config::new(root);
    config.audit_dir = Some(base.path().join("state"));
    config.read_only = true;
    (config.ceiling, config.floor) = (proc_sandbox::Rung::None, proc_sandbox::Rung::None);
    let workspace = Arc::new(Workspace::open(config).expect("an open workspace"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    Stage { runtime: runtime.expect("a runtime"), workspace, _base: base }
});

/// How often each request of the input is to be answered.
#[derive(Default)]
struct Expected {
    /// By id as JSON.
    once: BTreeMap<String, usize>,
    /// Whether something may be taken back.
    takes_back: bool,
    /// Whether there is a line that is no JSON: the server answers it too where it makes out an id.
    broken: bool,
}

/// Reads the input as the server should.
fn expected(input: &[u8]) -> Option<Expected> {
    let mut expected = Expected::default();
    for line in input.split(|&byte| byte == b'\n') {
        let message = match serde_json::from_slice::<Value>(line) {
            Ok(Value::Object(message)) => message,
            Ok(_) => continue,
            Err(_) => {
                expected.broken |= !line.trim_ascii().is_empty();
                continue;
            }
        };
        let method = message.get("method").and_then(Value::as_str);
        let Some(id) = message.get("id") else {
            expected.takes_back |= method == Some("notifications/cancelled");
            continue;
        };
        if matches!(id.as_str(), Some(HELLO | LIVES)) {
            return None;
        }
        let is_id = id.is_i64() || id.as_str().is_some_and(|id| id.len() < 64);
        let is_request = message.get("jsonrpc") == Some(&json!("2.0"))
            && method.is_some()
            && !message.contains_key("result")
            && !message.contains_key("error");
        if is_id {
            let stays_open = method == Some("subscriptions/listen");
            let count = expected.once.entry(id.to_string()).or_default();
            // Two of one id, or what is no request in every respect, are not counted on.
            *count += if is_request && !stays_open { 1 } else { 2 };
        }
    }
    Some(expected)
}

async fn talk(workspace: Arc<Workspace>, input: &[u8], expected: &Expected) {
    let (ours, theirs) = tokio::io::duplex(1024 * 1024);
    let (read, write) = tokio::io::split(theirs);
    let ending = CancellationToken::new();
    let lines = Lines::new(read, write, ending.clone());
    let server = tokio::spawn(async move {
        let running = Server::new(workspace, ending).serve(lines).await.expect("a session");
        running.waiting().await.expect("an end")
    });
    let (read, mut write) = tokio::io::split(ours);
    let mut answers = BufReader::new(read).lines();

    let hello = json!({
        "jsonrpc": "2.0", "id": HELLO, "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "fuzz", "version": "1"},
        },
    });
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let lives = json!({"jsonrpc": "2.0", "id": LIVES, "method": "ping"});
    let said = [format!("{hello}\n{ready}\n").as_bytes(), input, format!("\n{lives}\n").as_bytes()]
        .concat();
    let writing = tokio::spawn(async move {
        write.write_all(&said).await.expect("a server that reads");
        write
    });

    let due = |id: &str| expected.once.get(id) == Some(&1) && !expected.takes_back;
    let mut open: Vec<String> = expected
        .once
        .keys()
        .filter(|id| due(id))
        .cloned()
        .chain([json!(LIVES).to_string()])
        .collect();
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut take = |line: &str, open: &mut Vec<String>| {
        let answer: Value = serde_json::from_str(line).expect("a line of JSON");
        if answer.get("method").is_none() {
            let id = answer.get("id").unwrap_or(&Value::Null).to_string();
            open.retain(|other| *other != id);
            let count = seen.entry(id.clone()).or_default();
            *count += 1;
            assert!(*count == 1 || expected.broken || !due(&id), "{id} is answered twice: {line}");
        }
    };
    while !open.is_empty() {
        let line = tokio::time::timeout(PATIENCE, answers.next_line()).await;
        let line = line.unwrap_or_else(|_| panic!("never answered: {open:?}"));
        let line = line.expect("a pipe").unwrap_or_else(|| panic!("the server left: {open:?}"));
        take(&line, &mut open);
    }
    // The end of input. Dropping one half of a pipe does not close it.
    writing.await.expect("all was read").shutdown().await.expect("an end of input");
    // Whatever still comes is no second answer.
    while let Ok(Some(line)) = answers.next_line().await {
        take(&line, &mut open);
    }
    server.await.expect("a server that ends in order");
}

fuzz_target!(|input: &[u8]| {
    let Some(expected) = expected(input) else { return };
    let stage = &*STAGE;
    stage.runtime.block_on(talk(Arc::clone(&stage.workspace), input, &expected));
});
