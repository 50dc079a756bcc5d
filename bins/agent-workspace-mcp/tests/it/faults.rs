//! What `docs/reliability.md` promises for the day when something fails: each promise is a test here or names another.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::{Fixture, Missing, Snapshot, require};

use crate::harness::{BINARY, Binary, PATIENCE, is_running};

/// What a call gave: its text and its facts.
fn parts(answer: &Value) -> (&str, &Value) {
    let result = &answer["result"];
    (result["content"][0]["text"].as_str().unwrap(), &result["_meta"]["agent-workspace/result"])
}

/// A call that must succeed; its text.
#[track_caller]
fn ok(server: &mut Binary, id: u64, tool: &str, arguments: Value) -> String {
    let answer = server.call(id, tool, arguments);
    assert_ne!(answer["result"]["isError"], true, "{answer}");
    parts(&answer).0.to_owned()
}

/// A call that must be refused as `kind`; its text.
#[track_caller]
fn refused(server: &mut Binary, id: u64, tool: &str, arguments: Value, kind: &str) -> String {
    let answer = server.call(id, tool, arguments);
    let (text, facts) = parts(&answer);
    assert_eq!(facts["error_kind"], kind, "{answer}");
    text.to_owned()
}

fn send(server: &mut Binary, id: u64, tool: &str, arguments: &Value) {
    let params = json!({"name": tool, "arguments": arguments});
    let call = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
    server.send(&call.to_string());
}

#[track_caller]
fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let started = Instant::now();
    while !condition() {
        assert!(started.elapsed() < PATIENCE, "{what}: it never came to be");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn audit_is_whole(fixture: &Fixture) -> Output {
    Command::new(BINARY)
        .args(["stats", "--verify-audit"])
        .env("AUDIT_DIR", fixture.base().join("state"))
        .output()
        .unwrap()
}

/// Milliseconds after a call was sent: some are before it began, some while it works, some after it.
const MOMENTS: [u64; 5] = [0, 2, 5, 12, 40];

#[test]
fn a_server_killed_in_any_tool_leaves_the_old_or_the_new_and_no_process() {
    const OLD: &str = "one old line of a file\n";
    const NEW: &str = "one new line of a file\n";
    let (old, new) = (OLD.repeat(20_000), NEW.repeat(20_000));
    let mark = format!("mk-killed-{}", std::process::id());
    let sleeps = format!("setsid bash -c 'exec -a {mark} sleep 300' & exec -a {mark} sleep 300");
    let edit = json!([{"old": OLD, "new": NEW, "replace_all": true}]);
    let tools = [
        ("read_file", json!({"filepath": "f.txt", "limit": 20_000})),
        ("write_file", json!({"filepath": "f.txt", "content": new, "create_only": false})),
        ("list_directory", json!({})),
        ("search_workspace", json!({"pattern": "*.txt"})),
        ("search_content", json!({"pattern": "old"})),
        ("search_and_replace", json!({"filepath": "f.txt", "edits": edit})),
        ("run_bash", json!({"command": sleeps})),
        ("read_output", json!({"output_id": "0123456789ab"})),
        ("stop_job", json!({"job_id": "job-1"})),
        ("initialize_sandbox", json!({})),
        ("execute_code", json!({"language": "bash", "code": sleeps})),
        ("stop_sandbox", json!({})),
    ];
    let fixture = Fixture::new("//- g.txt\nuntouched\n");
    let place = fixture.base().join("tmp");
    std::fs::create_dir(&place).unwrap();
    let start = || {
        let mut server = Binary::start(&fixture, &[], &[("TMPDIR", place.to_str().unwrap())]);
        server.hello("2025-11-25");
        server
    };
    let mut listed = start();
    let answer = listed.request(1, "tools/list", json!({}));
    let mut names: Vec<_> =
        answer["result"]["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
    names.sort_by_key(ToString::to_string);
    let mut tried: Vec<_> = tools.iter().map(|(name, _)| *name).collect();
    tried.sort_unstable();
    assert_eq!(names, tried, "a tool is not tried");
    drop(listed);

    for (tool, arguments) in &tools {
        for moment in MOMENTS {
            fixture.write("f.txt", old.as_bytes());
            let mut server = start();
            send(&mut server, 1, tool, arguments);
            std::thread::sleep(Duration::from_millis(moment));
            // By SIGKILL.
            drop(server);
            wait_until(&format!("{tool} after {moment} ms"), || !is_running(&mark));
            let text = fixture.read("f.txt");
            assert!(text == old || text == new, "{tool} after {moment} ms: a file in between");
        }
    }
    // The next server clears away what could not be cleared.
    let mut next = start();
    assert!(ok(&mut next, 1, "read_file", json!({"filepath": "g.txt"})).starts_with("untouched"));
    let here = Snapshot::of(&fixture.root());
    let names: Vec<_> = here.names().filter(|name| !name.is_empty()).collect();
    assert_eq!(names, ["f.txt", "g.txt"]);
    next.close_input();
    assert!(next.ended().0);
    let left: Vec<_> = std::fs::read_dir(&place).unwrap().flatten().collect();
    assert!(left.is_empty(), "{left:?}");
    let verdict = audit_is_whole(&fixture);
    assert!(verdict.status.success(), "{}", String::from_utf8_lossy(&verdict.stdout));
}

/// A server in a mount namespace of its own, in which a shell line ran first.
fn after_mounting(fixture: &Fixture, line: &str) -> Result<Binary, Missing> {
    let unshare = |script: &str| {
        let mut command = Command::new("unshare");
        if !rustix::process::geteuid().is_root() {
            command.arg("--map-root-user");
        }
        command.args(["--mount", "sh", "-ec", script, "sh"]).arg(fixture.root());
        command
    };
    match unshare(line).output() {
        Ok(output) if output.status.success() => {}
        other => return Err(Missing(format!("mounts of its own: {other:?}"))),
    }
    let mut command = unshare(&format!("{line}; exec \"$2\" serve --workspace \"$1\""));
    command.arg(BINARY).env("AUDIT_DIR", fixture.base().join("state"));
    let mut server = Binary::spawn(&mut command);
    server.hello("2025-11-25");
    Ok(server)
}

#[test]
fn a_full_disk_refuses_the_write_and_keeps_the_old() {
    let fixture = Fixture::new("//- a\n");
    let server = after_mounting(&fixture, "mount -t tmpfs -o size=64k none \"$1\"");
    let Some(mut server) = require("a_full_disk_refuses_the_write_and_keeps_the_old", server)
    else {
        return;
    };
    ok(&mut server, 1, "write_file", json!({"filepath": "f", "content": "KEEP\n"}));
    let large = "x".repeat(200_000);
    let write = json!({"filepath": "f", "content": large, "create_only": false});
    refused(&mut server, 2, "write_file", write, "no_space");
    refused(&mut server, 3, "write_file", json!({"filepath": "d/g", "content": large}), "no_space");
    let edits = json!([{"old": "KEEP", "new": large}]);
    let edit = json!({"filepath": "f", "edits": edits});
    refused(&mut server, 4, "search_and_replace", edit, "no_space");
    assert_eq!(ok(&mut server, 5, "list_directory", json!({})), "[F] f");
    assert!(ok(&mut server, 6, "read_file", json!({"filepath": "f"})).starts_with("KEEP\n"));
    ok(&mut server, 7, "write_file", json!({"filepath": "g", "content": "there is room for this"}));
}

#[test]
fn a_full_state_directory_costs_the_stored_output_and_not_the_answer() {
    let fixture = Fixture::new("//- a\nb\n");
    let state = fixture.base().join("state");
    std::fs::create_dir(&state).unwrap();
    let line = "mount -t tmpfs -o size=48k none \"$1/../state\"";
    let server = after_mounting(&fixture, line);
    let this = "a_full_state_directory_costs_the_stored_output_and_not_the_answer";
    let Some(mut server) = require(this, server) else { return };
    let noise = "head -c 300000 /dev/urandom | base64; echo error: the end of it; exit 3";
    let answer = server.call(1, "run_bash", json!({"command": noise}));
    let (text, facts) = parts(&answer);
    assert!(text.contains("error: the end of it"), "{text}");
    assert!(text.contains("could not be stored"), "{text}");
    assert!(!text.contains("read_output("), "nothing is promised: {text}");
    assert_eq!((&facts["exit_code"], facts.get("output_id")), (&json!(3), None), "{facts}");
    // The record is full too, and calls go on.
    for id in 2..300 {
        ok(&mut server, id, "read_file", json!({"filepath": "a"}));
    }
}

#[test]
fn a_read_only_workspace_is_read_and_says_so() {
    let fixture = Fixture::new("//- d/a\nb\n");
    let line = "mount --bind \"$1\" \"$1\"; mount -o remount,bind,ro \"$1\"";
    let server = after_mounting(&fixture, line);
    let this = "a_read_only_workspace_is_read_and_says_so";
    let Some(mut server) = require(this, server) else { return };
    assert_eq!(ok(&mut server, 1, "read_file", json!({"filepath": "d/a"})), "b\n");
    let new = json!({"filepath": "d/new", "content": "x"});
    refused(&mut server, 2, "write_file", new, "read_only");
    let write = json!({"filepath": "d/a", "content": "x", "create_only": false});
    refused(&mut server, 3, "write_file", write, "read_only");
    let edit = json!({"filepath": "d/a", "edits": [{"old": "b", "new": "c"}]});
    refused(&mut server, 4, "search_and_replace", edit, "read_only");
    let text = ok(&mut server, 5, "run_bash", json!({"command": "cat d/a; echo x > d/a"}));
    assert!(text.starts_with("[Exit code: 1]\nb\n") && text.contains("Read-only"), "{text}");
    assert_eq!(fixture.read("d/a"), "b\n");
}

#[test]
fn a_workspace_that_is_deleted_is_missed_and_not_replaced() {
    let fixture = Fixture::new("//- d/a\nb\n");
    let mut server = Binary::connected(&fixture);
    ok(&mut server, 1, "run_bash", json!({"command": "cat d/a"}));
    std::fs::remove_dir_all(fixture.root()).unwrap();
    refused(&mut server, 2, "read_file", json!({"filepath": "d/a"}), "not_found");
    let new = json!({"filepath": "d/a", "content": "x"});
    refused(&mut server, 3, "write_file", new, "not_found");
    let answer = server.call(4, "run_bash", json!({"command": "ls"}));
    let (text, facts) = parts(&answer);
    assert!(!text.contains(fixture.base().to_str().unwrap()), "{text}");
    // Another directory of that name is not the one that was opened.
    std::fs::create_dir(fixture.root()).unwrap();
    fixture.write("secret", b"of another project");
    refused(&mut server, 5, "read_file", json!({"filepath": "secret"}), "not_found");
    let answer = server.call(6, "run_bash", json!({"command": "cat secret"}));
    assert!(!answer.to_string().contains("of another project"), "{answer} {facts}");
    assert!(server.request(7, "ping", json!({}))["result"].is_object());
    server.close_input();
    assert!(server.ended().0);
}

/// Resident KiB of the server.
fn resident(server: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{server}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// A client that writes without ever reading: the server, and what writes to it.
struct Deaf {
    server: Child,
    sent: Arc<AtomicU64>,
    writer: Option<JoinHandle<ChildStdin>>,
}

impl Deaf {
    /// Asks `request` so often, under ids from 1, as fast as the server takes it.
    fn start(fixture: &Fixture, request: &Value, times: u64) -> Self {
        let mut server = Command::new(BINARY)
            .args(["serve", "--log-level", "error", "--workspace"])
            .arg(fixture.root())
            .env("AUDIT_DIR", fixture.base().join("state"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = server.stdin.take().unwrap();
        let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "deaf", "version": "0"}});
        let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello});
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        let sent = Arc::new(AtomicU64::new(0));
        let (count, params) = (Arc::clone(&sent), request.clone());
        let writer = std::thread::spawn(move || {
            write!(input, "{hello}\n{ready}\n").unwrap();
            for id in 1..=times {
                let call =
                    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
                // Fails when the server was ended meanwhile.
                if writeln!(input, "{call}").is_err() {
                    break;
                }
                count.store(id, Ordering::Relaxed);
            }
            input
        });
        Self { server, sent, writer: Some(writer) }
    }

    /// Waits until the server takes no more; what it holds then, in resident KiB.
    fn stalled(&self) -> u64 {
        let mut last = (u64::MAX, Instant::now());
        wait_until("a stall", || {
            let sent = self.sent.load(Ordering::Relaxed);
            if sent != last.0 {
                last = (sent, Instant::now());
            }
            sent > 0 && last.1.elapsed() > Duration::from_secs(2)
        });
        resident(self.server.id())
    }
}

impl Drop for Deaf {
    fn drop(&mut self) {
        drop(self.server.kill());
        drop(self.server.wait());
    }
}

#[test]
fn a_client_that_never_reads_costs_bounded_memory_and_gets_every_answer_in_the_end() {
    const CALLS: u64 = 1500;
    let fixture = Fixture::new("//- a\n");
    fixture.write("large.txt", "a line of a large file\n".repeat(8000).as_bytes());
    let read = json!({"name": "read_file", "arguments": {"filepath": "large.txt", "limit": 8000}});
    let mut deaf = Deaf::start(&fixture, &read, CALLS);
    let held = deaf.stalled();
    let sent = deaf.sent.load(Ordering::Relaxed);
    assert!(sent < CALLS, "all were taken: too few to show a limit");
    assert!(held < 256 * 1024, "{held} KiB for {sent} calls whose answers nobody takes");

    let output = BufReader::new(deaf.server.stdout.take().unwrap());
    let mut ids: Vec<u64> = output
        .lines()
        .map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap()["id"].as_u64().unwrap())
        .take(usize::try_from(CALLS).unwrap() + 1)
        .collect();
    ids.sort_unstable();
    assert!(ids.iter().copied().eq(0..=CALLS), "each answer once");
    drop(deaf.writer.take().unwrap().join().unwrap());
    assert!(deaf.server.wait().unwrap().success());
}

#[test]
fn a_client_that_never_reads_does_not_hold_the_servers_end() {
    let fixture = Fixture::new("//- a\n");
    let mark = format!("mk-deaf-{}", std::process::id());
    let sleeps = format!("seq 1 20000; exec -a {mark} sleep 300");
    let run = json!({"name": "run_bash", "arguments": {"command": sleeps}});
    let mut deaf = Deaf::start(&fixture, &run, 3);
    wait_until("a command", || is_running(&mark));
    let pid = rustix::process::Pid::from_child(&deaf.server);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    let told = Instant::now();
    wait_until("its end", || deaf.server.try_wait().unwrap().is_some());
    assert!(told.elapsed() < Duration::from_secs(10), "{:?}", told.elapsed());
    wait_until("the command's end", || !is_running(&mark));
}

/// A clock that tells the time of day plus the seconds in the file that `CLOCK_OFFSET` names.
const CLOCK: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *now) {
    int result = (int)syscall(SYS_clock_gettime, clock, now);
    const char *path = getenv("CLOCK_OFFSET");
    int file = path && clock == CLOCK_REALTIME ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file >= 0) {
        char text[32] = {0};
        if (read(file, text, sizeof text - 1) > 0) now->tv_sec += atoll(text);
        close(file);
    }
    return result;
}
"#;

/// The shared object with that clock.
fn clock(fixture: &Fixture) -> Result<String, Missing> {
    let source = fixture.base().join("clock.c");
    std::fs::write(&source, CLOCK).unwrap();
    let object = fixture.base().join("clock.so");
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-o"]).arg(&object).arg(&source);
    match compiler.output() {
        Ok(output) if output.status.success() => Ok(object.to_str().unwrap().to_owned()),
        other => Err(Missing(format!("a C compiler: {other:?}"))),
    }
}

#[test]
fn a_clock_that_jumps_moves_no_timeout_and_breaks_no_record() {
    const DAY: i64 = 24 * 60 * 60;
    let fixture = Fixture::new("//- a\nb\n");
    let test = "a_clock_that_jumps_moves_no_timeout_and_breaks_no_record";
    let Some(clock) = require(test, clock(&fixture)) else { return };
    let file = fixture.base().join("offset");
    let jump = |seconds: i64| std::fs::write(&file, seconds.to_string()).unwrap();
    jump(0);
    let variables = [("LD_PRELOAD", clock.as_str()), ("CLOCK_OFFSET", file.to_str().unwrap())];
    let mut server = Binary::start(&fixture, &[], &variables);
    server.hello("2025-11-25");
    let numbers = "for i in $(seq 1 9000); do echo \"row $i $((i * 7919 % 10007)) $RANDOM\"; done";
    let answer = server.call(1, "run_bash", json!({"command": numbers}));
    let id = parts(&answer).1["output_id"].clone();

    // Into the past and the future while a command runs that has time enough.
    let mark = format!("mk-clock-{}", std::process::id());
    for (number, seconds) in [(2, -400 * DAY), (3, 400 * DAY), (4, 0)] {
        let command = format!("(exec -a {mark} sleep 1); echo done");
        send(&mut server, number, "run_bash", &json!({"command": command, "timeout": 30}));
        wait_until("a command", || is_running(&mark));
        jump(seconds);
        let answer = server.receive();
        assert_eq!(parts(&answer).0, "[Exit code: 0]\ndone\n", "{answer}");
    }
    // Into the past while one runs that has not.
    let began = Instant::now();
    let command = format!("exec -a {mark} sleep 300");
    send(&mut server, 5, "run_bash", &json!({"command": command, "timeout": 2}));
    wait_until("a command", || is_running(&mark));
    jump(-DAY);
    let answer = server.receive();
    assert_eq!(parts(&answer).1["timed_out"], true, "{answer}");
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    assert!(!is_running(&mark));

    let lines =
        ok(&mut server, 6, "read_output", json!({"output_id": id, "offset": 7999, "limit": 1}));
    assert!(lines.starts_with("row 8000 "), "{lines}");
    drop(server);
    let verdict = audit_is_whole(&fixture);
    assert!(verdict.status.success(), "{}", String::from_utf8_lossy(&verdict.stdout));
    // The jumps were seen, or nothing was proved.
    let log = std::fs::read_to_string(fixture.base().join("state/audit.jsonl")).unwrap();
    let years: std::collections::BTreeSet<_> = log
        .lines()
        .filter_map(|line| Some(line.split_once("\"time\":\"")?.1.split_at(4).0))
        .collect();
    assert!(years.len() >= 3, "{years:?}");
}
