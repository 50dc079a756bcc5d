//! Process trees: nothing outlives its command, whatever it calls.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use proc_runner::End;

use crate::Place;

const SECOND: Duration = Duration::from_secs(1);
/// Long enough for a shell to start what it is to start, on a busy machine.
const A_WHILE: Duration = Duration::from_secs(2);

/// Whether a process with `mark` in its command line is alive; one that is, is ended, so that nothing stays.
pub(crate) fn survives(mark: &str) -> bool {
    let mut found = false;
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse() else { continue };
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        if String::from_utf8_lossy(&line).contains(mark) {
            found = true;
            let pid = rustix::process::Pid::from_raw(pid).unwrap();
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).ok();
        }
    }
    found
}

/// Checks that what `script` starts under the name `MARK` survives a run without the sandbox, not one in it.
fn check_containment(script: &str, timeout: Duration) {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let place = Place::new("");
    let script = |mark: &str| script.replace("MARK", mark);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let open = format!("mk-open-{}-{number}", std::process::id());
    let ran = place.open_within(&script(&open), timeout);
    assert!(survives(&open), "the attack does not work at all: {ran:?}");
    for sandbox in place.all() {
        let confined = open.replace("open", &sandbox.rung().to_string());
        let ran = place.confined_within(sandbox, &script(&confined), timeout);
        assert!(!survives(&confined), "{}: {ran:?}", sandbox.rung());
        assert!(ran.outcome.duration < timeout + 3 * SECOND, "{:?}", ran.outcome.duration);
    }
}

#[test]
fn a_new_session_does_not_survive_the_time_out() {
    check_containment("setsid bash -c 'exec -a MARK sleep 300' & sleep 300", A_WHILE);
}

#[test]
fn a_daemon_does_not_survive_the_time_out() {
    check_containment(
        "( setsid bash -c '(exec -a MARK sleep 300) >/dev/null 2>&1 </dev/null &' & ); sleep 300",
        A_WHILE,
    );
}

#[test]
fn a_daemon_does_not_survive_a_command_that_succeeds() {
    // It waits until the daemon is there; where the session is pinned it is there as well.
    check_containment(
        "setsid bash -c ': > up; exec -a MARK sleep 300' >/dev/null 2>&1 </dev/null & \
         while [ ! -e up ]; do sleep 0.01; done; rm up; sleep 0.2; echo started",
        30 * SECOND,
    );
}

#[test]
fn a_group_of_its_own_does_not_survive() {
    check_containment(
        "set -m; bash -c 'exec -a MARK sleep 300' & bash -c 'exec -a MARK sleep 300'; :",
        A_WHILE,
    );
}

#[test]
fn leftovers_are_counted_also_those_that_meant_to_leave() {
    let place = Place::new("");
    let script = "setsid sleep 300 & while ! pgrep -x sleep > /dev/null; do :; done; \
                  sleep 0.2; echo started";
    let ran = place.confined(script);
    assert_eq!(ran.outcome.leftovers, Some(1));
    assert_eq!(ran.succeeded(), "started\n");
}

#[test]
fn exit_codes_and_signals_come_through() {
    let place = Place::new("");
    let check = |script, end| assert_eq!(place.confined(script).outcome.end, end);
    check("exit 3", End::Exited(3));
    check("exit 125", End::Exited(125));
    check("kill -SEGV $$", End::Signaled(11));
    check("no-such-command", End::Exited(127));
}

#[test]
fn a_broken_pipe_ends_the_writer() {
    // A Rust program ignores SIGPIPE; what it becomes must not.
    let place = Place::new("");
    let script = "yes | head -n 1; echo ${PIPESTATUS[0]}";
    assert_eq!(place.confined(script).succeeded(), "y\n141\n");
}

/// A process that forks, lets its parent end and starts a session, all the time; for ten seconds at most.
///
/// Every one of them holds the FIFO open, so the reader sees its end when the last is dead, and no look at `/proc`
/// has to catch a process that is always another one. The shell leaves when it has seen twenty of them.
const HOPPER: &str = "rm -f up; python3 -c 'import os, time
os.open(\"fifo\", os.O_WRONLY)
end = time.time() + 10
count = 0
while time.time() < end:
    count += 1
    if count == 20: open(\"up\", \"w\").close()
    if os.fork(): os._exit(0)
    os.setsid()' > /dev/null 2>&1 & while [ ! -e up ]; do sleep 0.02; done";

#[test]
fn a_process_that_is_always_another_one_does_not_survive() {
    use rustix::event::{PollFd, PollFlags, Timespec};
    use rustix::fs::{Mode, OFlags};
    let Some(place) = crate::host::with_python() else { return };
    let fifo = place.fixture.root().join("fifo");
    let made = std::process::Command::new("/usr/bin/mkfifo").arg(&fifo).status().unwrap();
    assert!(made.success());
    let survives = |run: &dyn Fn() -> crate::Ran| {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK;
        let reader = rustix::fs::open(&fifo, flags, Mode::empty()).unwrap();
        let ran = run();
        assert_eq!(ran.outcome.end, End::Exited(0), "{ran:?}");
        let hung_up = |seconds| {
            let mut fds = [PollFd::new(&reader, PollFlags::IN)];
            let timeout = Timespec { tv_sec: seconds, tv_nsec: 0 };
            rustix::event::poll(&mut fds, Some(&timeout)).unwrap();
            fds[0].revents().contains(PollFlags::HUP)
        };
        let survives = !hung_up(0);
        // The last of them ends by itself; wait, so that the next run has the FIFO to itself.
        assert!(hung_up(60));
        survives
    };
    assert!(survives(&|| place.open(HOPPER)), "the attack does not work at all");
    assert!(!survives(&|| place.confined(HOPPER)));
}
