//! What holds here, found out by doing: the helper is run once, and tries what each layer must refuse.

use std::error::Error as _;
use std::os::fd::AsFd as _;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::PoisonError;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, PidfdFlags};

use crate::attempt::{Attempt, Bytes, OURSELVES, Try};
use crate::layer::landlock;
use crate::layer::rlimits::{self, Limited};
use crate::{Confined, Error, HostRead, Layer, Net, Report, Rung, Sandbox, State, Status, Target};

/// A program every machine has, for a script that needs nothing else.
pub(crate) const SHELL: &str = "/bin/sh";
/// What the script exits with: proof that it was run, with the environment it was given.
const PROOF: i32 = 42;
/// Seconds a probe may take.
const PATIENCE: i64 = 10;

impl Sandbox {
    /// Runs the helper on harmless attempts against every layer and reports which were refused.
    ///
    /// It takes a few milliseconds and never fails: what went wrong is in the report. The first report on a rung with
    /// namespaces is what [`Sandbox::new`] found.
    pub fn probe(&self) -> Report {
        let first = self.found.lock().unwrap_or_else(PoisonError::into_inner).take();
        let found = first.map_or_else(|| self.run_probe(), Ok);
        let layers = match &found {
            Ok(found) => self.layers(found),
            Err(error) => self.layers(&Found::failed(error)),
        };
        let layers = self.with_remedies(layers);
        let holds = |name: &str| {
            layers.iter().any(|layer| layer.name == name && layer.state != State::Unavailable)
        };
        let needed = [
            "fs_readonly_outside",
            "fs_hidden_outside",
            "net_off",
            "unix_socket_isolation",
            "ptrace_isolation",
            "pid_containment",
            "syscalls",
            "no_new_privs",
            "capabilities",
            "execute",
        ];
        let rung = if needed.into_iter().all(holds) { self.plan.rung } else { Rung::None };
        Report { rung, layers }
    }

    /// Where the plan lacks a part, what is missing through it says what would bring it.
    fn with_remedies(&self, layers: Vec<Layer>) -> Vec<Layer> {
        let Some(missing) = self.missing.last().filter(|_| self.plan.rung == Rung::None) else {
            return layers;
        };
        let explain = |mut layer: Layer| {
            if layer.state == State::Unavailable && layer.remedy.is_none() {
                layer.detail = format!("{}: {}", layer.detail, missing.what);
                layer.remedy = Some(missing.remedy.clone());
            }
            layer
        };
        layers.into_iter().map(explain).collect()
    }

    /// Whether commands have namespaces of their own.
    fn is_native(&self) -> bool {
        self.plan.rung >= Rung::NativeNoproc
    }

    /// What keeps this sandbox from a higher rung, for layers that would need one.
    fn without_namespaces(&self, name: &str, what: &str) -> Layer {
        match self.missing.first().filter(|missing| missing.rung == Rung::NativeFull) {
            Some(missing) => {
                unavailable(name, &format!("{what}: {}", missing.what), Some(&missing.remedy))
            }
            None => unavailable(name, what, Some("raise the policy's ceiling")),
        }
    }

    pub(crate) fn run_probe(&self) -> Result<Found, Error> {
        let cwd = self.workspace.try_clone().map_err(Error::system("keep the workspace open"))?;
        let target = Target::new(SHELL, cwd)
            .args(["-c", "exit \"$PROOF\""])
            .envs([("PROOF", PROOF.to_string())]);
        // All of the workspace: so nothing of it is touched, and nothing has to be there.
        let target = target.protect(["."]);
        let listener = Listener::new().map_err(Error::system("listen for a probe"))?;
        let confined = self.pass_on(target, self.tries(&listener))?;
        let (ended, status) = run(confined)?;
        // A program that is not there is told by the report; the layers hold all the same.
        let (attempts, execute) = match status.reports()? {
            (_, attempts) if ended.code() == Some(PROOF) => (attempts, None),
            (_, attempts) => (attempts, Some(ending(ended))),
        };
        Ok(Found { attempts, failure: None, execute })
    }

    fn tries(&self, listener: &Listener) -> Vec<Try> {
        let canary = self.scratch.canary();
        let created = canary.with_file_name("created");
        let us = match rustix::process::getpid().as_raw_nonzero().get() {
            // The first process of a container, say.
            1 | 2 if self.is_native() => OURSELVES,
            us => us,
        };
        let bytes = |path: &Path| Bytes::from(path);
        let mut tries = vec![
            Try::ReadOutside(bytes(&canary)),
            Try::WriteOutside(bytes(&canary)),
            Try::CreateOutside(bytes(&created)),
            Try::TruncateOutside(bytes(&canary)),
            Try::ChangeModeOutside(bytes(&canary)),
            Try::ReadEnvironment(us),
            Try::Signal(us),
            Try::Limit(us.max(1)),
            Try::Trace,
            Try::Internet,
            Try::UnixSocket(Bytes::from(Path::new(&listener.name))),
            Try::UserNamespace,
            Try::Leave,
            Try::NewPrivileges,
            Try::Capabilities,
        ];
        let mut limits = rlimits::plan(&self.limits);
        tries.extend(limits.iter().map(|limit| Try::Limits(vec![*limit])));
        limits.clear();
        // Above the count of this moment by the count of the next one, which may differ a little.
        limits.extend(self.limits_of_the_moment());
        tries.extend((!limits.is_empty()).then_some(Try::Limits(limits)));
        if self.is_native() {
            tries.extend(self.limits.tmp.map(|limit| Try::Temporary { limit }));
            let workspace = crate::view::real_path(self.workspace.as_fd()).ok();
            let inside = workspace.map(|path| path.join(&listener.name));
            tries.extend(inside.map(|path| Try::CreateProtected(bytes(&path))));
        }
        tries
    }

    /// All layers, in the order that [`Report`] promises.
    fn layers(&self, found: &Found) -> Vec<Layer> {
        let here = |needed, remedy: &str| {
            let version = crate::sys::landlock_abi().unwrap_or(0);
            (version < needed).then(|| remedy.to_owned())
        };
        let read_everything = self.read == HostRead::All;
        let network = self.net == Net::On;
        let canary = self.scratch.canary();
        let elsewhere = || {
            self.missing.is_empty().then(|| {
                let canary = canary.display();
                format!("if the policy grants {canary}, where this was tried, name another scratch parent")
            })
        };
        vec![
            found
                .refused(
                    "fs_readonly_outside",
                    "opening an outside file for writing, truncating it, and making one",
                    |what| {
                        let create = matches!(what, Try::CreateOutside(_));
                        create || matches!(what, Try::WriteOutside(_) | Try::TruncateOutside(_))
                    },
                )
                .with_notes(if self.is_native() { &[] } else { &self.plan.notes })
                .or_remedy(elsewhere()),
            if read_everything {
                off("fs_hidden_outside", "the policy lets commands read everything the user may")
            } else {
                found
                    .refused("fs_hidden_outside", "opening an outside file", |what| {
                        matches!(what, Try::ReadOutside(_))
                    })
                    .or_remedy(elsewhere())
            },
            found.metadata(),
            if network {
                off("net_off", "the policy gives commands the host's network")
            } else {
                found.refused("net_off", "finding a way to an internet address", |what| {
                    *what == Try::Internet
                })
            },
            found.refused(
                "unix_socket_isolation",
                "connecting to the server's Unix socket",
                |what| matches!(what, Try::UnixSocket(_)),
            ),
            found
                .refused("signal_isolation", "signalling the server", |what| {
                    matches!(what, Try::Signal(_))
                })
                .or_remedy(here(landlock::WITH_SCOPES, "run a kernel of version 6.12 or newer")),
            found.refused(
                "ptrace_isolation",
                "tracing a process, and reading the server's environment,",
                |what| matches!(what, Try::Trace | Try::ReadEnvironment(_)),
            ),
            self.containment(found),
            self.namespaces(found),
            self.processes(found),
            found.refused(
                "syscalls",
                "making a user namespace, and changing the server's limits,",
                |what| matches!(what, Try::UserNamespace | Try::Limit(_)),
            ),
            found.refused("no_new_privs", "gaining privileges by execution", |what| {
                *what == Try::NewPrivileges
            }),
            found
                .refused("capabilities", "holding a capability", |what| *what == Try::Capabilities),
            self.identity(found),
            found.limit("memory_limit", &[Limited::Memory], self.limits.memory.is_some()).with(
                "each process by itself; all of a command's processes together are not limited",
            ),
            self.pids(found),
            found.limit(
                "file_limits",
                &[Limited::Core, Limited::FileSize, Limited::OpenFiles],
                true,
            ),
            self.temporary(found),
            if self.is_native() {
                found.refused("protected_paths", "writing where names are protected", |what| {
                    matches!(what, Try::CreateProtected(_))
                })
            } else {
                self.without_namespaces(
                    "protected_paths",
                    "Landlock cannot take a part away from a granted directory",
                )
            },
            match &found.execute {
                None if found.failure.is_none() => active("execute", "a confined shell was run"),
                problem => unavailable(
                    "execute",
                    problem.as_deref().or(found.failure.as_deref()).unwrap_or_default(),
                    Some("install a shell as /bin/sh, or grant the place it lies in"),
                ),
            },
        ]
    }

    fn containment(&self, found: &Found) -> Layer {
        let native = self.is_native();
        let (what, how) = if native {
            (
                "leaving the namespace of processes",
                "it ends with its first process, whatever a command starts",
            )
        } else {
            ("leaving the process group", "setsid and setpgid are answered without effect")
        };
        found.refused("pid_containment", what, |what| *what == Try::Leave).with(how)
    }

    fn namespaces(&self, found: &Found) -> Layer {
        if !self.is_native() {
            return self.without_namespaces("namespaces", "no view of its own");
        }
        let mut detail =
            "users, mounts, processes, IPC and host name are a command's own".to_owned();
        if self.net != Net::On {
            detail.push_str("; the network is the sandbox's own");
        }
        let hidden = found.refused("namespaces", "seeing an outside file", |what| {
            matches!(what, Try::ReadOutside(_) | Try::Leave)
        });
        hidden.with(&detail).with_notes(&self.plan.notes)
    }

    fn processes(&self, found: &Found) -> Layer {
        match self.plan.rung {
            Rung::NativeFull => found
                .refused("pidns", "signalling the server, and reading its environment,", |what| {
                    matches!(what, Try::Signal(_) | Try::ReadEnvironment(_))
                })
                .with("/proc shows a command's own processes"),
            Rung::NativeNoproc => unavailable(
                "pidns",
                "processes are a command's own, but /proc is the machine's and shows names and command lines of \
                 others",
                Some("in a container, unmask /proc (podman: --security-opt unmask=ALL)"),
            ),
            _ => self.without_namespaces("pidns", "no processes of its own"),
        }
    }

    fn temporary(&self, found: &Found) -> Layer {
        let name = "tmp_quota";
        if !self.is_native() {
            return self
                .without_namespaces(name, "a command's files count against the disk they lie on");
        }
        if self.limits.tmp.is_none() {
            return off(name, "the policy sets no limit");
        }
        found
            .refused(name, "a /tmp larger than the limit", |what| {
                matches!(what, Try::Temporary { .. })
            })
            .with("the private home lies on disk and is not limited")
    }

    fn identity(&self, found: &Found) -> Layer {
        let user = self.user();
        if let Some(failure) = &found.failure {
            return unavailable("identity", failure, None);
        }
        if user != 0 {
            return active("identity", &format!("commands run as user {user}, not as root"));
        }
        unavailable(
            "identity",
            "commands keep root's name without its capabilities: what belongs to root and is not kept closed by \
             another layer is theirs",
            Some("run the server as an ordinary user, or give the workspace to one"),
        )
    }

    fn pids(&self, found: &Found) -> Layer {
        if self.limits.pids.is_none() {
            return off("pids_limit", "the policy sets no limit");
        }
        if self.user() == 0 {
            return unavailable(
                "pids_limit",
                "the kernel does not count root's processes",
                Some("run the server as an ordinary user, or give the workspace to one"),
            );
        }
        let counted = if self.is_native() {
            "counted for each command"
        } else {
            "counted for the whole user, above what ran before"
        };
        found.limit("pids_limit", &[Limited::Processes], true).with(counted)
    }
}

/// What a probe brought.
#[derive(Debug)]
pub(crate) struct Found {
    attempts: Vec<Attempt>,
    /// Why nothing was tried at all.
    failure: Option<String>,
    /// Why the program was not run, or not to its end.
    execute: Option<String>,
}

impl Found {
    fn failed(error: &Error) -> Self {
        let source = error.source().map(|source| format!(": {source}")).unwrap_or_default();
        Self { attempts: Vec::new(), failure: Some(format!("{error}{source}")), execute: None }
    }

    /// Active when all attempts that `matches` picks were refused.
    fn refused(&self, name: &str, what: &str, matches: impl Fn(&Try) -> bool) -> Layer {
        if let Some(failure) = &self.failure {
            return unavailable(name, failure, None);
        }
        let picked = || self.attempts.iter().filter(|attempt| matches(&attempt.what));
        let all = picked().next().is_some() && picked().all(Attempt::was_refused);
        if !all {
            return unavailable(name, &format!("{what} was not refused"), None);
        }
        // An attempt that cannot be made beforehand proves nothing about before.
        let proven = picked().all(|attempt| attempt.before.is_none_or(|errno| errno == 0));
        let before = if proven { "" } else { ", and would have been without the sandbox" };
        active(name, &format!("{what} was refused{before}"))
    }

    fn limit(&self, name: &str, which: &[Limited], wanted: bool) -> Layer {
        if !wanted {
            return off(name, "the policy sets no limit");
        }
        self.refused(name, "exceeding the limit", |what| match what {
            Try::Limits(limits) => limits.iter().any(|limit| which.contains(&limit.resource)),
            _ => false,
        })
    }

    fn metadata(&self) -> Layer {
        let name = "fs_metadata_outside";
        let changed = |attempt: &&Attempt| matches!(attempt.what, Try::ChangeModeOutside(_));
        match self.attempts.iter().find(changed) {
            Some(attempt) if attempt.was_refused() => {
                active(name, "changing an outside file's mode was refused")
            }
            _ => unavailable(
                name,
                self.failure.as_deref().unwrap_or(
                    "mode, owner, times and attributes of outside files the user owns can be changed, and their \
                     existence is seen: Landlock does not cover that",
                ),
                Some("run the server as a user that owns nothing else"),
            ),
        }
    }
}

impl Layer {
    fn new(name: &str, state: State, detail: &str, remedy: Option<&str>) -> Self {
        Self {
            name: name.to_owned(),
            state,
            detail: detail.to_owned(),
            remedy: remedy.map(str::to_owned),
        }
    }

    /// Adds how far an active layer reaches.
    fn with(mut self, detail: &str) -> Self {
        if self.state == State::Active {
            self.detail = format!("{}; {detail}", self.detail);
        }
        self
    }

    /// Adds what is to be known besides.
    fn with_notes(self, notes: &[String]) -> Self {
        notes.iter().fold(self, |layer, note| layer.with(note))
    }

    /// Adds what helps against a missing one.
    fn or_remedy(mut self, remedy: Option<String>) -> Self {
        if self.state == State::Unavailable && self.remedy.is_none() {
            self.remedy = remedy;
        }
        self
    }
}

fn active(name: &str, detail: &str) -> Layer {
    Layer::new(name, State::Active, detail, None)
}

fn off(name: &str, detail: &str) -> Layer {
    Layer::new(name, State::Off, detail, None)
}

fn unavailable(name: &str, detail: &str, remedy: Option<&str>) -> Layer {
    Layer::new(name, State::Unavailable, detail, remedy)
}

/// A Unix socket of the machine that commands must not reach.
struct Listener {
    name: String,
    _socket: UnixListener,
}

impl Listener {
    fn new() -> std::io::Result<Self> {
        use std::hash::{BuildHasher as _, RandomState};
        let number = RandomState::new().hash_one(std::process::id());
        let name = format!(".agent-sandbox-probe-{number:016x}");
        let socket = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name)?)?;
        Ok(Self { name, _socket: socket })
    }
}

/// Runs the helper to its end, which comes within seconds.
#[expect(
    clippy::disallowed_methods,
    reason = "a probe must not need a runner: it starts one process, which starts none"
)]
pub(crate) fn run(confined: Confined) -> Result<(ExitStatus, Status), Error> {
    let Confined { program, args, stdin, spare: _, status } = confined;
    let mut child = std::process::Command::new(program)
        .args(args)
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::from(stdin))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(Error::system("start the sandbox helper"))?;
    let timeout = Timespec { tv_sec: PATIENCE, tv_nsec: 0 };
    let ended = rustix::process::pidfd_open(Pid::from_child(&child), PidfdFlags::empty()).and_then(
        |pidfd| rustix::event::poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], Some(&timeout)),
    );
    if !matches!(ended, Ok(1..)) {
        // It ended meanwhile, or ends now.
        child.kill().ok();
    }
    let ending = child.wait().map_err(Error::system("wait for the sandbox helper"))?;
    Ok((ending, status))
}

fn ending(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("a confined shell exited with {code}"),
        (None, Some(signal)) => format!("a confined shell was ended by signal {signal}"),
        (None, None) => "a confined shell ended".to_owned(),
    }
}
