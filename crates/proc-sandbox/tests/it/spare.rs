//! The spare: it starts what a caller could start itself, holds nothing of it, and is replaced when it is gone.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use proc_runner::{Command, End};
use proc_sandbox::{Rung, Sandbox, Status, Target};
use rustix::process::{Pid, Signal};

use crate::processes::survives;
use crate::{Place, Ran, by_spare, directory, environment, start};

const PATIENCE: Duration = Duration::from_secs(30);

/// A command for the spare, with what tells that sandbox's processes from others'.
struct Prepared {
    command: Command,
    status: Status,
    program: PathBuf,
}

fn prepare(place: &Place, sandbox: &Sandbox, script: &str) -> Prepared {
    let target = Target::new("/bin/bash", directory(&place.fixture.root()))
        .args(["-c", script])
        .envs(environment());
    let confined = sandbox.confine(target).unwrap();
    let program = confined.program.clone();
    let (command, status) = by_spare(confined);
    Prepared { command, status, program }
}

fn run(prepared: Prepared) -> Ran {
    let ran = start(prepared.command, PATIENCE);
    prepared.status.enforced().unwrap();
    ran
}

/// Children of ours that are a spare of this sandbox, zombies not among them.
fn spares(program: &Path) -> Vec<Pid> {
    let expected = format!("{}\0__sandbox-init\0spare\0", program.display());
    let read = |path: PathBuf| std::fs::read(path).unwrap_or_default();
    children(|directory| {
        read(directory.join("cmdline")) == expected.as_bytes()
            // Helpers that it split off have its arguments, and a name of their own.
            && read(directory.join("comm")) == b"sandbox-spare\n"
    })
}

fn children(wanted: impl Fn(&Path) -> bool) -> Vec<Pid> {
    let us = std::process::id().to_string();
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let is_ours = |directory: &Path| {
        let stat = std::fs::read_to_string(directory.join("stat")).unwrap_or_default();
        // State, then parent.
        stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.split(' ').nth(1) == Some(&us))
    };
    entries
        .filter(|entry| is_ours(&entry.path()) && wanted(&entry.path()))
        .filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?))
        .collect()
}

fn the_spare(program: &Path) -> Pid {
    let found = spares(program);
    assert_eq!(found.len(), 1, "{found:?}");
    found[0]
}

fn exists(pid: Pid) -> bool {
    Path::new(&format!("/proc/{}", pid.as_raw_nonzero())).exists()
}

fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let give_up = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < give_up, "no use waiting for {what}");
        std::thread::yield_now();
    }
}

#[test]
fn one_spare_serves_all_commands_and_goes_with_its_sandbox() {
    let place = Place::new("");
    let mut all = vec![place.sandbox];
    all.extend(place.native);
    let place = Place { fixture: place.fixture, sandbox: all.remove(0), native: all };
    let mut gone = Vec::new();
    for sandbox in place.all() {
        let program = prepare(&place, sandbox, "true").program;
        assert_eq!(spares(&program), [], "none is kept for a sandbox that was not used");
        run(prepare(&place, sandbox, "true")).succeeded();
        let spare = the_spare(&program);
        for _ in 0..3 {
            run(prepare(&place, sandbox, "true")).succeeded();
        }
        assert_eq!(the_spare(&program), spare);
        gone.push(spare);
    }
    drop(place);
    for spare in gone {
        assert!(!exists(spare), "not even a zombie is left");
    }
}

#[test]
fn a_spare_that_is_killed_harms_no_command_and_is_replaced() {
    let place = Place::new("");
    for sandbox in place.all() {
        let mark = format!("go-{}", sandbox.rung());
        let script = format!("until [ -e {mark} ]; do sleep 0.01; done; echo through; exit 3");
        let waiting = prepare(&place, sandbox, &format!("echo > {mark}-there; {script}"));
        let program = waiting.program.clone();
        std::thread::scope(|scope| {
            let running = scope.spawn(|| run(waiting));
            wait_until("the command", || place.fixture.exists(&format!("{mark}-there")));
            let spare = the_spare(&program);
            rustix::process::kill_process(spare, Signal::KILL).unwrap();
            // Helpers do not hold the spare's end of the socket, or it would seem to live, and this command to be lost.
            assert_eq!(run(prepare(&place, sandbox, "echo next")).succeeded(), "next\n");
            assert_ne!(the_spare(&program), spare);
            assert!(!exists(spare), "the old one was waited for");
            run(prepare(&place, sandbox, &format!("echo > {mark}"))).succeeded();
            let ran = running.join().unwrap();
            assert_eq!((ran.outcome.end, ran.text.as_str()), (End::Exited(3), "through\n"));
        });
    }
}

#[test]
fn a_spare_that_was_stopped_is_replaced() {
    let place = Place::new("");
    let program = prepare(&place, &place.sandbox, "true").program;
    run(prepare(&place, &place.sandbox, "true")).succeeded();
    let spare = the_spare(&program);
    rustix::process::kill_process(spare, Signal::STOP).unwrap();
    assert_eq!(run(prepare(&place, &place.sandbox, "echo once")).succeeded(), "once\n");
    assert_ne!(the_spare(&program), spare);
    assert!(!exists(spare));
}

/// What a process holds, where it can be seen; `None` where it is closed to this one.
fn descriptors(pid: Pid) -> Option<Vec<String>> {
    let directory = format!("/proc/{}/fd", pid.as_raw_nonzero());
    let entries = match std::fs::read_dir(directory) {
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => return None,
        entries => entries.unwrap().flatten(),
    };
    let target = |path: PathBuf| {
        let target = std::fs::read_link(path).unwrap().to_str().unwrap().to_owned();
        target.split(':').next().unwrap().to_owned()
    };
    let mut found: Vec<_> = entries.map(|entry| target(entry.path())).collect();
    found.sort();
    Some(found)
}

#[test]
fn a_spare_holds_its_socket_and_nothing_of_its_caller() {
    let place = Place::new("");
    // Inherited by everything that is started, but for those who take care.
    let open = rustix::io::dup(std::fs::File::open("/etc/hostname").unwrap()).unwrap();
    for sandbox in place.all() {
        run(prepare(&place, sandbox, "true")).succeeded();
        let spare = the_spare(&prepare(&place, sandbox, "true").program);
        // Root sees into every process; to others it is closed, as the server itself is.
        let expected = ["/dev/null", "/dev/null", "/dev/null", "socket"].map(str::to_owned);
        let seen = descriptors(spare);
        assert_eq!(seen.is_some(), rustix::process::geteuid().is_root());
        assert!(seen.as_deref().is_none_or(|seen| seen == expected), "{seen:?}");
    }
    drop(open);
}

#[test]
fn a_spare_is_told_nothing_of_what_it_starts() {
    let place = Place::new("");
    let secret = format!("{}-{}", testkit::Fixture::CANARY, std::process::id());
    for sandbox in place.all() {
        let script = format!(": {secret}; echo {secret} | cat; cat < /dev/null");
        run(prepare(&place, sandbox, &script)).succeeded();
        let spare = the_spare(&prepare(&place, sandbox, "true").program);
        let memory = memory(spare);
        assert_eq!(memory.is_some(), rustix::process::geteuid().is_root());
        let finder = |memory: &[u8]| memory.windows(secret.len()).any(|at| at == secret.as_bytes());
        assert!(!memory.is_some_and(|memory| finder(&memory)), "{}", sandbox.rung());
    }
}

/// All that a process can write to; `None` where it is closed to this one.
fn memory(pid: Pid) -> Option<Vec<u8>> {
    use std::os::unix::fs::FileExt as _;
    let directory = PathBuf::from(format!("/proc/{}", pid.as_raw_nonzero()));
    let file = match std::fs::File::open(directory.join("mem")) {
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => return None,
        file => file.unwrap(),
    };
    let mut all = Vec::new();
    for line in std::fs::read_to_string(directory.join("maps")).unwrap().lines() {
        let mut fields = line.split(' ');
        let (from, to) = fields.next().unwrap().split_once('-').unwrap();
        if !fields.next().unwrap().starts_with("rw") {
            continue;
        }
        let [from, to] = [from, to].map(|at| u64::from_str_radix(at, 16).unwrap());
        let mut part = vec![0; usize::try_from(to - from).unwrap()];
        file.read_exact_at(&mut part, from).unwrap();
        all.extend(part);
    }
    assert!(all.len() > 4096);
    Some(all)
}

#[test]
fn what_a_spare_starts_leads_a_group_and_is_ended_by_it() {
    let place = Place::new("");
    for sandbox in place.all() {
        let mark = format!("mk-spare-{}-{}", sandbox.rung(), std::process::id());
        let script =
            format!("trap '' TERM; (setsid bash -c 'exec -a {mark} sleep 300' &); sleep 300");
        let prepared = prepare(&place, sandbox, &script);
        let ran = start(prepared.command, Duration::from_millis(300));
        assert!(ran.outcome.timed_out);
        assert_eq!(ran.outcome.end, End::Signaled(9));
        assert!(!survives(&mark), "{}", sandbox.rung());
    }
}

#[test]
fn many_threads_may_ask_one_spare() {
    let place = Place::new("");
    for sandbox in place.all() {
        std::thread::scope(|scope| {
            let one = |number: u8| {
                let ran = run(prepare(&place, sandbox, &format!("echo {number}; exit {number}")));
                assert_eq!(ran.outcome.end, End::Exited(number));
                assert_eq!(ran.text, format!("{number}\n"));
            };
            let all: Vec<_> = (0..16).map(|number| scope.spawn(move || one(number))).collect();
            for thread in all {
                thread.join().unwrap();
            }
        });
    }
}

#[test]
fn a_spare_does_not_outlive_a_caller_that_is_killed() {
    let place = Place::new("");
    let directory = tempfile::tempdir().unwrap();
    let caller = directory.path().join("caller");
    let example = Path::new(env!("CARGO_BIN_EXE_proc-sandbox-helper"));
    std::fs::copy(example.with_file_name("examples").join("confine"), &caller).unwrap();
    let mut child = std::process::Command::new(&caller)
        .arg("echo > started; sleep 300")
        .current_dir(place.fixture.root())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let running = || {
        let entries = std::fs::read_dir("/proc").unwrap().flatten();
        let is_one = |path: PathBuf| std::fs::read_link(path).is_ok_and(|path| path == caller);
        entries.filter(|entry| is_one(entry.path().join("exe"))).count()
    };
    wait_until("the command", || place.fixture.exists("started"));
    // The caller, its spare, the guardian; with namespaces the first process of one.
    let least = if place.highest().rung() >= Rung::NativeNoproc { 4 } else { 3 };
    if rustix::process::geteuid().is_root() {
        assert_eq!(running(), least);
    }
    child.kill().unwrap();
    child.wait().unwrap();
    wait_until("the end of all", || running() == 0);
}
