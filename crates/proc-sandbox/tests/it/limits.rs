//! Limits of one process.

use std::time::Duration;

use proc_sandbox::{ResourceLimits, Sandbox, Target};

use crate::host::with_python;
use crate::{Place, by_spare, check_attack, directory, environment, start};

#[test]
fn memory_of_one_process_is_limited() {
    let test = "memory_of_one_process_is_limited";
    if testkit::require(test, testkit::program("python3")).is_none() {
        return;
    }
    let home = std::env::var_os("HOME").unwrap();
    let mut limits = ResourceLimits::default();
    limits.memory = Some(64 << 20);
    let place = Place::with("", |policy| policy.home(&home).limits(limits.clone()));
    // Never touched, so it costs nothing where it succeeds.
    check_attack(&place, "python3 -c 'x=bytearray(256<<20); print(\"HAD\")'", "HAD");
    assert!(place.confined("python3 -c 'x=bytearray(256<<20)'").failed().contains("MemoryError"));
}

#[test]
fn a_file_is_limited() {
    let attack = "python3 -c \"f=open('big','wb',0); f.seek(1<<41); f.write(b'x'); print('WROTE')\"; rm -f big";
    let Some(place) = with_python() else { return };
    check_attack(&place, attack, "WROTE");
}

#[test]
fn limits_cannot_be_raised_again() {
    let place = Place::new("");
    let text = place.confined("ulimit -n; ulimit -Hn; ulimit -c; ulimit -Hd").succeeded();
    assert_eq!(text, "1024\n1024\n0\n2097152\n");
    check_attack(&place, "ulimit -n 2000 && ulimit -n", "2000");
}

#[test]
fn what_a_command_used_is_told() {
    let place = Place::new("");
    // The one that holds the memory is a child of a child, and is waited for.
    let script = "head -c 150000000 /dev/zero | (tail -c 150000000 | wc -c)";
    for sandbox in place.all() {
        let ran = place.confined_by(sandbox, script);
        let usage = ran.usage.unwrap();
        assert!((150_000_000..400_000_000).contains(&usage.max_rss), "{usage:?}");
        let time = usage.user + usage.system;
        assert!(!time.is_zero() && time <= ran.outcome.duration * 2, "{usage:?}");
        let small = place.confined_by(sandbox, "true").usage.unwrap();
        assert!(small.max_rss < 50_000_000, "{small:?}");
    }
}

#[test]
fn memory_that_a_process_grew_to_is_told_beside_its_limit() {
    let mut limits = ResourceLimits::default();
    limits.memory = Some(64 << 20);
    let place = Place::with("", |policy| policy.limits(limits.clone()));
    let check = |sandbox: &Sandbox, script: &str, told: bool| {
        let target = Target::new("/bin/bash", directory(&place.fixture.root()))
            .args(["-c", script])
            .envs(environment());
        let (command, status) = by_spare(sandbox.confine(target).unwrap());
        start(command, Duration::from_secs(30)).failed();
        let near = status.enforced().unwrap().memory_near_limit();
        assert_eq!(near.is_some(), told, "{near:?}");
        assert!(near.is_none_or(|(held, limit)| limit == 64 << 20 && held > 60 << 20));
    };
    for sandbox in place.all() {
        check(sandbox, "head -c 150000000 /dev/zero | tail -c 150000000", true);
        check(sandbox, "dd bs=1G count=1 if=/dev/zero of=/dev/null", false);
    }
}

#[test]
fn with_namespaces_orphans_are_counted_too() {
    let place = Place::new("");
    let script = "rm -f up; ( (head -c 150000000 /dev/zero | tail -c 150000000 > /dev/null; : > up; sleep 60) & ); \
                  until [ -e up ]; do :; done";
    for sandbox in &place.native {
        let usage = place.confined_by(sandbox, script).usage.unwrap();
        assert!(usage.max_rss > 100_000_000, "{}: {usage:?}", sandbox.rung());
    }
}
