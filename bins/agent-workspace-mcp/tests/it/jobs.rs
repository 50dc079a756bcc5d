//! Background jobs of `run_bash`: started, read while they run, stopped, ended with the server.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::harness::{Answer, Binary, Session, is_running};

/// Starts a job and tells its id.
fn start(session: &Session, command: &str) -> String {
    let answer = session.call("run_bash", json!({"command": command, "background": true}));
    assert!(!answer.is_error, "{answer:?}");
    let id = answer.facts["job_id"].as_str().unwrap().to_owned();
    assert!(answer.text.contains(&format!("stop_job(job_id=\"{id}\")")), "{answer:?}");
    id
}

/// Reads the output of a job until `there` is in it.
fn read_until(session: &Session, id: &str, there: &str) -> Answer {
    let give_up = Instant::now() + Duration::from_secs(30);
    loop {
        let answer = session.call("read_output", json!({"output_id": id}));
        assert!(!answer.is_error, "{answer:?}");
        if answer.text.contains(there) {
            return answer;
        }
        assert!(Instant::now() < give_up, "{answer:?}");
    }
}

#[test]
fn a_job_is_answered_at_once_read_while_it_runs_and_stopped() {
    let session = Session::new("//- a\n");
    let mark = format!("mk-job-{}", std::process::id());
    let command =
        format!("echo one; echo two; setsid bash -c 'exec -a {mark} sleep 300' & sleep 300");
    let id = start(&session, &command);
    let answer = read_until(&session, &id, "two\n");
    assert!(answer.text.starts_with("one\ntwo\n[job "), "{answer:?}");
    assert!(answer.text.contains("is running since"), "{answer:?}");
    assert_eq!(
        (&answer.facts["state"], &answer.facts["total_lines"]),
        (&json!("running"), &json!(2))
    );
    let page = session.call("read_output", json!({"job_id": id, "pattern": "^t"}));
    assert!(page.text.starts_with("1:two\n"), "{page:?}");

    let answer = session.call("stop_job", json!({"job_id": id}));
    assert!(!answer.is_error && answer.text.contains(": stopped, Exit code: "), "{answer:?}");
    assert_eq!(answer.facts["cancelled"], true);
    assert!(!is_running(&mark));
    let again = session.call("stop_job", json!({"job_id": id}));
    assert!(again.text.contains("had ended already"), "{again:?}");
    let answer = session.call("read_output", json!({"output_id": id}));
    assert!(answer.text.starts_with("one\ntwo\n[job "), "{answer:?}");
    assert_eq!(answer.facts["state"], "finished");
}

#[test]
fn a_job_that_ends_by_itself_says_how() {
    let session = Session::new("//- a\n");
    let id = start(&session, "echo last; exit 7");
    let answer = read_until(&session, &id, "Exit code: 7");
    assert!(answer.text.starts_with("last\n[job "), "{answer:?}");
    let answer = session.call("stop_job", json!({"job_id": id}));
    assert_eq!(
        (&answer.facts["exit_code"], &answer.facts["cancelled"]),
        (&json!(7), &json!(false))
    );
    let timed =
        session.call("run_bash", json!({"command": "sleep 300", "background": true, "timeout": 1}));
    let id = timed.facts["job_id"].as_str().unwrap().to_owned();
    read_until(&session, &id, "timed out");
}

#[test]
fn a_job_that_met_the_memory_limit_says_so() {
    let test = "a_job_that_met_the_memory_limit_says_so";
    if testkit::require(test, testkit::program("perl")).is_none() {
        return;
    }
    let session = Session::new("//- a\n");
    let id = start(&session, "perl -e 'push @a, \"x\" x (100 << 20) while 1'");
    let note = "MiB of memory, of 2048 MiB that a process may hold]";
    let answer = read_until(&session, &id, note);
    assert!(answer.text.contains("Exit code: 1]\n[one of its processes held"), "{answer:?}");
    assert!(session.ok("stop_job", json!({"job_id": id})).contains(note));
}

#[test]
fn a_protected_name_that_a_job_made_is_told_with_its_end_and_recorded() {
    let session = Session::new("//- a\n");
    let id = start(&session, "mkdir .vscode && echo x > .vscode/tasks.json");
    let answer = read_until(&session, &id, "Exit code: 0]\n");
    assert!(answer.text.contains("[  .vscode/tasks.json appeared]"), "{answer:?}");
    assert!(session.ok("stop_job", json!({"job_id": id})).contains(".vscode/tasks.json"));
    let record = session.fixture.base().join("state/audit.jsonl");
    let record = std::fs::read_to_string(record).unwrap();
    assert!(record.contains(r#"{"path":".vscode/tasks.json","what":"appeared"}"#), "{record}");
    // It is not the next command's.
    assert_eq!(session.ok("run_bash", json!({"command": "echo next"})), "[Exit code: 0]\nnext\n");
}

#[test]
fn an_unknown_job_is_an_error_and_too_many_are() {
    let session = Session::new("//- a\n");
    session.refused("stop_job", json!({"job_id": "0123456789ab"}), "unknown_id");
    session.refused("stop_job", json!({}), "invalid_args");
    let jobs: Vec<_> = (0..16).map(|_| start(&session, "sleep 300")).collect();
    let more = json!({"command": "sleep 300", "background": true});
    let text = session.refused("run_bash", more, "busy");
    assert!(text.contains("stop_job"), "{text}");
    session.ok("stop_job", json!({"job_id": jobs[3]}));
    start(&session, "sleep 300");
}

#[test]
fn a_large_output_of_a_job_is_paged_while_it_grows() {
    let session = Session::new("//- a\n");
    let id = start(&session, "seq 1 300000; echo END; sleep 300");
    read_until_tail(&session, &id);
    let page = session.call("read_output", json!({"output_id": id, "offset": 250_000, "limit": 2}));
    assert!(page.text.starts_with("250001\n250002\n"), "{page:?}");
    session.ok("stop_job", json!({"job_id": id}));
    let page = session.call("read_output", json!({"output_id": id, "offset": 300_000}));
    assert!(page.text.starts_with("END\n"), "{page:?}");
}

fn read_until_tail(session: &Session, id: &str) {
    let give_up = Instant::now() + Duration::from_secs(30);
    loop {
        let answer = session.call("read_output", json!({"output_id": id, "offset": 300_000}));
        if answer.text.starts_with("END\n") {
            return;
        }
        assert!(Instant::now() < give_up, "{answer:?}");
    }
}

#[test]
fn a_job_and_a_command_meet_on_the_loopback_network() {
    let session = Session::new("//- page\nserved\n");
    if !session.call("run_bash", json!({"command": "true"})).facts["sandbox"]
        .as_str()
        .is_some_and(|rung| rung.starts_with("native"))
    {
        // Without namespaces there are no sockets at all.
        testkit::require::<()>(
            "a_job_and_a_command_meet_on_the_loopback_network",
            Err(testkit::Missing("a rung with namespaces".to_owned())),
        );
        return;
    }
    let test = "a_job_and_a_command_meet_on_the_loopback_network";
    if testkit::require(test, testkit::program("python3")).is_none() {
        return;
    }
    let id = start(&session, "python3 -u -m http.server --bind 127.0.0.1 8123");
    read_until(&session, &id, "Serving HTTP");
    let script = "python3 -c \"import urllib.request as u; print(u.urlopen('http://127.0.0.1:8123/page').read())\"";
    let answer = session.call("run_bash", json!({"command": script}));
    assert!(answer.text.contains("b'served\\n'"), "{answer:?}");
    assert!(read_until(&session, &id, "GET /page").text.contains("200"));
}

#[test]
fn jobs_end_with_the_server() {
    for kill in [false, true] {
        let fixture = testkit::Fixture::new("//- a\n");
        let mark = format!("mk-end-{kill}-{}", std::process::id());
        let mut server = Binary::connected(&fixture);
        let command = format!("setsid bash -c 'exec -a {mark} sleep 300' & sleep 300");
        server.call(1, "run_bash", json!({"command": command, "background": true}));
        let give_up = Instant::now() + Duration::from_secs(30);
        while !is_running(&mark) {
            assert!(Instant::now() < give_up, "the job does not start");
        }
        if kill {
            drop(server);
        } else {
            server.close_input();
            let (success, took) = server.ended();
            assert!(success && took < Duration::from_secs(10), "{took:?}");
            assert!(!is_running(&mark), "it ended before its job");
        }
        let give_up = Instant::now() + Duration::from_secs(30);
        while is_running(&mark) {
            assert!(Instant::now() < give_up, "the job outlives the server");
        }
    }
}
