//! The rungs with namespaces: what commands have there that they have not without, and what still holds.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;

use proc_runner::{Command, End};
use proc_sandbox::{Rung, Sandbox, Target};

use crate::host::with_python;
use crate::processes::survives;
use crate::{Place, directory, start};

/// Checks what a script prints on every rung with namespaces.
fn check(place: &Place, script: &str, expected: &str) {
    for sandbox in &place.native {
        assert_eq!(place.confined_by(sandbox, script).succeeded(), expected, "{}", sandbox.rung());
    }
}

#[test]
fn what_is_not_shown_is_not_there() {
    let place = Place::new("");
    let outside = place.fixture.outside();
    let script = format!(
        "for place in /boot /home /srv /mnt /run {}; do test -e $place && echo $place; done; \
         ls -A /etc/shadow /etc/sudoers 2>&1 | grep -c 'No such file'",
        outside.display()
    );
    check(&place, &script, "2\n");
}

#[test]
fn the_view_cannot_be_changed() {
    let place = Place::new("");
    for attack in
        ["touch /new", "touch /usr/new", "touch /etc/new", "mkdir /dev/new", "rmdir /proc/1"]
    {
        for sandbox in &place.native {
            place.confined_by(sandbox, attack).failed();
        }
    }
}

#[test]
fn temporary_files_are_kept_between_commands_and_private() {
    let place = Place::new("");
    // A name nobody has, also where a run that failed left its own behind.
    let base = place.fixture.base();
    let name = format!("kept-{}", base.file_name().unwrap().to_str().unwrap());
    for sandbox in &place.native {
        place.confined_by(sandbox, &format!("echo kept > /tmp/{name}")).succeeded();
        let read = format!("cat /tmp/{name} /var/tmp/{name}");
        assert_eq!(place.confined_by(sandbox, &read).succeeded(), "kept\nkept\n");
        assert!(!Path::new("/tmp").join(&name).exists());
    }
    // The other sandbox has a directory of its own.
    let count = format!("ls /tmp/{name} 2>/dev/null | wc -l");
    let other = Place::new("");
    check(&other, &count, "0\n");
}

#[test]
fn temporary_files_are_limited() {
    let place = Place::with("", |mut policy| {
        policy.limits.tmp = Some(1 << 20);
        policy
    });
    let script = "head -c 2000000 /dev/zero 2>&1 > /tmp/fill; stat -c %s /tmp/fill; rm /tmp/fill";
    for sandbox in &place.native {
        let text = place.confined_by(sandbox, script).text;
        assert!(text.contains("No space left on device"), "{text}");
        assert!(text.ends_with("1048576\n"), "{text}");
    }
}

#[test]
fn the_loopback_network_is_the_sandboxs() {
    let Some(place) = with_python() else { return };
    // A server in one command, a client in another that runs at the same time.
    let server = "python3 -c \"import socket; s=socket.create_server(('127.0.0.1', 8000)); open('up','w'); \
                  s.accept()[0].sendall(b'served')\"";
    let client = "until [ -e up ]; do sleep 0.01; done; rm up; \
                  python3 -c \"import socket; print(socket.create_connection(('127.0.0.1', 8000)).recv(9))\"";
    for sandbox in &place.native {
        std::thread::scope(|scope| {
            let server = scope.spawn(|| place.confined_by(sandbox, server).succeeded());
            assert_eq!(place.confined_by(sandbox, client).succeeded(), "b'served'\n");
            server.join().unwrap();
        });
    }
}

#[test]
fn what_programs_need_of_a_machine_is_there() {
    let Some(place) = with_python() else { return };
    let script = "python3 -c \"
import multiprocessing, os, pty, socket, tempfile
multiprocessing.Queue(); pty.openpty(); socket.socketpair(); socket.socket(socket.AF_UNIX)
tempfile.TemporaryFile(); open('/dev/shm/x', 'w'); print('all')\"; setsid echo session; \
                  timeout 5 echo timed; tty; cat /dev/tty 2>&1 | grep -c 'No such device'";
    for sandbox in &place.native {
        let text = place.confined_by(sandbox, script).text;
        assert_eq!(text, "all\nsession\ntimed\nnot a tty\n1\n");
    }
}

#[test]
fn files_of_a_root_server_stay_roots_and_commands_are_never_root() {
    let place = Place::new("//- theirs\nx\n");
    let us = rustix::process::geteuid().as_raw();
    for sandbox in &place.native {
        let text = place.confined_by(sandbox, "echo y >> theirs; echo > made; id -u; stat -c %u .");
        let text = text.succeeded();
        let ids: Vec<&str> = text.lines().collect();
        assert_eq!(ids[0], ids[1], "the workspace is the command's own");
        assert_ne!(ids[0], "0");
        assert_eq!(place.fixture.root().join("made").metadata().unwrap().uid(), us);
    }
}

#[test]
fn protected_places_cannot_be_changed_moved_or_replaced() {
    let place = Place::new("//- .git/hooks/pre-commit\nold\n//- .git/config\nold\n//- free\nold\n");
    std::os::unix::fs::symlink("free", place.fixture.root().join("link")).unwrap();
    let script = "echo new > .git/config; echo new > .git/hooks/post; rm -rf .git/hooks; mv .git/config moved; \
                  rm -f .git/config; echo new > free; echo new > .git/HEAD; cat .git/config .git/hooks/* free";
    for sandbox in &place.native {
        let target = Target::new("/bin/bash", directory(&place.fixture.root()))
            .args(["-c", script])
            .envs(crate::environment())
            .protect([".git/hooks", ".git/config", "link", "missing", "../outside", "/etc"]);
        let confined = sandbox.confine(target).unwrap();
        let command = Command::new(confined.program).args(confined.args).stdin(confined.stdin);
        let ran = start(command, Duration::from_secs(30));
        confined.status.enforced().unwrap();
        assert!(ran.text.ends_with("old\nold\nnew\n"), "{ran:?}");
        assert_eq!(place.fixture.read(".git/hooks/pre-commit"), "old\n");
        assert!(!place.fixture.exists(".git/hooks/post"));
        // Nothing stays behind: what was protected for one command is not for the next.
        place.confined_by(sandbox, "echo x > .git/hooks/x && rm .git/hooks/x").succeeded();
    }
}

#[test]
fn what_is_left_running_is_counted_and_ended() {
    let place = Place::new("");
    let mark = format!("mk-left-{}", std::process::id());
    let script = format!(
        "for i in 1 2 3; do (setsid bash -c 'exec -a {mark} sleep 300' >/dev/null 2>&1 &) ; done; \
         until [ $(ps -eo args | grep -c '^mk-left') = 3 ]; do sleep 0.01; done; echo done"
    );
    let sandbox = place.highest();
    if sandbox.rung() != Rung::NativeFull {
        return;
    }
    let ran = place.confined_by(sandbox, &script);
    assert_eq!((ran.text.as_str(), ran.outcome.leftovers), ("done\n", Some(3)));
    assert!(!survives(&mark));
    assert_eq!(place.confined_by(sandbox, "true").outcome.leftovers, Some(0));
}

#[test]
fn a_commands_end_is_passed_on_as_it_was() {
    let place = Place::new("");
    for sandbox in place.all() {
        let end = |script: &str| place.confined_by(sandbox, script).outcome.end;
        assert_eq!(end("exit 0"), End::Exited(0));
        assert_eq!(end("exit 200"), End::Exited(200));
        for signal in ["SEGV", "KILL", "TERM", "PIPE", "HUP", "ABRT"] {
            let number = place.open(&format!("kill -l {signal}")).text.trim().parse().unwrap();
            assert_eq!(end(&format!("kill -{signal} $$")), End::Signaled(number), "{signal}");
        }
    }
}

#[test]
fn a_request_to_end_reaches_the_whole_tree_and_can_be_answered() {
    let place = Place::new("");
    // The child answers too, in a session of its own: on the highest rung, which lets it have one.
    let script = "setsid bash -c 'trap \"echo child > child; exit\" TERM; while :; do sleep 0.05; done' & \
                  trap 'echo asked; sleep 0.1; exit 7' TERM; while :; do sleep 0.05; done";
    for sandbox in &place.native {
        let ran = place.confined_within(sandbox, script, Duration::from_secs(2));
        assert!(ran.outcome.timed_out);
        assert_eq!(ran.outcome.end, End::Exited(7));
        assert!(ran.text.contains("asked\n"), "{ran:?}");
        assert_eq!(place.fixture.read("child"), "child\n");
    }
}

/// How long a command may run that is to be ended from outside: where that fails, the test fails by it.
const LONGEST: Duration = Duration::from_secs(45);

/// A process that does not outlive a test that fails.
struct Killed(std::process::Child);

impl Killed {
    fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Killed {
    fn drop(&mut self) {
        // It was waited for already, if the test came so far.
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// Set in the process that is killed, with what it is to start.
const CALLER: &str = "PROC_SANDBOX_CALLER";

/// A caller that is killed takes its command along, on every rung.
#[test]
fn nothing_outlives_a_caller_that_was_killed() {
    if let Some(script) = std::env::var_os(CALLER) {
        let place = Place::new("");
        let number: usize = std::env::var("PROC_SANDBOX_RUNG").unwrap().parse().unwrap();
        let sandbox: &Sandbox = place.all().nth(number).unwrap();
        place.confined_within(sandbox, script.to_str().unwrap(), LONGEST);
        return;
    }
    let rungs = Place::new("").native.len() + 1;
    for number in 0..rungs {
        let mark = format!("mk-orphan-{number}-{}", std::process::id());
        let up = tempfile::NamedTempFile::new().unwrap();
        let script = format!(
            "setsid bash -c 'exec -a {mark} sleep 300' & echo UP; exec -a {mark} sleep 300"
        );
        let mut caller = Killed(
            std::process::Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "native::nothing_outlives_a_caller_that_was_killed"])
                .env(CALLER, script)
                .env("PROC_SANDBOX_RUNG", number.to_string())
                .stdout(up.reopen().unwrap())
                .stderr(up.reopen().unwrap())
                .spawn()
                .unwrap(),
        );
        let alive = || {
            std::fs::read_dir("/proc").unwrap().flatten().any(|entry| {
                let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
                line.starts_with(mark.as_bytes())
            })
        };
        wait_until("the command to run", alive);
        caller.kill();
        let ended = std::panic::catch_unwind(|| wait_until("the command to end", || !alive()));
        // Whoever outlives it has no reason to outlive the test; one that is just ending may still be seen.
        survives(&mark);
        assert!(ended.is_ok(), "rung {number} of {rungs}");
    }
}

fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let give_up = std::time::Instant::now() + Duration::from_secs(30);
    while !condition() {
        assert!(std::time::Instant::now() < give_up, "no use waiting for {what}");
        std::thread::yield_now();
    }
}

#[test]
fn a_helper_that_is_killed_takes_everything_along() {
    let place = Place::new("");
    for sandbox in place.all() {
        let mark = format!("mk-helper-{}-{}", sandbox.rung(), std::process::id());
        let script =
            format!("setsid bash -c 'exec -a {mark} sleep 300' & exec -a {mark} sleep 300");
        let target = Target::new("/bin/bash", directory(&place.fixture.root()))
            .args(["-c", &script])
            .envs(crate::environment());
        let confined = sandbox.confine(target).unwrap();
        let command = Command::new(confined.program).args(confined.args).stdin(confined.stdin);
        std::thread::scope(|scope| {
            let run = scope.spawn(|| start(command, LONGEST));
            let us = std::process::id().to_string();
            // The guardian is the child of ours whose descendant has the mark.
            let guardian = || {
                let parent = |pid: &str| {
                    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
                    Some(stat.rsplit_once(')')?.1.split(' ').nth(2)?.to_owned())
                };
                let marked = std::fs::read_dir("/proc").unwrap().flatten().find_map(|entry| {
                    let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
                    let name = entry.file_name().into_string().ok()?;
                    line.starts_with(mark.as_bytes()).then_some(name)
                })?;
                let mut pid = marked;
                while parent(&pid)? != us {
                    pid = parent(&pid)?;
                }
                Some(pid)
            };
            wait_until("the guardian to be there", || guardian().is_some());
            let pid = guardian().unwrap().parse().unwrap();
            let pid = rustix::process::Pid::from_raw(pid).unwrap();
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
            assert_eq!(run.join().unwrap().outcome.end, End::Signaled(9));
        });
        assert!(!survives(&mark), "{}", sandbox.rung());
    }
}

#[test]
fn the_first_process_tells_nothing_of_its_caller() {
    let place = Place::new("");
    let sandbox = place.highest();
    let script = "cat /proc/1/environ /proc/1/maps 2>&1 | grep -c 'Permission denied'; ls /proc/1/fd 2>&1 | grep -c denied";
    if sandbox.rung() == Rung::NativeFull {
        assert_eq!(place.confined_by(sandbox, script).text, "2\n1\n");
    }
}
