//! The real binary over stdio: handshake, bad input, ends. Every well-formed request gets exactly one answer.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::Fixture;

use crate::harness::{Binary, Session};

const SIX: [&str; 6] = [
    "read_file",
    "write_file",
    "list_directory",
    "search_workspace",
    "search_and_replace",
    "run_bash",
];

#[test]
fn p1_handshake_with_2024_11_05_then_tools_list() {
    let fixture = Fixture::new("//- a\n");
    let mut server = Binary::start(&fixture, &[], &[]);
    let answer = server.hello("2024-11-05");
    assert_eq!(answer["result"]["protocolVersion"], "2024-11-05");
    assert_eq!(answer["result"]["serverInfo"]["name"], "agent-workspace-mcp");
    let list = server.request(1, "tools/list", json!({}));
    let names: Vec<_> =
        list["result"]["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
    for name in SIX {
        assert!(names.contains(&&json!(name)), "{name}: {names:?}");
    }
}

#[test]
fn p2_annotations() {
    let session = Session::new("//- a\n");
    for tool in session.tools() {
        let hints = tool.annotations.clone().unwrap();
        let changes = [
            "write_file",
            "search_and_replace",
            "run_bash",
            "stop_job",
            "initialize_sandbox",
            "execute_code",
            "stop_sandbox",
        ];
        let reads = !changes.contains(&tool.name.as_ref());
        assert_eq!(hints.read_only_hint, Some(reads), "{}", tool.name);
        assert_eq!(hints.destructive_hint, Some(!reads), "{}", tool.name);
        assert!(hints.idempotent_hint.is_some() && hints.open_world_hint.is_some());
        assert!(tool.title.is_some() && tool.description.is_some() && tool.output_schema.is_none());
    }
}

#[test]
fn schemas_hold_nothing_that_a_client_breaks_on() {
    fn check(schema: &Value, place: &str) {
        let object = schema.as_object().unwrap_or_else(|| panic!("{place}: not an object"));
        for banned in
            ["$ref", "$defs", "$schema", "anyOf", "oneOf", "allOf", "format", "default", "const"]
        {
            assert!(!object.contains_key(banned), "{place}: {banned}");
        }
        assert!(object["type"].is_string(), "{place}: {:?}", object.get("type"));
        if object["type"] == "object" {
            assert_eq!(object["additionalProperties"], false, "{place}");
            for (name, property) in object["properties"].as_object().unwrap() {
                assert!(property["description"].is_string(), "{place}.{name}");
                check(property, &format!("{place}.{name}"));
            }
        }
        if object["type"] == "array" {
            check(&object["items"], &format!("{place}[]"));
        }
    }
    for tool in Session::new("//- a\n").tools() {
        check(&Value::Object((*tool.input_schema).clone()), &tool.name);
    }
}

#[test]
fn the_list_is_the_same_every_time() {
    let fixture = Fixture::new("//- a\n");
    let lists: Vec<_> = (0..2)
        .map(|_| Binary::connected(&fixture).request(1, "tools/list", json!({})).to_string())
        .collect();
    assert_eq!(lists[0], lists[1]);
}

#[test]
fn a_read_only_server_offers_and_runs_the_readers_alone() {
    let fixture = Fixture::new("//- a\n");
    let mut server = Binary::start(&fixture, &["--read-only"], &[]);
    server.hello("2025-11-25");
    let list = server.request(1, "tools/list", json!({})).to_string();
    assert!(list.contains("read_file") && !list.contains("write_file"), "{list}");
    let answer = server.call(2, "write_file", json!({"filepath": "x", "content": "x"}));
    assert_eq!(answer["error"]["code"], -32602);
    assert!(!fixture.exists("x"));
}

#[test]
fn unknown_tools_and_methods_are_protocol_errors_that_say_what_there_is() {
    let fixture = Fixture::new("//- a\n");
    let mut server = Binary::connected(&fixture);
    let answer = server.call(1, "no_such_tool", json!({}));
    assert_eq!(answer["error"]["code"], -32602);
    assert!(answer["error"]["message"].as_str().unwrap().contains("read_file"), "{answer}");
    assert_eq!(server.request(2, "no/such/method", json!({}))["error"]["code"], -32601);
    assert!(server.request(3, "ping", json!({}))["result"].is_object());
}

#[test]
fn bad_arguments_of_a_known_tool_are_results_that_a_model_sees() {
    let fixture = Fixture::new("//- a\n");
    let mut server = Binary::connected(&fixture);
    let bad = [
        json!({"name": "read_file"}),
        json!({"name": "read_file", "arguments": null}),
        json!({"name": "read_file", "arguments": {}}),
        json!({"name": "read_file", "arguments": {"filepath": 5}}),
        json!({"name": "read_file", "arguments": {"filepath": "a", "bogus": 1}}),
        json!({"name": "read_file", "arguments": "text"}),
        json!({"name": "read_file", "arguments": [1]}),
    ];
    for (id, params) in (1..).zip(bad) {
        let answer = server.request(id, "tools/call", params.clone());
        assert_eq!(answer["result"]["isError"], true, "{params}: {answer}");
        let facts = &answer["result"]["_meta"]["agent-workspace/result"];
        assert_eq!(facts["error_kind"], "invalid_args", "{params}: {answer}");
    }
    let text = json!({"name": "read_file", "arguments": "{\"filepath\": \"a\"}"});
    assert_eq!(server.request(50, "tools/call", text)["result"]["isError"], false);
}

#[test]
fn a_line_that_is_not_json_is_passed_over() {
    let fixture = Fixture::new("//- a\n");
    let mut server = Binary::connected(&fixture);
    for line in ["not json", "{", "", "   ", "[]", "\u{0}\u{1}", "{\"jsonrpc\":\"2.0\"}"] {
        server.send(line);
    }
    assert!(server.request(1, "ping", json!({}))["result"].is_object());
}

#[test]
fn each_message_of_a_batch_is_answered_on_a_line_of_its_own() {
    let fixture = Fixture::new("//- a\nhere\n");
    let mut server = Binary::start(&fixture, &[], &[]);
    server.hello("2025-03-26");
    let read = json!({"name": "read_file", "arguments": {"filepath": "a"}});
    let batch = json!([
        {"jsonrpc": "2.0", "id": 1, "method": "ping"},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 99}},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": read},
        {"jsonrpc": "2.0", "id": 3, "method": 5},
        {"jsonrpc": "2.0", "id": 4, "method": "ping"},
    ]);
    server.send(&batch.to_string());
    let answers: Vec<Value> = (0..4).map(|_| server.receive()).collect();
    let of = |id: u64| answers.iter().find(|answer| answer["id"] == id).unwrap();
    assert_eq!(of(2)["result"]["content"][0]["text"], "here\n");
    assert_eq!(of(3)["error"]["code"], -32600, "{answers:?}");
    assert!(of(1)["result"].is_object() && of(4)["result"].is_object(), "{answers:?}");
    // One that is cut off at the end of input is answered as far as it goes.
    server.send_raw(br#"[{"jsonrpc":"2.0","id":5,"method":"ping"},{"jsonrpc":"2.0","id":6,"#);
    server.close_input();
    let last = [server.receive(), server.receive()];
    assert!(last.iter().any(|answer| answer["id"] == 5 && answer["result"].is_object()));
    assert!(last.iter().any(|answer| answer["id"] == 6 && answer["error"]["code"] == -32600));
}

#[test]
fn params_that_a_known_method_does_not_take_are_told_from_an_unknown_method() {
    let fixture = Fixture::new("//- a\n");
    let mut server = Binary::connected(&fixture);
    let known = [
        ("resources/read", json!({})),
        ("prompts/get", json!({"name": 5})),
        ("completion/complete", json!({})),
        ("logging/setLevel", json!({"level": "loud"})),
        ("tools/call", json!({})),
    ];
    for (id, (method, params)) in (1..).zip(known) {
        let answer = server.request(id, method, params);
        assert_eq!(answer["error"]["code"], -32602, "{method}: {answer}");
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains(method), "{message}");
    }
    for (id, list) in (20..).zip(["tools", "prompts", "resources", "resources/templates"]) {
        let method = format!("{list}/list");
        let answer = server.request(id, &method, json!({"cursor": "made-up"}));
        assert_eq!(answer["error"]["code"], -32602, "{method}: {answer}");
        assert!(server.request(id + 10, &method, json!({"cursor": ""}))["result"].is_object());
    }
    assert_eq!(server.request(9, "sampling/createMessage", json!({}))["error"]["code"], -32601);
}

#[test]
fn x26_a_lone_surrogate_is_answered_under_its_id() {
    let fixture = Fixture::new("//- a\n");
    let mut server = Binary::connected(&fixture);
    server.send(
        r#"{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"read_file","arguments":{"filepath":"\ud800"}}}"#,
    );
    let answer = server.receive();
    assert_eq!(
        (&answer["id"], &answer["result"]["isError"]),
        (&json!(9), &json!(true)),
        "{answer}"
    );
    assert!(server.request(10, "ping", json!({}))["result"].is_object());
}

#[test]
fn a_line_of_20_mb_is_read_and_one_over_32_mib_is_answered_as_too_large() {
    let fixture = Fixture::new("//- a\n");
    let mut server = Binary::connected(&fixture);
    for (id, size) in [(1, 20_000_000), (2, 34_000_000)] {
        let content = "x".repeat(size);
        let answer =
            server.call(id, "write_file", json!({"filepath": "big.txt", "content": content}));
        let facts = &answer["result"]["_meta"]["agent-workspace/result"];
        assert_eq!(facts["error_kind"], "too_large", "{size}: {answer}");
    }
    assert!(!fixture.exists("big.txt"));
    assert!(server.request(3, "ping", json!({}))["result"].is_object());
}

#[test]
fn a_slow_call_does_not_hold_up_a_fast_one() {
    let fixture = Fixture::new("//- a\nhere\n");
    let mut server = Binary::connected(&fixture);
    let slow = json!({"name": "run_bash", "arguments": {"command": "sleep 30"}});
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": slow});
    server.send(&request.to_string());
    let answer = server.call(2, "read_file", json!({"filepath": "a"}));
    assert_eq!(answer["result"]["content"][0]["text"], "here\n");
}

#[test]
fn x6_a_cancelled_command_ends_and_is_not_answered() {
    let fixture = Fixture::new("//- a\n");
    let (mut server, sleeps) = sleeping(&fixture, "40.125");
    let cancel =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    server.send(&cancel.to_string());
    wait_until(|| running(&sleeps).is_empty());
    // The next line is the answer to the next request, not to the cancelled one.
    server.send(&json!({"jsonrpc": "2.0", "id": 2, "method": "ping"}).to_string());
    assert_eq!(server.receive()["id"], 2);
}

#[test]
fn x7_the_end_of_input_ends_commands_and_server() {
    let fixture = Fixture::new("//- a\n");
    let (mut server, sleeps) = sleeping(&fixture, "40.250");
    server.close_input();
    let (success, took) = server.ended();
    assert!(success && took < Duration::from_secs(2), "{success} {took:?}");
    assert!(running(&sleeps).is_empty());
}

#[test]
fn a_session_that_never_begins_is_a_clean_end() {
    let fixture = Fixture::new("//- a\n");
    let mut server = Binary::start(&fixture, &[], &[]);
    server.close_input();
    assert!(server.ended().0);
}

#[test]
fn a_client_that_leaves_in_mid_call_leaves_nothing_behind() {
    let fixture = Fixture::new("//- a\n");
    let (mut server, sleeps) = sleeping(&fixture, "40.375");
    // Half a request, then nothing.
    server.send_raw(b"{\"jsonrpc\":\"2.0\",\"id\":2,\"meth");
    server.close_input();
    assert!(server.ended().1 < Duration::from_secs(4));
    assert!(running(&sleeps).is_empty());
}

#[test]
fn sigterm_ends_commands_and_server() {
    let fixture = Fixture::new("//- a\n");
    let (mut server, sleeps) = sleeping(&fixture, "40.500");
    let pid = rustix::process::Pid::from_raw(i32::try_from(server.pid()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert!(server.ended().1 < Duration::from_secs(4));
    assert!(running(&sleeps).is_empty());
}

#[test]
fn x22_an_answer_comes_once() {
    let fixture = Fixture::new("//- a\nonly-once-please\n");
    let mut server = Binary::connected(&fixture);
    let answer = server.call(1, "read_file", json!({"filepath": "a"}));
    assert_eq!(answer.to_string().matches("only-once-please").count(), 1, "{answer}");
}

#[test]
fn x24_the_audit_log_has_a_line_for_each_call_and_no_forged_ones() {
    let fixture = Fixture::new("//- a\n");
    let mut server = Binary::connected(&fixture);
    let forged = "x\n{\"event\":\"call\",\"tool\":\"forged\"}";
    server.call(1, "read_file", json!({"filepath": forged}));
    server.call(2, "write_file", json!({"filepath": "b", "content": "y".repeat(2000)}));
    let log = state_file(&fixture, "audit.jsonl");
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let calls: Vec<_> = lines.iter().filter(|line| line["event"] == "call").collect();
    assert_eq!(calls.len(), 2, "{log}");
    assert_eq!(
        (&calls[0]["tool"], &calls[0]["error_kind"]),
        (&json!("read_file"), &json!("not_found"))
    );
    assert_eq!(calls[1]["outcome"], "ok");
    let content = calls[1]["arguments"]["content"].as_str().unwrap();
    assert!(content.ends_with("… (2000 characters)") && content.len() < 600, "{content}");
}

#[test]
fn a_log_inside_the_workspace_is_refused() {
    let fixture = Fixture::new("//- a\n");
    let place = fixture.root().join("logs");
    let mut server = Binary::start(&fixture, &["--audit-dir", place.to_str().unwrap()], &[]);
    assert!(!server.ended().0);
    assert!(!fixture.exists("logs"));
}

/// A server whose request 1 sleeps so many seconds, and the command line of that sleep. It is seen running first,
/// or its absence afterwards would prove nothing.
fn sleeping(fixture: &Fixture, seconds: &str) -> (Binary, String) {
    let mut server = Binary::connected(fixture);
    let call = json!({"name": "run_bash", "arguments": {"command": format!("sleep {seconds}; :")}});
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call});
    server.send(&request.to_string());
    let sleeps = format!("sleep\0{seconds}\0");
    wait_until(|| !running(&sleeps).is_empty());
    (server, sleeps)
}

/// Processes whose command line holds this text.
fn running(text: &str) -> Vec<String> {
    std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| std::fs::read(entry.ok()?.path().join("cmdline")).ok())
        .map(|line| String::from_utf8_lossy(&line).into_owned())
        .filter(|line| line.contains(text))
        .collect()
}

fn wait_until(condition: impl Fn() -> bool) {
    let started = Instant::now();
    while !condition() {
        assert!(started.elapsed() < crate::harness::PATIENCE, "it never came to be");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn state_file(fixture: &Fixture, name: &str) -> String {
    std::fs::read_to_string(fixture.base().join("state").join(name)).unwrap()
}

#[test]
fn x12_long_work_does_not_hold_up_others() {
    let fixture = Fixture::new("//- a\n");
    // Each takes many times as long as a ping.
    let text = "word another word\n".repeat(400);
    for number in 0..4000 {
        fixture.write(&format!("d{}/{number}.txt", number % 50), text.as_bytes());
    }
    let yaml = "- [one, {two: 3}]\n".repeat(60_000);
    let mut server = Binary::connected(&fixture);
    let calls = [
        ("search_content", json!({"pattern": "(wo?r?d|an?o?ther) [a-z]+ x"})),
        ("write_file", json!({"filepath": "big.yaml", "content": yaml})),
    ];
    for (number, (tool, arguments)) in calls.into_iter().enumerate() {
        let id = 10 * (number as u64 + 1);
        let params = json!({"name": tool, "arguments": arguments});
        let call = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
        server.send(&call.to_string());
        server.send(&json!({"jsonrpc": "2.0", "id": id + 1, "method": "ping"}).to_string());
        assert_eq!(server.receive()["id"], id + 1, "{tool} held up a ping");
        assert_eq!(server.receive()["id"], id);
    }
}
