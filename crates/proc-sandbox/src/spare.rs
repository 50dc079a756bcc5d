//! The caller's side of a spare: one process a sandbox, started when it is first needed.

use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{WaitId, WaitIdOptions};

use crate::{helper, wire};

/// Seconds a spare may take to answer, before it is taken for stopped.
const PATIENCE: i64 = 2;

/// A quicker way to start a [`Confined`](crate::Confined) command: a process that is kept ready for it.
///
/// A helper is a program that is started, and starting one is a third of a command's price. The spare is a helper that
/// was started once for a [`Sandbox`](crate::Sandbox), has been told nothing, and splits off a copy of itself for each
/// command. Where that is not to be had, it starts the program as its caller would.
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
    /// What kept the system from making a process.
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
        let known = process.as_mut().map(|known| known.start(stdin, output)).transpose()?;
        let answer = match known {
            Some(Answer::Gone) | None => {
                // The old one is waited for first. Where none can be started, no helper can, which is told below.
                *process = None;
                match Process::new(&self.helper) {
                    Ok(fresh) => process.insert(fresh).start(stdin, output)?,
                    Err(_) => Answer::Gone,
                }
            }
            Some(answer) => answer,
        };
        drop(process);
        match answer {
            Answer::Started(pid) => Ok(pid),
            // Some kernels know no siblings; a program can be started everywhere.
            Answer::Refused | Answer::Gone => {
                let mut helper = command(&self.helper);
                let outputs = (output.try_clone_to_owned()?, output.try_clone_to_owned()?);
                helper.stdin(stdin.try_clone_to_owned()?).stdout(outputs.0).stderr(outputs.1);
                Ok(helper.spawn()?.id())
            }
        }
    }
}

/// What came of asking a spare.
enum Answer {
    Started(u32),
    /// It goes on, and nothing was started.
    Refused,
    /// It does not, and nothing was started.
    Gone,
}

/// The helper, in a process group of its own and with nothing of the caller's.
#[expect(
    clippy::disallowed_methods,
    reason = "the helper is no command yet: it is started here, and watched by whoever asked"
)]
fn command(helper: &OwnedFd) -> std::process::Command {
    let mut command = std::process::Command::new(program(helper));
    command.arg(helper::MARKER).env_clear().current_dir("/").process_group(0);
    command
}

/// A spare that was started. Dropped, it is ended and waited for.
#[derive(Debug)]
struct Process {
    socket: OwnedFd,
    child: Child,
}

impl Process {
    fn new(helper: &OwnedFd) -> io::Result<Self> {
        let (socket, stdin) = wire::channel()?;
        let child = command(helper)
            .arg(helper::SPARE)
            .stdin(Stdio::from(stdin))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Ok(Self { socket, child })
    }

    /// Asks for a helper. An error leaves open whether there is one; then it is not to be asked for again.
    fn start(&mut self, stdin: BorrowedFd<'_>, output: BorrowedFd<'_>) -> io::Result<Answer> {
        match wire::ask(self.socket.as_fd(), stdin, output) {
            Ok(()) => {}
            Err(error) if is_gone(&error) => return Ok(Answer::Gone),
            Err(error) => return Err(error),
        }
        if !self.wait()? {
            // It was stopped. What it split off, if anything, answers or is gone too.
            self.child.kill()?;
            if !self.wait()? {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
        let pid = match wire::answered(self.socket.as_fd())? {
            None => return Ok(Answer::Gone),
            Some(Err(_)) => return Ok(Answer::Refused),
            Some(Ok(pid)) => pid,
        };
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        rustix::process::waitid(WaitId::Pid(pid), look)?;
        Ok(Answer::Started(pid.as_raw_nonzero().get().unsigned_abs()))
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
