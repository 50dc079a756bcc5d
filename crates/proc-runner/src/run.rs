//! Runs a command to its end: waits for the child, its output and the cancellation in one place.
//!
//! Order of the end, always the same: the leader ends or is stopped; its group is counted and killed; the pipe
//! is read until it is empty and closed, or the drain time is over; only then the leader is reaped.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::process::ExitStatusExt as _;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::process::{Signal, WaitId, WaitIdOptions};

use crate::capture::Capture;
use crate::group::Group;
use crate::procfs;
use crate::spawn::{Child, spawn};
use crate::{Cancel, Command, End, Error, Limits, Outcome, Sink, Usage};

/// Bytes read at once; the capacity of a pipe.
const CHUNK: usize = 64 * 1024;
/// What an ordinary user may make a pipe hold; see `pipe(7)`.
const LARGEST_PIPE: usize = 1 << 20;
/// Time the leader gets to die of `SIGKILL` before the call gives up on it.
const STUCK: Duration = Duration::from_secs(10);

/// Runs `command` until its leader has ended, `limits.timeout` is over, `cancel` is thrown or `sink` fails, and
/// returns when its whole process group is dead.
///
/// It blocks the calling thread. Every byte of output goes to `sink` first, then to the captured head and tail.
/// At a time-out the group gets `SIGTERM`, then `limits.grace` (or as long as the leader lives, if that is
/// shorter), then `SIGKILL`; the output so far is kept.
///
/// # Errors
///
/// - [`Error::InvalidCommand`], [`Error::Spawn`], [`Error::Cancelled`]: nothing was started.
/// - [`Error::Sink`]: the sink failed; carries the outcome.
/// - [`Error::Stuck`]: the leader hangs in the kernel.
/// - [`Error::System`]: a call around the child failed; the group was killed.
///
/// # Security
///
/// The program runs with the rights of the caller. What it started and did not move out of its process group
/// is dead on return; what it moved out (`setsid(2)`, `setpgid(2)`) is not, unless the program was confined so
/// that it could not. The child inherits no close-on-exec descriptor of the caller.
pub fn run(
    command: Command,
    limits: &Limits,
    cancel: &Cancel,
    sink: &mut dyn Sink,
) -> Result<Outcome, Error> {
    let program = command.program.clone();
    if cancel.is_cancelled() {
        return Err(Error::Cancelled { program });
    }
    let started = Instant::now();
    let mut tree = Tree::new(spawn(command)?);
    let mut output = Output::new(limits, sink);

    let stop = tree.watch(limits, started, cancel, &mut output)?;
    let leftovers = tree.group.end();
    tree.drain(limits.drain, &mut output)?;
    let Some((end, usage)) = tree.reap()? else {
        let pid = tree.group.0.as_raw_nonzero().get();
        return Err(Error::Stuck { program, pid });
    };

    let outcome = Outcome {
        end,
        timed_out: stop == Stop::TimedOut,
        cancelled: stop == Stop::Cancelled,
        leftovers,
        captured: output.capture.finish(),
        duration: started.elapsed(),
        usage,
    };
    match output.failure {
        None => Ok(outcome),
        Some(source) => Err(Error::Sink { program, outcome: Box::new(outcome), source }),
    }
}

/// What ended the leader's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    Exit,
    TimedOut,
    Cancelled,
    SinkFailed,
}

/// A running tree. Dropped before its end (an early return, a panic in the sink), it is killed and reaped.
#[derive(Debug)]
struct Tree {
    group: Group,
    pidfd: OwnedFd,
    /// `None` once every writer has closed it.
    pipe: Option<OwnedFd>,
    reaped: bool,
}

impl Tree {
    fn new(child: Child) -> Self {
        Self {
            group: Group(child.pid),
            pidfd: child.pidfd,
            pipe: Some(child.output),
            reaped: false,
        }
    }

    /// Passes output on until the leader has ended or must be killed.
    fn watch(
        &mut self,
        limits: &Limits,
        started: Instant,
        cancel: &Cancel,
        output: &mut Output<'_>,
    ) -> Result<Stop, Error> {
        let deadline = started.checked_add(limits.timeout);
        // Some after SIGTERM: why, and when SIGKILL is due.
        let mut stopping: Option<(Stop, Option<Instant>)> = None;
        loop {
            let wake = stopping.map_or(deadline, |(_, kill_at)| kill_at);
            let ready = self.wait(wake, stopping.is_none().then_some(cancel))?;
            if ready.output {
                self.pass_on(output)?;
            }
            if ready.ended {
                return Ok(stopping.map_or(Stop::Exit, |(stop, _)| stop));
            }
            let due = |at: Option<Instant>| at.is_some_and(|at| Instant::now() >= at);
            let (stop, grace) = match stopping {
                _ if output.failure.is_some() => return Ok(Stop::SinkFailed),
                Some((stop, kill_at)) if due(kill_at) => return Ok(stop),
                None if ready.cancelled => {
                    (Stop::Cancelled, limits.grace.min(Limits::CANCEL_GRACE))
                }
                None if due(deadline) => (Stop::TimedOut, limits.grace),
                Some(_) | None => continue,
            };
            self.group.signal(Signal::TERM);
            // A stopped process takes SIGTERM when it goes on, not before.
            self.group.signal(Signal::CONT);
            stopping = Some((stop, Instant::now().checked_add(grace)));
        }
    }

    /// Reads what is left in the pipe, until its writers are gone or `time` is over.
    ///
    /// What lies in the pipe already is taken whatever the time, up to the most a pipe can hold: beyond that it
    /// is somebody outside the group who goes on writing.
    fn drain(&mut self, time: Duration, output: &mut Output<'_>) -> Result<(), Error> {
        let give_up = Instant::now().checked_add(time);
        let mut late_reads = LARGEST_PIPE / CHUNK;
        while let Some(pipe) = &self.pipe {
            let ready = poll(&mut [PollFd::new(pipe, PollFlags::IN)], give_up)?;
            let late = give_up.is_some_and(|at| Instant::now() >= at);
            if late && (!ready || late_reads == 0) {
                break;
            }
            if late {
                late_reads -= 1;
            }
            if ready {
                self.pass_on(output)?;
            }
        }
        Ok(())
    }

    /// Takes the leader's status and what it used; `None` when it does not die.
    fn reap(&mut self) -> Result<Option<(End, Usage)>, Error> {
        let give_up = Instant::now() + STUCK;
        loop {
            let ended = poll(&mut [PollFd::new(&self.pidfd, PollFlags::IN)], Some(give_up))?;
            if ended {
                break;
            }
            if Instant::now() >= give_up {
                return Ok(None);
            }
        }
        // It is not reaped yet, so the id is its own; and it has ended, so this does not block.
        let waited = wait4::try_wait4_pid(self.group.0.as_raw_nonzero().get().unsigned_abs())
            .map_err(|source| Error::System { action: "wait for a child", source })?;
        self.reaped = waited.is_some();
        let ended = waited.and_then(|waited| {
            // The kernel keeps the low eight bits of an exit code.
            let code = waited.status.code().map(|code| End::Exited(code.to_le_bytes()[0]));
            let end = code.or(waited.status.signal().map(End::Signaled))?;
            Some((end, Usage::of(&waited.rusage, procfs::own_peak())))
        });
        ended.map(Some).ok_or(Error::System {
            action: "read how a child ended",
            source: io::ErrorKind::InvalidData.into(),
        })
    }

    /// Waits until something happens or `wake` has come.
    fn wait(&self, wake: Option<Instant>, cancel: Option<&Cancel>) -> Result<Ready, Error> {
        let mut fds = vec![PollFd::new(&self.pidfd, PollFlags::IN)];
        fds.extend(self.pipe.iter().map(|pipe| PollFd::new(pipe, PollFlags::IN)));
        fds.extend(cancel.map(|cancel| PollFd::new(cancel, PollFlags::IN)));
        poll(&mut fds, wake)?;
        let mut happened = fds.iter().map(|fd| !fd.revents().is_empty());
        Ok(Ready {
            ended: happened.next() == Some(true),
            output: self.pipe.is_some() && happened.next() == Some(true),
            cancelled: cancel.is_some() && happened.next() == Some(true),
        })
    }

    /// Reads once, so that a flood of output cannot hide a time-out.
    fn pass_on(&mut self, output: &mut Output<'_>) -> Result<(), Error> {
        let Some(pipe) = &self.pipe else { return Ok(()) };
        match rustix::io::read(pipe, &mut output.buffer[..]) {
            Ok(0) => self.pipe = None,
            Ok(length) => output.take(length),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(errno) => return Err(Error::system("read a child's output")(errno)),
        }
        Ok(())
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        if self.reaped {
            return;
        }
        self.group.signal(Signal::KILL);
        let Ok(pidfd) = self.pidfd.try_clone() else { return };
        let reap = move || {
            // It fails only for a child that is reaped already.
            rustix::process::waitid(WaitId::PidFd(pidfd.as_fd()), WaitIdOptions::EXITED).ok();
        };
        // On a thread, since a process that hangs in the kernel may take its time; without one it stays a
        // zombie, which harms nobody but the process table.
        std::thread::Builder::new().name("reaper".to_owned()).spawn(reap).ok();
    }
}

/// What a wait brought.
#[derive(Debug)]
struct Ready {
    ended: bool,
    output: bool,
    cancelled: bool,
}

/// Where output goes: to the sink until that fails, and to the capture always.
struct Output<'a> {
    sink: &'a mut dyn Sink,
    failure: Option<io::Error>,
    capture: Capture,
    buffer: Box<[u8]>,
}

impl<'a> Output<'a> {
    fn new(limits: &Limits, sink: &'a mut dyn Sink) -> Self {
        Self {
            sink,
            failure: None,
            capture: Capture::new(limits.head_bytes, limits.tail_bytes),
            buffer: vec![0; CHUNK].into_boxed_slice(),
        }
    }

    fn take(&mut self, length: usize) {
        let bytes = &self.buffer[..length];
        self.capture.push(bytes);
        if self.failure.is_none() {
            self.failure = self.sink.write(bytes).err();
        }
    }
}

/// Polls until something is ready (true) or `wake` has come or a signal handler ran (false).
fn poll(fds: &mut [PollFd<'_>], wake: Option<Instant>) -> Result<bool, Error> {
    match rustix::event::poll(fds, until(wake).as_ref()) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::INTR) => Ok(false),
        Err(errno) => Err(Error::system("wait for a child")(errno)),
    }
}

/// The time left until `wake`, as the kernel takes it; `None` waits for ever.
pub(crate) fn until(wake: Option<Instant>) -> Option<Timespec> {
    let left = wake?.saturating_duration_since(Instant::now());
    // A time that does not fit is further away than any process lives.
    Timespec::try_from(left).ok()
}
