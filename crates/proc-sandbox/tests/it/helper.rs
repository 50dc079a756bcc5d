//! The helper: fails closed, says why, and can be the embedding program itself.

use proc_runner::Command;
use proc_sandbox::{Error, Rung, Sandbox, Target};

use crate::{Place, directory, start};

const PATIENCE: std::time::Duration = std::time::Duration::from_secs(30);

#[test]
fn a_program_that_is_not_there_is_an_error_of_its_own() {
    let place = Place::new("//- text\nx\n");
    let root = place.fixture.root();
    let check = |program: &str, message: &str| {
        let confined = place.sandbox.confine(Target::new(program, directory(&root))).unwrap();
        let command = Command::new(confined.program).args(confined.args).stdin(confined.stdin);
        let ran = start(command, PATIENCE);
        assert_eq!(ran.outcome.end, proc_runner::End::Exited(125));
        let error = confined.status.enforced().unwrap_err();
        let Error::Execute { source, .. } = &error else { panic!("{error:?}") };
        assert_eq!(format!("{error}: {source}"), message);
    };
    check(
        "/usr/bin/no-such",
        "cannot execute /usr/bin/no-such: No such file or directory (os error 2)",
    );
    let text = root.join("text");
    let text = text.to_str().unwrap();
    check(text, &format!("cannot execute {text}: Permission denied (os error 13)"));
}

#[test]
fn a_program_outside_the_policy_cannot_be_executed() {
    let place = Place::new("");
    let tool = place.fixture.outside().join("tool");
    std::fs::copy("/bin/true", &tool).unwrap();
    place.open(tool.to_str().unwrap()).succeeded();
    place.confined(tool.to_str().unwrap()).failed();
}

#[test]
fn what_a_program_cannot_take_is_refused_before_the_start() {
    let place = Place::new("");
    let root = place.fixture.root();
    let check = |target: Target, message: &str| {
        assert_eq!(place.sandbox.confine(target).unwrap_err().to_string(), message);
    };
    let shell = || Target::new("/bin/sh", directory(&root));
    let nul = "cannot confine /bin/sh: a NUL byte cannot be passed to a program";
    check(shell().args(["a\0b"]), nul);
    check(shell().envs([("A", "a\0b")]), nul);
    let name = "cannot confine /bin/sh: the name of an environment variable is empty or has a NUL byte or '=' \
                in it";
    check(shell().envs([("A=B", "c")]), name);
    check(
        Target::new("sh", directory(&root)),
        "cannot confine sh: the program must be named by an absolute path",
    );
}

#[test]
fn an_argument_over_the_kernel_limit_is_an_error_not_a_hang() {
    let place = Place::new("");
    let target =
        Target::new("/bin/sh", directory(&place.fixture.root())).args(["-c", &"x".repeat(300_000)]);
    let confined = place.sandbox.confine(target).unwrap();
    let command = Command::new(confined.program).args(confined.args).stdin(confined.stdin);
    start(command, PATIENCE);
    let error = confined.status.enforced().unwrap_err();
    assert!(matches!(&error, Error::Execute { source, .. } if source.raw_os_error() == Some(7)));
}

#[test]
fn a_program_that_is_no_helper_is_silent() {
    let place = Place::new("");
    let target = Target::new("/bin/true", directory(&place.fixture.root()));
    let confined = place.sandbox.confine(target).unwrap();
    start(Command::new("/bin/true").stdin(confined.stdin), PATIENCE);
    assert!(matches!(confined.status.enforced(), Err(Error::Silent)));
}

#[test]
fn a_helper_without_a_plan_runs_nothing() {
    let helper = env!("CARGO_BIN_EXE_proc-sandbox-helper");
    let command = Command::new(helper).args(["__sandbox-init", "/bin/echo", "RAN"]);
    let ran = start(command, PATIENCE);
    assert_eq!((ran.outcome.end, ran.text.as_str()), (proc_runner::End::Exited(125), ""));
}

#[test]
fn standard_input_can_be_given() {
    let place = Place::new("");
    let (reader, writer) = std::io::pipe().unwrap();
    std::io::Write::write_all(&mut &writer, b"given\n").unwrap();
    drop(writer);
    let target = Target::new("/bin/cat", directory(&place.fixture.root())).stdin(reader.into());
    let confined = place.sandbox.confine(target).unwrap();
    let command = Command::new(confined.program).args(confined.args).stdin(confined.stdin);
    assert_eq!(start(command, PATIENCE).succeeded(), "given\n");
}

/// The steps that a command that does nothing was taken through.
fn steps(place: &Place, sandbox: &Sandbox) -> Vec<String> {
    let target = Target::new("/bin/true", directory(&place.fixture.root()));
    let confined = sandbox.confine(target).unwrap();
    let command = Command::new(confined.program).args(confined.args).stdin(confined.stdin);
    start(command, PATIENCE).succeeded();
    let enforced = confined.status.enforced().unwrap();
    assert_eq!(enforced.rung, sandbox.rung());
    enforced.steps
}

#[test]
fn what_was_enforced_is_told_step_by_step() {
    let place = Place::new("");
    assert_eq!(
        steps(&place, &place.sandbox),
        [
            "reset signals",
            "leave the terminal",
            "set the file mode mask",
            "close descriptors",
            "prefer commands when memory runs out",
            "enter the working directory",
            "limit resources",
            "empty the bounding set",
            "forbid new privileges",
            "drop capabilities",
            "restrict files by Landlock",
            "refuse system calls by seccomp",
        ]
    );
    let sandbox = place.highest();
    if sandbox.rung() != Rung::NativeFull {
        return;
    }
    let mut steps = steps(&place, sandbox);
    // Root's alone.
    steps.retain(|step| step != "become another user");
    assert_eq!(
        steps,
        [
            "reset signals",
            "leave the terminal",
            "set the file mode mask",
            "close descriptors",
            "prefer commands when memory runs out",
            "forbid core files",
            "enter the prepared place",
            "start a namespace of processes",
            "mount a fresh /proc",
            "make protected names read-only",
            "enter the working directory",
            "limit resources",
            "empty the bounding set",
            "forbid new privileges",
            "drop capabilities",
            "restrict files by Landlock",
            "refuse system calls by seccomp",
        ]
    );
}

/// An example, which cargo builds beside the tests.
fn example(name: &str) -> std::path::PathBuf {
    let helper = std::path::Path::new(env!("CARGO_BIN_EXE_proc-sandbox-helper"));
    helper.with_file_name("examples").join(name)
}

#[test]
fn a_program_can_be_its_own_helper() {
    check_example("confine", &[]);
}

#[test]
fn a_program_whose_main_is_not_its_own_names_the_helper() {
    check_example("with_helper", &[env!("CARGO_BIN_EXE_proc-sandbox-helper")]);
}

/// Runs an example on a script that reads what it may and what it may not.
fn check_example(name: &str, arguments: &[&str]) {
    let place = Place::new("//- a.txt\nworkspace\n");
    let secret = place.fixture.outside().join("secret.txt");
    let script = format!("cat a.txt {} 2>&1; exit 3", secret.display());
    let command = Command::new(example(name))
        .args(arguments.iter().copied())
        .args([&script])
        .envs(crate::environment())
        .cwd(directory(&place.fixture.root()));
    let text = start(command, PATIENCE).succeeded();
    assert!(text.starts_with("workspace\ncat: "), "{text}");
    let rung = place.highest().rung();
    assert!(text.ends_with(&format!("Exited(3) on the rung {rung}\n")), "{text}");
    assert!(!text.contains(testkit::Fixture::CANARY), "{text}");
}
