//! The tests of this binary once more, in a process under other conditions.

use std::process::{Command, Stdio};

/// A command that runs the tests that `filters` name in this binary, or in a copy of it.
pub(crate) fn tests(binary: &std::path::Path, filters: &[&str]) -> Command {
    let mut command = Command::new(binary);
    command.args(filters).arg("--nocapture").stdin(Stdio::null());
    command
}

/// This binary.
pub(crate) fn binary() -> std::path::PathBuf {
    std::env::current_exe().unwrap()
}

/// Runs such a command to its end, and gives back what it said. Fails if a test did, or if there was none.
pub(crate) fn check(mut command: Command) -> String {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {:?}\n{said}", output.status);
    assert!(said.contains("test result: ok. ") && !said.contains(" 0 passed"), "{said}");
    said.into_owned()
}

#[test]
fn searches_need_few_descriptors() {
    let tests = [
        "find::a_deep_tree_is_walked_with_few_descriptors",
        "grep::many_threads_find_what_one_would",
    ];
    let mut command = Command::new("/bin/bash");
    command.args(["-c", "ulimit -n 128 && exec \"$0\" \"$@\""]).arg(binary()).args(tests);
    command.args(["--exact", "--nocapture", "--test-threads=1"]).stdin(Stdio::null());
    let said = check(command);
    assert!(said.contains("test result: ok. 2 passed"), "{said}");
}
