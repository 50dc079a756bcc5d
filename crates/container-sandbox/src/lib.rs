//! A disposable, hardened container through the API of Docker or Podman.
//!
//! For running what nobody vouches for: an image the engine holds becomes a container without capabilities, without
//! network, without a writable disk but for a directory that is shared with it by name; commands run in it one after another; each of them ends, with all it started;
//! the container goes when it is told to, or by itself.
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use container_sandbox::{Command, Container, Engine, Error, Hardening, Owner};
//!
//! # async fn example() -> Result<(), Error> {
//! let engine = Engine::discover().await?;
//! let owner = Owner::new("my-tool", "4711-1764453411")?; // a name, and this run of it
//! let container = Container::start(&engine, "python:3.13-slim", &Hardening::new(owner)).await?;
//! let command = Command::new(["python3", "-c", "print(6 * 7)"], Duration::from_secs(10));
//! let outcome = container.exec(&command).await?;
//! assert_eq!(outcome.exit_code, Some(0));
//! assert_eq!(outcome.output.to_string(), "42\n");
//! container.remove().await?;
//! # Ok(())
//! # }
//! ```
//!
//! # Guarantees
//!
//! - A container is handed out only after the engine's own description of it shows every protection that was asked
//!   for; else [`Error::NotHardened`] says which is missing, and the container is gone again.
//! - When [`Container::exec`] answers, nothing the command started runs. The engine's process list is the judge, and
//!   where processes cannot be ended one by one, the container is ended with them, and the outcome says so.
//! - Memory is bounded whatever a command writes: [`Output`] keeps both ends, a sink sees all.
//! - Every wait for the engine ends; a container ends after [`Hardening::lifetime`] even if this process is killed.
//! - No message names a path of the host or a value of the environment; the engine's words are the error's source.
//!
//! # Non-goals
//!
//! Building images, an allow-list of hosts, more than one directory of the host, remote engines (TCP, TLS, SSH),
//! terminals, standard input.
//!
//! # Threats
//!
//! The *code in the container* is hostile: it is held by the kernel's namespaces, cgroups and the engine's default
//! seccomp profile, as an unprivileged user that cannot signal what keeps the container. It can use up its own limits,
//! lose its own files, and imitate the engine's "no such program" in its own output. A kernel flaw is not held; where
//! that matters, let the engine's default runtime be gVisor or Kata. The *image* is hostile: its entrypoint, user,
//! health check and volumes are not used. The *engine* is trusted entirely: who speaks to its socket is root on its
//! machine, or the user it runs as. So are `DOCKER_HOST`, `XDG_RUNTIME_DIR` and `HOME`, which choose it.
//!
//! # How a command is ended
//!
//! No engine has a request for that. A shell posted in the container beforehand, as the commands' user, kills all of
//! that user's processes on a word over its standard input; another user's process keeps the container. It needs
//! `sh` in the image; without one, and when the commands defeat it, the container ends. See `processes.rs`.
//!
//! # What it costs the host
//!
//! Podman keeps two small monitor processes for each command, and, by its `exit_command_delay`, for five minutes after
//! the command's end. Nothing in the API ends them sooner; an operator who runs many commands sets that lower in
//! `containers.conf`.
//!
//! # Features
//!
//! None. Needs a tokio runtime with I/O and time.
#![forbid(unsafe_code)]

mod command;
mod container;
mod engine;
mod error;
mod exec;
mod hardening;
mod image;
mod output;
mod owner;
mod place;
mod processes;
mod pull;
mod session;
mod share;
mod sweep;

pub use command::Command;
pub use container::Container;
pub use engine::{Engine, EngineKind};
pub use error::{Candidate, EngineFault, Error, WhyNot};
pub use exec::ExecOutcome;
pub use hardening::{Hardening, Network, Ulimits};
pub use output::Output;
pub use owner::Owner;
pub use pull::PullStep;
pub use share::Share;
pub use sweep::sweep;

#[doc = include_str!("../README.md")]
#[cfg(doctest)]
struct ReadmeDoctests;
