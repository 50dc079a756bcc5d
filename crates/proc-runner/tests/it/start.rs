//! Commands that cannot be started say which program and why, and leave nothing behind.

use std::error::Error as _;
use std::path::Path;

use proc_runner::{Cancel, Command, Discard, Error, run};

use crate::limits;

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
