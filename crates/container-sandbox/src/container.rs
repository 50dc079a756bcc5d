//! A container's life: made hardened, checked, ended.
//!
//! Invariants: a container that lacks a protection is removed before anybody can run something in it; one that
//! could not be finished is removed; [`Container::remove`] answers after the engine no longer knows it. What runs
//! inside is the matter of `exec.rs` and `processes.rs`. Non-goals: restarting, exporting, naming.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bollard::query_parameters::{
    CreateContainerOptions, InspectContainerOptions, ListContainersOptionsBuilder,
    RemoveContainerOptionsBuilder, StartContainerOptions,
};
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::engine::{Engine, is_not_found};
use crate::error::{EngineFault, Error};
use crate::hardening::Hardening;
use crate::image;
use crate::processes::Processes;

/// A running, hardened container.
///
/// Dropping it does not end it, since that takes an answer from the engine: call [`Container::remove`]. What is
/// forgotten loses its commands at once (the connection that could end them closes), ends by itself after
/// [`Hardening::lifetime`], and is found by [`sweep`](crate::sweep) before that.
#[must_use = "a container goes on until it is removed"]
pub struct Container {
    pub(crate) engine: Engine,
    pub(crate) id: String,
    /// `uid:gid` of commands.
    pub(crate) user: String,
    /// Also the turn-taking: one command at a time, so that what is left over has one origin.
    pub(crate) processes: Mutex<Processes>,
    ended: AtomicBool,
}

impl fmt::Debug for Container {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Container")
            .field("id", &self.id)
            .field("engine", &self.engine)
            .finish_non_exhaustive()
    }
}

impl Container {
    /// Makes and starts a container of an image the engine holds, and checks that the engine made it as
    /// hardened as asked. The image needs a `sleep`; with a `sh`, commands can be ended one by one.
    ///
    /// Dropping the future half-way can leave a container for [`sweep`](crate::sweep).
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a reference or limit no engine is asked about,
    /// [`Error::ImageMissing`], [`Error::NotHardened`], [`Error::ShareDiffers`], [`Error::WorkNotWritable`],
    /// [`Error::StartFailed`], [`Error::Timeout`]. Nothing is left behind.
    ///
    /// # Security
    ///
    /// `image` may come from an attacker: its entrypoint, user, health check and volumes are not used; its
    /// `sleep` and `sh` run as unprivileged users inside. It may not come to this machine through here: nothing
    /// is pulled.
    pub async fn start(engine: &Engine, image: &str, hardening: &Hardening) -> Result<Self, Error> {
        hardening.check()?;
        let found = image::inspect(engine, image).await?;
        let request = hardening.request(engine.kind(), &found, image);
        let create = engine.docker().create_container(None::<CreateContainerOptions>, request);
        let id = match Engine::within("create", create).await? {
            Ok(created) => created.id,
            Err(refusal) if is_not_found(&refusal) => {
                return Err(Error::ImageMissing { image: image.to_owned() });
            }
            Err(refusal) => return Err(Error::StartFailed { source: refusal.into() }),
        };
        let container = Self {
            engine: engine.clone(),
            id,
            user: hardening.command_user(),
            processes: Mutex::new(Processes::default()),
            ended: AtomicBool::new(false),
        };
        match container.bring_up(hardening).await {
            Ok(()) => Ok(container),
            Err(error) => {
                // The first error is the one to report; a container this leaves is swept.
                drop(container.remove().await);
                Err(error)
            }
        }
    }

    async fn bring_up(&self, hardening: &Hardening) -> Result<(), Error> {
        let start = self.engine.docker().start_container(&self.id, None::<StartContainerOptions>);
        if let Err(refusal) = Engine::within("start", start).await? {
            return Err(Error::StartFailed { source: refusal.into() });
        }
        let inspect =
            self.engine.docker().inspect_container(&self.id, None::<InspectContainerOptions>);
        let made = match Engine::within("inspect", inspect).await? {
            Ok(made) => made,
            Err(refusal) => return Err(Error::StartFailed { source: refusal.into() }),
        };
        // Memory that engines list among the mounts is none of the host's.
        let mut mounts = made.mounts.unwrap_or_default();
        mounts.retain(|mount| mount.typ.as_deref() != Some("tmpfs"));
        let missing = hardening.missing(&made.host_config.unwrap_or_default(), &mounts);
        if !missing.is_empty() {
            return Err(Error::NotHardened { missing });
        }
        self.settle().await?;
        match &hardening.share {
            None => Ok(()),
            Some(share) => self.check_share(share).await,
        }
    }

    /// The engine's id of the container.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The engine it runs in.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Ends everything in the container and removes it; answers when the engine no longer knows it. Removing
    /// twice is not an error.
    ///
    /// # Errors
    ///
    /// [`Error::RemoveFailed`] and [`Error::Timeout`]: it may still be there, and can be removed again.
    pub async fn remove(&self) -> Result<(), Error> {
        remove(&self.engine, &self.id).await?;
        self.ended.store(true, Ordering::Release);
        Ok(())
    }

    /// Fails once the container is known to have ended.
    pub(crate) fn alive(&self) -> Result<(), Error> {
        if self.ended.load(Ordering::Acquire) { Err(Error::Gone) } else { Ok(()) }
    }

    /// Asks the engine whether the container has ended, and remembers a yes.
    ///
    /// By looking for it among the running ones: Podman calls an ended container "stopped" for a while, a state
    /// Docker's API does not know and the client cannot read.
    pub(crate) async fn has_ended(&self) -> Result<bool, Error> {
        let filter = HashMap::from([("id", vec![self.id.as_str()])]);
        let options = ListContainersOptionsBuilder::new().filters(&filter).build();
        let request = self.engine.docker().list_containers(Some(options));
        let listed = match Engine::within("list containers", request).await? {
            Ok(listed) => listed,
            Err(refusal) => return Err(Error::ExecFailed { source: refusal.into() }),
        };
        let ended = !listed.iter().any(|running| running.id.as_deref() == Some(self.id.as_str()));
        if ended {
            self.ended.store(true, Ordering::Release);
        }
        Ok(ended)
    }

    /// Whether the container's end is why the engine refused something. It may refuse before it has noted that
    /// end (Podman with an empty answer), so it is asked for a while.
    pub(crate) async fn is_ending(&self) -> Result<bool, Error> {
        let deadline = Instant::now() + ENDING;
        while !self.has_ended().await? {
            if Instant::now() >= deadline {
                return Ok(false);
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(true)
    }

    /// The error for a request the engine refused.
    pub(crate) async fn refused(&self, source: impl Into<EngineFault>) -> Error {
        match self.is_ending().await {
            Ok(true) => Error::Gone,
            Ok(false) | Err(_) => Error::ExecFailed { source: source.into() },
        }
    }
}

/// Removes a container and its anonymous volumes by force, and waits until the engine has forgotten it.
pub(crate) async fn remove(engine: &Engine, id: &str) -> Result<(), Error> {
    let deadline = Instant::now() + REMOVAL;
    loop {
        let options = RemoveContainerOptionsBuilder::new().force(true).v(true).build();
        let answer = engine.docker().remove_container(id, Some(options));
        match Engine::within("remove", answer).await? {
            // Asked once more after a yes: the engine's own removal of an ended container runs beside ours, and
            // only "not found" says that both are through.
            Ok(()) => {}
            Err(refusal) if is_not_found(&refusal) => return Ok(()),
            Err(refusal) if Instant::now() >= deadline => {
                return Err(Error::RemoveFailed { source: refusal.into() });
            }
            // Another removal is under way (409), or the container is between two states.
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
        if Instant::now() >= deadline {
            return Err(Error::Timeout { operation: "remove", after: REMOVAL });
        }
    }
}

/// How long a container that ends may be called running by its engine. Podman, busy, was seen to take 5 s.
pub(crate) const ENDING: Duration = Duration::from_secs(10);

const REMOVAL: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Command;

    /// Whoever gives these to a task needs that, and a borrow across an await is enough to lose it: the test is that
    /// this compiles.
    #[test]
    fn what_waits_for_an_engine_can_be_a_task() {
        fn is_send<'c, T: Send>(_: impl FnOnce(&'c Container, &'c Command) -> T) {}
        is_send(Container::exec);
        is_send(|container, _| container.clear());
        is_send(|container, _| container.remove());
    }
}
