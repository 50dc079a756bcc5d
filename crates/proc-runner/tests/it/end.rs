//! How commands end: by themselves, by a signal, by time, by cancellation, and what they leave.

use std::time::{Duration, Instant};

use proc_runner::{Cancel, Discard, End, Limits, run};

use crate::{alive, limits, mark, outcome, shell, text};

fn check_end(script: &str, expected: End) {
    let outcome = outcome(script, &limits());
    assert_eq!(outcome.end, expected);
    assert!(!outcome.timed_out && !outcome.cancelled);
    assert_eq!(outcome.leftovers, Some(0));
}

#[test]
fn exit_codes_are_what_the_program_said() {
    check_end("true", End::Exited(0));
    check_end("exit 3", End::Exited(3));
    check_end("exit 200", End::Exited(200));
    check_end("no-such-command", End::Exited(127));
}

#[test]
fn a_signal_is_a_signal() {
    check_end("kill -SEGV $$", End::Signaled(11));
    check_end("kill -KILL $$", End::Signaled(9));
    check_end("sh -c 'kill -TERM $$'; exit $?", End::Exited(143));
}

#[test]
fn a_background_job_that_holds_the_pipe_does_not_hold_the_answer() {
    let mark = mark("background");
    let outcome = outcome(&format!("sh -c 'sleep 300; : {mark}' & echo started"), &limits());
    assert_eq!(outcome.end, End::Exited(0));
    assert_eq!(text(&outcome), "started\n");
    // The inner shell and its sleep, or the shell alone when it had not yet got that far.
    assert!(matches!(outcome.leftovers, Some(1 | 2)), "{:?}", outcome.leftovers);
    assert!(outcome.duration < Duration::from_secs(3), "{:?}", outcome.duration);
    assert!(!alive(&mark));
}

#[test]
fn one_that_left_the_group_holds_the_answer_for_the_drain_time_alone() {
    let fixture = testkit::Fixture::new("");
    let pid_file = fixture.root().join("pid");
    let script = format!(
        "setsid sh -c 'echo $$ > {0}.new; mv {0}.new {0}; exec sleep 300' & \
         while [ ! -e {0} ]; do :; done; echo started",
        pid_file.display()
    );
    let outcome = outcome(&script, &limits().drain(Duration::from_millis(300)));
    assert_eq!(text(&outcome), "started\n");
    assert!(outcome.duration >= Duration::from_millis(300), "{:?}", outcome.duration);
    assert!(outcome.duration < Duration::from_secs(5), "{:?}", outcome.duration);
    // It survives, as the crate's documentation says it does: this test ends it.
    let pid = fixture.read("pid").trim().parse().unwrap();
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

#[test]
fn a_time_out_keeps_the_output_so_far() {
    let limits = Limits::new(Duration::from_millis(300));
    let outcome = outcome("echo partial; sleep 300", &limits);
    assert!(outcome.timed_out && !outcome.cancelled);
    assert_eq!(text(&outcome), "partial\n");
    assert_eq!(outcome.end, End::Signaled(15));
    assert!(outcome.duration >= Duration::from_millis(300), "{:?}", outcome.duration);
    assert!(outcome.duration < Duration::from_secs(3), "{:?}", outcome.duration);
}

#[test]
fn a_time_out_ends_the_whole_group() {
    let mark = mark("group");
    let limits = Limits::new(Duration::from_millis(300));
    let outcome =
        outcome(&format!("sh -c 'sleep 300; : {mark}' & sh -c 'sleep 300; : {mark}'; :"), &limits);
    assert!(outcome.timed_out);
    assert!(!alive(&mark));
}

#[test]
fn a_command_that_ends_on_the_first_signal_can_say_so() {
    let limits = Limits::new(Duration::from_millis(300));
    let outcome = outcome("trap 'echo bye; exit 7' TERM; sleep 300 & wait", &limits);
    assert!(outcome.timed_out);
    assert_eq!(outcome.end, End::Exited(7));
    assert_eq!(text(&outcome), "bye\n");
}

#[test]
fn ignoring_the_first_signal_helps_until_the_grace_is_over() {
    let limits = Limits::new(Duration::from_millis(200)).grace(Duration::from_millis(300));
    let outcome = outcome("trap '' TERM INT HUP; while :; do sleep 0.1; done", &limits);
    assert!(outcome.timed_out);
    assert_eq!(outcome.end, End::Signaled(9));
    assert!(outcome.duration >= Duration::from_millis(500), "{:?}", outcome.duration);
    assert!(outcome.duration < Duration::from_secs(4), "{:?}", outcome.duration);
}

#[test]
fn a_stopped_command_is_ended() {
    let limits = Limits::new(Duration::from_millis(200));
    let outcome = outcome("kill -STOP $$; echo on", &limits);
    assert!(outcome.timed_out);
    assert!(outcome.duration < Duration::from_secs(3), "{:?}", outcome.duration);
}

#[test]
fn a_time_beyond_all_clocks_is_none() {
    let outcome = outcome("echo x", &Limits::new(Duration::MAX).grace(Duration::MAX));
    assert_eq!(outcome.end, End::Exited(0));
}

#[test]
fn a_cancellation_from_another_thread_ends_the_group_within_a_second() {
    let mark = mark("cancel");
    let cancel = Cancel::new().unwrap();
    let (thrown, when) = std::sync::mpsc::channel();
    // Thrown when the command says that it runs, so nothing depends on a sleep.
    let switch = cancel.clone();
    let mut sink = |bytes: &[u8]| {
        assert_eq!(bytes, b"up\n");
        let (switch, thrown) = (switch.clone(), thrown.clone());
        std::thread::spawn(move || {
            thrown.send(Instant::now()).unwrap();
            switch.cancel();
        });
        Ok(())
    };
    let script = format!("trap '' TERM; echo up; sh -c 'sleep 300; : {mark}'");
    let outcome = run(shell(&script), &limits(), &cancel, &mut sink).unwrap();
    let took = when.recv().unwrap().elapsed();
    assert!(outcome.cancelled && !outcome.timed_out);
    assert!(took < Duration::from_secs(1), "{took:?}");
    assert!(!alive(&mark));
}

#[test]
fn processor_time_is_told() {
    let outcome = outcome("i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done", &limits());
    let usage = outcome.usage;
    assert!(usage.user + usage.system > Duration::ZERO, "{usage:?}");
    assert!(usage.user + usage.system <= outcome.duration * 2, "{usage:?}");
    assert_eq!(usage.max_rss, None, "a shell is no larger than its caller");
}

#[test]
fn memory_of_the_largest_process_is_told() {
    // A child of a child, which holds what it reads until the end.
    let outcome = outcome("head -c 200000000 /dev/zero | (tail -c 200000000 | wc -c)", &limits());
    let max_rss = outcome.usage.max_rss.unwrap();
    assert!((200_000_000..800_000_000).contains(&max_rss), "{max_rss}");
}

#[test]
fn a_sink_may_throw_the_switch_itself() {
    let cancel = Cancel::new().unwrap();
    let switch = cancel.clone();
    let mut sink = |_: &[u8]| {
        switch.cancel();
        Ok(())
    };
    let outcome = run(shell("echo x; sleep 300"), &limits(), &cancel, &mut sink).unwrap();
    assert!(outcome.cancelled);
    let mut after = Discard;
    assert!(run(shell("true"), &limits(), &cancel, &mut after).is_err());
}
