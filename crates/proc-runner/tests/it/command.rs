//! What the child finds: arguments, environment, directory, standard input.

use std::fs::File;
use std::os::fd::{AsRawFd as _, OwnedFd};

use proc_runner::{Cancel, Command, Discard, End, run};

use crate::{limits, outcome, shell, text};

fn check(command: Command, expected: &str) {
    let outcome = run(command, &limits(), &Cancel::new().unwrap(), &mut Discard).unwrap();
    assert_eq!(text(&outcome), expected);
    assert_eq!(outcome.end, End::Exited(0));
}

#[test]
fn the_environment_holds_what_was_named_and_nothing_else() {
    let env = Command::new("/usr/bin/env").env("A", "1").envs([("B", "2"), ("A", "3")]);
    check(env, "A=3\nB=2\n");
}

#[test]
fn arguments_are_not_read_by_a_shell() {
    let command = Command::new("/usr/bin/printf").args(["%s|", "a b", "$HOME", "'\"", "\n*"]);
    check(command, "a b|$HOME|'\"|\n*|");
}

#[test]
fn standard_input_is_at_its_end() {
    check(shell("cat; echo done"), "done\n");
}

#[test]
fn standard_input_can_be_given() {
    let (reader, writer) = std::io::pipe().unwrap();
    std::io::Write::write_all(&mut &writer, b"given\n").unwrap();
    drop(writer);
    check(shell("cat").stdin(OwnedFd::from(reader)), "given\n");
}

#[test]
fn the_directory_is_the_one_that_was_opened_wherever_its_name_leads_now() {
    let fixture = testkit::Fixture::new("//- dir/here\nyes\n//- other/there\nno\n");
    let opened = File::open(fixture.root().join("dir")).unwrap();
    std::fs::rename(fixture.root().join("dir"), fixture.root().join("moved")).unwrap();
    fixture.symlink("dir", fixture.root().join("other"));
    check(shell("cat here").cwd(OwnedFd::from(opened)), "yes\n");
}

#[test]
fn without_a_directory_it_is_the_root() {
    check(shell("pwd"), "/\n");
}

#[test]
fn the_name_can_differ_from_the_path() {
    check(Command::new("/bin/sh").arg0("named").args(["-c", "echo $0"]), "named\n");
}

#[test]
fn no_descriptor_that_closes_on_exec_is_inherited() {
    let held: Vec<File> = (0..8).map(|_| File::open("/").unwrap()).collect();
    let mut expected: Vec<String> = ["0", "1", "2", "3"].map(str::to_owned).into();
    expected.extend(open_across_exec());
    expected.sort();
    expected.dedup();
    // The fourth is the directory that ls itself reads.
    let outcome = outcome("LC_ALL=C ls /proc/self/fd", &limits());
    assert_eq!(text(&outcome).lines().collect::<Vec<_>>(), expected);
    assert!(held.iter().any(|file| !expected.contains(&file.as_raw_fd().to_string())));
}

/// Descriptors that this process got from whoever started it without the flag that closes them.
fn open_across_exec() -> impl Iterator<Item = String> {
    std::fs::read_dir("/proc/self/fdinfo").unwrap().flatten().filter_map(|entry| {
        let info = std::fs::read_to_string(entry.path()).ok()?;
        let flags = info.lines().find_map(|line| line.strip_prefix("flags:"))?.trim();
        let closes = u32::from_str_radix(flags, 8).unwrap() & 0o2_000_000 != 0;
        (!closes).then(|| entry.file_name().into_string().unwrap())
    })
}

#[test]
fn a_program_can_be_named_by_a_descriptor_that_was_opened_before() {
    let program = File::open("/usr/bin/env").unwrap();
    check(Command::new(format!("/proc/self/fd/{}", program.as_raw_fd())).env("X", "y"), "X=y\n");
}
