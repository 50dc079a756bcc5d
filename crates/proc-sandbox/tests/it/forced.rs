//! Machines that lack a part, imitated: a filter around the whole process makes the kernel say so.
//!
//! A filter cannot be taken off, so each of these tests runs in a process of its own: this binary again.

use std::collections::BTreeMap;
use std::time::Duration;

use proc_runner::{Command, End};
use proc_sandbox::{Error, Rung, State, Target};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule,
};

use crate::{Place, directory, start};

/// Names the test that runs inside.
const INNER: &str = "PROC_SANDBOX_FORCED";

/// Runs `body` where `call` fails with `errno`.
fn check_without(name: &str, call: libc::c_long, errno: libc::c_int, body: impl FnOnce()) {
    check_with(name, [(call, Vec::new())].into_iter().collect(), errno, body);
}

/// Runs `body` where the calls that `rules` match fail with `errno`.
fn check_with(
    name: &str,
    rules: BTreeMap<libc::c_long, Vec<SeccompRule>>,
    errno: libc::c_int,
    body: impl FnOnce(),
) {
    if std::env::var_os(INNER).is_none() {
        let command = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", &format!("forced::{name}"), "--nocapture"])
            .envs(std::env::vars_os())
            .env(INNER, name);
        let ran = start(command, Duration::from_mins(1));
        assert!(ran.text.contains("1 passed"), "{}", ran.text);
        assert_eq!(ran.outcome.end, End::Exited(0), "{}", ran.text);
        return;
    }
    let arch = std::env::consts::ARCH.try_into().unwrap();
    let action = SeccompAction::Errno(errno.unsigned_abs());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, action, arch).unwrap();
    seccompiler::apply_filter(&BpfProgram::try_from(filter).unwrap()).unwrap();
    body();
}

/// Starts a confined `touch` and returns what its status says; it must not have run.
fn refusal(place: &Place) -> Error {
    let target = Target::new("/usr/bin/touch", directory(&place.fixture.root())).args(["touched"]);
    let confined = place.sandbox.confine(target).unwrap();
    let command = Command::new(confined.program).args(confined.args).stdin(confined.stdin);
    let ran = start(command, Duration::from_secs(30));
    assert_eq!(ran.outcome.end, End::Exited(125), "{ran:?}");
    assert!(!place.fixture.exists("touched"));
    confined.status.enforced().unwrap_err()
}

#[test]
fn without_landlock_nothing_is_run_and_the_report_says_why() {
    let name = "without_landlock_nothing_is_run_and_the_report_says_why";
    check_without(name, libc::SYS_landlock_create_ruleset, libc::ENOSYS, || {
        let place = Place::plain(|policy| policy);
        let target = Target::new("/bin/true", directory(&place.fixture.root()));
        let error = place.sandbox.confine(target).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the sandbox reaches none here, and landlock is required: no Landlock: Function not implemented (os \
             error 38); run a kernel of version 5.13 or newer built with CONFIG_SECURITY_LANDLOCK, and a container \
             profile that allows its system calls"
        );
        let report = place.sandbox.probe();
        assert_eq!(report.rung, Rung::None);
        for layer in ["fs_readonly_outside", "fs_hidden_outside"] {
            let layer = report.layer(layer).unwrap();
            assert_eq!(layer.state, State::Unavailable, "{layer:?}");
            assert!(layer.detail.contains("no Landlock"), "{layer:?}");
            assert!(layer.remedy.as_ref().unwrap().contains("kernel of version 5.13"), "{layer:?}");
        }
        // What does not need Landlock holds all the same, and is reported so.
        for layer in ["net_off", "syscalls", "pid_containment", "no_new_privs", "memory_limit"] {
            assert_eq!(report.layer(layer).unwrap().state, State::Active, "{report:#?}");
        }
    });
}

#[test]
fn a_kernel_with_landlock_turned_off_is_told_from_one_without() {
    let name = "a_kernel_with_landlock_turned_off_is_told_from_one_without";
    check_without(name, libc::SYS_landlock_create_ruleset, libc::EOPNOTSUPP, || {
        let place = Place::plain(|policy| policy);
        let target = Target::new("/bin/true", directory(&place.fixture.root()));
        let error = place.sandbox.confine(target).unwrap_err().to_string();
        assert!(error.contains("Landlock is turned off"), "{error}");
        assert!(error.ends_with("add landlock to the kernel's lsm= list"), "{error}");
    });
}

#[test]
fn a_helper_that_cannot_restrict_files_runs_nothing() {
    let name = "a_helper_that_cannot_restrict_files_runs_nothing";
    check_without(name, libc::SYS_landlock_restrict_self, libc::EPERM, || {
        let place = Place::plain(|policy| policy);
        let error = refusal(&place);
        assert_eq!(error.to_string(), "the sandbox could not restrict files by Landlock");
        let report = place.sandbox.probe();
        assert_eq!(report.rung, Rung::None);
        let detail = &report.layer("net_off").unwrap().detail;
        assert!(detail.contains("could not restrict files by Landlock: Operation not"), "{detail}");
    });
}

#[test]
fn a_helper_that_cannot_refuse_calls_runs_nothing() {
    let name = "a_helper_that_cannot_refuse_calls_runs_nothing";
    check_without(name, libc::SYS_seccomp, libc::EINVAL, || {
        let error = refusal(&Place::plain(|policy| policy));
        assert_eq!(error.to_string(), "the sandbox could not refuse system calls by seccomp");
    });
}

#[test]
fn a_helper_that_keeps_a_capability_runs_nothing() {
    let name = "a_helper_that_keeps_a_capability_runs_nothing";
    check_without(name, libc::SYS_capset, libc::EPERM, || {
        let error = refusal(&Place::plain(|policy| policy));
        assert_eq!(error.to_string(), "the sandbox could not drop capabilities");
    });
}

#[test]
fn where_a_spare_cannot_split_off_helpers_they_are_started() {
    let name = "where_a_spare_cannot_split_off_helpers_they_are_started";
    let sibling = u64::from(libc::CLONE_PARENT.unsigned_abs());
    let condition =
        SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(sibling), sibling);
    let rule = SeccompRule::new(vec![condition.unwrap()]).unwrap();
    let rules = [(libc::SYS_clone, vec![rule])].into_iter().collect();
    check_with(name, rules, libc::EINVAL, || {
        let place = Place::new("");
        for sandbox in place.all() {
            let script = "cat; echo out; echo err >&2; exit 3";
            for _ in 0..3 {
                let ran = place.confined_by(sandbox, script);
                assert_eq!((ran.outcome.end, ran.text.as_str()), (End::Exited(3), "out\nerr\n"));
            }
        }
    });
}
