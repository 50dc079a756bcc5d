//! One child process tree: bounded output, bounded time, and an end that nothing outlives.
//!
//! [`run`] starts a program as the leader of a process group of its own, hands every byte it prints to a
//! [`Sink`] as it arrives, keeps the first and the last of them in fixed memory, and returns when the
//! leader has ended, the time is up, the call was cancelled or the sink gave up, with the whole group dead.
//!
//! ```
//! use std::time::Duration;
//! use proc_runner::{Cancel, Command, Discard, End, Limits, run};
//!
//! let command = Command::new("/bin/sh").args(["-c", "echo one; echo two >&2; exit 3"]);
//! let limits = Limits::new(Duration::from_secs(10));
//! let outcome = run(command, &limits, &Cancel::new()?, &mut Discard)?;
//!
//! assert_eq!(outcome.end, End::Exited(3));
//! assert_eq!(outcome.captured.head, b"one\ntwo\n");
//! # Ok::<(), proc_runner::Error>(())
//! ```
//!
//! # Guarantees
//!
//! - The environment is built from nothing: a child has the pairs that were named and no others.
//! - Standard input is at end of file unless a descriptor was given. A child gets 0, 1 and 2; a descriptor that
//!   the caller itself holds without the close-on-exec flag (the standard library sets it always) passes too,
//!   since only code run in the child could close it.
//! - Standard output and standard error are one pipe, so lines keep their arrival order.
//! - The leader's own exit ends the call. What it left in its group is counted and killed; a process that
//!   moved to another session and holds the pipe open delays the answer by [`Limits::drain`] at most.
//! - The leader is not reaped before its group is dead, so no signal can reach a process that reused an id.
//! - Memory is bounded by [`Limits::head_bytes`], [`Limits::tail_bytes`] and one 64 KiB buffer, at any amount of
//!   output.
//! - No polling loop sleeps: the child, its pipe and the cancellation are waited for in one `poll(2)`.
//! - A panic in the sink still ends the group.
//!
//! A process that somebody else starts ([`Command::started_by`]) is looked after the same way; what it is given is
//! theirs to promise.
//!
//! A non-zero exit, a signal, a time-out and a cancellation are outcomes. Only what kept the command from
//! being run, or its bytes from being delivered, is an [`Error`].
//!
//! # Non-goals
//!
//! No policy: a program started here may do what its user may do, and a process that calls `setsid(2)` leaves
//! the group and survives. Confinement, a PID namespace or a pinned group belong to the program that is
//! started (see the crate `proc-sandbox`). No terminals, no pipelines, no search along `PATH`, no asynchronous
//! interface: [`run`] blocks, call it on a thread.
//!
//! # Threats
//!
//! The child is hostile: it may flood its output, ignore signals, stop itself, fork, and leave children behind
//! on purpose. Arguments and environment may be chosen by an attacker; they are passed as vectors and never
//! through a shell of ours. The program path, the limits and the sink belong to the caller.
//!
//! # Features
//!
//! `serde`: `Serialize` and `Deserialize` for [`Outcome`] and its parts.

mod cancel;
mod capture;
mod command;
mod error;
mod group;
mod limits;
mod outcome;
mod procfs;
mod run;
mod sink;
mod spawn;

pub use cancel::Cancel;
pub use capture::Captured;
pub use command::Command;
pub use error::Error;
pub use limits::Limits;
pub use outcome::{End, Outcome, Usage};
pub use run::run;
pub use sink::{Discard, Sink};

#[doc = include_str!("../README.md")]
#[cfg(doctest)]
struct ReadmeDoctests;
