//! What is known of an image before a container is made of it.
//!
//! Invariant: a reference reaches the engine's URL only after [`check_reference`], since the client puts
//! it there as it is. Non-goal: pulling, which is `pull.rs`; no container is made of what was not there when it was asked
//! for.

use crate::engine::{Engine, is_not_found};
use crate::error::Error;

/// An image the engine holds.
pub(crate) struct Image {
    /// Its content id, so that the container is made of what was looked at even if the name moves.
    pub(crate) id: String,
    /// The directories it declares as volumes: each would be a writable place on the host's disk.
    pub(crate) volumes: Vec<String>,
    /// Whether it wants a program of its own run in it every so often.
    pub(crate) has_health_check: bool,
}

/// Looks an image up by name.
pub(crate) async fn inspect(engine: &Engine, reference: &str) -> Result<Image, Error> {
    check_reference(reference)?;
    let answer = engine.docker().inspect_image(reference);
    let found = match Engine::within("image", answer).await? {
        Ok(found) => found,
        Err(refusal) if is_not_found(&refusal) => {
            return Err(Error::ImageMissing { image: reference.to_owned() });
        }
        Err(refusal) => return Err(Error::StartFailed { source: refusal.into() }),
    };
    let id = found.id.ok_or_else(|| Error::StartFailed { source: "an image without id".into() })?;
    let config = found.config.unwrap_or_default();
    let has_health_check = config.healthcheck.is_some();
    Ok(Image { id, volumes: config.volumes.unwrap_or_default(), has_health_check })
}

/// Accepts `registry:port/path/name:tag@digest` and nothing that could mean something else in a URL.
pub(crate) fn check_reference(reference: &str) -> Result<(), Error> {
    let invalid = |reason| Err(Error::InvalidArgument { argument: "image", reason });
    if reference.is_empty() {
        return invalid("is empty");
    }
    if reference.len() > 512 {
        return invalid("is longer than 512 bytes");
    }
    let plain = |component: &str| {
        component.starts_with(|first: char| first.is_ascii_alphanumeric())
            && component.bytes().all(|b| b.is_ascii_alphanumeric() || b"._:@-".contains(&b))
    };
    if !reference.split('/').all(plain) {
        return invalid("is not an image reference such as python:3.13-slim");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_references_pass() {
        for reference in [
            "python",
            "python:3.13-slim",
            "localhost/bb:test",
            "ghcr.io:443/a/b_c.d:v1",
            "a@sha256:d3e8a84ad19fe122c2cbe6771742876895b330dbd05c55e67cc62b97efe928a9",
        ] {
            assert!(check_reference(reference).is_ok(), "{reference}");
        }
    }

    #[test]
    fn what_a_url_would_read_otherwise_is_refused() {
        for reference in [
            "",
            "/",
            "a/",
            "/a",
            "a//b",
            "../containers",
            "a/../../containers/x",
            "a/./b",
            "a?x=1",
            "a#b",
            "a%2e",
            "a b",
            "a\n",
            "a\\b",
            "-a",
            "@a",
            "é",
            &"a".repeat(513),
        ] {
            assert!(
                matches!(
                    check_reference(reference),
                    Err(Error::InvalidArgument { argument: "image", .. })
                ),
                "{reference:?}"
            );
        }
    }
}
