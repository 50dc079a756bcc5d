//! Removing what a killed process left.
//!
//! Invariant: only containers that carry the owner's name in our label are looked at, and only those whose
//! instance the caller calls dead are removed.

use std::collections::HashMap;
use std::time::Duration;

use bollard::models::ContainerSummary;
use bollard::query_parameters::ListContainersOptionsBuilder;
use tokio::time::Instant;

use crate::container::{ENDING, remove};
use crate::engine::Engine;
use crate::error::Error;
use crate::owner::{INSTANCE, OWNER, check_word};

/// Removes the containers of `owner` whose instance is not alive; how many there were. `is_alive` is asked
/// with the instance of [`Owner::new`](crate::Owner::new), once a container.
///
/// # Errors
///
/// [`Error::InvalidArgument`] for a name no owner can have; [`Error::RemoveFailed`] and [`Error::Timeout`]
/// if the engine refuses the list or a removal. The other leftovers are removed all the same.
///
/// # Security
///
/// Labels are written by whoever may use the engine, who is its root in any case. `owner` must be the caller's
/// own: what is found under it and not alive is destroyed.
pub async fn sweep(
    engine: &Engine,
    owner: &str,
    is_alive: impl Fn(&str) -> bool,
) -> Result<usize, Error> {
    check_word("owner name", owner)?;
    let found = list(engine, owner).await?;
    let mut removed = 0;
    let mut failed = None;
    for container in found {
        let labels = container.labels.unwrap_or_default();
        // Asked again: an engine that ignored the filter must not cost others their containers.
        let ours = labels.get(OWNER).is_some_and(|name| name == owner);
        let dead = labels.get(INSTANCE).is_some_and(|instance| !is_alive(instance));
        let (Some(id), true) = (container.id, ours && dead) else { continue };
        match remove(engine, &id).await {
            Ok(()) => removed += 1,
            Err(error) => failed = Some(error),
        }
    }
    failed.map_or(Ok(removed), Err)
}

async fn list(engine: &Engine, owner: &str) -> Result<Vec<ContainerSummary>, Error> {
    let filter = HashMap::from([("label", vec![format!("{OWNER}={owner}")])]);
    let deadline = Instant::now() + ENDING;
    loop {
        let options = ListContainersOptionsBuilder::new().all(true).filters(&filter).build();
        let listed = engine.docker().list_containers(Some(options));
        match Engine::within("list containers", listed).await? {
            Ok(found) => return Ok(found),
            Err(refusal) if Instant::now() >= deadline => {
                return Err(Error::RemoveFailed { source: refusal.into() });
            }
            // A container that is just ending is in a state the client may not know; it will be gone soon.
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}
