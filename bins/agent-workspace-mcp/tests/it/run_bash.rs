//! `run_bash`: rows B1–B6 of the behaviour table, the ends of commands, and what they see.

use std::time::{Duration, Instant};

use proc_sandbox::Rung;
use serde_json::json;

use crate::harness::{Binary, Session};

/// Every rung that this machine offers must behave alike.
fn on_each_rung(fixture: &str, check: impl Fn(&Session)) {
    for rung in [Rung::NativeFull, Rung::NativeNoproc, Rung::Landlock, Rung::None] {
        let session = Session::with(fixture, |config| {
            config.ceiling = rung;
            config.floor = rung.min(Rung::Landlock);
        });
        check(&session);
    }
}

#[test]
fn b1_success() {
    on_each_rung("//- a\n", |session| {
        let answer = session.call("run_bash", json!({"command": "echo test"}));
        assert_eq!(answer.text, "[Exit code: 0]\ntest\n");
        assert_eq!(answer.facts["exit_code"], 0);
        assert_eq!(answer.facts["timed_out"], false);
    });
}

#[test]
fn b2_failure_is_no_error_answer() {
    on_each_rung("//- a\n", |session| {
        let answer = session.call("run_bash", json!({"command": "exit 1"}));
        assert!(!answer.is_error && answer.text.starts_with("[Exit code: 1]"), "{answer:?}");
    });
}

#[test]
fn b3_timeout() {
    on_each_rung("//- a\n", |session| {
        let answer = session.call("run_bash", json!({"command": "sleep 20", "timeout": 1}));
        assert!(answer.is_error && answer.text.starts_with("[timed out after 1s]"), "{answer:?}");
        assert_eq!(answer.facts["error_kind"], "timeout");
        assert_eq!(answer.facts["timed_out"], true);
    });
}

#[test]
fn b4_truncation() {
    let session = Session::new("//- a\n");
    let command = "echo first; for i in $(seq 1 6000); do echo \"line $i of $RANDOM$RANDOM text\"; done; echo last";
    let answer = session.call("run_bash", json!({"command": command}));
    assert_eq!((&answer.facts["exit_code"], &answer.facts["truncated"]), (&json!(0), &json!(true)));
    assert!(answer.text.len() < 65_000, "{}", answer.text.len());
    for part in ["[Exit code: 0]\nfirst\n", "omitted", "read_output(", "\nlast"] {
        assert!(answer.text.contains(part), "{part}: {}", answer.text);
    }
}

#[test]
fn b5_stderr_is_merged() {
    on_each_rung("//- a\n", |session| {
        let answer = session.call("run_bash", json!({"command": "ls missing_directory"}));
        assert!(answer.text.starts_with("[Exit code: 2]\n"), "{answer:?}");
        assert!(answer.text.contains("missing_directory"), "{answer:?}");
    });
}

#[test]
fn a_process_that_grew_up_to_its_limit_of_memory_is_told() {
    // It keeps what it is to print, piece by piece; the other asks for all of it at once.
    let grow = "head -c 3000000000 /dev/zero | tail -c 2900000000 | wc -c; exit ${PIPESTATUS[1]}";
    let once = "dd bs=3G count=1 if=/dev/zero of=/dev/null";
    let check = |session: &Session, command: &str, told: bool| {
        let answer = session.call("run_bash", json!({ "command": command }));
        assert!(answer.text.contains("memory exhausted"), "{answer:?}");
        let last = answer.text.lines().last().unwrap();
        let is_told = last.starts_with("[one of its processes held ")
            && last.ends_with(" MiB of memory, of 2048 MiB that a process may hold]");
        assert_eq!(is_told, told, "{answer:?}");
    };
    for rung in [Rung::NativeFull, Rung::Landlock] {
        let session = Session::with("//- a\n", |config| config.ceiling = rung);
        check(&session, grow, true);
        check(&session, once, false);
        // One that came to its end needs no word about it.
        check(&session, &format!("({grow}); true"), false);
    }
}

#[test]
fn b6_a_command_that_cannot_start_says_why() {
    let session = Session::with("//- a\n", |config| {
        config.helper = Some("/nonexistent/helper".into());
    });
    let answer = session.call("run_bash", json!({"command": "echo test"}));
    assert!(answer.is_error, "{answer:?}");
    assert_eq!(answer.facts["error_kind"], "sandbox_unavailable");
    assert!(!answer.text.contains("\ntest"), "nothing ran unconfined: {answer:?}");
    assert!(!answer.text.contains("/nonexistent"), "no host path is told: {answer:?}");
}

#[test]
fn x4_a_command_reads_end_of_file_and_other_calls_go_on() {
    on_each_rung("//- f.txt\nhere\n", |session| {
        let answer = session.call("run_bash", json!({"command": "cat; echo after"}));
        assert_eq!(answer.text, "[Exit code: 0]\nafter\n");
        assert_eq!(session.ok("read_file", json!({"filepath": "f.txt"})), "here\n");
    });
}

#[test]
fn x8_a_background_job_that_holds_the_pipe_does_not_hold_the_answer() {
    on_each_rung("//- a\n", |session| {
        let started = Instant::now();
        let answer = session.call("run_bash", json!({"command": "sleep 30 & echo started"}));
        assert!(started.elapsed() < Duration::from_secs(10), "{answer:?}");
        assert!(answer.text.starts_with("[Exit code: 0]\nstarted\n"), "{answer:?}");
        assert_eq!(answer.facts["leftovers"], 1);
        assert!(answer.text.contains("left running"), "it is said: {answer:?}");
    });
}

#[test]
fn x9_a_timeout_keeps_the_output_so_far() {
    on_each_rung("//- a\n", |session| {
        let command = "echo partial; sleep 20";
        let answer = session.call("run_bash", json!({"command": command, "timeout": 1}));
        assert!(answer.is_error && answer.text.contains("partial"), "{answer:?}");
    });
}

#[test]
fn x27_it_is_bash() {
    on_each_rung("//- a\n", |session| {
        let answer = session
            .call("run_bash", json!({"command": "[[ 1 == 1 ]] && echo ${BASH_VERSION%%.*}"}));
        assert_eq!(answer.facts["exit_code"], 0, "{answer:?}");
    });
}

#[test]
fn a_signal_is_told_as_128_and_its_number() {
    on_each_rung("//- a\n", |session| {
        let answer = session.call("run_bash", json!({"command": "kill -9 $$"}));
        assert!(answer.text.starts_with("[Exit code: 137]"), "{answer:?}");
        assert_eq!((&answer.facts["exit_code"], &answer.facts["signal"]), (&json!(137), &json!(9)));
    });
}

#[test]
fn the_working_directory_is_inside_the_workspace() {
    on_each_rung("//- sub/f.txt\n", |session| {
        let answer = session.call("run_bash", json!({"command": "ls", "cwd": "sub"}));
        assert_eq!(answer.text, "[Exit code: 0]\nf.txt\n");
        session.refused("run_bash", json!({"command": "ls", "cwd": ".."}), "outside_workspace");
        session.refused(
            "run_bash",
            json!({"command": "ls", "cwd": "sub/f.txt"}),
            "not_a_directory",
        );
    });
}

#[test]
fn arguments_that_cannot_be_run_are_refused() {
    let session = Session::new("//- a\n");
    for arguments in [
        json!({}),
        json!({"command": ""}),
        json!({"command": "  \n"}),
        json!({"command": "echo a\u{0}b"}),
        json!({"command": "true", "timeout": -1}),
        json!({"command": ["ls"]}),
    ] {
        session.refused("run_bash", arguments, "invalid_args");
    }
    let answer = session.call("run_bash", json!({"cmd": "echo alias", "timeout": 0}));
    assert_eq!(answer.text, "[Exit code: 0]\nalias\n");
}

#[test]
fn x23_no_secret_of_the_server_reaches_a_command() {
    let fixture = testkit::Fixture::new("//- a\n");
    let secrets =
        [("SERVER_SECRET_TOKEN", "SECRET-CANARY-ENV"), ("MCP_API_KEY", "SECRET-CANARY-ENV")];
    let mut server = Binary::start(&fixture, &[], &secrets);
    server.hello("2025-11-25");
    let command =
        "env; cat /proc/self/environ /proc/$PPID/environ 2>&1 | tr '\\0' '\\n'; echo done";
    let answer = server.call(1, "run_bash", json!({"command": command})).to_string();
    assert!(answer.contains("done") && answer.contains("PATH="), "{answer}");
    assert!(!answer.contains("SECRET-CANARY-ENV"), "{answer}");
}

#[test]
fn a_command_on_the_default_rung_stays_in_the_workspace() {
    let session = Session::new("//- a\n");
    let outside = session.fixture.outside();
    let command = format!(
        "cat {0}/secret.txt; echo PWNED > {0}/victim.txt; touch {0}/new; echo inside > inside.txt; \
         (exec 3<>/dev/tcp/127.0.0.1/1) 2>&1",
        outside.display()
    );
    let answer = session.call("run_bash", json!({"command": command}));
    assert_ne!(answer.facts["sandbox"], "none", "{answer:?}");
    assert!(!answer.text.contains(testkit::Fixture::CANARY), "{answer:?}");
    assert_eq!(session.fixture.read("inside.txt"), "inside\n");
    // That the outside is unchanged is checked when the session ends. Without the boundary it would not be:
    let bare = Session::with("//- a\n", |config| {
        (config.ceiling, config.floor) = (Rung::None, Rung::None);
    });
    let command = format!("cat {}/secret.txt", bare.fixture.outside().display());
    let answer = bare.call("run_bash", json!({"command": command}));
    assert!(answer.text.contains(testkit::Fixture::CANARY), "{answer:?}");
    assert_eq!(answer.facts["sandbox"], "none");
}

#[test]
fn a_workspace_that_holds_the_temporary_directory_is_confined_all_the_same() {
    let fixture = testkit::Fixture::new("//- tmp/\n");
    let tmp = fixture.root().join("tmp");
    let mut server = Binary::start(&fixture, &[], &[("TMPDIR", tmp.to_str().unwrap())]);
    server.hello("2025-11-25");
    let answer = server.call(1, "run_bash", json!({"command": "echo confined; ls tmp"}));
    let facts = &answer["result"]["_meta"]["agent-workspace/result"];
    assert_ne!(facts["sandbox"], "none", "{answer}");
    assert_eq!(answer["result"]["content"][0]["text"], "[Exit code: 0]\nconfined\n");
}

/// What a command may do to protected names, on the rungs that can keep it from them.
#[test]
fn commands_cannot_change_protected_names_nor_make_missing_ones() {
    for rung in [Rung::NativeFull, Rung::NativeNoproc] {
        let files = "//- .git/config\n[core]\n//- .git/hooks/pre-commit\nold\n//- sub/.git/config\n[core]\n";
        let session = Session::with(files, |config| config.ceiling = rung);
        let script = "for f in .git/config .git/hooks/pre-commit .git/hooks/post-merge sub/.git/config .mcp.json \
                      .vscode/tasks.json .envrc .gitmodules .claude/settings.json .cursor/mcp.json; do \
                      (mkdir -p $(dirname $f); echo evil > $f) 2>/dev/null && echo WROTE $f; done; \
                      mv .git/config gone 2>/dev/null && echo MOVED; rm -rf .mcp.json .vscode 2>/dev/null; \
                      mkdir -p .claude && echo fine > .claude/notes.md; cat .git/hooks/pre-commit";
        let answer = session.call("run_bash", json!({"command": script}));
        if !answer.facts["sandbox"].as_str().unwrap().starts_with("native") {
            testkit::require::<()>(
                "commands_cannot_change_protected_names_nor_make_missing_ones",
                Err(testkit::Missing(format!("the rung {rung}"))),
            );
            return;
        }
        assert_eq!(answer.text, "[Exit code: 0]\nold\n", "{rung}");
        assert_eq!(session.fixture.read(".git/config"), "[core]\n");
        assert_eq!(session.fixture.read(".claude/notes.md"), "fine\n");
        // Nothing of what held them stays.
        for name in
            [".mcp.json", ".vscode", ".envrc", ".gitmodules", ".cursor", ".git/hooks/post-merge"]
        {
            assert!(!session.fixture.exists(name), "{name}");
        }
    }
}

#[test]
fn a_repository_can_be_made_and_used() {
    on_each_rung("//- a\n", |session| {
        let script = "git init -q . && git add -A && git -c user.name=a -c user.email=b commit -qm one && \
                      git status --short && git ls-files && git log --format=%s";
        let answer = session.call("run_bash", json!({"command": script}));
        assert!(answer.text.starts_with("[Exit code: 0]\na\none\n"), "{answer:?}");
    });
}

#[test]
fn what_a_command_changed_of_protected_names_all_the_same_is_told() {
    on_each_rung("//- a\n", |session| {
        let script =
            "mkdir -p new/.git/hooks; printf '[core]\\n\\tfsmonitor = x\\n' > new/.git/config";
        let answer = session.call("run_bash", json!({"command": script}));
        let expected = "[  new/.git/config appeared, runs programs by core.fsmonitor]";
        assert!(answer.text.ends_with(expected), "{answer:?}");
        let answer = session.call("run_bash", json!({"command": "echo quiet"}));
        assert_eq!(answer.text, "[Exit code: 0]\nquiet\n");
    });
}

#[test]
fn protection_can_be_turned_off() {
    let session = Session::with("//- .git/config\n[core]\n", |config| {
        config.protect = workspace_jail::Protect::Off;
    });
    let script = "echo x >> .git/config; echo y > .envrc; cat .git/config .envrc";
    assert_eq!(
        session.ok("run_bash", json!({"command": script})),
        "[Exit code: 0]\n[core]\nx\ny\n"
    );
}
