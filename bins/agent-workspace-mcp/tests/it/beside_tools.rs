//! What a server offers beside its tools: progress, a log for the client, stored outputs as resources, a guide as a
//! prompt, completion, structured answers, and figures from the record.

use std::process::Command;
use std::time::Duration;

use agent_workspace_mcp::reply::FACTS;
use serde_json::{Value, json};
use testkit::Fixture;

use crate::harness::{BINARY, Binary, is_running};

const NOISE: &str = "head -c 90000 /dev/urandom | base64";

/// Sends a call and takes every message up to its answer.
fn messages(server: &mut Binary, id: u64, params: Value) -> Vec<Value> {
    let call = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
    server.send(&call.to_string());
    let mut found = Vec::new();
    loop {
        found.push(server.receive());
        if found.last().is_some_and(|message| message["id"] == id) {
            return found;
        }
    }
}

fn of<'m>(messages: &'m [Value], method: &str) -> Vec<&'m Value> {
    messages.iter().filter(|message| message["method"] == method).map(|it| &it["params"]).collect()
}

#[test]
fn a_long_call_tells_its_last_line_to_who_asked() {
    let fixture = Fixture::new("//- a\n");
    let mut server = Binary::connected(&fixture);
    let arguments = json!({"command": "echo first; echo second; sleep 3"});
    let asked = json!({"name": "run_bash", "arguments": arguments, "_meta": {"progressToken": 9}});
    let found = messages(&mut server, 1, asked);
    let beats = of(&found, "notifications/progress");
    assert!(!beats.is_empty(), "{found:?}");
    assert_eq!(beats[0]["progressToken"], 9);
    assert!(beats[0]["message"].as_str().unwrap().ends_with("s: second"), "{beats:?}");
    let progress: Vec<_> = beats.iter().map(|beat| beat["progress"].as_f64().unwrap()).collect();
    assert!(progress.is_sorted() && progress[0] >= 2.0, "{progress:?}");
    let found = messages(&mut server, 2, json!({"name": "run_bash", "arguments": arguments}));
    assert_eq!(found.len(), 1, "nobody asked: {found:?}");
}

#[test]
fn a_client_hears_of_calls_and_refusals_from_the_level_it_asked_for() {
    let fixture = Fixture::new("//- a\n");
    let mut server = Binary::connected(&fixture);
    let good = json!({"name": "read_file", "arguments": {"filepath": "a"}});
    let bad = json!({"name": "read_file", "arguments": {"filepath": "../x"}});
    let heard = |server: &mut Binary, id, call: &Value| {
        let found = messages(server, id, call.clone());
        of(&found, "notifications/message").into_iter().cloned().collect::<Vec<_>>()
    };
    assert_eq!(heard(&mut server, 1, &bad), Vec::<Value>::new(), "nobody asked");
    assert!(
        server.request(2, "logging/setLevel", json!({"level": "warning"}))["result"].is_object()
    );
    assert_eq!(heard(&mut server, 3, &good), Vec::<Value>::new());
    let told = heard(&mut server, 4, &bad);
    assert_eq!(told[0]["level"], "warning");
    assert_eq!(told[0]["data"]["error_kind"], "outside_workspace");
    server.request(5, "logging/setLevel", json!({"level": "info"}));
    assert_eq!(heard(&mut server, 6, &good)[0]["data"]["outcome"], "ok");
}

#[test]
fn a_sessionless_request_hears_what_it_asks_for_itself() {
    let fixture = Fixture::new("//- a\n");
    let mut server = Binary::start(&fixture, &[], &[]);
    let meta = |level: Option<&str>| {
        let mut meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "0"},
        });
        if let Some(level) = level {
            meta["io.modelcontextprotocol/logLevel"] = level.into();
        }
        meta
    };
    let found = server.request(1, "server/discover", json!({"_meta": meta(None)}));
    assert!(found["result"]["instructions"].as_str().unwrap().contains("workspace"), "{found}");
    let call =
        |level| json!({"name": "read_file", "arguments": {"filepath": "a"}, "_meta": meta(level)});
    assert_eq!(messages(&mut server, 2, call(None)).len(), 1);
    let found = messages(&mut server, 3, call(Some("info")));
    assert_eq!(of(&found, "notifications/message").len(), 1, "{found:?}");
}

#[test]
fn a_stored_output_is_a_resource() {
    let fixture = Fixture::new("//- a\n");
    let mut server = Binary::connected(&fixture);
    let answer = server.call(1, "run_bash", json!({"command": NOISE}));
    let id = answer["result"]["_meta"][FACTS]["output_id"].as_str().unwrap().to_owned();
    let uri = format!("output://{id}");
    let listed = server.request(2, "resources/list", json!({}));
    assert_eq!(listed["result"]["resources"][0]["uri"], uri, "{listed}");
    let text =
        |answer: &Value| answer["result"]["contents"][0]["text"].as_str().unwrap().to_owned();
    let whole = text(&server.request(3, "resources/read", json!({"uri": uri})));
    let stored = server.call(4, "read_output", json!({"output_id": id, "limit": 5000}));
    assert_eq!(whole, stored["result"]["content"][0]["text"].as_str().unwrap());
    let page = text(&server.request(
        5,
        "resources/read",
        json!({"uri": format!("{uri}?offset=3&limit=2")}),
    ));
    assert_eq!(page.lines().collect::<Vec<_>>(), whole.lines().skip(3).take(2).collect::<Vec<_>>());
    for (number, uri) in
        ["output://000000000000", "output://../audit", "file:///etc/passwd", "output://"]
            .iter()
            .enumerate()
    {
        let missing = server.request(10 + number as u64, "resources/read", json!({"uri": uri}));
        assert!(
            missing["error"]["code"].as_i64().is_some_and(|code| [-32002, -32602].contains(&code)),
            "{missing}"
        );
    }
    let argument = json!({"ref": {"type": "ref/resource", "uri": "output://{output_id}{?offset,limit}"},
        "argument": {"name": "output_id", "value": id.split_at(3).0}});
    let completed = server.request(20, "completion/complete", argument);
    assert_eq!(completed["result"]["completion"]["values"], json!([id]));
}

#[test]
fn the_guide_is_the_skill() {
    let fixture = Fixture::new("//- a\n");
    let mut server = Binary::connected(&fixture);
    let listed = server.request(1, "prompts/list", json!({}));
    let name = listed["result"]["prompts"][0]["name"].clone();
    let guide = server.request(2, "prompts/get", json!({"name": name}));
    let guide = guide["result"]["messages"][0]["content"]["text"].as_str().unwrap();
    let skill = concat!(env!("CARGO_MANIFEST_DIR"), "/../../skills/agent-workspace/SKILL.md");
    let skill = std::fs::read_to_string(skill).unwrap();
    let (_, body) = skill.split_once("\n---\n\n").unwrap();
    assert_eq!(body, guide);
    let listed = server.request(3, "tools/list", json!({}));
    for tool in listed["result"]["tools"].as_array().unwrap() {
        let name = tool["name"].as_str().unwrap();
        let is_left_to_its_description =
            ["initialize_sandbox", "list_directory", "stop_sandbox"].contains(&name);
        assert!(guide.contains(name) || is_left_to_its_description, "{name} is not in the guide");
    }
    assert!(server.request(4, "prompts/get", json!({"name": "other"}))["error"].is_object());
}

#[test]
fn a_program_may_have_a_structured_copy() {
    let fixture = Fixture::new("//- a\nhello\n");
    let mut server = Binary::start(&fixture, &["--structured"], &[]);
    server.hello("2025-11-25");
    let read = server.call(1, "read_file", json!({"filepath": "a"}));
    assert_eq!(read["result"]["structuredContent"]["text"], "hello\n");
    assert_eq!(read["result"]["structuredContent"]["total_lines"], 1);
    let ran = server.call(2, "run_bash", json!({"command": NOISE}));
    let content = &ran["result"]["content"];
    let id = ran["result"]["structuredContent"]["output_id"].as_str().unwrap();
    assert_eq!(content[1]["type"], "resource_link", "{content}");
    assert_eq!(content[1]["uri"], format!("output://{id}"));
}

#[test]
fn stats_tells_what_was_saved_and_whether_the_log_is_whole() {
    let fixture = Fixture::new("//- a\n");
    let mut server = Binary::connected(&fixture);
    server.call(1, "run_bash", json!({"command": "seq 1 5000; export API_TOKEN=abcdef123456"}));
    server.call(2, "read_file", json!({"filepath": "../x"}));
    drop(server);
    let stats = |arguments: &[&str]| {
        let output = Command::new(BINARY)
            .arg("stats")
            .args(arguments)
            .env("AUDIT_DIR", fixture.base().join("state"))
            .output()
            .unwrap();
        (output.status.success(), String::from_utf8(output.stdout).unwrap())
    };
    let (fine, chart) = stats(&[]);
    assert!(
        fine && chart.contains("tokens saved") && chart.contains("outside_workspace"),
        "{chart}"
    );
    assert!(!chart.contains("abcdef123456"), "{chart}");
    let (_, figures) = stats(&["--json"]);
    let figures: Value = serde_json::from_str(&figures).unwrap();
    assert_eq!(figures["tools"]["run_bash"]["calls"], 1);
    assert_eq!(figures["refusals"], 1);
    assert!(figures["tools"]["run_bash"]["raw_tokens"].as_u64() > Some(5000), "{figures}");
    let (fine, page) = stats(&["--html"]);
    assert!(fine && page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"), "{page}");
    assert!(page.contains("exit code 0") && page.contains("outside_workspace"), "{page}");
    assert!(page.contains("seq 1 5000") && !page.contains("abcdef123456"), "{page}");
    let (fine, verdict) = stats(&["--verify-audit"]);
    assert!(fine && verdict.contains("each as it was written"), "{verdict}");
    let log = fixture.base().join("state/audit.jsonl");
    let text = std::fs::read_to_string(&log).unwrap();
    assert!(!text.contains("abcdef123456"), "{text}");
    std::fs::write(&log, text.replacen("read_file", "read_fine", 1)).unwrap();
    let (fine, verdict) = stats(&["--verify-audit"]);
    assert!(!fine && verdict.contains("altered"), "{verdict}");
}

#[test]
fn more_calls_than_may_run_wait_for_their_turn() {
    let fixture = Fixture::new("//- a\n");
    let mut server = Binary::start(&fixture, &["--max-concurrent-calls", "1"], &[]);
    server.hello("2025-11-25");
    let slow =
        json!({"name": "run_bash", "arguments": {"command": "exec -a one-call-at-a-time sleep 2"}});
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": slow});
    server.send(&call.to_string());
    while !is_running("one-call-at-a-time") {
        std::thread::sleep(Duration::from_millis(5));
    }
    let quick = json!({"name": "read_file", "arguments": {"filepath": "a"}});
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": quick});
    server.send(&call.to_string());
    let order = [server.receive()["id"].clone(), server.receive()["id"].clone()];
    assert_eq!(order, [json!(1), json!(2)]);
    assert!(server.receive_within(Duration::from_millis(50)).is_none());
}
