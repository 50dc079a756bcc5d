//! The machine: other processes, privileges, namespaces, mounts.

use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Stdio};

use crate::{Place, check_attack};

/// A process of ours outside of every sandbox, with a secret in its environment.
struct Bystander(Child);

impl Bystander {
    fn new() -> Self {
        let mut command = std::process::Command::new("/bin/sleep");
        command.arg("300").env("SECRET", testkit::Fixture::CANARY);
        Self(command.stdin(Stdio::null()).spawn().unwrap())
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }

    fn is_alive(&mut self) -> bool {
        self.0.try_wait().unwrap().is_none()
    }
}

impl Drop for Bystander {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[test]
fn the_environment_of_other_processes_cannot_be_read() {
    let bystander = Bystander::new();
    let place = Place::new("");
    let attack = format!("tr '\\0' '\\n' < /proc/{}/environ", bystander.pid());
    check_attack(&place, &attack, testkit::Fixture::CANARY);
    for link in ["root", "cwd", "exe", "fd/0"] {
        let attack = format!("readlink /proc/{}/{link} > /dev/null && echo READ", bystander.pid());
        check_attack(&place, &attack, "READ");
    }
    let memory = format!("exec 3< /proc/{}/mem && echo OPENED", bystander.pid());
    check_attack(&place, &memory, "OPENED");
}

#[test]
fn other_processes_cannot_be_signalled() {
    let mut victim = Bystander::new();
    let place = Place::new("");
    let attack = format!("kill -TERM {}", victim.pid());
    place.confined(&attack).failed();
    assert!(victim.is_alive());
    place.open(&attack).succeeded();
    // It dies of the signal that was sent, not of the one that cleans up.
    assert_eq!(victim.0.wait().unwrap().signal(), Some(15));
    victim = Bystander::new();
    assert!(victim.is_alive());
}

#[test]
fn own_processes_can_be_signalled() {
    let place = Place::new("");
    let script = "sleep 300 & kill $!; wait $!; echo $?";
    assert_eq!(place.confined(script).succeeded(), "143\n");
}

#[test]
fn limits_of_other_processes_cannot_be_changed() {
    let bystander = Bystander::new();
    let place = Place::new("");
    let attack = format!(
        "prlimit --pid {0} --core=0:0; prlimit --pid {0} --core -o SOFT --noheadings --raw && echo TOLD",
        bystander.pid()
    );
    check_attack(&place, &attack, "TOLD");
}

#[test]
fn other_processes_cannot_be_traced() {
    let bystander = Bystander::new();
    let Some(place) = with_python() else { return };
    // PTRACE_SEIZE and the end of the tracer, which lets go of it.
    let attack = format!(
        "python3 -c \"import ctypes; l=ctypes.CDLL(None, use_errno=True); \
         print('TRACED' if l.ptrace(0x4206, {}, 0, 0) == 0 else 'refused')\"",
        bystander.pid()
    );
    check_attack(&place, &attack, "TRACED");
}

/// A sandbox in which `python3` of this machine works, wherever it lies.
pub(crate) fn with_python() -> Option<Place> {
    testkit::require("a test in Python", testkit::program("python3"))?;
    let home = std::env::var_os("HOME").unwrap();
    Some(Place::with("", |policy| policy.home(&home)))
}

#[test]
fn no_privilege_is_gained() {
    let place = Place::new("");
    for sandbox in place.all() {
        let status = place.confined_by(sandbox, "cat /proc/self/status").succeeded();
        check_status(&status);
    }
}

fn check_status(status: &str) {
    for line in ["NoNewPrivs:\t1", "Seccomp:\t2"] {
        assert!(status.contains(line), "{status}");
    }
    for set in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
        assert!(status.contains(&format!("{set}:\t0000000000000000")), "{status}");
    }
    if rustix::process::geteuid().is_root() {
        assert!(status.contains("CapBnd:\t0000000000000000"), "{status}");
    }
}

#[test]
fn a_setuid_program_gives_nothing() {
    if !rustix::process::geteuid().is_root() {
        // An ordinary user cannot make a program of another user, without which there is nothing to gain.
        testkit::require::<()>(
            "a_setuid_program_gives_nothing",
            Err(testkit::Missing("root, to own the program".to_owned())),
        );
        return;
    }
    let place = Place::new("");
    let tool = place.fixture.root().join("tool");
    std::fs::copy("/usr/bin/id", &tool).unwrap();
    std::os::unix::fs::chown(&tool, Some(12_345), None).unwrap();
    std::fs::set_permissions(&tool, std::fs::Permissions::from_mode(0o4755)).unwrap();
    check_attack(&place, "./tool -u", "12345");
}

#[test]
fn no_namespace_can_be_made() {
    let place = Place::new("");
    check_attack(&place, "unshare -Ur id -u && echo MADE", "MADE");
    check_attack(&place, "unshare -Urm true && echo MADE", "MADE");
    let clone = "python3 -c \"import ctypes, os; l=ctypes.CDLL(None, use_errno=True)
pid=l.syscall(56, 0x10000000 | 17, 0, 0, 0, 0)
if pid == 0: os._exit(0)
print('MADE' if pid > 0 else 'refused')\"";
    if cfg!(target_arch = "x86_64") {
        let Some(place) = with_python() else { return };
        check_attack(&place, clone, "MADE");
    }
}

#[test]
fn nothing_is_shared_by_number() {
    let place = Place::new("");
    for (make, remove) in [("-Q", "-q"), ("-S 1", "-s"), ("-M 16", "-m")] {
        let made = place.open(&format!("ipcmk {make} | grep -o '[0-9]*$'")).succeeded();
        let attack = format!("ipcrm {remove} {} && echo REMOVED", made.trim());
        for sandbox in place.all() {
            let ran = place.confined_by(sandbox, &attack);
            assert!(!ran.text.contains("REMOVED"), "{ran:?}");
        }
        // It is there all the same, and the attack works where nothing keeps it from.
        assert_eq!(place.open(&attack).succeeded(), "REMOVED\n");
    }
}

#[test]
fn nothing_can_be_mounted() {
    let place = Place::new("//- at/\n");
    let ran = place.confined("mount -t tmpfs none at; chroot . true; echo end");
    assert!(ran.text.contains("end") && !place.fixture.exists("at/x"), "{ran:?}");
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
    assert!(!mounts.contains(place.fixture.root().to_str().unwrap()), "{mounts}");
}

#[test]
fn kernel_settings_cannot_be_written() {
    let place = Place::new("");
    // The value it has is written back, so nothing changes where it works.
    let attack = "f=/proc/sys/vm/stat_interval; v=$(cat $f); echo $v > $f && echo WRITTEN";
    if rustix::process::geteuid().is_root() {
        check_attack(&place, attack, "WRITTEN");
    } else {
        place.confined(attack).failed();
    }
}

#[test]
fn calls_of_other_conventions_do_not_pass_the_filter() {
    if !cfg!(target_arch = "x86_64") {
        return;
    }
    // getpid with the x32 bit: without the gate it is answered where the kernel has that convention, and
    // refused with ENOSYS where it has not; with the gate it is refused everywhere.
    let attack = "python3 -c \"import ctypes; l=ctypes.CDLL(None, use_errno=True)
print(l.syscall(0x40000000 + 39), ctypes.get_errno())\"";
    let Some(place) = with_python() else { return };
    assert_eq!(place.confined(attack).succeeded(), "-1 38\n");
}

#[test]
fn the_standard_descriptors_are_all_there_is() {
    let place = Place::new("");
    assert_eq!(place.confined("LC_ALL=C ls /proc/self/fd").succeeded(), "0\n1\n2\n3\n");
    assert_eq!(place.confined("readlink /proc/self/fd/0").succeeded(), "/dev/null\n");
    assert_eq!(place.confined("cat; umask").succeeded(), "0022\n");
}

#[test]
fn what_the_caller_left_open_is_closed() {
    use std::os::fd::AsRawFd as _;
    let place = Place::new("");
    let secret = std::fs::File::open(place.fixture.outside().join("secret.txt")).unwrap();
    // Without the flag that closes it, as a careless library would.
    let inherited = rustix::io::dup(&secret).unwrap();
    let attack =
        format!("readlink /proc/self/fd/{} > /dev/null && echo INHERITED", inherited.as_raw_fd());
    check_attack(&place, &attack, "INHERITED");
    // A spare has closed it already; a helper that is started for its command has not.
    for sandbox in place.all() {
        let confined = place.confined_by_program(sandbox, &attack);
        assert!(!confined.text.contains("INHERITED"), "{}: {confined:?}", sandbox.rung());
    }
}

#[test]
fn the_environment_is_what_was_named() {
    let place = Place::new("");
    let text = place.confined("env | cut -d= -f1 | sort | tr '\\n' ' '").succeeded();
    // The last three are the shell's own.
    assert_eq!(text, "HOME PATH PWD SHLVL TMPDIR _ ");
}
