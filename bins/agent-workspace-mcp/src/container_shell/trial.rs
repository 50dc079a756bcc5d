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
use crate::shell::Tried;

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
        self.block_on(async {
            let mut claim = self.claim(&places);
            let warm = self.start(&places, &cancel, None).await?;
            let mut words = ["sh", "-c", LOOK_AROUND, "sh"].map(str::to_owned).to_vec();
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
        let by = |held: bool| if held && whole { State::Active } else { State::Unavailable };
        let tried = |name: &str, state, detail: String| Tried {
            name: name.to_owned(),
            state,
            detail,
            remedy: None,
        };
        let network = match self.network {
            container_sandbox::Network::Off => by(!begins("interface ")),
            _ => State::Off,
        };
        let zero = format!("CapBnd: {:016x}", 0);
        vec![
            tried(
                "engine",
                State::Active,
                format!("{engine}; it made every limit that was asked for"),
            ),
            tried(
                "workspace",
                State::Active,
                "a file made here was read there, at the same path".into(),
            ),
            tried("fs_readonly_outside", by(!says("root writable")), "a write to the root".into()),
            tried("net_off", network, "interfaces beside loopback".into()),
            tried("capabilities", by(says(&zero)), "the kernel's word in /proc/self/status".into()),
            tried("no_new_privs", by(says("NoNewPrivs: 1")), "the kernel's word".into()),
            tried("syscalls", by(says("Seccomp: 2")), "the engine's seccomp profile".into()),
            tried(
                "identity",
                by(says(&format!("Uid: {}", self.uid))),
                format!("the workspace's owner, {}", self.uid),
            ),
            tried(
                "protected_paths",
                by(!begins("open ")),
                format!("{} protected names are there, and take no writes", places.len()),
            ),
        ]
    }
}
