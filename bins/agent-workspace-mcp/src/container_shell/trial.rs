//! What a container is good for, found out by trying in it: whether it shows this workspace, and which layers hold.

use std::os::fd::BorrowedFd;
use std::sync::Arc;

use container_sandbox::{Command, Container};
use proc_runner::Cancel;
use proc_sandbox::State;
use rustix::fs::{AtFlags, Mode, OFlags};

use super::places::Places;
use super::{AUXILIARY, ContainerShell, unavailable};
use crate::reply::{ErrorKind, Failure};
use crate::shell::{Tried, scratch_parent};

/// Reads one line of a file and asks whether its directory takes writes, by the shell alone.
const READ: &str =
    "read -r line < \"$1\"; printf '%s' \"$line\"; [ -w \"$2\" ] && printf ' writable'";

/// Says what the kernel holds against the command.
const LOOK_AROUND: &str = r#"
while read -r key value rest; do
  case $key in CapBnd:|NoNewPrivs:|Seccomp:|Uid:) echo "$key $value";; esac
done </proc/self/status
(: >/.agent-workspace-probe) 2>/dev/null && echo "root writable"
while read -r name rest; do case $name in lo:*) ;; *:*) echo "interface ${name%%:*}";; esac; done </proc/net/dev
read -r name 2>/dev/null <"/proc/$1/comm" && [ "$name" = "$2" ] && echo "server seen"
[ -e "$3" ] && echo "outside seen"
shift 3
for place; do [ -w "$place" ] && echo "open $place"; done
echo looked"#;

/// Sees that the container shows the files of this workspace and not another machine's of the same name: a file of a
/// random content is made, read there and removed.
pub(super) async fn prove(
    container: &Container,
    root: BorrowedFd<'_>,
    directory: &str,
) -> Result<(), Failure> {
    let internal = |error: std::io::Error| {
        let text = format!("the workspace takes no file to try the container with: {error}");
        Failure::new(ErrorKind::SandboxUnavailable, text)
    };
    let mut random = [0; 16];
    crate::output_store::fill_random(&mut random).map_err(internal)?;
    let nonce = format!("{:032x}", u128::from_le_bytes(random));
    let name = format!(".agent-workspace-probe-{}", nonce.split_at(12).0);
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mode = Mode::from_raw_mode(0o644);
    let file =
        rustix::fs::openat(root, &name, flags, mode).map_err(|error| internal(error.into()))?;
    let written = rustix::fs::fchmod(&file, mode)
        .and_then(|()| rustix::io::write(&file, format!("{nonce}\n").as_bytes()));
    let path = format!("{directory}/{name}");
    let read = Command::new(["sh", "-c", READ, "sh", &path, directory], AUXILIARY).cwd("/");
    let seen = container.exec(&read).await;
    rustix::fs::unlinkat(root, &name, AtFlags::empty()).map_err(|error| internal(error.into()))?;
    written.map_err(|error| internal(error.into()))?;
    let seen = seen.map_err(|error| unavailable(&error))?.output.to_string();
    let problem = if seen == format!("{nonce} writable") {
        return Ok(());
    } else if seen == nonce {
        "the workspace's owner cannot write to it in the container: a rootless engine gives ids another meaning"
    } else {
        "the engine shows another machine's files at the workspace's path, or lets them not be read"
    };
    Err(Failure::new(
        ErrorKind::EngineUnavailable,
        format!(
            "{problem}; the operator can use an engine of this machine that runs as root, or a native rung"
        ),
    ))
}

impl ContainerShell {
    /// Starts the container that the first command will find, without pulling its image, and tries out what holds.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::EngineUnavailable`] and what else keeps a container from being made.
    pub fn try_out(self: &Arc<Self>, masks: &[std::path::PathBuf]) -> Result<Vec<Tried>, Failure> {
        use std::os::fd::AsFd as _;
        let cancel = Cancel::new().map_err(|error| {
            Failure::new(ErrorKind::Internal, format!("no descriptor for the trial: {error}"))
        })?;
        let places = Places::of(self.root.as_fd(), masks);
        // A file of this machine that no container should show.
        let outside = tempfile::NamedTempFile::new_in(scratch_parent(self.root.as_fd())).map_err(
            |error| {
                Failure::new(
                    ErrorKind::Internal,
                    format!("no temporary file for the trial: {error}"),
                )
            },
        )?;
        let outside_shown = outside.path().display().to_string();
        self.block_on(async {
            let claim = self.claim(&places, false, &cancel).await;
            let mut claim = claim
                .ok_or_else(|| Failure::new(ErrorKind::Cancelled, "[cancelled] before it began"))?;
            let warm = self.start(&places, &cancel, None).await?;
            let mut words = ["sh", "-c", LOOK_AROUND, "sh"].map(str::to_owned).to_vec();
            words.extend([std::process::id().to_string(), own_name(), outside_shown]);
            words.extend(places.paths().map(|path| format!("{}/{path}", self.directory)));
            let look = Command::new(words, AUXILIARY).cwd("/");
            let seen = warm.container.exec(&look).await;
            let engine = warm.container.engine();
            let named = format!("{} {}, image {}", engine.kind(), engine.version(), self.image);
            claim.warm = Some(warm);
            let seen = seen.map_err(|error| unavailable(&error))?.output.to_string();
            Ok(self.layers(&seen, &places, &named))
        })
    }

    fn layers(&self, seen: &str, places: &Places, engine: &str) -> Vec<Tried> {
        let says = |line: &str| seen.lines().any(|seen| seen == line);
        let begins = |start: &str| seen.lines().any(|seen| seen.starts_with(start));
        // Nothing is claimed of a look that broke off.
        let whole = says("looked");
        let off = self.network != container_sandbox::Network::Off;
        let unseen = !says("server seen") && !says("outside seen");
        let alone = !begins("interface ");
        let protected = format!("{} names are there, and none of them takes writes", places.len());
        let identity = format!("commands are the workspace's owner, {}", self.uid);
        let rows = [
            ("engine", true, engine),
            ("workspace", true, "a file made here was read there, at the same path"),
            ("fs_readonly_outside", !says("root writable"), "a write to the root was refused"),
            ("fs_hidden_outside", unseen, "a file made outside is not there"),
            ("fs_metadata_outside", unseen, "what is not there cannot be looked at"),
            ("net_off", alone, "there is no interface but loopback"),
            ("unix_socket_isolation", alone && unseen, "no socket of this machine is in view"),
            ("signal_isolation", unseen, "the server's process is not there"),
            ("ptrace_isolation", unseen, "the server's process is not there"),
            (
                "pid_containment",
                unseen,
                "the engine's list of processes says when a command has ended",
            ),
            ("pidns", unseen, "the server's process is not there"),
            ("namespaces", unseen, "the container's own"),
            ("syscalls", says("Seccomp: 2"), "the engine's seccomp profile, by the kernel's word"),
            ("no_new_privs", says("NoNewPrivs: 1"), "by the kernel's word"),
            ("capabilities", says(&format!("CapBnd: {:016x}", 0)), "none, by the kernel's word"),
            ("identity", says(&format!("Uid: {}", self.uid)), &identity),
            (
                "memory_limit",
                true,
                "the engine's account of the container was compared with what was asked for",
            ),
            ("pids_limit", true, "the engine's account was compared with what was asked for"),
            ("tmp_quota", true, "memory of a size of its own, within the limit of memory"),
            ("protected_paths", !begins("open "), &protected),
        ];
        rows.into_iter()
            .map(|(name, held, detail)| {
                let state = match name {
                    "net_off" | "unix_socket_isolation" if off => State::Off,
                    _ if held && whole => State::Active,
                    _ => State::Unavailable,
                };
                let (detail, remedy) = match state {
                    State::Active => (detail, None),
                    State::Off => ("the operator gives commands the engine's network", None),
                    State::Unavailable => ("the trial found otherwise", Some(REMEDY.to_owned())),
                };
                Tried { name: name.to_owned(), state, detail: detail.to_owned(), remedy }
            })
            .collect()
    }
}

/// What helps where an engine holds less than it should.
const REMEDY: &str = "use another engine or its default seccomp profile, or a native rung";

/// The name of this process, as the kernel shows it to everybody who sees it.
fn own_name() -> String {
    let proc = cap_std::fs::Dir::open_ambient_dir("/proc/self", cap_std::ambient_authority());
    let name = proc.and_then(|proc| proc.read_to_string("comm")).unwrap_or_default();
    name.trim_end().to_owned()
}
