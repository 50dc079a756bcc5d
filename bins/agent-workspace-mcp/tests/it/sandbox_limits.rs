//! What holds code in a disposable sandbox, seen to hold, and what is left when it is removed: nothing. The same code and
//! the same answers on both backends.

use std::time::Instant;

use serde_json::json;

use crate::harness::{PATIENCE, is_running, variable};
use crate::place::{Backend, Place, engine};

fn each(test: &str, check: impl Fn(&mut Place, Backend)) {
    on([Backend::Native, Backend::Usual], test, check);
}

fn on(backends: [Backend; 2], test: &str, check: impl Fn(&mut Place, Backend)) {
    for backend in backends {
        if let Some(mut place) = Place::open(test, backend, &[]) {
            check(&mut place, backend);
        }
    }
}

#[test]
fn more_memory_than_the_limit_is_not_had() {
    each("more_memory_than_the_limit_is_not_had", |place, _| {
        let code = "dd if=/dev/zero of=/dev/null bs=1000M count=1 2>/dev/null && echo within; \
                    dd if=/dev/zero of=/dev/null bs=2200M count=1 2>/dev/null && echo OVER";
        let answer = place.code("sh", code);
        assert!(answer.text.contains("within\n") && !answer.text.contains("OVER"), "{answer:?}");
        // It cost that program alone.
        assert!(place.code("sh", "echo still").text.contains("still"));
    });
}

#[test]
fn more_processes_than_the_limit_are_not_had() {
    each("more_processes_than_the_limit_are_not_had", |place, _| {
        // Begun one by one up to a number, so that without a limit this ends too.
        let code = "i=0; while [ $i -lt 400 ]; do sleep 60 & i=$((i+1)); echo $i; done; echo ALL";
        let answer = place.code("sh", code);
        assert!(answer.text.to_lowercase().contains("fork"), "{answer:?}");
        assert!(!answer.text.contains("ALL") && !answer.text.contains("\n257\n"), "{answer:?}");
        let left = answer.facts["leftovers"].as_u64().unwrap();
        assert!((100..=256).contains(&left), "{answer:?}");
        assert!(place.code("sh", "sleep 0 & wait; echo still").text.contains("still"));
    });
}

#[test]
fn there_is_no_network_but_the_places_own() {
    each("there_is_no_network_but_the_places_own", |place, _| {
        let code = "grep -c : /proc/net/dev; grep -c 'lo:' /proc/net/dev";
        assert_eq!(place.code("sh", code).text, "[Exit code: 0]\n1\n1\n");
        let answer = place.code("bash", "exec 3<>/dev/tcp/192.0.2.1/9 && echo CONNECTED");
        assert!(!answer.text.contains("CONNECTED"), "{answer:?}");
    });
}

#[test]
fn two_at_once_see_neither_each_other_nor_the_workspace() {
    each("two_at_once_see_neither_each_other_nor_the_workspace", |place, backend| {
        let image = (backend != Backend::Native)
            .then(|| variable("AGENT_WORKSPACE_TEST_BASE_IMAGE").unwrap());
        let other = place.another(image.as_deref());
        let mark = format!("mark-{}", std::process::id());
        let there = |place: &mut Place, code: &str| {
            let arguments = json!({"language": "sh", "code": code, "sandbox_id": other});
            place.call("execute_code", arguments)
        };
        place.ok("write_file", json!({"filepath": mark, "content": "mine\n"}));
        place.code("sh", &format!("echo mine > /tmp/{mark}"));
        let secret = place.fixture.root().join("secret.txt");
        let look = format!(
            "find / -name '{mark}' 2>/dev/null; ls /tmp/{mark}; cat {}; ls; echo looked",
            secret.display()
        );
        let answer = there(place, &look);
        assert!(answer.text.contains("looked"), "{answer:?}");
        assert!(!answer.text.contains(&format!("/{mark}\n")), "{answer:?}");
        assert!(!answer.text.contains("SECRET-OF-THE-WORKSPACE"), "{answer:?}");
        let read = json!({"filepath": mark, "sandbox_id": other});
        place.refused("read_file", read, "not_found");
        let text = place.ok("read_file", json!({"filepath": mark}));
        assert_eq!(text, "mine\n");
        // Nor a process of the other, while it runs.
        place.server.send(
            &json!({"jsonrpc": "2.0", "id": 900, "method": "tools/call", "params": {"name": "execute_code",
                "arguments": {"language": "sh", "code": "sleep 3.75", "sandbox_id": place.id}}})
            .to_string(),
        );
        let look = "for i in 1 2 3 4; do cat /proc/[0-9]*/cmdline | tr '\\0' ' '; sleep 0.3; done; echo looked";
        let answer = there(place, look);
        assert!(answer.text.contains("looked"), "{answer:?}");
        assert!(!answer.text.contains("sleep 3.75"), "{answer:?}");
    });
}

#[test]
fn a_place_that_is_removed_leaves_nothing() {
    each("a_place_that_is_removed_leaves_nothing", |place, backend| {
        let pid = place.server.pid();
        let mark = format!("mk-place-{}", std::process::id());
        let children = || {
            let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
            let lists = tasks.map(|task| std::fs::read_to_string(task.path().join("children")));
            lists.flatten().map(|list| list.split_whitespace().count()).sum::<usize>()
        };
        // By the name of its directory, or the container's: others come and go on a machine.
        let name = match backend {
            Backend::Native => place.directories().swap_remove(0),
            _ => container(pid).expect("the container is there"),
        };
        let is_mounted = |of: &str| {
            std::fs::read_to_string(format!("/proc/{of}/mountinfo")).unwrap().contains(&name)
        };
        assert_eq!(
            is_mounted("self"),
            backend != Backend::Native,
            "an engine mounts a container's files"
        );
        let code = format!("echo x > kept; setsid bash -c 'exec -a {mark} sleep 300' & sleep 0.2");
        let answer = place.code("bash", &code);
        assert!(answer.text.contains("1 process that was left running was ended"), "{answer:?}");
        let code = format!("bash -c 'exec -a {mark} sleep 300' & sleep 300");
        let arguments = json!({"language": "bash", "code": code, "timeout": 1});
        let answer = place.call("execute_code", arguments);
        assert_eq!(answer.facts["error_kind"], "timeout", "{answer:?}");
        place.ok("read_file", json!({"filepath": "kept"}));
        place.ok("stop_sandbox", json!({}));
        assert!(!is_running(&mark));
        assert_eq!(place.directories(), Vec::<String>::new());
        assert_eq!(children(), 0);
        assert_eq!(container(pid), None);
        for of in ["self", "1", &pid.to_string()] {
            assert!(!is_mounted(of), "{name} in {of}");
        }
        place.refused("read_file", json!({"filepath": "kept"}), "unknown_id");
    });
}

#[test]
fn a_place_is_removed_with_the_code_that_runs_in_it() {
    each("a_place_is_removed_with_the_code_that_runs_in_it", |place, backend| {
        let mark = format!("mk-ends-{}-{backend:?}", std::process::id());
        let code = format!("setsid bash -c 'exec -a {mark} sleep 300' & echo begun; sleep 300");
        let arguments = json!({"language": "bash", "code": code, "sandbox_id": place.id});
        let params = json!({"name": "execute_code", "arguments": arguments});
        let request =
            json!({"jsonrpc": "2.0", "id": 900, "method": "tools/call", "params": params});
        place.server.send(&request.to_string());
        let begun = Instant::now();
        while !is_running(&mark) {
            assert!(begun.elapsed() < PATIENCE, "the code does not begin");
            std::thread::yield_now();
        }
        let id = place.id.clone();
        let request = json!({"jsonrpc": "2.0", "id": 901, "method": "tools/call",
            "params": {"name": "stop_sandbox", "arguments": {"sandbox_id": id}}});
        place.server.send(&request.to_string());
        let mut answers = [place.server.receive(), place.server.receive()];
        answers.sort_by_key(|answer| answer["id"].as_u64());
        let [code, stop] = answers;
        assert!(stop.to_string().contains("is removed"), "{stop}");
        let facts = &code["result"]["_meta"]["agent-workspace/result"];
        assert_eq!(facts["error_kind"], "cancelled", "{code}");
        assert!(code.to_string().contains("[cancelled]\\nbegun"), "{code}");
        assert!(!is_running(&mark));
        assert_eq!(place.directories(), Vec::<String>::new());
    });
}

/// The test engine's container of the server with that process number.
fn container(pid: u32) -> Option<String> {
    let engine = engine().ok()?;
    let list = ["--url", &engine, "ps", "--all", "--no-trunc", "--format", "{{.ID}} {{.Labels}}"];
    let done = std::process::Command::new("podman").args(list).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    let line = text.lines().find(|line| line.contains(&format!("{pid}-")))?;
    line.split(' ').next().map(str::to_owned)
}

#[test]
fn every_language_runs_with_its_exit_code_and_its_errors_or_says_what_is_missing() {
    let languages = [
        ("python", "import sys; print('out', flush=True); sys.stderr.write('err\\n'); sys.exit(4)"),
        ("bash", "echo out; echo err >&2; exit 4"),
        ("sh", "echo out; echo err >&2; exit 4"),
        ("perl", "$| = 1; print \"out\\n\"; print STDERR \"err\\n\"; exit 4"),
        ("javascript", "console.log('out'); console.error('err'); process.exit(4)"),
        ("ruby", "$stdout.sync = true; puts 'out'; $stderr.puts 'err'; exit 4"),
        ("php", "<?php echo \"out\\n\"; fwrite(STDERR, \"err\\n\"); exit(4);"),
        (
            "c",
            "#include <stdio.h>\nint main(void) { puts(\"out\"); fflush(stdout); fputs(\"err\\n\", stderr); return 4; }",
        ),
        ("rust", "fn main() { println!(\"out\"); eprintln!(\"err\"); std::process::exit(4) }"),
        (
            "java",
            "class A { public static void main(String[] a) { System.out.println(\"out\"); System.err.println(\"err\"); \
             System.exit(4); } }",
        ),
    ];
    on(
        [Backend::Native, Backend::Languages],
        "every_language_runs_with_its_exit_code_and_its_errors_or_says_what_is_missing",
        |place, backend| {
            let mut ran = Vec::new();
            for (language, code) in languages {
                let answer = place.code(language, code);
                if answer.facts["error_kind"] == "interpreter_missing" {
                    assert!(answer.text.contains("would bring it"), "{answer:?}");
                    continue;
                }
                assert_eq!(answer.text, "[Exit code: 4]\nout\nerr\n", "{backend:?} {language}");
                assert_eq!(answer.facts["exit_code"], 4, "{answer:?}");
                ran.push(language);
            }
            // Those that both the machine and the image have without more being installed.
            for usual in ["bash", "sh", "perl"] {
                assert!(ran.contains(&usual), "{backend:?}: {ran:?}");
            }
            if backend == Backend::Languages {
                assert!(ran.starts_with(&["python", "bash", "sh", "perl", "ruby"]), "{ran:?}");
            } else {
                let probes =
                    ["python3", "node", "cc"].map(|program| testkit::program(program).is_ok());
                let had = probes.into_iter().filter(|is_there| *is_there).count();
                assert!(ran.len() >= 3 + had, "{ran:?}");
            }
        },
    );
}
