//! `initialize_sandbox`, `execute_code`, `stop_sandbox`: on the native backend, and on an engine where there is one.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::{Fixture, Missing, require};

use crate::harness::{Answer, Binary, Session, is_running, variable};
use crate::place::{Backend, Place};

fn run(session: &Session, language: &str, code: &str) -> Answer {
    session.call("execute_code", json!({"language": language, "code": code}))
}

fn open(session: &Session, arguments: Value) -> String {
    let answer = session.call("initialize_sandbox", arguments);
    assert!(!answer.is_error, "{answer:?}");
    answer.facts["sandbox_id"].as_str().unwrap().to_owned()
}

/// Native places beside this session's workspace.
fn leftovers(session: &Session) -> usize {
    let parent = session.fixture.base().parent().unwrap();
    let names = std::fs::read_dir(parent).unwrap().flatten();
    names
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("agent-disposable-"))
        .count()
}

#[test]
fn code_runs_without_anything_being_opened_first() {
    let test = "code_runs_without_anything_being_opened_first";
    if require(test, testkit::program("python3")).is_none() {
        return;
    }
    let session = Session::new("//- secret.txt\nSECRET-OF-THE-WORKSPACE\n");
    let answer = run(&session, "python", "print(6 * 7)");
    assert_eq!(answer.text, "[Exit code: 0]\n42\n");
    assert_eq!(answer.facts["backend"], "native");
    assert!(answer.facts["sandbox_id"].as_str().unwrap().starts_with("sandbox-"));
    assert_eq!(run(&session, "bash", "stat -c %a .").text, "[Exit code: 0]\n700\n");
    // Files stay between calls, the workspace is not there, and a failure is a result.
    run(&session, "python", "open('kept', 'w').write('kept')");
    let secret = session.fixture.root().join("secret.txt");
    let code = format!("cat kept {} 2>&1; ls; exit 3", secret.display());
    let answer = run(&session, "bash", &code);
    assert!(answer.text.starts_with("[Exit code: 3]\nkept"), "{answer:?}");
    assert!(!answer.text.contains("SECRET-OF-THE-WORKSPACE"), "{answer:?}");
    let answer = run(&session, "bash", "exec 3<>/dev/tcp/192.0.2.1/9");
    assert_ne!(answer.facts["exit_code"], 0, "{answer:?}");
}

#[test]
fn languages_are_told_apart_and_unknown_ones_named() {
    let session = Session::new("//- a\n");
    let programs = [
        ("python3", "python", "import sys; print('out'); sys.exit(4)"),
        ("bash", "bash", "echo out; exit 4"),
        ("node", "js", "console.log('out'); process.exit(4)"),
        ("perl", "perl", "print \"out\\n\"; exit 4"),
        ("cc", "c", "#include <stdio.h>\nint main(void) { puts(\"out\"); return 4; }"),
        (
            "java",
            "java",
            "class A { public static void main(String[] a) { System.out.println(\"out\"); System.exit(4); } }",
        ),
    ];
    for (program, language, code) in programs {
        let test = "languages_are_told_apart_and_unknown_ones_named";
        if require(test, testkit::program(program)).is_none() {
            continue;
        }
        let answer = run(&session, language, code);
        assert_eq!(answer.text, "[Exit code: 4]\nout\n", "{language}");
    }
    let text =
        session.refused("execute_code", json!({"code": "x", "language": "cobol"}), "invalid_args");
    assert!(text.contains("python, bash, sh, javascript"), "{text}");
    session.refused("execute_code", json!({"code": " "}), "invalid_args");
}

#[test]
fn a_missing_interpreter_is_named_with_what_would_bring_it() {
    let fixture = Fixture::new("//- a\n");
    let empty = fixture.base().join("empty");
    std::fs::create_dir(&empty).unwrap();
    let mut server = Binary::start(&fixture, &[], &[("PATH", empty.to_str().unwrap())]);
    server.hello("2025-11-25");
    let answer = server.call(1, "execute_code", json!({"code": "1", "language": "ruby"}));
    let facts = &answer["result"]["_meta"]["agent-workspace/result"];
    assert_eq!(facts["error_kind"], "interpreter_missing", "{answer}");
    assert!(answer.to_string().contains("the package ruby would bring it"), "{answer}");
}

#[test]
fn an_interpreter_that_is_too_old_for_a_language_is_missing() {
    let test = "an_interpreter_that_is_too_old_for_a_language_is_missing";
    if require(test, testkit::program("node")).is_none() {
        return;
    }
    let script = ["--experimental-strip-types", "-e", ""];
    let here = std::process::Command::new("node").args(script).output().unwrap();
    let session = Session::new("//- a\n");
    let answer = run(&session, "typescript", "const x: number = 42; console.log(x)");
    if here.status.success() {
        assert_eq!(answer.text, "[Exit code: 0]\n42\n");
    } else {
        assert_eq!(answer.facts["error_kind"], "interpreter_missing", "{answer:?}");
        assert!(answer.text.contains("no node of a version that runs typescript"), "{answer:?}");
        assert!(answer.text.contains("Node.js 22.6 or newer would bring it"), "{answer:?}");
    }
    // The same program runs its other language.
    assert_eq!(run(&session, "js", "console.log(42)").text, "[Exit code: 0]\n42\n");
}

#[test]
fn sandboxes_see_neither_each_other_nor_one_that_was_removed() {
    let session = Session::new("//- a\n");
    let first = open(&session, json!({}));
    let second = open(&session, json!({}));
    let code = |id: &str, code: &str| {
        session.call("execute_code", json!({"sandbox_id": id, "language": "bash", "code": code}))
    };
    code(&first, "echo mine > mine; echo mine > /tmp/mine");
    let answer = code(&second, "ls; ls /tmp/mine 2>&1; find / -name mine 2>/dev/null");
    assert!(!answer.text.contains("\nmine\n") && !answer.text.contains("/mine\n"), "{answer:?}");
    let text = session.refused("execute_code", json!({"code": "1"}), "invalid_args");
    assert!(text.contains(&first) && text.contains(&second), "{text}");

    let before = leftovers(&session);
    assert!(session.ok("stop_sandbox", json!({"sandbox_id": first})).contains("is removed"));
    assert!(leftovers(&session) < before);
    session.refused("execute_code", json!({"code": "1", "sandbox_id": first}), "unknown_id");
    // The only one that is left is meant.
    assert!(code(&second, "echo still").text.contains("still"));
    session.ok("stop_sandbox", json!({}));
    session.refused("stop_sandbox", json!({}), "unknown_id");
}

/// Each answer is its own code's, however many calls share a sandbox at the same moment.
fn calls_at_once_each_run_their_own_code(test: &str, backend: Backend) {
    let Some(mut place) = Place::open(test, backend, &[]) else { return };
    for number in 0..6 {
        let code = format!("sleep 0.2; echo own-{number}; exit {number}");
        let arguments = json!({"language": "sh", "sandbox_id": place.id, "code": code});
        let params = json!({"name": "execute_code", "arguments": arguments});
        let request =
            json!({"jsonrpc": "2.0", "id": 100 + number, "method": "tools/call", "params": params});
        place.server.send(&request.to_string());
    }
    for _ in 0..6 {
        let answer = place.server.receive();
        let number = answer["id"].as_u64().unwrap() - 100;
        let told = answer["result"]["content"][0]["text"].as_str().unwrap();
        assert_eq!(told, format!("[Exit code: {number}]\nown-{number}\n"));
    }
    // Alone again, it has the plain name.
    assert_eq!(place.code("sh", "echo $0").text, "[Exit code: 0]\nsnippet.sh\n");
}

#[test]
fn calls_at_once_in_a_native_place_each_run_their_own_code() {
    let test = "calls_at_once_in_a_native_place_each_run_their_own_code";
    calls_at_once_each_run_their_own_code(test, Backend::Native);
}

#[test]
fn calls_at_once_in_a_container_each_run_their_own_code() {
    let test = "calls_at_once_in_a_container_each_run_their_own_code";
    calls_at_once_each_run_their_own_code(test, Backend::Small);
}

#[test]
fn a_timeout_ends_everything_and_keeps_the_output() {
    let session = Session::new("//- a\n");
    let mark = format!("mk-code-{}", std::process::id());
    let code = format!("echo before; setsid bash -c 'exec -a {mark} sleep 300' & sleep 300");
    let answer =
        session.call("execute_code", json!({"language": "bash", "code": code, "timeout": 1}));
    assert!(
        answer.is_error && answer.text.starts_with("[timed out after 1s]\nbefore"),
        "{answer:?}"
    );
    assert_eq!(answer.facts["error_kind"], "timeout");
    assert!(!is_running(&mark));
}

#[test]
fn a_network_that_the_operator_does_not_give_is_refused() {
    let session = Session::new("//- a\n");
    session.refused("initialize_sandbox", json!({"network": "on"}), "invalid_args");
}

#[test]
fn what_a_killed_server_left_goes_with_the_next_start() {
    let fixture = Fixture::new("//- a\n");
    let place = fixture.base().join("tmp");
    std::fs::create_dir(&place).unwrap();
    let count = || {
        std::fs::read_dir(&place)
            .unwrap()
            .flatten()
            .filter(|entry| entry.file_name().to_string_lossy().starts_with("agent-disposable-"))
            .count()
    };
    let start = || {
        let mut server = Binary::start(&fixture, &[], &[("TMPDIR", place.to_str().unwrap())]);
        server.hello("2025-11-25");
        server
    };
    let mut killed = start();
    killed.call(1, "execute_code", json!({"language": "bash", "code": "mkdir -p d; echo x > d/f"}));
    assert_eq!(count(), 1);
    let mut living = start();
    assert_eq!(count(), 1, "one whose server lives stays");
    living.close_input();
    assert!(living.ended().0);
    drop(killed);
    let mut next = start();
    assert_eq!(count(), 0);
    next.close_input();
    next.ended();
}

#[test]
fn the_home_of_commands_without_a_sandbox_is_private_and_goes_with_the_next_start() {
    let fixture = Fixture::new("//- a\n");
    let place = fixture.base().join("tmp");
    std::fs::create_dir(&place).unwrap();
    let start = |rung: &str| {
        let variables = [("TMPDIR", place.to_str().unwrap())];
        let mut server = Binary::start(&fixture, &["--sandbox", rung], &variables);
        server.hello("2025-11-25");
        server
    };
    let is_empty = || std::fs::read_dir(&place).unwrap().next().is_none();
    let mut killed = start("none");
    let command = "touch $HOME/x; stat -c %a $HOME; ls $TMPDIR";
    let answer = killed.call(1, "run_bash", json!({"command": command}));
    let text = answer["result"]["content"][0]["text"].as_str().unwrap();
    assert_eq!(text, "[Exit code: 0]\n700\nx\n");
    drop(killed);
    assert!(!is_empty(), "a killed server cannot remove it");
    // Of a server that has none of its own before its first command.
    let mut next = start("auto");
    assert!(
        !std::fs::read_dir(&place)
            .unwrap()
            .flatten()
            .any(|entry| { entry.file_name().to_string_lossy().starts_with("agent-disposable-") })
    );
    next.close_input();
    next.ended();
    assert!(is_empty());
}

/// The address of an engine, and an image with nothing but a small shell.
fn engine() -> Result<(String, String), Missing> {
    Ok((variable("AGENT_WORKSPACE_TEST_ENGINE")?, variable("AGENT_WORKSPACE_TEST_IMAGE")?))
}

/// A server that finds the test engine, and its sandbox in a container.
fn contained(test: &str) -> Option<(Fixture, Binary, String)> {
    let (engine, image) = require(test, engine())?;
    let fixture = Fixture::new("//- secret.txt\nSECRET-OF-THE-WORKSPACE\n");
    let mut server = Binary::start(&fixture, &[], &[("DOCKER_HOST", &engine)]);
    server.hello("2025-11-25");
    let answer = server.call(1, "initialize_sandbox", json!({"image": image}));
    let facts = &answer["result"]["_meta"]["agent-workspace/result"];
    assert_eq!(facts["backend"], "container", "{answer}");
    let id = facts["sandbox_id"].as_str().unwrap().to_owned();
    Some((fixture, server, id))
}

/// Runs code in the only open sandbox; text and facts.
fn run_there(server: &mut Binary, language: &str, code: &str, timeout: u64) -> (String, Value) {
    let arguments = json!({"language": language, "code": code, "timeout": timeout});
    let answer = server.call(2, "execute_code", arguments);
    let result = &answer["result"];
    let text = result["content"][0]["text"].as_str().unwrap().to_owned();
    (text, result["_meta"]["agent-workspace/result"].clone())
}

#[test]
fn a_container_runs_code_and_goes() {
    let Some((fixture, mut server, id)) = contained("a_container_runs_code_and_goes") else {
        return;
    };
    let (text, facts) =
        run_there(&mut server, "sh", "id -u; echo err >&2; echo kept > kept; exit 5", 20);
    assert!(
        text.starts_with("[Exit code: 5]\n10001\nerr\n[files made or changed: kept (5 bytes)"),
        "{text}"
    );
    assert_eq!((&facts["sandbox"], &facts["exit_code"]), (&json!("container"), &json!(5)));
    let secret = fixture.root().join("secret.txt");
    let code =
        format!("cat kept; cat {} 2>/dev/null; ip -o link | grep -vc ' lo:'", secret.display());
    assert_eq!(run_there(&mut server, "sh", &code, 20).0, "[Exit code: 1]\nkept\n0\n");
    // Longer than one argument may be.
    let long = format!("# {}\necho end", "x".repeat(300_000));
    assert_eq!(run_there(&mut server, "sh", &long, 20).0, "[Exit code: 0]\nend\n");
    let (text, facts) = run_there(&mut server, "sh", "echo before; sleep 300", 1);
    assert!(text.starts_with("[timed out after 1s]\nbefore"), "{text}");
    assert_eq!(facts["error_kind"], "timeout");
    let (_, facts) = run_there(&mut server, "python", "print(1)", 20);
    assert_eq!(facts["error_kind"], "interpreter_missing");

    let began = Instant::now();
    let answer = server.call(3, "stop_sandbox", json!({"sandbox_id": id}));
    assert!(answer.to_string().contains("is removed"), "{answer}");
    assert!(began.elapsed() < Duration::from_secs(30));
    let answer = server.call(4, "initialize_sandbox", json!({"image": "localhost/no-such:image"}));
    assert!(answer.to_string().contains("engine_unavailable"), "{answer}");
    assert!(answer.to_string().contains("no image"), "{answer}");
}

#[test]
fn a_container_is_gone_with_its_server_and_swept_where_that_was_killed() {
    let name = "a_container_is_gone_with_its_server_and_swept_where_that_was_killed";
    let listed = |engine: &str| {
        let list = ["--url", engine, "ps", "--all", "--format", "{{.Labels}}"];
        let done = std::process::Command::new("podman").args(list).output().unwrap();
        let text = String::from_utf8_lossy(&done.stdout).into_owned();
        move |pid: u32| text.contains(&format!("{pid}-"))
    };
    let Some((_fixture, mut ending, _)) = contained(name) else { return };
    let address = engine().unwrap().0;
    let pid = ending.pid();
    assert!(listed(&address)(pid), "the container of {pid} is there");
    ending.close_input();
    assert!(ending.ended().0);
    assert!(!listed(&address)(pid));

    let (_fixture, killed, _) = contained(name).unwrap();
    let pid = killed.pid();
    drop(killed);
    assert!(listed(&address)(pid), "a killed server cannot remove it");
    let (_fixture, mut next, _) = contained(name).unwrap();
    assert!(!listed(&address)(pid));
    next.close_input();
    next.ended();
}
