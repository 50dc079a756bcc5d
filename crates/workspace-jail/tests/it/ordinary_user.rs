//! The cases for a user without privileges, when it is root who runs the tests.

use std::collections::BTreeSet;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use testkit::Case;

use crate::{cases, rerun};

/// Anybody but root.
const USER: u32 = 10_001;

#[test]
fn the_cases_hold_for_an_ordinary_user() {
    if !rustix::process::geteuid().is_root() {
        // Then `cases::every_case_holds` is this test.
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let (binary, data) = (place.path().join("tests"), place.path().join("cases"));
    // By a process of its own: a descriptor open for writing would leak into what other tests start meanwhile, and a
    // program that is open for writing cannot be run.
    let copied = Command::new("cp").arg(rerun::binary()).arg(&binary).status().unwrap();
    assert!(copied.success());
    std::fs::create_dir(&data).unwrap();
    for entry in std::fs::read_dir(cases::directory()).unwrap() {
        let from = entry.unwrap().path();
        std::fs::copy(&from, data.join(from.file_name().unwrap())).unwrap();
    }
    let scratch = place.path().join("scratch");
    std::fs::create_dir(&scratch).unwrap();
    chown(&scratch, Some(USER), Some(USER)).unwrap();
    for path in [place.path(), &binary, &data] {
        set_mode(path, 0o755);
    }

    let mut command = rerun::tests(&binary, &["--exact", "cases::every_case_holds"]);
    command.uid(USER).gid(USER).current_dir(&scratch);
    command.env("TMPDIR", &scratch).env("HOME", &scratch).env(cases::CASES, &data);
    // What it may leave out is compared below.
    command.env_remove("AGENT_WORKSPACE_TESTS_NO_SKIP");
    let said = rerun::check(command);

    let left_out: BTreeSet<&str> =
        said.lines().filter_map(|line| line.strip_prefix("SKIPPED ")?.split(':').next()).collect();
    let all = cases::all();
    let of_root =
        |case: &&Case<cases::Body>| case.body.requires.iter().any(|need| need == "root_setup");
    let of_root: BTreeSet<&str> =
        all.iter().filter(of_root).map(|case| case.body.id.as_str()).collect();
    assert_eq!(left_out, of_root);
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}
