//! Whom commands run as, and what the embedding program does to itself.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use proc_runner::{Cancel, Command, Discard, End, Limits, run};
use proc_sandbox::{ResourceLimits, State};
use testkit::{Fixture, Missing, require};

use crate::Place;

const SOMEBODY: u32 = 12_345;

#[test]
fn root_runs_commands_as_the_owner_of_the_workspace() {
    let root = rustix::process::geteuid().is_root();
    let probe = if root { Ok(()) } else { Err(Missing("root, to be somebody else".to_owned())) };
    if require("root_runs_commands_as_the_owner_of_the_workspace", probe).is_none() {
        return;
    }
    let place = somebodys("//- theirs\nx\n", &ResourceLimits::default());

    let script = "id -u; id -g; id -G; echo y >> theirs; echo z > new; cd; echo w > file; cat file";
    let expected = format!("{SOMEBODY}\n{SOMEBODY}\n{SOMEBODY}\nw\n");
    for (round, sandbox) in place.all().enumerate() {
        assert_eq!(place.confined_by(sandbox, script).succeeded(), expected);
        assert_eq!(place.fixture.read("theirs"), format!("x\n{}", "y\n".repeat(round + 1)));
        assert_eq!(place.fixture.root().join("new").metadata().unwrap().uid(), SOMEBODY);
    }

    let report = place.sandbox.probe();
    for layer in ["identity", "pids_limit", "fs_hidden_outside", "fs_readonly_outside"] {
        assert_eq!(report.layer(layer).unwrap().state, State::Active, "{report:#?}");
    }
}

/// A place that belongs to an ordinary user: the one who runs the tests, or somebody else if that is root.
fn somebodys(files: &str, limits: &ResourceLimits) -> Place {
    let fixture = Fixture::new(files);
    if rustix::process::geteuid().is_root() {
        let owned = std::iter::once(fixture.root())
            .chain(std::fs::read_dir(fixture.root()).unwrap().map(|entry| entry.unwrap().path()));
        for path in owned {
            std::os::unix::fs::chown(path, Some(SOMEBODY), Some(SOMEBODY)).unwrap();
        }
        let open = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(fixture.base(), open).unwrap();
    }
    Place::over(fixture, |policy| policy.limits(limits.clone()))
}

#[test]
fn processes_of_an_ordinary_user_are_limited() {
    let mut limits = ResourceLimits::default();
    limits.pids = Some(20);
    let place = somebodys("", &limits);
    let attack =
        "for i in $(seq 60); do sleep 3 & done; echo LAST; jobs -p | wc -l; kill $(jobs -p)";
    assert!(place.open(attack).text.contains("60"));
    for sandbox in place.all() {
        let text = place.confined_by(sandbox, attack).text;
        assert!(text.contains("Resource temporarily unavailable"), "{text}");
    }
}

/// Set in the process that hardens itself.
const INNER: &str = "PROC_SANDBOX_HARDENED";

#[test]
fn a_hardened_program_is_closed_to_others_and_can_still_confine() {
    if std::env::var_os(INNER).is_none() {
        // It cannot be taken back, so it happens in a process of its own: this binary again, for this test.
        let name = "identity::a_hardened_program_is_closed_to_others_and_can_still_confine";
        let command = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name, "--nocapture"])
            .envs(std::env::vars_os())
            .env(INNER, "1");
        let limits = Limits::new(std::time::Duration::from_mins(1));
        let outcome = run(command, &limits, &Cancel::new().unwrap(), &mut Discard).unwrap();
        let text = String::from_utf8_lossy(&outcome.captured.head).into_owned();
        assert_eq!(outcome.end, End::Exited(0), "{text}");
        assert!(text.contains("1 passed"), "{text}");
        return;
    }
    let place = Place::new("");
    let look = format!("head -c 1 /proc/{}/environ > /dev/null && echo READ", std::process::id());
    assert_eq!(place.open(&look).text, "READ\n");
    proc_sandbox::harden_self().unwrap();
    let dumpable = rustix::process::dumpable_behavior().unwrap();
    assert_eq!(dumpable, rustix::process::DumpableBehavior::NotDumpable);
    let core = rustix::process::getrlimit(rustix::process::Resource::Core);
    assert_eq!((core.current, core.maximum), (Some(0), Some(0)));
    if !rustix::process::geteuid().is_root() {
        assert!(!place.open(&look).text.contains("READ"));
    }
    // The helper is found through /proc/self, which is closed to others now.
    assert_eq!(place.confined("echo on").succeeded(), "on\n");
    assert_eq!(place.sandbox.probe().rung, proc_sandbox::Rung::Landlock);
}
