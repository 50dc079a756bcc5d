//! Commands that cannot be started say which program and why, and leave nothing behind.

use std::error::Error as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use proc_runner::{Cancel, Command, Discard, End, Error, Limits, run};

use crate::{alive, limits, mark, text};

fn refusal(command: Command) -> Error {
    run(command, &limits(), &Cancel::new().unwrap(), &mut Discard).unwrap_err()
}

fn check(command: Command, message: &str, source: Option<&str>) {
    let error = refusal(command);
    assert_eq!(error.to_string(), message);
    assert_eq!(error.source().map(ToString::to_string).as_deref(), source);
}

#[test]
fn a_missing_program() {
    check(
        Command::new("/no/such/program"),
        "cannot start /no/such/program",
        Some("No such file or directory (os error 2)"),
    );
}

#[test]
fn a_file_that_is_no_program() {
    check(
        Command::new("/etc/passwd"),
        "cannot start /etc/passwd",
        Some("Permission denied (os error 13)"),
    );
}

#[test]
fn a_directory_that_is_a_file() {
    let file = std::fs::File::open("/etc/passwd").unwrap();
    check(
        Command::new("/bin/sh").cwd(file.into()),
        "cannot start /bin/sh",
        Some("Not a directory (os error 20)"),
    );
}

#[test]
fn an_argument_over_the_kernel_limit() {
    check(
        Command::new("/bin/sh").args(["-c", &"x".repeat(200_000)]),
        "cannot start /bin/sh",
        Some("Argument list too long (os error 7)"),
    );
}

#[test]
fn a_bare_name_is_not_searched() {
    check(Command::new("sh"), "cannot run sh: the program must be named by a path", None);
}

#[test]
fn what_execve_cannot_carry() {
    let nul = "cannot run /bin/sh: a NUL byte cannot be passed to a program";
    check(Command::new("/bin/sh").args(["a\0b"]), nul, None);
    check(Command::new("/bin/sh").arg0("a\0b"), nul, None);
    check(Command::new("/bin/sh").env("A", "a\0b"), nul, None);
    let name = "cannot run /bin/sh: the name of an environment variable is empty or has a NUL byte \
                or '=' in it";
    check(Command::new("/bin/sh").env("A=B", "c"), name, None);
    check(Command::new("/bin/sh").env("", "c"), name, None);
}

#[test]
fn a_switch_thrown_before_starts_nothing() {
    let fixture = testkit::Fixture::new("");
    let cancel = Cancel::new().unwrap();
    cancel.cancel();
    let target = fixture.root().join("touched");
    let command = Command::new("/usr/bin/touch").args([&target]);
    let error = run(command, &limits(), &cancel, &mut Discard).unwrap_err();
    assert!(
        matches!(error, Error::Cancelled { program } if program == Path::new("/usr/bin/touch"))
    );
    assert!(!fixture.exists("touched"));
}

/// Starts a shell script, as a leader of its own group or as a member of the test's.
fn by_hand(script: &str, leader: bool) -> Command {
    let mut command = std::process::Command::new("/bin/sh");
    command.args(["-c", script]);
    if leader {
        command.process_group(0);
    }
    Command::started_by("/bin/sh", move |output| {
        let error = output.try_clone()?;
        Ok(command.stdin(Stdio::null()).stdout(output).stderr(error).spawn()?.id())
    })
}

#[test]
fn what_somebody_else_started_is_run_like_any_other() {
    let mark = mark("by-hand");
    let script = format!("sh -c 'sleep 300; : {mark}' & echo out; echo err >&2; exit 3");
    let command = by_hand(&script, true);
    let outcome = run(command, &limits(), &Cancel::new().unwrap(), &mut Discard).unwrap();
    assert_eq!(outcome.end, End::Exited(3));
    assert_eq!(text(&outcome), "out\nerr\n");
    // The shell, and its sleep if it came so far.
    assert!(outcome.leftovers.is_some_and(|left| left >= 1));
    assert!(!alive(&mark));
}

#[test]
fn what_somebody_else_started_ends_at_its_time() {
    let limits = Limits::new(Duration::from_millis(50)).grace(Duration::ZERO);
    let command = by_hand("trap '' TERM; sleep 300; sleep 300", true);
    let outcome = run(command, &limits, &Cancel::new().unwrap(), &mut Discard).unwrap();
    assert!(outcome.timed_out);
    assert_eq!(outcome.end, End::Signaled(9));
}

#[test]
fn a_process_that_leads_no_group_is_killed_and_refused() {
    let mark = mark("no-leader");
    let command = by_hand(&format!("sleep 300; : {mark}"), false);
    check(command, "cannot start /bin/sh", Some("a process without a group of its own"));
    assert!(!alive(&mark));
}

#[test]
fn a_number_that_is_no_child_is_refused() {
    for number in [0, 1, u32::MAX] {
        let command = Command::started_by("/bin/sh", move |_| Ok(number));
        check(command, "cannot start /bin/sh", Some("no process id"));
    }
    // The parent is a process, and not a child.
    let parent = std::os::unix::process::parent_id();
    let command = Command::started_by("/bin/sh", move |_| Ok(parent));
    check(command, "cannot start /bin/sh", Some("No child processes (os error 10)"));
}

#[test]
fn what_a_starter_could_not_start_is_told() {
    let command = Command::started_by("/bin/sh", |_| Err(std::io::ErrorKind::NotFound.into()));
    check(command, "cannot start /bin/sh", Some("entity not found"));
}

#[test]
fn a_starter_is_given_nothing_it_would_not_pass_on() {
    let message = "cannot run /bin/sh: what somebody else starts can be given nothing here";
    let command = || Command::started_by("/bin/sh", |_| Ok(0));
    let file = || std::fs::File::open("/").unwrap().into();
    check(command().args(["a"]), message, None);
    check(command().arg0("a"), message, None);
    check(command().env("A", "a"), message, None);
    check(command().cwd(file()), message, None);
    check(command().stdin(file()), message, None);
}
