//! What a command may touch, enforced by the Linux kernel, and a truthful report of what was enforced.
//!
//! A [`Policy`] says what is allowed. [`Sandbox::new`] turns it into a plan: places opened, filters compiled.
//! [`Sandbox::confine`] turns a command into a [`Confined`] one: a helper process that restricts itself step by
//! step and then becomes the command. [`Sandbox::probe`] runs that helper on attempts each layer must refuse and
//! reports which were refused. Starting and ending processes is somebody else's work, such as `proc-runner`'s.
//!
//! ```no_run
//! use std::time::Duration;
//! use proc_runner::{Cancel, Command, Discard, Limits, run};
//! use proc_sandbox::{Policy, Sandbox, Target};
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     proc_sandbox::helper::dispatch(); // first of all: this may be the helper
//!     proc_sandbox::harden_self()?;
//!
//!     let workspace = std::fs::File::open("/srv/workspace")?;
//!     let sandbox = Sandbox::new(Policy::new(workspace.try_clone()?.into()))?;
//!     println!("{}", sandbox.probe().rung);
//!
//!     let target = Target::new("/bin/bash", workspace.into())
//!         .args(["-c", "cat /etc/shadow"])
//!         .envs(sandbox.environment());
//!     let confined = sandbox.confine(target)?;
//!     let command = Command::new(confined.program).args(confined.args).stdin(confined.stdin);
//!     let outcome =
//!         run(command, &Limits::new(Duration::from_mins(1)), &Cancel::new()?, &mut Discard)?;
//!     println!("{:?} under {:?}", outcome.end, confined.status.enforced()?.steps);
//!     Ok(())
//! }
//! ```
//!
//! # Guarantees on the rung `landlock`
//!
//! - Files outside the workspace, the private directory and the granted places cannot be opened, executed, made,
//!   removed, renamed or linked; granted places beside those two cannot be written to.
//! - No sockets (or no Unix sockets, with [`Net::On`]), no tracing, no new namespaces, no mounts, no signals to
//!   processes outside (from Linux 6.12 on), no reading of their memory, environment or descriptors.
//! - No capabilities, and none to be had from setuid programs.
//! - A command's processes stay in one process group whatever they call, so that one signal ends them all.
//! - Fail closed: a step that fails is an error, and the command is not run.
//! - What is reported was tried, in a process confined like a command, after it was confined.
//!
//! # Non-goals and limits
//!
//! This version has no rung with namespaces: [`Rung::NativeFull`] and [`Rung::NativeNoproc`] are names for what
//! is to come, and reported as not built. On the rung `landlock` the following stays open, and the report says so:
//!
//! - `chmod`, `chown`, times, extended attributes and the existence of outside files the user owns, and the news
//!   of them that `inotify` tells. A command of root keeps root's name, and with it this right over all of root's
//!   files. A root server over a workspace of an ordinary user therefore runs commands as that user.
//! - `chmod` is refused setuid and setgid bits, but a file may be *born* with them (`open` with such a mode). It is
//!   of no use to commands, which gain nothing by execution; other users who can reach the workspace could run it.
//! - Names and command lines of other processes in `/proc`.
//! - `/tmp`, `/dev/shm` and terminals are not granted: `TMPDIR` must lead to [`Sandbox::home`], and what needs
//!   POSIX semaphores (Python's `multiprocessing` queues) or a pseudo-terminal does not work without an extra
//!   grant.
//! - Debuggers do not work, since tracing is refused to everybody.
//! - Programs that start their own session or group see a call that succeeded without effect, and job control,
//!   `timeout` and the like signal the whole command.
//! - Memory is limited for each process, processes for each user, and for root not at all; disk space is not.
//!
//! # Threats
//!
//! The command is hostile and has all the time its runner gives it. The kernel is trusted; the list of refused
//! system calls makes the part of it that a command can reach smaller, not small. The operator's policy is
//! trusted, and so is the program that embeds this crate: see [`harden_self`] for what it should do.
//!
//! # Design
//!
//! The helper is the embedding program started again (`/proc/self/fd/N` of a handle on itself), so that no code
//! runs between `fork(2)` and `execve(2)` of a program with threads, and starting costs the same however large
//! it is: `sh -c true` took 1.2 ms without and 3.0 ms with all steps (medians of 200 on two busy cores; the
//! example `cost` measures it), most of it the second `execve(2)`. The helper learns its plan through a socket
//! that is its standard input, with the handles it needs beside it;
//! see `wire.rs`. Each rung is a list of steps; see `layer.rs`.
//!
//! # Features
//!
//! None. All unsafe code is in `sys.rs`.

mod attempt;
mod confined;
pub mod environment;
mod error;
mod harden;
pub mod helper;
mod layer;
mod places;
mod policy;
mod probe;
mod report;
mod sandbox;
mod scratch;
mod sys;
mod wire;

pub use confined::{Confined, Status, Target};
pub use error::Error;
pub use harden::harden_self;
pub use policy::{Helper, HostRead, Net, Policy, ResourceLimits};
pub use report::{Enforced, Layer, Report, Rung, State, UnknownRung};
pub use sandbox::Sandbox;

#[doc = include_str!("../README.md")]
#[cfg(doctest)]
struct ReadmeDoctests;
