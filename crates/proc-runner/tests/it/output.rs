//! Output: order, completeness, bounds, and sinks that fail.

use std::io;
use std::time::Duration;

use proc_runner::{Cancel, Discard, End, Error, run};

use crate::{alive, limits, mark, outcome, shell, text};

#[test]
fn both_outputs_are_merged_in_arrival_order() {
    let outcome = outcome("for i in 1 2 3; do echo out$i; echo err$i >&2; done", &limits());
    assert_eq!(text(&outcome), "out1\nerr1\nout2\nerr2\nout3\nerr3\n");
}

#[test]
fn the_sink_gets_every_byte_and_the_capture_keeps_the_ends() {
    let mut seen = Vec::new();
    let mut sink = |bytes: &[u8]| {
        seen.extend_from_slice(bytes);
        Ok(())
    };
    let limits = limits().keep(10, 10);
    let outcome = run(shell("seq 100000"), &limits, &Cancel::new().unwrap(), &mut sink).unwrap();
    let expected: Vec<u8> = (1..=100_000).flat_map(|n| format!("{n}\n").into_bytes()).collect();
    assert!(seen == expected);
    assert_eq!(outcome.captured.head, b"1\n2\n3\n4\n5\n");
    assert_eq!(outcome.captured.tail, b"99\n100000\n");
    assert_eq!(outcome.captured.total_bytes, expected.len() as u64);
    assert_eq!(outcome.captured.omitted_bytes(), expected.len() as u64 - 20);
}

#[test]
fn two_hundred_megabytes_stay_in_bounded_memory() {
    let before = peak_kib();
    let outcome = outcome("yes | head -c 200000000", &limits());
    assert_eq!(outcome.end, End::Exited(0));
    assert_eq!(outcome.captured.total_bytes, 200_000_000);
    assert_eq!(outcome.captured.head.len(), 64 * 1024);
    assert_eq!(outcome.captured.tail.len(), 192 * 1024);
    // Other tests run beside this one; all of them together stay far below the 200 MB that went through.
    let grown = peak_kib() - before;
    assert!(grown < 40_000, "grew by {grown} KiB");
}

fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_ascii_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn output_without_end_does_not_hide_the_time_out() {
    let limits = proc_runner::Limits::new(Duration::from_millis(300));
    let outcome = outcome("exec yes", &limits);
    assert!(outcome.timed_out);
    assert!(outcome.captured.total_bytes > 0);
    assert!(outcome.duration < Duration::from_secs(3), "{:?}", outcome.duration);
}

#[test]
fn a_sink_that_fails_ends_the_tree_and_keeps_the_outcome() {
    let mark = mark("sink");
    let mut calls = 0;
    let mut sink = |_: &[u8]| {
        calls += 1;
        Err(io::Error::from(io::ErrorKind::StorageFull))
    };
    let script = format!("echo kept; sh -c 'sleep 300; : {mark}'");
    let error = run(shell(&script), &limits(), &Cancel::new().unwrap(), &mut sink).unwrap_err();
    assert_eq!(error.to_string(), "output of /bin/sh could not be delivered");
    let Error::Sink { outcome, source, .. } = error else { panic!("{error:?}") };
    assert_eq!(source.kind(), io::ErrorKind::StorageFull);
    assert_eq!(outcome.captured.head, b"kept\n");
    assert_eq!(outcome.end, End::Signaled(9));
    assert_eq!(calls, 1);
    assert!(!alive(&mark));
}

#[test]
fn a_sink_that_panics_does_not_leave_the_tree() {
    let mark = mark("panic");
    let script = format!("echo x; sh -c 'sleep 300; : {mark}'");
    let result = std::panic::catch_unwind(|| {
        let mut sink = |_: &[u8]| -> io::Result<()> { panic!("sink") };
        run(shell(&script), &limits(), &Cancel::new().unwrap(), &mut sink)
    });
    assert!(result.is_err());
    // The kill is sent before the panic goes on; death itself takes the kernel a moment.
    let deadline = std::time::Instant::now() + Duration::from_secs(5);
    while alive(&mark) {
        assert!(std::time::Instant::now() < deadline);
        std::thread::yield_now();
    }
}

#[test]
fn output_after_the_child_closed_it_is_not_waited_for() {
    let outcome = run(
        shell("echo first; exec >&- 2>&-; sleep 0.2; exit 4"),
        &limits(),
        &Cancel::new().unwrap(),
        &mut Discard,
    )
    .unwrap();
    assert_eq!(text(&outcome), "first\n");
    assert_eq!(outcome.end, End::Exited(4));
}

#[test]
fn without_any_time_to_drain_what_is_in_the_pipe_is_kept() {
    let limits = limits().drain(Duration::ZERO);
    for _ in 0..20 {
        let outcome = outcome("seq 5000; exit 1", &limits);
        assert_eq!(outcome.captured.total_bytes, 23_893);
    }
}

#[test]
fn one_outside_the_group_that_goes_on_writing_does_not_hold_the_answer() {
    let fixture = testkit::Fixture::new("");
    let pid_file = fixture.root().join("pid");
    let script = format!(
        "setsid sh -c 'echo $$ > {0}.new; mv {0}.new {0}; exec yes' & while [ ! -e {0} ]; do :; done",
        pid_file.display()
    );
    let outcome = outcome(&script, &limits().drain(Duration::from_millis(300)));
    let pid = rustix::process::Pid::from_raw(fixture.read("pid").trim().parse().unwrap()).unwrap();
    // It dies of the closed pipe by itself, perhaps before it is killed here.
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).ok();
    assert_eq!(outcome.end, End::Exited(0));
    assert!(outcome.duration < Duration::from_secs(5), "{:?}", outcome.duration);
}
