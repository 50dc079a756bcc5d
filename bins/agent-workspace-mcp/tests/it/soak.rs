//! Many calls and many commands at once, of which many do not end by themselves: every call answered, nothing left.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::Fixture;

use crate::harness::{Binary, is_running};

const COMMANDS: u64 = 1000;
const AT_ONCE: u64 = 50;
/// What a server may keep of having been busy.
const GROWTH_KIB: u64 = 16 * 1024;

/// What the kernel says of the server: open descriptors, resident KiB, zombie children.
fn state(server: &Binary) -> (usize, u64, usize) {
    let pid = server.pid().to_string();
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    let resident = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    let zombies = std::fs::read_dir("/proc").unwrap().flatten().filter(|entry| {
        let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let after_name =
            stat.rsplit_once(") ").map(|(_, rest)| rest.to_owned()).unwrap_or_default();
        after_name.starts_with(&format!("Z {pid} "))
    });
    let zombies = zombies.count();
    let descriptors = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count();
    (descriptors, resident, zombies)
}

/// Whether the server still closes what held missing names, which it does behind its answers' back.
fn is_closing(server: &Binary) -> bool {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", server.pid())).unwrap().flatten();
    let mut names = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok());
    names.any(|name| name.trim_end() == "placeholders")
}

/// Sends `count` calls, [`AT_ONCE`] at a time, and waits for every answer that is due.
fn run(server: &mut Binary, first: u64, count: u64, mark: &str) {
    let (mut next, end) = (first, first + count);
    let mut open: BTreeSet<u64> = BTreeSet::new();
    let mut cancelled: BTreeSet<u64> = BTreeSet::new();
    while next < end || !open.is_empty() {
        while next < end && (open.len() as u64) < AT_ONCE {
            // Of each six: four end by themselves, one runs into its timeout, one is cancelled.
            let arguments = match next % 6 {
                0 => {
                    json!({"command": format!("setsid sleep 300 & exec -a {mark} sleep 300"), "timeout": 1})
                }
                1 => json!({"command": format!("exec -a {mark} sleep 300")}),
                _ => json!({"command": format!("echo {next}; (exec -a {mark} sleep 300) &")}),
            };
            let params = json!({"name": "run_bash", "arguments": arguments});
            let call =
                json!({"jsonrpc": "2.0", "id": next, "method": "tools/call", "params": params});
            server.send(&call.to_string());
            if next % 6 == 1 {
                let params = json!({"requestId": next, "reason": "enough"});
                let notice = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
                server.send(&notice.to_string());
                cancelled.insert(next);
            } else {
                open.insert(next);
            }
            next += 1;
        }
        let answer = server.receive();
        let id = answer["id"].as_u64().unwrap();
        assert!(open.remove(&id) || cancelled.remove(&id), "answered twice: {answer}");
        check(id, &answer);
    }
}

fn check(id: u64, answer: &Value) {
    let facts = &answer["result"]["_meta"]["agent-workspace/result"];
    match id % 6 {
        0 => assert_eq!(facts["timed_out"], true, "{answer}"),
        // It may have been answered before the cancellation came.
        1 => {}
        _ => {
            let text = answer["result"]["content"][0]["text"].as_str().unwrap();
            assert!(text.starts_with(&format!("[Exit code: 0]\n{id}\n")), "{answer}");
        }
    }
}

#[test]
fn a_thousand_commands_leave_nothing_behind() {
    let fixture = Fixture::new("//- a\n");
    let mark = format!("mk-soak-{}", std::process::id());
    let mut server = Binary::start(&fixture, &[], &[("LOG_LEVEL", "error")]);
    server.hello("2025-11-25");
    // Threads, buffers and caches are there after the first of them.
    run(&mut server, 1, 2 * AT_ONCE, &mark);
    let settled = |server: &mut Binary, most: usize| {
        let give_up = Instant::now() + Duration::from_secs(30);
        loop {
            // Cancelled calls have no answer to wait for.
            let pong = server.request(u64::from(u32::MAX), "ping", json!({}));
            assert!(pong["result"].is_object());
            let (survivors, closing) = (is_running(&mark), is_closing(server));
            let (descriptors, resident, zombies) = state(server);
            if !survivors && !closing && zombies == 0 && descriptors <= most {
                return (descriptors, resident);
            }
            assert!(
                Instant::now() < give_up,
                "survivors: {survivors}, zombies: {zombies}, closing: {closing}, \
                 {descriptors} descriptors of {most}"
            );
        }
    };
    let (descriptors, resident) = settled(&mut server, usize::MAX);
    run(&mut server, 1000, COMMANDS, &mark);
    let (_, resident_after) = settled(&mut server, descriptors);
    assert!(resident_after <= resident + GROWTH_KIB, "{resident} KiB, then {resident_after}");
}

/// The call number `id` of a mixed lot, and what its answer must begin with.
fn mixed(id: u64) -> (&'static str, Value, &'static str) {
    let file = format!("f{}.txt", id % 7);
    match id % 10 {
        0..=2 => ("read_file", json!({"filepath": "stays.txt"}), "line one"),
        3 => ("list_directory", json!({}), "[D] "),
        4 => ("search_workspace", json!({"pattern": "**/*.txt"}), "Found"),
        5 => ("search_content", json!({"pattern": "line t[wh]"}), "Found 2 matches"),
        6 => (
            "write_file",
            json!({"filepath": file, "content": format!("{id}\n"), "create_only": false}),
            "Successfully wrote",
        ),
        7 => {
            let edits = json!([{"old": "line two", "new": "line 2"}]);
            let edit = json!({"filepath": "stays.txt", "edits": edits, "dry_run": true});
            ("search_and_replace", edit, "DRY RUN")
        }
        8 => ("read_file", json!({"filepath": "../outside"}), ""),
        _ => ("run_bash", json!({"command": format!("echo {id}")}), "[Exit code: 0]"),
    }
}

#[test]
fn ten_thousand_mixed_calls_leave_memory_flat() {
    const CALLS: u64 = 10_000;
    const WINDOW: u64 = 16;
    let fixture = Fixture::new("//- stays.txt\nline one\nline two\nline three\n//- d/e.txt\n");
    let mut server = Binary::start(&fixture, &[], &[("LOG_LEVEL", "error")]);
    server.hello("2025-11-25");
    let (mut next, mut answered, mut half) = (1, 0, 0);
    let mut open = BTreeSet::new();
    while answered < CALLS {
        while next <= CALLS && (open.len() as u64) < WINDOW {
            let (tool, arguments, _) = mixed(next);
            let params = json!({"name": tool, "arguments": arguments});
            let call =
                json!({"jsonrpc": "2.0", "id": next, "method": "tools/call", "params": params});
            server.send(&call.to_string());
            open.insert(next);
            next += 1;
        }
        let answer = server.receive();
        let id = answer["id"].as_u64().unwrap();
        assert!(open.remove(&id), "answered twice: {answer}");
        let (_, _, begins) = mixed(id);
        let text = answer["result"]["content"][0]["text"].as_str().unwrap();
        assert!(text.starts_with(begins), "{answer}");
        let facts = &answer["result"]["_meta"]["agent-workspace/result"];
        let refused = (id % 10 == 8).then_some("outside_workspace");
        assert_eq!(facts["error_kind"].as_str(), refused, "{answer}");
        answered += 1;
        if answered == CALLS / 2 {
            half = state(&server).1;
        }
    }
    let (_, resident, zombies) = state(&server);
    assert_eq!(zombies, 0);
    assert!(resident <= half + GROWTH_KIB / 2, "{half} KiB after half, {resident} KiB in the end");
}
