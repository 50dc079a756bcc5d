//! Bringing an image that the engine lacks, step by step, within a time.
//!
//! Invariants: one tag or digest is asked for, never all of a repository; success means that the engine has the image
//! afterwards, by its own word. Non-goals: credentials (the engine has its own), platforms other than the engine's.

use std::time::Duration;

use bollard::errors::Error as Refusal;
use bollard::models::CreateImageInfo;
use bollard::query_parameters::CreateImageOptionsBuilder;
use futures_util::StreamExt as _;

use crate::engine::Engine;
use crate::error::{EngineFault, Error};
use crate::image;

/// What an engine says while it pulls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct PullStep<'s> {
    /// Which part it is about; a layer's short id, as a rule.
    pub layer: Option<&'s str>,
    /// What is done with it, such as `Downloading`, in the engine's words.
    pub status: &'s str,
    /// Bytes of it that are done.
    pub done: Option<u64>,
    /// Bytes of it in all.
    pub total: Option<u64>,
}

impl Engine {
    /// Whether the engine holds an image of this reference.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for what is no reference; [`Error::StartFailed`] and [`Error::Timeout`] if the engine
    /// does not say.
    pub async fn has_image(&self, reference: &str) -> Result<bool, Error> {
        match image::inspect(self, reference).await {
            Ok(_) => Ok(true),
            Err(Error::ImageMissing { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Has the engine fetch an image, and waits until it holds it. `step` is called on the task for everything that the
    /// engine says meanwhile. Dropping the future closes the connection, on which engines give up.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for what is no reference, [`Error::PullFailed`] with the engine's reason,
    /// [`Error::Timeout`] after `timeout`.
    ///
    /// # Security
    ///
    /// The engine asks whatever registry `reference` names, from its own place in the network: a name is enough to tell
    /// somebody something. Whose names are pulled is the caller's policy. Statuses are the registry's and the engine's
    /// words.
    pub async fn pull(
        &self,
        reference: &str,
        timeout: Duration,
        mut step: impl FnMut(PullStep<'_>) + Send,
    ) -> Result<(), Error> {
        image::check_reference(reference)?;
        let (name, version) = split(reference);
        let options = CreateImageOptionsBuilder::new().from_image(name).tag(version).build();
        let mut said = self.docker().create_image(Some(options), None, None);
        let failed =
            |source: EngineFault| Error::PullFailed { image: reference.to_owned(), source };
        let fetched = async {
            while let Some(said) = said.next().await {
                tell(&said.map_err(|refusal| failed(reason(refusal)))?, &mut step);
            }
            Ok(())
        };
        tokio::time::timeout(timeout, fetched)
            .await
            .map_err(|_| Error::Timeout { operation: "pull", after: timeout })??;
        match self.has_image(reference).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(failed("it was pulled, and is not there".into())),
            Err(error) => Err(error),
        }
    }
}

/// The engine's own words, where they are all there is.
fn reason(refusal: Refusal) -> EngineFault {
    match refusal {
        Refusal::DockerStreamError { error } => error.into(),
        other => other.into(),
    }
}

fn tell(said: &CreateImageInfo, step: &mut impl FnMut(PullStep<'_>)) {
    let Some(status) = said.status.as_deref() else { return };
    let bytes = said.progress_detail.as_ref();
    let number = |value: Option<i64>| value.and_then(|value| u64::try_from(value).ok());
    step(PullStep {
        layer: said.id.as_deref(),
        status,
        done: number(bytes.and_then(|bytes| bytes.current)),
        total: number(bytes.and_then(|bytes| bytes.total)).filter(|total| *total > 0),
    });
}

/// Name and version as the engine's request wants them apart: without a version it would fetch all there are.
fn split(reference: &str) -> (&str, &str) {
    if let Some((name, digest)) = reference.split_once('@') {
        return (name, digest);
    }
    let last = reference.rfind('/').map_or(0, |slash| slash + 1);
    match reference.split_at(last).1.rfind(':') {
        Some(colon) => {
            let (name, tag) = reference.split_at(last + colon);
            (name, tag.trim_start_matches(':'))
        }
        None => (reference, "latest"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_version_is_asked_for() {
        for (reference, expected) in [
            ("python", ("python", "latest")),
            ("python:3.13-slim", ("python", "3.13-slim")),
            ("localhost:5000/a/b", ("localhost:5000/a/b", "latest")),
            ("localhost:5000/a/b:v1", ("localhost:5000/a/b", "v1")),
            ("a/b@sha256:00", ("a/b", "sha256:00")),
        ] {
            assert_eq!(split(reference), expected);
        }
    }
}
