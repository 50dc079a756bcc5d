//! From a policy to a plan, once; from the plan to confined commands, as often as wanted.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
use rustix::thread::CapabilitySet;

use crate::attempt::{Bytes, Try};
use crate::layer::rlimits::{Limit, Limited};
use crate::layer::seccomp::Open;
use crate::layer::{Step, landlock, rlimits, seccomp};
use crate::places::Place;
use crate::probe::Found;
use crate::scratch::Scratch;
use crate::view::{Identity, View, real_path};
use crate::wire::{self, Call, Handles, Namespace, Slot};
use crate::{
    Confined, Error, Helper, HostRead, Net, Policy, ResourceLimits, Rung, Spare, Status, Target,
};

/// How long a count of the user's processes is good.
const COUNT_AGE: Duration = Duration::from_secs(2);
/// Whom commands are to the machine when their caller is root and so is the workspace: a number that neither
/// people nor services are given; see <https://systemd.io/UIDS-GIDS/>.
const NOBODY_ELSE: u32 = 60_999;
/// Processes of ours that the kernel counts with a command's: its guardian and the first of its namespace.
const OUR_PROCESSES: u64 = 2;

/// A policy made ready: every place opened, every filter compiled, a private directory made, and on the rungs with
/// namespaces the view built.
///
/// One serves a whole run of a server, on any number of threads. Its private directory, its `/tmp` and its
/// loopback network are shared by its commands and go with it.
#[derive(Debug)]
pub struct Sandbox {
    pub(crate) read: HostRead,
    pub(crate) net: Net,
    pub(crate) limits: ResourceLimits,
    require: Rung,
    spare: Spare,
    pub(crate) workspace: OwnedFd,
    pub(crate) scratch: Scratch,
    pub(crate) plan: Plan,
    toolchains: Vec<(OsString, OsString)>,
    /// What is missing for the rungs above the one reached, the highest first.
    pub(crate) missing: Vec<Missing>,
    counted: Mutex<Option<(Instant, u64)>>,
    /// What trying the plan out brought, until the first report takes it.
    pub(crate) found: Mutex<Option<Found>>,
}

/// What is done for each command.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) rung: Rung,
    /// The steps, encoded: the same for every command.
    steps: Vec<u8>,
    /// What every command gets handles of.
    held: Vec<(Slot, OwnedFd)>,
    /// Whom commands run as, where that is not the caller.
    pub(crate) user: Option<(u32, u32)>,
    listener: Option<OwnedFd>,
    /// What could not be shown, and what an old kernel lacks.
    pub(crate) notes: Vec<String>,
}

/// A part that cannot be had here.
#[derive(Debug, Clone)]
pub(crate) struct Missing {
    pub(crate) rung: Rung,
    pub(crate) what: String,
    pub(crate) remedy: String,
}

impl Sandbox {
    /// Opens what the policy names, and finds the highest rung this machine offers by trying each, from the
    /// policy's ceiling downwards.
    ///
    /// A machine that cannot give what the policy requires is no error here, so that [`Sandbox::probe`] can
    /// report it; [`Sandbox::confine`] then refuses.
    ///
    /// # Errors
    ///
    /// - [`Error::Place`]: a place the policy names cannot be opened, or no private directory can be made.
    /// - [`Error::System`]: the workspace or the running program cannot be examined.
    ///
    /// # Security
    ///
    /// Places are opened once, here, and granted by what was found; where there are namespaces they are shown by their
    /// real paths a moment later, the workspace alone being compared with what was opened. The policy must come from
    /// the operator: a file in the workspace may not decide what lies outside of it.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "a policy's descriptors are the sandbox's from here on"
    )]
    pub fn new(policy: Policy) -> Result<Self, Error> {
        let owner = owner(&policy.workspace)?;
        let scratch = Scratch::new(&policy.scratch_parent, owner)?;
        let places = crate::places::resolve(&policy, scratch.home())?;
        let spare = Spare::of(open_helper(&policy.helper)?);
        let mut sandbox = Self {
            read: policy.read,
            net: policy.net,
            limits: policy.limits.clone(),
            require: policy.require,
            spare,
            workspace: policy.workspace.try_clone().map_err(Error::system("keep the workspace"))?,
            scratch,
            plan: Plan::nothing(),
            toolchains: crate::places::toolchain_variables(policy.home.as_deref(), policy.net),
            missing: Vec::new(),
            counted: Mutex::new(None),
            found: Mutex::new(None),
        };
        if policy.ceiling >= Rung::NativeNoproc {
            match sandbox.native(&policy, &places, owner) {
                Ok(()) => return Ok(sandbox),
                Err(missing) => {
                    sandbox.missing.push(missing);
                    sandbox.plan = Plan::nothing();
                }
            }
        }
        if let Some(owner) = owner.or_else(|| is_root().then_some((0, 0))) {
            // It may have been given to somebody else for a rung that is not to be had.
            sandbox.scratch.give_to(owner)?;
        }
        if policy.ceiling >= Rung::Landlock {
            sandbox.plan = sandbox.landlock(&policy, &places, owner)?;
        }
        Ok(sandbox)
    }

    /// The private directory of this sandbox: for `HOME` of its commands, and for `TMPDIR` where they have no
    /// `/tmp` of their own.
    pub fn home(&self) -> PathBuf {
        self.scratch.home_path()
    }

    /// The highest rung that was reached, by trying.
    pub fn rung(&self) -> Rung {
        self.plan.rung
    }

    /// A socket listening on the loopback network inside, with [`Net::Proxy`] on the rungs with namespaces.
    ///
    /// # Security
    ///
    /// Who connects is a command, and hostile. The socket is of a network with nothing else in it: what is
    /// accepted from it reaches whatever its holder connects it to.
    pub fn listener(&self) -> Option<BorrowedFd<'_>> {
        self.plan.listener.as_ref().map(OwnedFd::as_fd)
    }

    /// Variables without which commands would not find what they were granted: the private directory, and the
    /// operator's toolchains, which look for themselves below `HOME`.
    ///
    /// Without a network the package cache of cargo is the operator's, read-only; with one it is a fresh one in
    /// the private directory, which can be written to.
    pub fn environment(&self) -> Vec<(OsString, OsString)> {
        let temporary = match self.plan.rung {
            Rung::NativeFull | Rung::NativeNoproc => crate::view::TEMPORARY.into(),
            _ => self.home(),
        };
        let mut pairs: Vec<(OsString, OsString)> =
            vec![("HOME".into(), self.home().into()), ("TMPDIR".into(), temporary.into())];
        pairs.extend(self.toolchains.iter().cloned());
        pairs
    }

    /// Makes a command that confines itself before it becomes `target`.
    ///
    /// # Errors
    ///
    /// - [`Error::BelowFloor`]: the machine cannot give what the policy requires.
    /// - [`Error::InvalidTarget`]: the target cannot be passed to a program.
    /// - [`Error::System`]: no descriptor or memory is left to pass the plan.
    ///
    /// # Security
    ///
    /// The arguments may be an attacker's. What holds is what the [`Report`](crate::Report) says; in particular
    /// nothing is run if one step fails. The environment is the caller's to choose.
    pub fn confine(&self, target: Target) -> Result<Confined, Error> {
        self.floor()?;
        self.pass_on(target, Vec::new())
    }

    fn floor(&self) -> Result<(), Error> {
        let (rung, floor) = (self.plan.rung, self.require);
        if rung >= floor {
            return Ok(());
        }
        let reasons = self
            .missing
            .iter()
            .filter(|part| part.rung == Rung::Landlock || floor > Rung::Landlock)
            .map(|part| format!("{}; {}", part.what, part.remedy));
        let reason = reasons.collect::<Vec<_>>().join(". ");
        let reason = if reason.is_empty() {
            format!("{floor} lies above the ceiling the policy sets")
        } else {
            reason
        };
        Err(Error::BelowFloor { rung, floor, reason })
    }

    /// Makes a plan with namespaces and tries it out; the policy's ceiling allows one.
    fn native(
        &mut self,
        policy: &Policy,
        places: &[Place],
        owner: Option<(u32, u32)>,
    ) -> Result<(), Missing> {
        let identity = identity(policy, owner).map_err(|error| missing(&error))?;
        if let Some(Identity { user, group, .. }) = identity {
            self.scratch.give_to((user, group)).map_err(|error| missing(&error))?;
        }
        let view =
            View::new(policy, places, &self.home(), identity).map_err(|error| missing(&error))?;
        let (mut handles, notes) = self.prepare(&view).map_err(|error| missing(&error))?;
        let listener = handles.take(Slot::Listener);
        let scoped = crate::sys::landlock_abi().is_ok_and(|abi| abi >= landlock::WITH_SCOPES);
        let program =
            seccomp::program(Open::with_namespaces(policy.net, scoped)).map_err(|error| {
                Missing {
                    rung: Rung::NativeFull,
                    what: format!("no seccomp filter for this architecture: {error}"),
                    remedy: ARCHITECTURES.to_owned(),
                }
            })?;
        let slots = [Namespace::User, Namespace::Mount, Namespace::Network, Namespace::Ipc]
            .into_iter()
            .chain([Namespace::Uts])
            .map(Slot::Namespace)
            .chain([Slot::Ruleset]);
        let held: Vec<_> =
            slots.filter_map(|slot| handles.take(slot).map(|handle| (slot, handle))).collect();
        self.plan = Plan {
            rung: Rung::NativeFull,
            steps: Vec::new(),
            held,
            user: identity.map(|identity| (identity.user, identity.group)),
            listener,
            notes,
        };
        let mut failure = Error::Silent;
        for rung in [Rung::NativeFull, Rung::NativeNoproc] {
            if rung > policy.ceiling {
                continue;
            }
            self.plan.rung = rung;
            self.plan.steps =
                self.native_steps(&view, program.clone()).map_err(|error| missing(&error))?;
            match self.run_probe() {
                Ok(found) => {
                    if rung < policy.ceiling {
                        self.plan.notes.push(with_source(&failure));
                    }
                    self.found = Mutex::new(Some(found));
                    return Ok(());
                }
                // The layers hold; that there is no shell is the report's to say.
                Err(Error::Execute { .. }) => return Ok(()),
                Err(error) => failure = error,
            }
        }
        Err(missing(&failure))
    }

    fn native_steps(&self, view: &View, program: seccomp::Program) -> Result<Vec<u8>, Error> {
        let (core, others): (Vec<_>, Vec<_>) = rlimits::plan(&self.limits)
            .into_iter()
            .partition(|limit| limit.resource == Limited::Core);
        let mut steps = fresh_process();
        steps.push(Step::NoCoreFile(core));
        let plan = &self.plan;
        steps.extend(plan.user.map(|(user, group)| Step::BecomeUser { user, group }));
        steps.extend([Step::Enter, Step::Split]);
        steps.extend((plan.rung == Rung::NativeFull).then_some(Step::FreshProc));
        steps.extend([
            Step::Protect { workspace: view.workspace.clone() },
            Step::EnterDirectoryInside,
            Step::Limits(others),
            Step::EmptyBoundingSet,
            Step::NoNewPrivileges,
            Step::DropCapabilities,
        ]);
        let has_ruleset = plan.held.iter().any(|(slot, _)| *slot == Slot::Ruleset);
        steps.extend(has_ruleset.then_some(Step::Landlock));
        // Last, since it refuses calls the steps before it need.
        steps.push(Step::Seccomp(program));
        encode(&steps)
    }

    /// Has the helper build the view.
    fn prepare(&self, view: &View) -> Result<(Handles, Vec<String>), Error> {
        let call =
            Call { slots: vec![Slot::Workspace], view: Some(view.clone()), ..Call::default() };
        let (socket, stdin) = wire::channel().map_err(Error::system("make a socket"))?;
        wire::send(socket.as_fd(), &encode(&[])?, &call, &[], &[], &[self.workspace.as_fd()])
            .map_err(Error::system("pass a plan to the helper"))?;
        let status = self.status(socket, PathBuf::new(), Rung::NativeFull);
        let (_, status) = crate::probe::run(self.helper_with(stdin, status))?;
        status.prepared()
    }

    /// A plan without namespaces; `None` as its rung where a part is missing.
    fn landlock(
        &mut self,
        policy: &Policy,
        places: &[Place],
        owner: Option<(u32, u32)>,
    ) -> Result<Plan, Error> {
        let mut complete = true;
        let mut missing = |what, remedy: &str| {
            complete = false;
            self.missing.push(Missing { rung: Rung::Landlock, what, remedy: remedy.to_owned() });
        };
        let version = match landlock::available(policy.landlock_ceiling) {
            Ok(version) => Some(version),
            Err((what, remedy)) => {
                missing(what, remedy);
                None
            }
        };
        let ruleset = version.map(|version| landlock::ruleset(places, policy.net, version));
        let ruleset = ruleset.transpose().map_err(Error::system("make a Landlock ruleset"))?;
        let truncation = version.is_none_or(|version| version < landlock::WITH_TRUNCATION);
        let open = Open::without_namespaces(policy.net, truncation);
        let program = match seccomp::program(open) {
            Ok(program) => Some(program),
            Err(error) => {
                let what = format!("no seccomp filter for this architecture: {error}");
                missing(what, ARCHITECTURES);
                None
            }
        };
        let mut steps = fresh_process();
        steps.extend([
            Step::EnterDirectory,
            Step::Limits(rlimits::plan(&policy.limits)),
            Step::EmptyBoundingSet,
        ]);
        steps.extend(owner.map(|(user, group)| Step::BecomeUser { user, group }));
        steps.extend([Step::NoNewPrivileges, Step::DropCapabilities]);
        steps.extend(ruleset.as_ref().map(|_| Step::Landlock));
        // Last, since it refuses calls the steps before it need.
        steps.extend(program.map(Step::Seccomp));
        Ok(Plan {
            rung: if complete { Rung::Landlock } else { Rung::None },
            steps: encode(&steps)?,
            held: ruleset.map(|ruleset| (Slot::Ruleset, ruleset)).into_iter().collect(),
            user: owner,
            listener: None,
            notes: version.into_iter().flat_map(old_landlock).collect(),
        })
    }

    pub(crate) fn pass_on(&self, target: Target, tries: Vec<Try>) -> Result<Confined, Error> {
        let plan = &self.plan;
        let env = target.checked_env()?;
        let native = plan.rung >= Rung::NativeNoproc;
        let directory = if native {
            let path = real_path(target.cwd.as_fd())
                .map_err(Error::system("find the working directory's path"))?;
            Some(Bytes::from(path.as_path()))
        } else {
            None
        };
        let mut slots = vec![Slot::Directory];
        let mut handles: Vec<BorrowedFd<'_>> = vec![target.cwd.as_fd()];
        for (slot, handle) in &plan.held {
            slots.push(*slot);
            handles.push(handle.as_fd());
        }
        if let Some(stdin) = &target.stdin {
            slots.push(Slot::Stdin);
            handles.push(stdin.as_fd());
        }
        let call = Call {
            limits: self.limits_of_the_moment(),
            slots,
            directory,
            protected: target.protected.iter().map(|path| Bytes::from(path.as_path())).collect(),
            tries,
            view: None,
        };
        let program: &OsStr = target.program.as_os_str();
        let argv: Vec<&OsStr> =
            std::iter::once(program).chain(target.args.iter().map(AsRef::as_ref)).collect();
        let (socket, stdin) = wire::channel().map_err(Error::system("make a socket"))?;
        wire::send(socket.as_fd(), &plan.steps, &call, &argv, &env, &handles)
            .map_err(Error::system("pass a plan to the helper"))?;
        Ok(self.helper_with(stdin, self.status(socket, target.program, plan.rung)))
    }

    fn status(&self, socket: OwnedFd, program: PathBuf, rung: Rung) -> Status {
        Status { socket, program, rung, memory_limit: self.limits.memory }
    }

    fn helper_with(&self, stdin: OwnedFd, status: Status) -> Confined {
        Confined {
            program: self.spare.program(),
            args: vec![crate::helper::MARKER.into()],
            stdin,
            spare: self.spare.clone(),
            status,
        }
    }

    /// Whom commands run as.
    pub(crate) fn user(&self) -> u32 {
        let caller = || rustix::process::geteuid().as_raw();
        self.plan.user.map_or_else(caller, |(user, _)| user)
    }

    /// The limit of processes. In a user namespace of a command's own it is counted for that command; else for
    /// the user, so it is put above what runs now, and there is none for root, to whom the kernel applies none.
    pub(crate) fn limits_of_the_moment(&self) -> Vec<Limit> {
        let Some(pids) = self.limits.pids else { return Vec::new() };
        let limit = |value| vec![Limit { resource: Limited::Processes, value }];
        if self.plan.rung >= Rung::NativeNoproc {
            return limit(pids.saturating_add(OUR_PROCESSES));
        }
        let user = self.user();
        if user == 0 {
            return Vec::new();
        }
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        let running = match *counted {
            Some((at, running)) if at.elapsed() < COUNT_AGE => running,
            // Where `/proc` cannot be read the limit is the number alone: too tight rather than too wide.
            _ => rlimits::tasks_of(user).unwrap_or(0),
        };
        if counted.is_none_or(|(at, _)| at.elapsed() >= COUNT_AGE) {
            *counted = Some((Instant::now(), running));
        }
        limit(running.saturating_add(pids))
    }
}

impl Plan {
    /// Below every rung: nothing can be run by it.
    fn nothing() -> Self {
        Self {
            rung: Rung::None,
            steps: b"[]".to_vec(),
            held: Vec::new(),
            user: None,
            listener: None,
            notes: Vec::new(),
        }
    }
}

const ARCHITECTURES: &str = "run on x86_64, aarch64 or riscv64";

/// The first steps on every rung: what a process has that nobody made on purpose.
fn fresh_process() -> Vec<Step> {
    vec![
        Step::ResetSignals,
        Step::LeaveTerminal,
        Step::UsualMask,
        Step::CloseDescriptors,
        Step::FirstToGo,
    ]
}

fn encode(steps: &[Step]) -> Result<Vec<u8>, Error> {
    serde_json::to_vec(steps)
        .map_err(|error| Error::system("encode a plan")(std::io::Error::from(error)))
}

/// What an old version of Landlock lacks, and what was done about it.
fn old_landlock(version: i64) -> Vec<String> {
    let mut notes = Vec::new();
    if version < landlock::WITH_TRUNCATION {
        notes.push(format!(
            "Landlock version {version} does not know truncation, so truncate(2) is refused everywhere by seccomp, \
             and open(2) with O_TRUNC for anything but writing"
        ));
    }
    if version < landlock::WITH_MOVES {
        notes.push("files cannot be moved or linked from one directory to another".to_owned());
    }
    notes
}

/// Why there are no namespaces, with what helps.
fn missing(error: &Error) -> Missing {
    let what = format!("no namespaces: {}", with_source(error));
    Missing { rung: Rung::NativeFull, remedy: remedy(&what), what }
}

/// What keeps namespaces from being made, by what this machine says of itself.
fn remedy(what: &str) -> String {
    let setting = |path: &str| {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let file = rustix::fs::open(path, flags, Mode::empty()).ok()?;
        let mut text = [0; 16];
        let length = rustix::io::read(file, &mut text).ok()?;
        Some(String::from_utf8_lossy(text.get(..length)?).trim().to_owned())
    };
    let is = |path: &str, value: &str| setting(path).as_deref() == Some(value);
    if is("/proc/sys/user/max_user_namespaces", "0") {
        "set the kernel setting user.max_user_namespaces above 0"
    } else if is("/proc/sys/kernel/unprivileged_userns_clone", "0") {
        "set the kernel setting kernel.unprivileged_userns_clone to 1"
    } else if is("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1") {
        "load an AppArmor profile that allows this program `userns`; do not turn the restriction off for all"
    } else if what.contains("under another owner") {
        "run the server as the workspace's owner, or put the workspace on a file system that knows mapped mounts"
    } else if what.contains("/proc") {
        "in a container, unmask /proc (podman: --security-opt unmask=ALL)"
    } else {
        "in a container, use a profile that allows user namespaces, as Podman's does; never seccomp=unconfined"
    }
    .to_owned()
}

fn with_source(error: &Error) -> String {
    let source = std::error::Error::source(error).map(|source| format!(": {source}"));
    format!("{error}{}", source.unwrap_or_default())
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Whom commands are to the machine on the rungs with namespaces, where that is not the caller: never root.
fn identity(policy: &Policy, owner: Option<(u32, u32)>) -> Result<Option<Identity>, Error> {
    if !is_root() {
        return Ok(None);
    }
    if let Some((user, group)) = owner {
        return Ok(Some(Identity { user, group, instead_of: None }));
    }
    let stat =
        rustix::fs::fstat(&policy.workspace).map_err(Error::system("examine the workspace"))?;
    let (user, group) = (NOBODY_ELSE, NOBODY_ELSE);
    Ok(Some(Identity { user, group, instead_of: Some((stat.st_uid, stat.st_gid)) }))
}

/// Whom commands are to run as: the owner of the workspace, where the caller is root and the owner is not.
///
/// Root without capabilities could not write to a directory of somebody else, and root's name alone opens
/// every file that belongs to root.
fn owner(workspace: &OwnedFd) -> Result<Option<(u32, u32)>, Error> {
    let stat = rustix::fs::fstat(workspace).map_err(Error::system("examine the workspace"))?;
    if !is_root() || stat.st_uid == 0 {
        return Ok(None);
    }
    let needed = CapabilitySet::SETUID | CapabilitySet::SETGID;
    let have = rustix::thread::capabilities(None).map_err(Error::system("read capabilities"))?;
    Ok(have.effective.contains(needed).then_some((stat.st_uid, stat.st_gid)))
}

/// Opens the program that will be the helper, so that a file put in its place later is not run.
fn open_helper(helper: &Helper) -> Result<OwnedFd, Error> {
    let path = match helper {
        Helper::Embedded => PathBuf::from("/proc/self/exe"),
        Helper::Program(path) => path.clone(),
    };
    rustix::fs::open(&path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
        .map_err(|errno| Error::Place { path, source: errno.into() })
}
