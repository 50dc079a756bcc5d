//! A kernel that has no `openat2`, or a container whose filter says so: `cap-std` walks by itself.
//!
//! The filter is put on a thread of this process and inherited by the process it starts, in which the
//! cases, the races and the comparisons run once more.

use std::collections::BTreeMap;

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};

use crate::{race, rerun};

/// Says to the process that it runs under the filter, so that it can make sure.
const FILTERED: &str = "WORKSPACE_JAIL_TESTS_WITHOUT_OPENAT2";

#[test]
fn the_cases_and_races_hold_without_openat2() {
    let answer = openat2(CWD, "/", OFlags::PATH, Mode::empty(), ResolveFlags::empty());
    if std::env::var_os(FILTERED).is_some() {
        assert_eq!(answer.err(), Some(Errno::NOSYS));
        return;
    }
    let said = std::thread::spawn(|| {
        let filter = SeccompFilter::new(
            BTreeMap::from([(libc::SYS_openat2, vec![])]),
            SeccompAction::Allow,
            SeccompAction::Errno(libc::ENOSYS.cast_unsigned()),
            std::env::consts::ARCH.try_into().unwrap(),
        );
        let program: BpfProgram = filter.unwrap().try_into().unwrap();
        seccompiler::apply_filter(&program).unwrap();
        let tests = ["cases::", "race::", "oracle::", "paths::", "without_openat2::"];
        let mut command = rerun::tests(&rerun::binary(), &tests);
        command.env(FILTERED, "1").env(race::OPERATIONS, "5000");
        rerun::check(command)
    });
    let said = said.join().unwrap();
    for test in ["cases::every_case_holds", "without_openat2::the_cases_and_races_hold"] {
        assert!(said.contains(&format!("test {test}")), "{test} did not run:\n{said}");
    }
}
