//! How the server under test is started: by whom, on which rung, inside of what.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule,
};
use serde_json::Value;
use tempfile::TempDir;
use testkit::{Fixture, Missing};

use crate::harness::{BINARY, Binary};
use crate::image::{Image, USER};

/// Programs are found where every user finds them, not where the harness's user keeps versions of his own.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// A user that nobody is.
const ORDINARY: u32 = 10_001;

#[derive(Debug)]
pub(super) struct Launch {
    /// Shown in tables and failures.
    pub(super) name: String,
    /// Value of `--sandbox`.
    sandbox: &'static str,
    /// Another user than the harness's.
    user: Option<u32>,
    outer: Outer,
    /// In a container of it.
    image: Option<Image>,
    /// An engine's address and an image, for commands in its containers.
    engine: Option<(String, String)>,
    place: TempDir,
}

/// What the machine around the server lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outer {
    Nothing,
    /// A filter refuses namespaces and mounts, as container engines do.
    Filter,
    /// A part of /proc is covered, as container engines do.
    Covered,
}

impl Launch {
    /// As the harness's own user.
    pub(super) fn new(sandbox: &'static str) -> Self {
        let root = rustix::process::geteuid().is_root();
        let user = if root { "root" } else { "an ordinary user" };
        let place = TempDir::with_prefix("launch-").unwrap();
        open_to_all(place.path());
        // A copy: users who cannot enter the build folder can run it too.
        std::fs::copy(BINARY, place.path().join("server")).unwrap();
        let name = format!("{user}, --sandbox {sandbox}");
        Self { name, sandbox, user: None, outer: Outer::Nothing, image: None, engine: None, place }
    }

    /// As somebody else; the harness must be root.
    pub(super) fn by_ordinary_user(self) -> Self {
        let name = format!("user {ORDINARY}, --sandbox {}", self.sandbox);
        Self { name, user: Some(ORDINARY), ..self }
    }

    /// In a container of the image, started by the README's line. Workspace and outside are shown at their own
    /// places, so that there is an outside to get to.
    pub(super) fn in_image(self, image: Image) -> Self {
        Self { name: "in the image".into(), user: Some(USER), image: Some(image), ..self }
    }

    /// Whether commands run in containers of an engine.
    pub(super) fn has_engine(&self) -> bool {
        self.engine.is_some()
    }

    /// With an engine, and an image with bash. The workspace is another user's than the server's, who is root as a rule:
    /// nothing runs as root in a container.
    pub(super) fn with_engine(self) -> Result<Self, Missing> {
        let (engine, image) = crate::container_backend::engine()?;
        let name = format!("{}, an engine", self.name);
        Ok(Self { name, engine: Some((engine, image)), ..self })
    }

    /// Where namespaces and mounts are refused.
    pub(super) fn filtered(self) -> Self {
        Self { name: format!("{}, filtered", self.name), outer: Outer::Filter, ..self }
    }

    /// Where a part of /proc is covered; the harness must be root.
    pub(super) fn covered(self) -> Self {
        Self { name: format!("{}, /proc covered", self.name), outer: Outer::Covered, ..self }
    }

    /// Whether cases can be prepared that only root can prepare.
    pub(super) fn prepares_as_root(&self) -> bool {
        (self.user.is_none() || self.image.is_some()) && rustix::process::geteuid().is_root()
    }

    /// Whether the server is root.
    pub(super) fn is_root(&self) -> bool {
        self.user.is_none() && rustix::process::geteuid().is_root()
    }

    /// The binary that cases share.
    pub(super) fn binary(&self) -> PathBuf {
        self.place.path().join("server")
    }

    /// Starts `binary` over the workspace of `fixture`.
    pub(super) fn serve(&self, binary: &Path, fixture: &Fixture, more: &[(&str, &str)]) -> Binary {
        if let Some(image) = &self.image {
            return self.serve_in(image, fixture, more);
        }
        let mut command = self.command(binary, "serve", fixture);
        command.envs(more.iter().copied());
        self.inside(|| Binary::spawn(&mut command))
    }

    fn serve_in(&self, image: &Image, fixture: &Fixture, more: &[(&str, &str)]) -> Binary {
        let base = fixture.base().display();
        let root = fixture.root().display().to_string();
        let mut options = vec![format!("--volume={base}:{base}")];
        options.push(format!("--env=AUDIT_DIR={base}/state"));
        options.extend(more.iter().map(|(name, value)| format!("--env={name}={value}")));
        let arguments = ["serve", "--sandbox", self.sandbox, "--workspace", &root];
        image.serve(fixture, &options, &arguments).binary
    }

    /// What `doctor` says, started the same way.
    pub(super) fn doctor(&self, fixture: &Fixture) -> Value {
        let mut command = self.command(&self.binary(), "doctor", fixture);
        let output = self.inside(|| command.arg("--json").stdin(Stdio::null()).output().unwrap());
        let error = String::from_utf8_lossy(&output.stderr);
        serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|problem| panic!("{}: doctor: {problem}: {error}", self.name))
    }

    fn command(&self, binary: &Path, verb: &str, fixture: &Fixture) -> Command {
        let secret = "SECRET-CANARY-ENV";
        let mut command = self.wrapped(binary);
        command
            .args([verb, "--sandbox", self.sandbox, "--workspace"])
            .arg(fixture.root())
            .env_clear()
            .envs([("PATH", PATH), ("LOG_LEVEL", "error"), ("SERVER_SECRET_TOKEN", secret)])
            .envs([("AWS_SECRET_ACCESS_KEY", secret), ("MCP_AUTH_TOKEN", secret)])
            .env("AUDIT_DIR", fixture.base().join("state"))
            .env("HOME", fixture.base().join("home"));
        if let Some((engine, image)) = &self.engine {
            command.env("DOCKER_HOST", engine).env("CONTAINER_IMAGE", image);
        }
        command
    }

    fn wrapped(&self, program: &Path) -> Command {
        if self.outer != Outer::Covered {
            return self.as_user(program);
        }
        let cover = "mount -t tmpfs none /proc/scsi 2>/dev/null || mount -t tmpfs none /proc/bus
            exec \"$@\"";
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-ec", cover, "sh"]).arg(program);
        command
    }

    fn as_user(&self, program: &Path) -> Command {
        let Some(user) = self.user else { return Command::new(program) };
        let mut command = Command::new("setpriv");
        command.arg(format!("--reuid={user}")).arg(format!("--regid={user}"));
        command.args(["--clear-groups", "--"]).arg(program);
        command
    }

    /// A line of bash as the user who starts the server, in the workspace.
    pub(super) fn shell(&self, line: &str, fixture: &Fixture) -> Command {
        in_bash(self.as_user(Path::new("/bin/bash")), line, fixture)
    }

    /// The same for what a case prepares: for a server in a container the harness's own user does that, since there
    /// is no root in there, and [`Self::hand_over`] comes afterwards once more.
    pub(super) fn preparing_shell(&self, line: &str, fixture: &Fixture) -> Command {
        match self.image {
            Some(_) => in_bash(Command::new("/bin/bash"), line, fixture),
            None => self.shell(line, fixture),
        }
    }

    /// Gives what was prepared to the user who starts the server.
    pub(super) fn hand_over(&self, fixture: &Fixture) {
        open_to_all(fixture.base());
        let owner = self.user.or(self.engine.as_ref().map(|_| ORDINARY));
        let Some(user) = owner else { return };
        let owner = format!("{user}:{user}");
        let mut command = Command::new("chown");
        // What belongs to others by now is meant to.
        command.args(["-R", "--no-dereference", "--from=0:0", &owner]).arg(fixture.base());
        assert!(command.status().unwrap().success(), "chown");
    }

    /// Does what starts a process; a filter holds for that process and for the thread it comes from.
    fn inside<T: Send>(&self, act: impl FnOnce() -> T + Send) -> T {
        if self.outer != Outer::Filter {
            return act();
        }
        let filtered = || {
            for filter in filters() {
                seccompiler::apply_filter(&filter).unwrap();
            }
            act()
        };
        std::thread::scope(|scope| scope.spawn(filtered).join().unwrap())
    }
}

fn in_bash(mut bash: Command, line: &str, fixture: &Fixture) -> Command {
    bash.args(["-ec", line]).env("PATH", PATH).current_dir(fixture.root()).stdin(Stdio::null());
    bash
}

fn open_to_all(place: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(place, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// No new user namespace and no mount. The arguments of `clone3` cannot be looked at, so it is not there at all.
fn filters() -> [BpfProgram; 2] {
    let user = u64::try_from(libc::CLONE_NEWUSER).unwrap();
    let asks = SeccompCmpOp::MaskedEq(user);
    let asks = SeccompCondition::new(0, SeccompCmpArgLen::Qword, asks, user).unwrap();
    let refused = [
        (libc::SYS_unshare, Vec::new()),
        (libc::SYS_mount, Vec::new()),
        (libc::SYS_clone, vec![SeccompRule::new(vec![asks]).unwrap()]),
    ];
    let absent = [(libc::SYS_clone3, Vec::new())];
    let program = |rules: Vec<(libc::c_long, Vec<SeccompRule>)>, errno: libc::c_int| {
        let arch = std::env::consts::ARCH.try_into().unwrap();
        let action = SeccompAction::Errno(errno.unsigned_abs());
        let rules = rules.into_iter().collect();
        SeccompFilter::new(rules, SeccompAction::Allow, action, arch).unwrap().try_into().unwrap()
    };
    [program(refused.into(), libc::EPERM), program(absent.into(), libc::ENOSYS)]
}
