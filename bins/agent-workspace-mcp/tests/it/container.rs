//! The binary inside hardened containers: it finds the highest rung that the container's profile leaves, by itself.
//!
//! The containers are those people run servers in: no capabilities, no new privileges, a read-only root, an ordinary
//! user, limits, no network. The machine's `/usr` is shown in them, since the binary needs a C library.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};
use testkit::{Fixture, Missing, require};

use crate::harness::{BINARY, variable};

/// A profile without namespaces and mounts, as container engines other than Podman have it.
const WITHOUT_NAMESPACES: &str = r#"{
  "defaultAction": "SCMP_ACT_ALLOW",
  "syscalls": [{
    "names": ["unshare", "setns", "mount", "umount2", "pivot_root", "open_tree", "move_mount", "fsopen", "fsconfig",
              "fsmount", "mount_setattr"],
    "action": "SCMP_ACT_ERRNO"
  }]
}"#;
const USER: u32 = 10_001;

/// An engine's address and an image with a shell.
fn engine() -> Result<(String, String), Missing> {
    Ok((variable("AGENT_WORKSPACE_TEST_ENGINE")?, variable("AGENT_WORKSPACE_TEST_IMAGE")?))
}

struct Container {
    fixture: Fixture,
    engine: String,
    image: String,
    options: Vec<String>,
}

impl Container {
    fn new(test: &str, options: &[&str]) -> Option<Self> {
        let (engine, image) = require(test, engine())?;
        let fixture = Fixture::new("//- a.txt\nhello\n");
        for path in [fixture.root(), fixture.root().join("a.txt")] {
            std::os::unix::fs::chown(path, Some(USER), Some(USER)).unwrap();
        }
        let program = fixture.base().join("server");
        std::fs::copy(BINARY, &program).unwrap();
        let options = options.iter().map(ToString::to_string).collect();
        Some(Self { fixture, engine, image, options })
    }

    /// Runs the binary in a container of its own.
    fn run(&self, arguments: &[&str]) -> Output {
        let volume = |from: &Path, to: &str| format!("--volume={}:{to}", from.display());
        let user = format!("--user={USER}:{USER}");
        let mut command = Command::new("podman");
        command
            .args(["--url", &self.engine, "run", "--rm", "--network=none", "--cap-drop=ALL"])
            .args(["--security-opt=no-new-privileges", "--read-only", "--tmpfs=/tmp", &user])
            .args(["--pids-limit=256", "--memory=2g"])
            .args(["--volume=/usr:/usr:ro", "--volume=/usr/lib:/lib:ro"])
            .arg("--volume=/usr/lib64:/lib64:ro")
            .arg(volume(&self.fixture.root(), "/workspace"))
            .arg(volume(&self.fixture.base().join("server"), "/server:ro"))
            .args(&self.options)
            .args([&self.image, "/server"])
            .args(arguments);
        command.output().unwrap()
    }

    /// Checks that the rung is `rung`, and that what it promises holds.
    fn check(&self, rung: &str) {
        let done = self.run(&["doctor", "--json", "--workspace", "/workspace"]);
        let report: Value = serde_json::from_slice(&done.stdout)
            .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&done.stderr)));
        assert_eq!((&report["rung"], &report["ok"]), (&json!(rung), &json!(true)), "{report:#}");

        let script = "id -u; cat a.txt; echo made > b.txt; cat /server > /dev/null && echo READ-SERVER; \
                      echo x > /tmp/../x && echo WROTE-ROOT; kill -0 1 2>/dev/null && test $PPID != 1 && echo SIGNALLED; \
                      cat /proc/1/environ 2>/dev/null | tr '\\0' '\\n' | grep -c container; \
                      (sleep 300 &) ; exit 7";
        let call = json!({"command": script}).to_string();
        let done = self.run(&["call", "run_bash", &call, "--facts", "--workspace", "/workspace"]);
        let text = String::from_utf8_lossy(&done.stdout).into_owned();
        let facts: Value = serde_json::from_slice(&done.stderr)
            .unwrap_or_else(|_| panic!("{text}{}", String::from_utf8_lossy(&done.stderr)));
        assert_eq!((&facts["sandbox"], &facts["exit_code"]), (&json!(rung), &json!(7)), "{text}");
        assert!(text.contains("10001\nhello\n"), "{text}");
        for proof in ["READ-SERVER", "WROTE-ROOT"] {
            assert!(!text.contains(proof), "{text}");
        }
        assert!(text.contains("\n0\n"), "the server's environment could be read: {text}");
        assert!(text.contains("1 process that was left running was ended"), "{text}");
        assert_eq!(self.fixture.read("b.txt"), "made\n");
    }
}

#[test]
fn in_podmans_profile_everything_but_a_fresh_proc_is_there() {
    let name = "in_podmans_profile_everything_but_a_fresh_proc_is_there";
    if let Some(container) = Container::new(name, &[]) {
        container.check("native-noproc");
    }
}

#[test]
fn with_proc_unmasked_everything_is_there() {
    let name = "with_proc_unmasked_everything_is_there";
    if let Some(container) = Container::new(name, &["--security-opt=unmask=ALL"]) {
        container.check("native-full");
    }
}

#[test]
fn in_a_profile_without_namespaces_landlock_is_there() {
    let name = "in_a_profile_without_namespaces_landlock_is_there";
    let profile = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(profile.path(), WITHOUT_NAMESPACES).unwrap();
    let option = format!("--security-opt=seccomp={}", profile.path().display());
    if let Some(container) = Container::new(name, &[&option]) {
        container.check("landlock");
    }
}
