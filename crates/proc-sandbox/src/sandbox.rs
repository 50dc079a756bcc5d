//! From a policy to a plan, once; from the plan to confined commands, as often as wanted.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
use rustix::thread::CapabilitySet;

use crate::attempt::Try;
use crate::layer::rlimits::{Limit, Limited};
use crate::layer::{Step, landlock, rlimits, seccomp};
use crate::scratch::Scratch;
use crate::wire::{self, Call};
use crate::{Confined, Error, Helper, HostRead, Net, Policy, ResourceLimits, Rung, Status, Target};

/// How long a count of the user's processes is good.
const COUNT_AGE: Duration = Duration::from_secs(2);

/// A policy made ready: every place opened, every filter compiled, a private directory made.
///
/// One serves a whole run of a server, on any number of threads. Its private directory goes with it.
#[derive(Debug)]
pub struct Sandbox {
    pub(crate) read: HostRead,
    pub(crate) net: Net,
    pub(crate) limits: ResourceLimits,
    require: Rung,
    helper: OwnedFd,
    pub(crate) workspace: OwnedFd,
    pub(crate) scratch: Scratch,
    ruleset: Option<OwnedFd>,
    /// The steps, encoded: the same for every command.
    steps: Vec<u8>,
    toolchains: Vec<(OsString, OsString)>,
    /// Whom commands run as, where that is not the caller.
    pub(crate) owner: Option<(u32, u32)>,
    /// What the plan lacks for the rung `landlock`.
    pub(crate) missing: Vec<Missing>,
    counted: Mutex<Option<(Instant, u64)>>,
}

/// A part that cannot be had here.
#[derive(Debug, Clone)]
pub(crate) struct Missing {
    pub(crate) what: String,
    pub(crate) remedy: String,
}

impl Sandbox {
    /// Opens what the policy names and decides what will be done for each command.
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
    /// Places are opened once, here, and granted by what was found. The policy must come from the operator: a
    /// file in the workspace may not decide what lies outside of it.
    pub fn new(policy: Policy) -> Result<Self, Error> {
        let mut missing = Vec::new();
        let owner = owner(&policy.workspace)?;
        let scratch = Scratch::new(&policy.scratch_parent, owner)?;
        let ruleset = match landlock::available() {
            Ok(_) => {
                let places = crate::places::resolve(&policy, scratch.home())?;
                let ruleset = landlock::ruleset(&places, policy.net);
                Some(ruleset.map_err(Error::system("make a Landlock ruleset"))?)
            }
            Err((what, remedy)) => {
                missing.push(Missing { what, remedy: remedy.to_owned() });
                None
            }
        };
        let programs = match seccomp::programs(policy.net) {
            Ok(programs) => Some(programs),
            Err(error) => {
                missing.push(Missing {
                    what: format!("no seccomp filter for this architecture: {error}"),
                    remedy: "run on x86_64, aarch64 or riscv64".to_owned(),
                });
                None
            }
        };
        let mut steps = vec![
            Step::ResetSignals,
            Step::LeaveTerminal,
            Step::UsualMask,
            Step::CloseDescriptors,
            Step::FirstToGo,
            Step::EnterDirectory,
            Step::Limits(rlimits::plan(&policy.limits)),
            Step::EmptyBoundingSet,
        ];
        steps.extend(owner.map(|(user, group)| Step::BecomeOwner { user, group }));
        steps.extend([Step::NoNewPrivileges, Step::DropCapabilities]);
        steps.extend(ruleset.as_ref().map(|_| Step::Landlock));
        // Last, since it refuses calls the steps before it need.
        steps.extend(programs.map(Step::Seccomp));
        let steps = serde_json::to_vec(&steps)
            .map_err(|error| Error::system("encode a plan")(std::io::Error::from(error)))?;
        Ok(Self {
            read: policy.read,
            net: policy.net,
            limits: policy.limits,
            require: policy.require,
            helper: open_helper(policy.helper)?,
            workspace: policy.workspace,
            scratch,
            ruleset,
            steps,
            toolchains: crate::places::toolchain_variables(policy.home.as_deref(), policy.net),
            owner,
            missing,
            counted: Mutex::new(None),
        })
    }

    /// The private directory of this sandbox: for `HOME` and `TMPDIR` of its commands.
    pub fn home(&self) -> PathBuf {
        self.scratch.home_path()
    }

    /// Variables without which commands would not find what they were granted: the private directory, and the
    /// operator's toolchains, which look for themselves below `HOME`.
    ///
    /// Without a network the package cache of cargo is the operator's, read-only; with one it is a fresh one in
    /// the private directory, which can be written to.
    pub fn environment(&self) -> Vec<(OsString, OsString)> {
        let mut pairs: Vec<(OsString, OsString)> =
            ["HOME", "TMPDIR"].map(|name| (name.into(), self.home().into())).into();
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

    /// The rung the plan amounts to.
    fn planned(&self) -> Rung {
        if self.missing.is_empty() { Rung::Landlock } else { Rung::None }
    }

    fn floor(&self) -> Result<(), Error> {
        let (rung, floor) = (self.planned(), self.require);
        if rung >= floor {
            return Ok(());
        }
        let reasons = self.missing.iter().map(|part| format!("{}; {}", part.what, part.remedy));
        let reason = reasons.collect::<Vec<_>>().join(". ");
        let reason = if reason.is_empty() {
            format!("{floor} is not built into this version")
        } else {
            reason
        };
        Err(Error::BelowFloor { rung, floor, reason })
    }

    pub(crate) fn pass_on(&self, target: Target, tries: Vec<Try>) -> Result<Confined, Error> {
        let env = target.checked_env()?;
        let call = Call {
            limits: self.limits_of_the_moment(),
            has_ruleset: self.ruleset.is_some(),
            has_stdin: target.stdin.is_some(),
            tries,
        };
        let program: &OsStr = target.program.as_os_str();
        let argv: Vec<&OsStr> =
            std::iter::once(program).chain(target.args.iter().map(AsRef::as_ref)).collect();
        let mut handles: Vec<BorrowedFd<'_>> = vec![target.cwd.as_fd()];
        handles.extend(self.ruleset.as_ref().map(OwnedFd::as_fd));
        handles.extend(target.stdin.as_ref().map(OwnedFd::as_fd));
        let (socket, stdin) = wire::channel().map_err(Error::system("make a socket"))?;
        wire::send(socket.as_fd(), &self.steps, &call, &argv, &env, &handles)
            .map_err(Error::system("pass a plan to the helper"))?;
        Ok(Confined {
            program: format!("/proc/self/fd/{}", self.helper.as_raw_fd()).into(),
            args: vec![crate::helper::MARKER.into()],
            stdin,
            status: Status { socket, program: target.program, rung: self.planned() },
        })
    }

    /// Whom commands run as.
    pub(crate) fn user(&self) -> u32 {
        self.owner.map_or_else(|| rustix::process::geteuid().as_raw(), |(user, _)| user)
    }

    /// The limit of processes, above what the user runs now; none for root, to whom the kernel applies none.
    pub(crate) fn limits_of_the_moment(&self) -> Vec<Limit> {
        let Some(pids) = self.limits.pids.filter(|_| self.user() != 0) else { return Vec::new() };
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        let running = match *counted {
            Some((at, running)) if at.elapsed() < COUNT_AGE => running,
            // Where `/proc` cannot be read the limit is the number alone: too tight rather than too wide.
            _ => rlimits::tasks_of(self.user()).unwrap_or(0),
        };
        if counted.is_none_or(|(at, _)| at.elapsed() >= COUNT_AGE) {
            *counted = Some((Instant::now(), running));
        }
        vec![Limit { resource: Limited::Processes, value: running.saturating_add(pids) }]
    }
}

/// Whom commands are to run as: the owner of the workspace, where the caller is root and the owner is not.
///
/// Root without capabilities could not write to a directory of somebody else, and root's name alone opens
/// every file that belongs to root.
fn owner(workspace: &OwnedFd) -> Result<Option<(u32, u32)>, Error> {
    let stat = rustix::fs::fstat(workspace).map_err(Error::system("examine the workspace"))?;
    if !rustix::process::geteuid().is_root() || stat.st_uid == 0 {
        return Ok(None);
    }
    let needed = CapabilitySet::SETUID | CapabilitySet::SETGID;
    let have = rustix::thread::capabilities(None).map_err(Error::system("read capabilities"))?;
    Ok(have.effective.contains(needed).then_some((stat.st_uid, stat.st_gid)))
}

/// Opens the program that will be the helper, so that a file put in its place later is not run.
fn open_helper(helper: Helper) -> Result<OwnedFd, Error> {
    let path = match helper {
        Helper::Embedded => PathBuf::from("/proc/self/exe"),
        Helper::Program(path) => path,
    };
    rustix::fs::open(&path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
        .map_err(|errno| Error::Place { path, source: errno.into() })
}
