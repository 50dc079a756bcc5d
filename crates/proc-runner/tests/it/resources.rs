//! Many runs leave neither descriptors nor zombies.
//!
//! The other tests of this binary open descriptors and have children at the same time, so the counting runs in
//! a process of its own: this test starts its own binary again, for one test.

use std::time::Duration;

use proc_runner::{Cancel, Command, Discard, End, run};

use crate::{limits, outcome, text};

/// Set in the process that does the counting.
const INNER: &str = "PROC_RUNNER_COUNTS";

fn check_alone(name: &str, body: impl FnOnce()) {
    if std::env::var_os(INNER).is_some() {
        let descriptors = open_descriptors();
        body();
        assert_eq!(open_descriptors(), descriptors, "descriptors left");
        assert_eq!(children(), Vec::<String>::new(), "children left");
        return;
    }
    let command = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("resources::{name}"), "--test-threads=1"])
        .env(INNER, "1");
    let limits = limits();
    let outcome = run(command, &limits, &Cancel::new().unwrap(), &mut Discard).unwrap();
    let text = text(&outcome);
    assert_eq!(outcome.end, End::Exited(0), "{text}");
    assert!(text.contains("1 passed"), "{text}");
}

fn open_descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

fn children() -> Vec<String> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let lists = tasks.map(|task| std::fs::read_to_string(task.path().join("children")).unwrap());
    lists.flat_map(|list| list.split_whitespace().map(str::to_owned).collect::<Vec<_>>()).collect()
}

#[test]
fn two_hundred_runs_one_after_the_other() {
    check_alone("two_hundred_runs_one_after_the_other", || {
        for _ in 0..200 {
            let outcome = outcome("(sleep 0.01 &); true", &limits());
            assert_eq!(outcome.end, End::Exited(0));
        }
        drop(run(Command::new("/no/such"), &limits(), &Cancel::new().unwrap(), &mut Discard));
    });
}

#[test]
fn fifty_runs_at_once() {
    check_alone("fifty_runs_at_once", || {
        let runs: Vec<_> = (0..50)
            .map(|n| {
                std::thread::spawn(move || {
                    let outcome = outcome(&format!("sleep 0.1; echo ok-{n}"), &limits());
                    assert_eq!(text(&outcome), format!("ok-{n}\n"));
                    // One run's pipe inherited by another run's child would be drained in vain.
                    assert!(outcome.duration < Duration::from_secs(20), "{:?}", outcome.duration);
                })
            })
            .collect();
        for run in runs {
            run.join().unwrap();
        }
    });
}

#[test]
fn orphans_that_become_our_children_are_reaped() {
    check_alone("orphans_that_become_our_children_are_reaped", || {
        rustix::process::set_child_subreaper(Some(rustix::process::getpid())).unwrap();
        let outcome = outcome("(sleep 300 &); (sleep 300 &); echo x", &limits());
        assert_eq!(outcome.leftovers, Some(2));
    });
}
