//! The caller's side of a spare: one process a sandbox, started when it is first needed.

use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, WaitId, WaitIdOptions};

use crate::{helper, wire};

/// Seconds a spare may take to answer, before it is taken for stopped.
const PATIENCE: i64 = 2;

/// A quicker way to start a [`Confined`](crate::Confined) command: a process that is kept ready for it.
///
/// A helper is a program that is started, and starting one is a third of a command's price. The spare is a helper that
/// was started once for a [`Sandbox`](crate::Sandbox), has been told nothing, and splits off a copy of itself for each
/// command.
#[derive(Debug, Clone)]
pub struct Spare(Arc<Kept>);

impl Spare {
    /// Starts the helper of a confined command: `stdin` is what came with it in
    /// [`Confined::stdin`](crate::Confined::stdin), `output` becomes standard output and standard error. Returns the
    /// process id of a child of the calling process that leads a process group of its own, as
    /// `proc_runner::Command::started_by` wants it.
    ///
    /// # Errors
    ///
    /// What kept the system from making a process. Nothing was started then.
    ///
    /// # Security
    ///
    /// The helper is given these two descriptors and no others. It was split off before the plan was read, so nothing
    /// of another command is in it. A spare that was killed is replaced; commands that run are not the poorer for it.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "both are the helper's, and a copy here would keep them open"
    )]
    pub fn start(&self, stdin: OwnedFd, output: OwnedFd) -> io::Result<u32> {
        self.0.start(stdin.as_fd(), output.as_fd())
    }

    pub(crate) fn of(helper: OwnedFd) -> Self {
        Self(Arc::new(Kept { helper, process: Mutex::new(None) }))
    }

    /// The helper's program, by its descriptor.
    pub(crate) fn program(&self) -> PathBuf {
        program(&self.0.helper)
    }
}

fn program(helper: &OwnedFd) -> PathBuf {
    format!("/proc/self/fd/{}", helper.as_raw_fd()).into()
}

#[derive(Debug)]
struct Kept {
    helper: OwnedFd,
    process: Mutex<Option<Process>>,
}

impl Kept {
    fn start(&self, stdin: BorrowedFd<'_>, output: BorrowedFd<'_>) -> io::Result<u32> {
        let mut process = self.process.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = process.as_mut()
            && let Some(started) = known.start(stdin, output)?
        {
            return Ok(started);
        }
        // There is none yet, or no longer.
        *process = None;
        let fresh = process.insert(Process::new(&self.helper)?);
        fresh.start(stdin, output)?.ok_or_else(|| io::ErrorKind::BrokenPipe.into())
    }
}

/// A spare that was started. Dropped, it is ended and waited for.
#[derive(Debug)]
struct Process {
    socket: OwnedFd,
    child: Child,
}

impl Process {
    #[expect(
        clippy::disallowed_methods,
        reason = "a spare is no command: it is started once, and looked after here"
    )]
    fn new(helper: &OwnedFd) -> io::Result<Self> {
        let (socket, stdin) = wire::channel()?;
        let child = std::process::Command::new(program(helper))
            .args([helper::MARKER, helper::SPARE])
            .env_clear()
            .current_dir("/")
            // A terminal's signals are the caller's business.
            .process_group(0)
            .stdin(Stdio::from(stdin))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Ok(Self { socket, child })
    }

    /// The new helper's id; `None` when the spare is gone and nothing was started.
    fn start(
        &mut self,
        stdin: BorrowedFd<'_>,
        output: BorrowedFd<'_>,
    ) -> io::Result<Option<u32>> {
        match wire::ask(self.socket.as_fd(), stdin, output) {
            Ok(()) => {}
            Err(error) if is_gone(&error) => return Ok(None),
            Err(error) => return Err(error),
        }
        if !self.wait()? {
            // It was stopped. What it split off, if anything, answers or is gone too.
            self.child.kill()?;
            if !self.wait()? {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
        let Some(number) = wire::answered(self.socket.as_fd())? else { return Ok(None) };
        let Some(pid) = Pid::from_raw(number).filter(|_| number > 0) else {
            return Err(io::Error::from_raw_os_error(number.saturating_neg()));
        };
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        rustix::process::waitid(WaitId::Pid(pid), look)?;
        Ok(Some(number.unsigned_abs()))
    }

    /// Whether there is an answer, or nobody to give one.
    fn wait(&self) -> io::Result<bool> {
        let timeout = Timespec { tv_sec: PATIENCE, tv_nsec: 0 };
        loop {
            let mut answer = [PollFd::new(&self.socket, PollFlags::IN)];
            match rustix::event::poll(&mut answer, Some(&timeout)) {
                Err(rustix::io::Errno::INTR) => {}
                other => return Ok(other? > 0),
            }
        }
    }
}

fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail only if it is gone already.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
