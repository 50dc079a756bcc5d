//! The place of one case: workspace, outside, listeners, and the names by which a case speaks of them.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use testkit::{Fixture, Snapshot};

use super::case::Case;
use super::launch::Launch;
use crate::harness::Binary;

pub(super) struct Stage<'l> {
    pub(super) fixture: Fixture,
    launch: &'l Launch,
    mark: String,
    /// Known once the server was started.
    server: Option<u32>,
    binary: PathBuf,
    tcp: TcpListener,
    udp: UdpSocket,
    /// By an abstract name and by a path outside the workspace. A connection needs nobody to accept it.
    _unix: [UnixListener; 2],
}

impl<'l> Stage<'l> {
    pub(super) fn is_in_containers(&self) -> bool {
        self.launch.has_engine()
    }

    /// Prepares everything, the case's own setup included.
    pub(super) fn new(case: &Case, launch: &'l Launch) -> Result<Self, String> {
        let fixture = Fixture::new("");
        // Process numbers are few where a namespace begins anew, and abstract names are the machine's.
        let unique = fixture.base().file_name().and_then(|name| name.to_str()).unwrap();
        let mark = format!("{}-{unique}", case.id);
        let ssh = fixture.base().join("home/.ssh");
        std::fs::create_dir_all(&ssh).unwrap();
        std::fs::write(ssh.join("id_ed25519"), "SECRET-CANARY-KEY").unwrap();
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(ssh.join("id_ed25519"), private).unwrap();
        let name = SocketAddr::from_abstract_name(format!("harness-{mark}")).unwrap();
        let unix = [
            UnixListener::bind_addr(&name).unwrap(),
            UnixListener::bind(fixture.outside().join("harness.sock")).unwrap(),
        ];
        let udp = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        udp.set_nonblocking(true).unwrap();
        let mut stage = Self {
            fixture,
            launch,
            mark,
            server: None,
            binary: launch.binary(),
            tcp: TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap(),
            udp,
            _unix: unix,
        };
        if case.mentions("$SERVER_EXE") || case.mentions("server.sha256") {
            stage.binary = stage.own_binary();
        }
        launch.hand_over(&stage.fixture);
        for line in &case.setup {
            succeed(line, launch.preparing_shell(&stage.fill(line), &stage.fixture))?;
        }
        launch.hand_over(&stage.fixture);
        Ok(stage)
    }

    /// A copy that a case may lose, with the sum by which that would be seen. Others share one.
    fn own_binary(&self) -> PathBuf {
        let copy = self.fixture.base().join("server");
        std::fs::copy(&self.binary, &copy).unwrap();
        let sum = Command::new("sha256sum").arg(&copy).output().unwrap();
        assert!(sum.status.success(), "sha256sum");
        std::fs::write(self.fixture.base().join("server.sha256"), sum.stdout).unwrap();
        copy
    }

    /// Starts the server.
    pub(super) fn serve(&mut self, variables: &[(&str, &str)]) -> Binary {
        let server = self.launch.serve(&self.binary, &self.fixture, variables);
        self.server = Some(server.pid());
        server
    }

    pub(super) fn audit_log(&self) -> PathBuf {
        self.fixture.base().join("state/audit.jsonl")
    }

    /// Puts the values of the names in; `$W` and `$S` only where no letter or underscore follows.
    pub(super) fn fill(&self, text: &str) -> String {
        let show = |path: &Path| path.display().to_string();
        let port = |address: std::io::Result<std::net::SocketAddr>| address.unwrap().port();
        let mut text = text
            .replace("$BASE", &show(self.fixture.base()))
            .replace("$MARK", &self.mark)
            .replace("$AUDIT_LOG", &show(&self.audit_log()))
            .replace("$SERVER_EXE", &show(&self.binary))
            .replace("$SERVER_PORT", &port(self.tcp.local_addr()).to_string())
            .replace("$SERVER_UDP_PORT", &port(self.udp.local_addr()).to_string());
        if let Some(pid) = self.server {
            text = text.replace("$SERVER_PID", &pid.to_string());
        }
        for (name, value) in
            [("$W", show(&self.fixture.root())), ("$S", show(&self.fixture.outside()))]
        {
            text = replace_word(&text, name, &value);
        }
        text
    }

    /// The same for every text in `value`.
    fn fill_all(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => self.fill(text).into(),
            Value::Array(items) => items.iter().map(|item| self.fill_all(item)).collect(),
            Value::Object(object) => {
                object.iter().map(|(key, value)| (key.clone(), self.fill_all(value))).collect()
            }
            other => other.clone(),
        }
    }

    /// The arguments of a call, long ones made as long as they are meant.
    pub(super) fn arguments(&self, given: &Value) -> Value {
        let Value::Object(given) = given else { panic!("arguments are an object") };
        let mut arguments = serde_json::Map::new();
        for (name, value) in given {
            if let Some(base) = name.strip_suffix("_repeat") {
                let (text, times) = (value[0].as_str().unwrap(), value[1].as_u64().unwrap());
                let suffix = given.get(&format!("{base}_suffix")).and_then(Value::as_str);
                let text = text.repeat(usize::try_from(times).unwrap());
                arguments.insert(base.into(), (text + suffix.unwrap_or("")).into());
            } else if !name.ends_with("_suffix") {
                arguments.insert(name.clone(), self.fill_all(value));
            }
        }
        arguments.into()
    }

    /// Runs a line outside every sandbox; it must succeed.
    pub(super) fn shell(&self, line: &str) -> Result<(), String> {
        succeed(line, self.launch.shell(&self.fill(line), &self.fixture))
    }

    /// Starts the other party of a race.
    pub(super) fn rival(&self, line: &str) -> Rival {
        use std::os::unix::process::CommandExt as _;
        let mut command = self.launch.shell(&self.fill(line), &self.fixture);
        command.stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        Rival(command.spawn().unwrap())
    }

    /// Makes what came over the network a file, which is what cases look for.
    pub(super) fn note_datagrams(&self) {
        if self.udp.recv(&mut [0; 64]).is_ok() {
            std::fs::write(self.fixture.base().join("udp-received"), "").unwrap();
        }
    }

    /// All there is outside.
    pub(super) fn outside(&self) -> [(Snapshot, Attributes); 2] {
        [self.fixture.outside(), self.fixture.base().join("home")]
            .map(|place| (Snapshot::of(&place), attributes(&place)))
    }
}

impl Drop for Stage<'_> {
    /// A case may have mounted something, or left its mark where everybody does.
    fn drop(&mut self) {
        for place in ["/tmp/host-", "/dev/shm/s-"] {
            std::fs::remove_file(format!("{place}{}", self.mark)).ok();
        }
        let base = self.fixture.base().display().to_string();
        let table = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        for point in table.lines().rev().filter_map(|line| line.split(' ').nth(1)) {
            if Path::new(point).starts_with(&base) {
                let status = Command::new("umount").arg(point).status().expect("umount runs");
                assert!(status.success() || std::thread::panicking(), "umount {point}");
            }
        }
    }
}

/// Runs the command made from this line; it must succeed.
fn succeed(line: &str, mut command: Command) -> Result<(), String> {
    let output = command.output().unwrap();
    if output.status.success() {
        return Ok(());
    }
    let error = String::from_utf8_lossy(&output.stderr);
    Err(format!("{line}: {} {error}", output.status))
}

/// Extended attributes by path, which a [`Snapshot`] does not hold.
type Attributes = BTreeMap<PathBuf, Vec<u8>>;

fn attributes(place: &Path) -> Attributes {
    let mut found = Attributes::new();
    let mut pending = vec![place.to_owned()];
    while let Some(path) = pending.pop() {
        if path.symlink_metadata().unwrap().is_dir() {
            pending.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
        let mut names = vec![0; 4096];
        // A file system without them has none.
        let length = rustix::fs::llistxattr(&path, &mut names[..]).unwrap_or(0);
        names.truncate(length);
        let mut all = Vec::new();
        for name in names.split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
            let mut value = vec![0; 4096];
            let length = rustix::fs::lgetxattr(&path, name, &mut value[..]).unwrap();
            all.extend_from_slice(name);
            all.push(b'=');
            all.extend_from_slice(value.get(..length).unwrap());
        }
        found.insert(path, all);
    }
    found
}

fn replace_word(text: &str, word: &str, value: &str) -> String {
    let mut parts = text.split(word);
    let mut filled = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let goes_on = part.starts_with(|next: char| next.is_ascii_alphabetic() || next == '_');
        filled.push_str(if goes_on { word } else { value });
        filled.push_str(part);
    }
    filled
}

/// The other party of a race, ended with its whole group when the call is over.
pub(super) struct Rival(Child);

impl Drop for Rival {
    fn drop(&mut self) {
        let group = rustix::process::Pid::from_child(&self.0);
        rustix::process::kill_process_group(group, rustix::process::Signal::KILL).ok();
        self.0.wait().ok();
    }
}
