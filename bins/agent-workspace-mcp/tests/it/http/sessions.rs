//! Sessions of the older protocol versions: what a call in one outlives, and what it does not.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use serde_json::json;
use testkit::Fixture;

use super::{Http, KEY, receive, text, within};
use crate::harness::{PATIENCE, is_running};

#[test]
fn a_session_cancels_a_call_by_its_id() {
    let fixture = Fixture::new("//- a\n");
    let server = Http::start(&fixture);
    let id = server.session(KEY);
    let session = [("Mcp-Session-Id", id.as_str()), ("Mcp-Protocol-Version", "2025-11-25")];
    let call = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params":
        {"name": "run_bash", "arguments": {"command": "exec -a http-cancelled-call sleep 52"}}});
    let _stream = server.send("/mcp", KEY, &session, &call.to_string());
    within(PATIENCE, "it does not run", || is_running("http-cancelled-call"));
    let cancel =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}});
    assert_eq!(server.post("/mcp", KEY, &session, &cancel.to_string()).status, 202);
    within(Duration::from_secs(2), "it runs on", || !is_running("http-cancelled-call"));
}

#[test]
fn an_answer_that_was_ready_without_a_connection_comes_with_the_next_one() {
    let fixture = Fixture::new("//- a\n");
    let server = Http::start(&fixture);
    let id = server.session(KEY);
    let session = [("Mcp-Session-Id", id.as_str()), ("Mcp-Protocol-Version", "2025-11-25")];
    for (number, ready_before) in [(7, true), (8, false)] {
        let gate = format!("gate{number}");
        let command = format!("echo late; until [ -e {gate} ]; do sleep 0.02; done");
        let call = json!({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params":
            {"name": "run_bash", "arguments": {"command": command}}});
        let stream = server.send("/mcp", KEY, &session, &call.to_string());
        let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map(Result::unwrap);
        let last = lines.find_map(|line| line.strip_prefix("id: ").map(str::to_owned)).unwrap();
        stream.shutdown(Shutdown::Both).unwrap();
        drop((stream, lines));
        let open = || fixture.write(&gate, b"");
        if ready_before {
            open();
            let log = fixture.base().join("state/audit.jsonl");
            within(PATIENCE, "the call does not end", || {
                std::fs::read_to_string(&log).unwrap_or_default().contains("until [ -e gate7 ]")
            });
        }
        let mut again = TcpStream::connect(&server.address).unwrap();
        again.set_read_timeout(Some(PATIENCE)).unwrap();
        let request = format!(
            "GET /mcp HTTP/1.0\r\nHost: {}\r\nAccept: text/event-stream\r\nAuthorization: Bearer {KEY}\r\n\
             Mcp-Session-Id: {id}\r\nLast-Event-ID: {last}\r\n\r\n",
            server.address
        );
        again.write_all(request.as_bytes()).unwrap();
        if !ready_before {
            open();
        }
        let answer = receive(again).answer(number);
        assert!(text(&answer["result"]).contains("late"), "{answer}");
    }
}

#[test]
fn a_session_that_is_ended_takes_its_commands_along() {
    let fixture = Fixture::new("//- a\n");
    let server = Http::start(&fixture);
    let id = server.session(KEY);
    let session = [("Mcp-Session-Id", id.as_str()), ("Mcp-Protocol-Version", "2025-11-25")];
    let call = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params":
        {"name": "run_bash", "arguments": {"command": "exec -a http-deleted-call sleep 53"}}});
    let _stream = server.send("/mcp", KEY, &session, &call.to_string());
    within(PATIENCE, "it does not run", || is_running("http-deleted-call"));
    let mut delete = TcpStream::connect(&server.address).unwrap();
    let request = format!(
        "DELETE /mcp HTTP/1.0\r\nHost: {}\r\nAuthorization: Bearer {KEY}\r\nMcp-Session-Id: {id}\r\n\r\n",
        server.address
    );
    delete.write_all(request.as_bytes()).unwrap();
    assert_eq!(receive(delete).status, 202);
    within(Duration::from_secs(2), "it runs on", || !is_running("http-deleted-call"));
    let ping = json!({"jsonrpc": "2.0", "id": 8, "method": "ping"}).to_string();
    assert_eq!(server.post("/mcp", KEY, &session, &ping).status, 404);
}
