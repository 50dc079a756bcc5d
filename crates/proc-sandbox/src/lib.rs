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
//!     let (spare, stdin) = (confined.spare, confined.stdin);
//!     let command =
//!         Command::started_by(confined.program, move |output| spare.start(stdin, output));
//!     let outcome =
//!         run(command, &Limits::new(Duration::from_mins(1)), &Cancel::new()?, &mut Discard)?;
//!     println!("{:?} under {:?}", outcome.end, confined.status.enforced()?.steps);
//!     Ok(())
//! }
//! ```
//!
//! # Rungs
//!
//! [`Sandbox::new`] takes the highest rung this machine offers, by trying each:
//!
//! | rung | what there is |
//! | --- | --- |
//! | [`Rung::NativeFull`] | namespaces of users, mounts, processes, network, IPC and host name, with a view of its own; Landlock, seccomp, limits |
//! | [`Rung::NativeNoproc`] | the same with the machine's `/proc`, where a container forbids a fresh one |
//! | [`Rung::Landlock`] | Landlock, seccomp, limits, a pinned process group |
//!
//! # Guarantees
//!
//! On every rung:
//!
//! - Files outside the workspace, the private directory and the granted places cannot be opened, executed, made,
//!   removed, renamed or linked; granted places beside those two cannot be written to.
//! - No network and no Unix sockets of the machine, unless [`Net::On`]; no tracing, no new namespaces, no mounts, no
//!   signals to processes outside (without namespaces from Linux 6.12 on), no reading of their memory,
//!   environment or descriptors.
//! - No capabilities, and none to be had from setuid programs.
//! - Nothing outlives its command, whatever it calls, nor a caller that was killed: see
//!   [`Status`].
//! - Fail closed: a step that fails is an error, and the command is not run.
//! - What is reported was tried, in a process confined like a command, after it was confined.
//!
//! With namespaces besides:
//!
//! - What is not granted is not there: neither its existence nor its mode, owner or times can be seen or changed.
//! - Commands are never root outside, also when their caller is: they run as the workspace's owner, or, where that
//!   is root, as a user of their own who sees the workspace's files as theirs; on disk they stay root's.
//! - `/tmp` is private to the sandbox and limited, processes are counted for each command, and a place can be made
//!   read-only for one command: [`Target::protect`].
//! - There is a loopback network, shared by the commands of one sandbox, and `setsid`, pseudo-terminals, POSIX
//!   semaphores and job control work.
//!
//! # Non-goals and limits
//!
//! - The private directory lies on disk and is not limited. Memory is limited for each process, not for a command
//!   as a whole.
//! - A Unix socket inside the workspace can be connected to, whoever listens on it.
//! - Debuggers do not work, since tracing is refused to everybody.
//! - `chmod` is refused setuid and setgid bits, but a file may be *born* with them (`open` with such a mode). It is
//!   of no use to commands, which gain nothing by execution; other users who can reach the workspace could run it.
//! - Files of the workspace that belong to neither of its owner's user and group are shown as nobody's to commands
//!   of a root caller.
//!
//! On the rung `landlock` the following stays open, and the report says so:
//!
//! - `chmod`, `chown`, times, extended attributes and the existence of outside files the user owns, and the news
//!   of them that `inotify` tells. A command of root keeps root's name, and with it this right over all of root's
//!   files. A root server over a workspace of an ordinary user therefore runs commands as that user.
//! - Names and command lines of other processes in `/proc`, as on the rung `native-noproc`.
//! - `/tmp`, `/dev/shm` and terminals are not granted: `TMPDIR` must lead to [`Sandbox::home`], and what needs
//!   POSIX semaphores (Python's `multiprocessing` queues) or a pseudo-terminal does not work without an extra
//!   grant.
//! - Programs that start their own session or group see a call that succeeded without effect, and job control,
//!   `timeout` and the like signal the whole command.
//! - Processes are limited for each user, and for root not at all; disk space is not.
//! - On Linux before 6.2, whose Landlock does not know truncation, `truncate(2)` is refused everywhere, the workspace
//!   included, and so is `open(2)` with `O_TRUNC` for anything but writing; before 5.19 files cannot be moved or linked
//!   from one directory to another.
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
//! it is. The helper learns its plan through a socket that is its standard input, with the handles it needs beside
//! it; see `wire.rs`. Each rung is a list of steps; see `layer.rs`.
//!
//! To start a program is a third of a command's price. A [`Spare`] is a helper that was started once, with the first
//! command, and was told nothing: it splits off the helper of each command, which then reads its plan and goes the same
//! way as one that was started. The new process is a child of the caller, not of the spare (`CLONE_PARENT`), so whoever
//! runs commands waits for it and ends it as before; and a spare that is killed, stopped, or of no use on this kernel
//! costs a command some time and nothing else. See `standby.rs` for what it holds.
//!
//! With namespaces, all that does not depend on the command is done once, by [`Sandbox::new`]: the view is built in
//! namespaces that outlive the process that made them, because the sandbox holds them by descriptor. A command joins
//! them and makes its own below; see `place.rs`.
//!
//! The fastest of 200 `sh -c true` on two busy cores took 0.9 ms without a sandbox, 1.5 ms on the rung `landlock` and
//! 1.9 ms with everything, where `bwrap --unshare-all` took 4.0 ms; the medians were 1.3, 1.7, 2.4 and 8.4 ms. The
//! example `cost` measures the first and the third.
//!
//! # Embedding
//!
//! A program with a `main` of its own calls [`helper::dispatch`] first in it, as above and in the example `confine`. A
//! runtime that cannot (a plugin, a binding, an interpreter, a test) installs this package's program
//! `proc-sandbox-helper` beside itself and names it by [`Helper::Program`], as in the example `with_helper`. It is opened
//! once, by [`Sandbox::new`], and executed by its descriptor.
//!
//! Who does without the spare starts a program for each command, and there the small one is the quicker one. In a virtual
//! machine every start of a program with glibc, static ones too, asks the processor for its caches by an instruction that
//! leaves the machine. Built for musl (`--target x86_64-unknown-linux-musl`) the helper starts in 0.13 ms where the same
//! with glibc takes 1.06.
//!
//! # Features
//!
//! None. All unsafe code is in `sys.rs`.

mod attempt;
mod confined;
pub mod environment;
mod error;
mod guardian;
mod harden;
pub mod helper;
mod layer;
mod place;
mod places;
mod policy;
mod probe;
mod report;
mod sandbox;
mod scratch;
mod spare;
mod standby;
mod sys;
mod view;
mod wire;

pub use confined::{Confined, Status, Target};
pub use error::Error;
pub use harden::harden_self;
pub use policy::{Helper, HostRead, Net, Policy, ResourceLimits};
pub use report::{Enforced, Layer, Report, Rung, State, UnknownRung, Usage};
pub use sandbox::Sandbox;
pub use spare::Spare;

#[doc = include_str!("../README.md")]
#[cfg(doctest)]
struct ReadmeDoctests;
