//! The image, built once from the binary under test, and containers of it, started by the line in the README.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;
use testkit::{Fixture, Missing};

use crate::harness::{BINARY, Binary, variable};

/// The user of the image.
pub(crate) const USER: u32 = 1000;
/// Longer than an engine takes to start a container.
const STARTING: Duration = Duration::from_secs(20);

/// Makes names of containers unique within this process.
static CONTAINERS: AtomicU32 = AtomicU32::new(0);

/// The image and its engine.
#[derive(Debug, Clone)]
pub(crate) struct Image {
    engine: String,
    name: String,
}

/// A server in a container, as a client of the README's line has it.
pub(crate) struct Container {
    pub(crate) binary: Binary,
    pub(crate) name: String,
}

impl Image {
    /// Builds the image where there is an engine and what goes into it.
    pub(crate) fn built() -> Result<Self, Missing> {
        static IMAGE: OnceLock<Result<Image, Missing>> = OnceLock::new();
        IMAGE.get_or_init(Self::build).clone()
    }

    fn build() -> Result<Self, Missing> {
        let engine = variable("AGENT_WORKSPACE_TEST_ENGINE")?;
        variable("AGENT_WORKSPACE_TEST_BASE_IMAGE")?;
        let uv = variable("AGENT_WORKSPACE_TEST_UV")?;
        let script = repository().join(".ci/image");
        let done = Command::new(script).args([BINARY, &uv]).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        let name = String::from_utf8(done.stdout).unwrap().trim().to_owned();
        Ok(Self { engine, name })
    }

    /// The README's line in the workspace of `fixture`: with these options and for this name of the container beside
    /// its own, for this image, with these arguments behind it.
    pub(crate) fn command(
        &self,
        place: &Path,
        name: &str,
        options: &[String],
        arguments: &[&str],
    ) -> Command {
        let line = documented_line();
        let start = line.strip_prefix("docker run ").unwrap();
        let start = start.strip_suffix(" agent-workspace-mcp").unwrap();
        let more: String = options.iter().flat_map(|option| [" '", option, "'"]).collect();
        let line = format!(
            "exec podman --url '{}' run --name {name}{more} {start} {} \"$@\"",
            self.engine, self.name
        );
        let mut command = Command::new("bash");
        command.args(["-c", &line, "bash"]).args(arguments).current_dir(place);
        command
    }

    /// A server over the workspace of `fixture`, once its process is there.
    pub(crate) fn serve(
        &self,
        fixture: &Fixture,
        options: &[String],
        arguments: &[&str],
    ) -> Container {
        let number = CONTAINERS.fetch_add(1, Ordering::Relaxed);
        let name = format!("server-{}-{number}", std::process::id());
        let mut binary =
            Binary::spawn(&mut self.command(&fixture.root(), &name, options, arguments));
        let started = Instant::now();
        loop {
            if let Some(pid) = self.server_pid(&name) {
                binary.stands_for(pid);
                return Container { binary, name };
            }
            let ended = binary.ends_within(Duration::from_millis(20));
            assert_eq!(ended, None, "{name} ended at once");
            assert!(started.elapsed() < STARTING, "{name} does not start");
        }
    }

    /// The server's process, which the container's first one started.
    fn server_pid(&self, name: &str) -> Option<u32> {
        let done = self.podman(&["inspect", "--format", "{{.State.Pid}}", name]);
        let first = String::from_utf8(done.stdout).unwrap().trim().parse::<u32>().ok()?;
        let children = std::fs::read_to_string(format!("/proc/{first}/task/{first}/children"));
        let server = children.ok()?.split_whitespace().next()?.parse().ok()?;
        let program = std::fs::read_link(format!("/proc/{server}/exe")).ok()?;
        program.ends_with("agent-workspace-mcp").then_some(server)
    }

    /// A client's call of the engine.
    pub(crate) fn podman(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new("podman");
        command.args(["--url", &self.engine]).args(arguments).stdin(Stdio::null());
        command.output().unwrap()
    }

    /// What a shell of this user says in a container of the image without any of the line's protections; it must
    /// succeed.
    pub(crate) fn unprotected_shell(&self, user: u32, script: &str) -> String {
        let user = format!("--user={user}");
        let done = self.podman(&[
            "run",
            "--rm",
            "--network=none",
            &user,
            "--entrypoint=/bin/bash",
            &self.name,
            "-c",
            script,
        ]);
        assert!(done.status.success(), "{script}: {done:?}");
        String::from_utf8(done.stdout).unwrap()
    }

    /// What the image says of itself.
    pub(crate) fn inspect(&self) -> Value {
        let done = self.podman(&["image", "inspect", &self.name]);
        let mut images: Value = serde_json::from_slice(&done.stdout).unwrap();
        images[0].take()
    }
}

/// The one `docker run` of the README, its continued lines joined.
fn documented_line() -> String {
    let readme = std::fs::read_to_string(repository().join("README.md")).unwrap();
    let joined = readme.replace("\\\n", " ");
    let mut lines = joined.lines().filter(|line| line.starts_with("docker run "));
    let line = lines.next().expect("a line to run the image by").to_owned();
    assert_eq!(lines.next(), None, "one line, so that it is the one that is tested");
    line
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Gives the workspace to the image's user.
pub(crate) fn hand_over(fixture: &Fixture) {
    let owner = format!("{USER}:{USER}");
    let status = Command::new("chown").args(["-R", &owner]).arg(fixture.root()).status();
    assert!(status.unwrap().success(), "chown");
}
