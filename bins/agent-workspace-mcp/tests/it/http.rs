//! Streamable HTTP: who is answered, that two clients never meet, and that a call ends with whoever asked for it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use agent_workspace_mcp::reply::FACTS;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use testkit::Fixture;

use crate::harness::{BINARY, PATIENCE, is_running};

mod sessions;

const KEY: &str = "key-of-the-only-client";

/// The real binary, serving HTTP on a port of its own.
struct Http {
    child: Child,
    address: String,
}

/// What came back for one request.
#[derive(Debug)]
struct Response {
    status: u16,
    headers: String,
    body: String,
}

impl Response {
    /// The messages of the body, whether it is one or a stream of events.
    fn messages(&self) -> Vec<Value> {
        let events = self.body.lines().filter_map(|line| line.strip_prefix("data:"));
        let found: Vec<_> =
            events.filter_map(|text| serde_json::from_str(text.trim()).ok()).collect();
        if found.is_empty() {
            serde_json::from_str(&self.body).into_iter().collect()
        } else {
            found
        }
    }

    /// The answer to the request `id`.
    fn answer(&self, id: u64) -> Value {
        let found = self.messages().into_iter().find(|message| message["id"] == id);
        found.unwrap_or_else(|| panic!("no answer: {self:?}"))
    }
}

impl Http {
    /// Serves the fixture to whoever has [`KEY`].
    fn start(fixture: &Fixture) -> Self {
        Self::with(fixture, &[], &[("MCP_API_KEY", KEY)])
    }

    fn with(fixture: &Fixture, arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        let mut child = command(fixture, arguments, variables).spawn().unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap()).lines();
        let line = log.by_ref().map(Result::unwrap).find(|line| line.contains("listening"));
        let line = line.expect("the server does not listen");
        let (_, rest) = line.split_once("http://").unwrap();
        let address = rest.split("/mcp").next().unwrap().to_owned();
        // Its log must not fill the pipe.
        std::thread::spawn(move || log.for_each(drop));
        Self { child, address }
    }

    fn send(&self, path: &str, key: &str, headers: &[(&str, &str)], body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        // HTTP/1.0, so that the body ends with the connection and needs no decoding.
        let mut request = format!(
            "POST {path} HTTP/1.0\r\nHost: {}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nContent-Length: {}\r\n",
            self.address,
            body.len()
        );
        if !key.is_empty() {
            write!(request, "Authorization: Bearer {key}\r\n").unwrap();
        }
        for (name, value) in headers {
            write!(request, "{name}: {value}\r\n").unwrap();
        }
        stream.write_all(format!("{request}\r\n{body}").as_bytes()).unwrap();
        stream
    }

    fn post(&self, path: &str, key: &str, headers: &[(&str, &str)], body: &str) -> Response {
        receive(self.send(path, key, headers, body))
    }

    /// One request of the sessionless protocol, with `meta` beside what it wants.
    fn begin(&self, key: &str, tool: &str, arguments: &Value, meta: &Value) -> TcpStream {
        let mut all = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "0"},
        });
        all.as_object_mut().unwrap().extend(meta.as_object().unwrap().clone());
        let body = json!({
            "jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": tool, "arguments": arguments, "_meta": all},
        });
        let headers = [
            ("Mcp-Protocol-Version", "2026-07-28"),
            ("Mcp-Method", "tools/call"),
            ("Mcp-Name", tool),
        ];
        self.send("/mcp", key, &headers, &body.to_string())
    }

    /// Calls a tool without a session; its result.
    fn call(&self, key: &str, tool: &str, arguments: &Value) -> Value {
        let response = receive(self.begin(key, tool, arguments, &json!({})));
        response.answer(1)["result"].clone()
    }

    /// Begins a session of the older protocol; its id.
    fn session(&self, key: &str) -> String {
        let body = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "test", "version": "0"},
        }});
        let response = self.post("/mcp", key, &[], &body.to_string());
        assert_eq!(response.answer(0)["result"]["protocolVersion"], "2025-11-25");
        let headers = response.headers.to_ascii_lowercase();
        let id = headers.lines().find_map(|line| line.strip_prefix("mcp-session-id: "));
        let id = id.expect("no session").trim().to_owned();
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        let session = [("Mcp-Session-Id", id.as_str()), ("Mcp-Protocol-Version", "2025-11-25")];
        assert_eq!(self.post("/mcp", key, &session, &initialized.to_string()).status, 202);
        id
    }

    fn terminate(&self) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        kill_process(pid, Signal::TERM).unwrap();
    }

    fn resident_kib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        line.split_ascii_whitespace().nth(1).unwrap().parse().unwrap()
    }
}

impl Drop for Http {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn command(fixture: &Fixture, arguments: &[&str], variables: &[(&str, &str)]) -> Command {
    let mut command = Command::new(BINARY);
    command
        .args(["serve", "--http", "127.0.0.1:0", "--workspace"])
        .arg(fixture.root())
        .env("AUDIT_DIR", fixture.base().join("state"))
        .env_remove("MCP_API_KEY")
        .args(arguments)
        .envs(variables.iter().copied())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    command
}

fn receive(mut stream: TcpStream) -> Response {
    let mut text = Vec::new();
    stream.read_to_end(&mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    let (headers, body) = text.split_once("\r\n\r\n").unwrap_or((text.as_str(), ""));
    let status = headers.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    Response { status, headers: headers.to_owned(), body: body.to_owned() }
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{result}"))
}

fn kind(result: &Value) -> &str {
    result["_meta"][FACTS]["error_kind"].as_str().unwrap_or_default()
}

/// Waits until it is so.
fn within(patience: Duration, what: &str, mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < patience, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn p8_host_and_port_are_those_of_the_environment() {
    let fixture = Fixture::new("//- a\n");
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let port = port.to_string();
    let mut child = Command::new(BINARY)
        .arg("--workspace")
        .arg(fixture.root())
        .envs([("MCP_TRANSPORT", "http"), ("MCP_HOST", "127.0.0.1"), ("MCP_PORT", &port)])
        .env("MCP_API_KEY", KEY)
        .env("AUDIT_DIR", fixture.base().join("state"))
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    within(PATIENCE, "nobody listens there", || {
        TcpStream::connect(format!("127.0.0.1:{port}")).is_ok()
    });
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn p9_without_a_key_it_does_not_start() {
    let fixture = Fixture::new("//- a\n");
    for variables in [&[][..], &[("MCP_API_KEY", " ")][..]] {
        let output = command(&fixture, &[], variables).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(error.contains("MCP_API_KEY") && error.contains("--api-key-file"), "{error}");
    }
    let arguments = ["--allow-host", "https://box"];
    let output = command(&fixture, &arguments, &[("MCP_API_KEY", KEY)]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("ALLOWED_HOSTS: 'https://box' is no host name"), "{error}");
    // Nobody could show this one.
    let output = command(&fixture, &[], &[("MCP_API_KEY", "schl\u{fc}ssel")]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("MCP_API_KEY: has a key that no header carries"), "{error}");
}

#[test]
fn p10_p11_whoever_shows_no_key_is_told_nothing_else() {
    let fixture = Fixture::new("//- a.txt\nCANARY-OF-HTTP\n");
    let server = Http::start(&fixture);
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string();
    for path in ["/", "/mcp", "/nowhere"] {
        for key in ["", "wrong", KEY.trim_start_matches('k'), &format!("{KEY}x")] {
            let refused = server.post(path, key, &[], &call);
            assert_eq!(refused.status, 401, "{path} {key}");
            let detail: Value = serde_json::from_str(&refused.body).unwrap();
            assert!(detail["detail"].as_str().unwrap().contains("Unauthorized"), "{detail}");
        }
    }
    let unknown = server.post("/nowhere", KEY, &[], &call);
    assert_eq!(unknown.status, 404);
    serde_json::from_str::<Value>(&unknown.body).unwrap();
    let foreign = server.post("/mcp", KEY, &[("Origin", "http://evil.example")], &call);
    assert_eq!(foreign.status, 403);
    let own = format!("http://{}", server.address.replace("127.0.0.1", "localhost"));
    assert_ne!(server.post("/mcp", KEY, &[("Origin", &own)], &call).status, 403);
}

#[test]
fn a_foreign_host_name_is_refused_until_the_operator_names_it() {
    let fixture = Fixture::new("//- a\n");
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string();
    let ask = |server: &Http| {
        let mut stream = TcpStream::connect(&server.address).unwrap();
        let request = format!(
            "POST /mcp HTTP/1.0\r\nHost: box.example.net\r\nAuthorization: Bearer {KEY}\r\nContent-Length: {}\r\n\r\n{call}",
            call.len()
        );
        stream.write_all(request.as_bytes()).unwrap();
        receive(stream).status
    };
    assert_eq!(ask(&Http::start(&fixture)), 403);
    for named in ["box.example.net", "other.example.net, *"] {
        let server = Http::with(&fixture, &["--allow-host", named], &[("MCP_API_KEY", KEY)]);
        assert_ne!(ask(&server), 403, "{named}");
        let origin = [("Origin", "http://evil.example")];
        assert_eq!(server.post("/mcp", KEY, &origin, &call).status, 403, "{named}");
    }
}

#[test]
fn p12_l3_tools_work_in_both_lifecycles() {
    let fixture = Fixture::new("//- a.txt\none\n");
    let server = Http::start(&fixture);
    let wrote =
        server.call(KEY, "write_file", &json!({"filepath": "b.txt", "content": "same\ntext\n"}));
    assert!(text(&wrote).contains("Successfully wrote"), "{wrote}");
    assert_eq!(text(&server.call(KEY, "read_file", &json!({"filepath": "b.txt"}))), "same\ntext\n");

    let id = server.session(KEY);
    let session = [("Mcp-Session-Id", id.as_str()), ("Mcp-Protocol-Version", "2025-11-25")];
    let list = json!({"jsonrpc": "2.0", "id": 5, "method": "tools/call",
        "params": {"name": "list_directory", "arguments": {"path": "."}}});
    let listed = server.post("/mcp", KEY, &session, &list.to_string()).answer(5);
    assert_eq!(listed["result"]["isError"], false);
    assert_eq!(
        text(&listed["result"]).lines().take(2).collect::<Vec<_>>(),
        ["[F] a.txt", "[F] b.txt"]
    );
}

#[test]
fn x26_what_cannot_be_read_is_answered_under_its_id() {
    let fixture = Fixture::new("//- a\n");
    let server = Http::start(&fixture);
    let ask = |method: &str, content: &str| {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":8,"method":"{method}","params":{{"name":"write_file","arguments":{{"filepath":"b","content":"{content}"}}}}}}"#
        );
        server.post("/mcp", KEY, &[], &body)
    };
    let surrogate = ask("tools/call", "\\ud800").answer(8);
    assert_eq!(kind(&surrogate["result"]), "invalid_args", "{surrogate}");
    let over = ask("tools/call", &"y".repeat(33 << 20)).answer(8);
    assert_eq!(kind(&over["result"]), "too_large", "{over}");
    let other = ask("ping", "\\ud800");
    assert_eq!((other.status, &other.answer(8)["error"]["code"]), (400, &json!(-32600)));
    for (body, why) in [
        ("no JSON at all", "cannot be read"),
        ("", "cannot be read"),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, "one message a request"),
    ] {
        let refused = server.post("/mcp", KEY, &[], body);
        assert_eq!(refused.status, 400, "{refused:?}");
        let detail = refused.messages()[0]["detail"].as_str().unwrap().to_owned();
        assert!(detail.starts_with("Bad Request") && detail.contains(why), "{detail}");
    }
    assert!(!fixture.exists("b"));
}

fn table(fixture: &Fixture, rows: &[(&str, &Path)]) -> String {
    let rows: Vec<_> = rows
        .iter()
        .map(|(name, place)| {
            format!(
                "[[client]]\nname = '{name}'\nkey = 'key of {name}'\nworkspace = '{}'\n",
                place.display()
            )
        })
        .collect();
    let path = fixture.base().join("keys.toml");
    std::fs::write(&path, rows.concat()).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn two_clients_never_meet() {
    let fixture = Fixture::new("//- a/mine.txt\nof a\n//- b/mine.txt\nof b\n");
    let (a, b) = (fixture.root().join("a"), fixture.root().join("b"));
    let keys = table(&fixture, &[("a", &a), ("b", &b)]);
    let server = Http::with(&fixture, &["--api-key-file", &keys], &[]);
    let (a, b) = ("key of a", "key of b");
    let read = json!({"filepath": "mine.txt"});
    assert_eq!(text(&server.call(a, "read_file", &read)), "of a\n");
    assert_eq!(text(&server.call(b, "read_file", &read)), "of b\n");
    // Handles of one are no handles of the other: outputs, jobs, sandboxes, sessions.
    let ran =
        server.call(a, "run_bash", &json!({"command": "head -c 90000 /dev/urandom | base64"}));
    let output = ran["_meta"][FACTS]["output_id"].clone();
    assert!(output.is_string(), "{ran}");
    let job = server.call(a, "run_bash", &json!({"command": "sleep 40", "background": true}));
    let job = job["_meta"][FACTS]["job_id"].clone();
    let sandbox = server.call(a, "initialize_sandbox", &json!({}));
    let sandbox = sandbox["_meta"][FACTS]["sandbox_id"].clone();
    for (tool, arguments) in [
        ("read_output", json!({"output_id": output})),
        ("read_output", json!({"output_id": job})),
        ("stop_job", json!({"job_id": job})),
        ("execute_code", json!({"code": "1", "sandbox_id": sandbox})),
        ("stop_sandbox", json!({"sandbox_id": sandbox})),
    ] {
        assert_eq!(kind(&server.call(b, tool, &arguments)), "unknown_id", "{tool}");
    }
    for (tool, arguments) in [
        ("read_output", json!({"output_id": output, "limit": 1})),
        ("stop_job", json!({"job_id": job})),
        ("stop_sandbox", json!({"sandbox_id": sandbox})),
    ] {
        assert_eq!(kind(&server.call(a, tool, &arguments)), "", "{tool}");
    }
    let session = server.session(a);
    let list = json!({"jsonrpc": "2.0", "id": 5, "method": "tools/list"}).to_string();
    assert_eq!(server.post("/mcp", b, &[("Mcp-Session-Id", &session)], &list).status, 404);
    // Commands neither.
    let seen = server.call(b, "run_bash", &json!({"command": "cat ../a/mine.txt; ls ..; ls /tmp"}));
    assert!(!text(&seen).contains("of a"), "{seen}");
    let log = std::fs::read_to_string(fixture.base().join("state/audit.jsonl")).unwrap();
    assert!(log.contains("\"client\":\"a\"") && log.contains("\"client\":\"b\""));
}

#[test]
fn workspaces_that_meet_are_refused_at_the_start() {
    let fixture = Fixture::new("//- a/b/mine.txt\nx\n");
    let a = fixture.root().join("a");
    for other in [a.join("b"), a.clone(), fixture.root()] {
        let keys = table(&fixture, &[("one", &a), ("two", &other)]);
        let output = command(&fixture, &["--api-key-file", &keys], &[]).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(error.contains("'one' and 'two' meet"), "{error}");
    }
}

#[test]
fn a_long_call_tells_its_progress_and_ends_with_its_stream() {
    let fixture = Fixture::new("//- a\n");
    let server = Http::start(&fixture);
    let long = json!({"command": "echo started; exec -a http-long-call sleep 51"});
    let mut stream = server.begin(KEY, "run_bash", &long, &json!({"progressToken": "p"}));
    let mut beat = String::new();
    let mut lines = BufReader::new(stream.try_clone().unwrap());
    while !beat.contains("notifications/progress") {
        beat.clear();
        assert!(lines.read_line(&mut beat).unwrap() > 0, "no heartbeat");
    }
    assert!(beat.contains("started"), "{beat}");
    assert!(is_running("http-long-call"));
    stream.flush().unwrap();
    stream.shutdown(Shutdown::Both).unwrap();
    drop((stream, lines));
    within(Duration::from_secs(5), "the command outlives its caller", || {
        !is_running("http-long-call")
    });
}

#[test]
fn a_stop_ends_what_runs_and_answers_who_waits() {
    let fixture = Fixture::new("//- a\n");
    let mut server = Http::start(&fixture);
    let call = json!({"command": "exec -a http-stopped-call sleep 53"});
    let stream = server.begin(KEY, "run_bash", &call, &json!({}));
    within(PATIENCE, "it does not run", || is_running("http-stopped-call"));
    server.terminate();
    let answer = receive(stream).answer(1);
    assert_eq!(kind(&answer["result"]), "cancelled", "{answer}");
    within(Duration::from_secs(4), "the server does not end", || {
        server.child.try_wait().unwrap().is_some_and(|status| status.success())
    });
    assert!(!is_running("http-stopped-call"));
}

#[test]
fn more_requests_at_once_than_a_client_may_have_are_told_so() {
    let fixture = Fixture::new("//- a\n");
    let server = Http::start(&fixture);
    // Each waits for its body. A few more than there are places, since what asks below takes one for a moment.
    let waiting: Vec<_> = (0..140)
        .map(|_| {
            let mut stream = TcpStream::connect(&server.address).unwrap();
            let head = format!(
                "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {KEY}\r\nContent-Type: application/json\r\n\
                 Accept: application/json, text/event-stream\r\nContent-Length: 9\r\n\r\n"
            );
            stream.write_all(head.as_bytes()).unwrap();
            stream
        })
        .collect();
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string();
    within(PATIENCE, "there is no limit", || server.post("/mcp", KEY, &[], &ping).status == 429);
    drop(waiting);
    within(PATIENCE, "places are not given back", || {
        server.post("/mcp", KEY, &[], &ping).status != 429
    });
}

/// `HTTP_CALLS` raises the number of calls.
#[test]
fn twenty_clients_with_mixed_calls_are_all_answered_and_none_sees_another() {
    const CLIENTS: usize = 20;
    let calls: usize =
        std::env::var("HTTP_CALLS").ok().and_then(|calls| calls.parse().ok()).unwrap_or(10_000);
    let files: Vec<_> =
        (0..CLIENTS).map(|client| format!("//- c{client}/mine.txt\nCANARY-{client}-\n")).collect();
    let fixture = Fixture::new(&files.concat());
    let names: Vec<_> = (0..CLIENTS).map(|client| format!("c{client}")).collect();
    let places: Vec<_> = names.iter().map(|name| fixture.root().join(name)).collect();
    let rows: Vec<_> =
        names.iter().zip(&places).map(|(name, place)| (name.as_str(), place.as_path())).collect();
    let keys = table(&fixture, &rows);
    let server = Http::with(&fixture, &["--api-key-file", &keys], &[]);
    let half = |from: usize| {
        std::thread::scope(|scope| {
            let mut running = BTreeMap::new();
            for (client, name) in names.iter().enumerate() {
                let server = &server;
                let work = move || {
                    let key = format!("key of {name}");
                    let own = format!("CANARY-{client}-");
                    for call in (from..from + calls / 2).filter(|call| call % CLIENTS == client) {
                        let (tool, arguments) = match call / CLIENTS % 20 {
                            0 => ("run_bash", json!({"command": "cat *; ls /tmp; ls .."})),
                            1..=4 => (
                                "write_file",
                                json!({"filepath": format!("{}.txt", call % 7), "content": own, "create_only": false}),
                            ),
                            5..=8 => ("search_content", json!({"pattern": "CANARY"})),
                            9..=11 => ("list_directory", json!({})),
                            12 => ("read_file", json!({"filepath": "../c0/mine.txt"})),
                            13 => (
                                "search_and_replace",
                                json!({"filepath": "mine.txt", "edits": [{"old": own, "new": own}]}),
                            ),
                            _ => ("read_file", json!({"filepath": "mine.txt"})),
                        };
                        let result = server.call(&key, tool, &arguments);
                        let seen = text(&result);
                        let others = seen.matches("CANARY-").count() - seen.matches(&own).count();
                        assert_eq!(others, 0, "{name} sees another's: {seen}");
                    }
                };
                running.insert(name, scope.spawn(work));
            }
            for (name, thread) in running {
                thread.join().unwrap_or_else(|_| panic!("{name} failed"));
            }
        });
        server.resident_kib()
    };
    let (first, second) = (half(0), half(calls / 2));
    assert!(second < first + 8 * 1024, "memory grows: {first} KiB, then {second} KiB");
}
