//! Layers that stand behind another one, or beside it: that each is there, looked at where no attack would tell.

use std::time::Duration;

use proc_runner::{Command, End};
use proc_sandbox::{Error, ResourceLimits, Rung, Target};

use crate::host::with_python;
use crate::{Place, check_attack, directory, start};

/// Under how many Landlock rulesets a process can still put itself; a kernel allows so many in all.
const ROOM_FOR_RULESETS: &str = "python3 -c \"
import ctypes, os
l = ctypes.CDLL(None)
l.prctl(38, 1, 0, 0, 0)
room = 0
while True:
    handled = ctypes.c_uint64(1)
    ruleset = l.syscall(444, ctypes.byref(handled), 8, 0)
    refused = l.syscall(446, ruleset, 0)
    os.close(ruleset)
    if refused: break
    room += 1
print(room)\"";

#[test]
fn landlock_is_there_on_every_rung() {
    let Some(place) = with_python() else { return };
    let room = |text: &str| text.trim().parse::<u32>().unwrap();
    let open = room(&place.open(ROOM_FOR_RULESETS).succeeded());
    for sandbox in place.all() {
        let confined = place.confined_by(sandbox, ROOM_FOR_RULESETS).succeeded();
        assert_eq!(room(&confined), open - 1, "{}", sandbox.rung());
    }
}

/// Where mounts may be changed through: the workspace, the private directory and those in memory.
fn is_writable(point: &str, place: &Place, home: &str) -> bool {
    let workspace = place.fixture.root();
    ["/tmp", "/dev/shm", "/dev/pts", home, workspace.to_str().unwrap()].contains(&point)
}

#[test]
fn mounts_of_the_view_allow_what_they_must_and_no_more() {
    let place = Place::new("");
    for sandbox in &place.native {
        let home = sandbox.home();
        let home = home.to_str().unwrap();
        let text = place.confined_by(sandbox, "cat /proc/self/mountinfo").succeeded();
        assert!(text.lines().count() > 10, "{text}");
        for line in text.lines() {
            // See proc_pid_mountinfo(5).
            let fields: Vec<&str> = line.split(' ').collect();
            let (point, options) = (fields[4], fields[5]);
            let has = |option| options.split(',').any(|one| one == option);
            let is_device = point.starts_with("/dev/") && !is_writable(point, &place, home);
            assert!(has("nosuid"), "{line}");
            assert!(has("nodev") || is_device || point == "/dev/pts", "{line}");
            assert!(has("ro") || is_device || is_writable(point, &place, home), "{line}");
        }
    }
}

#[test]
fn processes_are_counted_for_each_command() {
    let mut limits = ResourceLimits::default();
    limits.pids = Some(30);
    let place = Place::with("", |policy| policy.limits(limits.clone()));
    // Twenty each, at the same time.
    let script = |ours: &str, theirs: &str| {
        format!(
            "for i in $(seq 20); do sleep 60 & done; : > {ours}; until [ -e {theirs} ]; do :; done; jobs -p | wc -l; \
             : > {ours}.seen; until [ -e {theirs}.seen ]; do :; done; kill $(jobs -p)"
        )
    };
    let run =
        |sandbox, ours: &str, theirs: &str| place.confined_by(sandbox, &script(ours, theirs)).text;
    for sandbox in &place.native {
        std::thread::scope(|scope| {
            let other = scope.spawn(|| run(sandbox, "a", "b"));
            assert_eq!(run(sandbox, "b", "a"), "20\n");
            assert_eq!(other.join().unwrap(), "20\n");
        });
        for name in ["a", "b", "a.seen", "b.seen"] {
            std::fs::remove_file(place.fixture.root().join(name)).unwrap();
        }
    }
}

#[test]
fn queues_of_other_programs_cannot_be_written_to() {
    let Some(place) = with_python() else { return };
    // Everybody may, where it is there at all.
    let queue = place.open("ipcmk -Q -p 0666 | grep -o '[0-9]*$'").succeeded();
    let attack = format!(
        "python3 -c \"import ctypes; l = ctypes.CDLL(None)
message = ctypes.create_string_buffer(b'\\\\x01' + b'\\\\0' * 15)
print('SENT' if l.msgsnd({0}, message, 8, 0o4000) == 0 else 'refused')\"",
        queue.trim()
    );
    let checked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        check_attack(&place, &attack, "SENT");
    }));
    place.open(&format!("ipcrm -q {}", queue.trim())).succeeded();
    if let Err(failure) = checked {
        std::panic::resume_unwind(failure);
    }
}

#[test]
fn the_machines_name_is_not_shown() {
    let place = Place::new("");
    for sandbox in &place.native {
        assert_eq!(place.confined_by(sandbox, "uname -n").succeeded(), "workspace\n");
    }
    let ours = rustix::system::uname().nodename().to_bytes().to_owned();
    assert_ne!(ours, b"workspace", "on this machine the test above proves nothing");
}

#[test]
fn other_processes_are_not_even_seen() {
    let place = Place::new("");
    let script = "ls /proc | grep -c '^[0-9]'; ls -d /proc/[0-9]* | grep -x /proc/1";
    let sandbox = place.highest();
    if sandbox.rung() == Rung::NativeFull {
        // The first, the shell, `ls` and `grep`.
        let text = place.confined_by(sandbox, script).succeeded();
        let (count, first) = text.split_once('\n').unwrap();
        assert!(count.parse::<u32>().unwrap() <= 4, "{text}");
        assert_eq!(first, "/proc/1\n");
    }
}

#[test]
fn what_a_caller_ignores_does_not_reach_the_helper() {
    let Some(place) = with_python() else { return };
    for sandbox in place.all() {
        let target = Target::new("/bin/bash", directory(&place.fixture.root()))
            .args(["-c", "trap | grep -c CHLD; exit 3"]);
        let confined = sandbox.confine(target).unwrap();
        // Children of one who ignores their end vanish, and nobody could say how they ended.
        let ignoring = "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); \
                        signal.signal(signal.SIGTERM, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])";
        let command = Command::new("/usr/bin/env")
            .args(["python3", "-c", ignoring, env!("CARGO_BIN_EXE_proc-sandbox-helper")])
            .args(confined.args)
            .envs(crate::environment())
            .env("HOME", std::env::var_os("HOME").unwrap())
            .stdin(confined.stdin);
        let ran = start(command, Duration::from_secs(10));
        assert_eq!((ran.outcome.end, ran.text.as_str()), (End::Exited(3), "0\n"));
    }
}

#[test]
fn a_directory_swapped_for_another_is_not_entered() {
    let place = Place::new("//- sub/mine\nx\n");
    for sandbox in &place.native {
        let root = place.fixture.root();
        let target = Target::new("/bin/ls", directory(&root.join("sub")));
        let confined = sandbox.confine(target).unwrap();
        std::fs::rename(root.join("sub"), root.join("moved")).unwrap();
        std::fs::create_dir(root.join("sub")).unwrap();
        let command = Command::new(confined.program).args(confined.args).stdin(confined.stdin);
        let ran = start(command, Duration::from_secs(10));
        assert_eq!((ran.outcome.end, ran.text.as_str()), (End::Exited(125), ""));
        let error = confined.status.enforced().unwrap_err();
        assert_eq!(error.to_string(), "the sandbox could not enter the working directory");
        assert!(matches!(error, Error::Helper { .. }));
        std::fs::remove_dir(root.join("sub")).unwrap();
        std::fs::rename(root.join("moved"), root.join("sub")).unwrap();
    }
}

/// Set in the process that has a terminal.
const ON_A_TERMINAL: &str = "PROC_SANDBOX_TERMINAL";

#[test]
fn the_callers_terminal_is_left() {
    // The seventh field is the terminal; see proc_pid_stat(5).
    const TERMINAL: &str = "cut -d' ' -f7 /proc/self/stat";
    if std::env::var_os(ON_A_TERMINAL).is_some() {
        let place = Place::new("");
        assert_ne!(place.open(TERMINAL).succeeded(), "0\n");
        for sandbox in place.all() {
            let text = place.confined_by(sandbox, TERMINAL).succeeded();
            assert_eq!(text, "0\n", "{}", sandbox.rung());
        }
        return;
    }
    if testkit::require("the_callers_terminal_is_left", testkit::program("script")).is_none() {
        return;
    }
    // This binary again, for this test alone, with a terminal that `script` makes for it.
    let us = std::env::current_exe().unwrap();
    let line = format!("{} --exact layers::the_callers_terminal_is_left --nocapture", us.display());
    let command = Command::new("/usr/bin/env")
        .args(["script", "-qec", &line, "/dev/null"])
        .envs(std::env::vars_os())
        .env(ON_A_TERMINAL, "1");
    let ran = start(command, Duration::from_mins(1));
    assert!(ran.text.contains("1 passed"), "{}", ran.text);
}

#[test]
fn commands_go_first_when_memory_runs_out() {
    let place = Place::new("");
    let script = "cat /proc/self/oom_score_adj";
    assert_ne!(place.open(script).succeeded(), "500\n", "on this machine it proves nothing");
    for sandbox in place.all() {
        assert_eq!(place.confined_by(sandbox, script).succeeded(), "500\n");
    }
}
