//! Containers among the settings: when commands run in one, of which image, and whose images are pulled.

use super::{BadSetting, set};

/// When commands of the workspace run in a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InContainer {
    /// Not at all.
    Never,
    /// Where the native rungs with namespaces fail, an image is named, and a container of it was tried out.
    Auto,
    /// Nowhere else.
    Always,
}

/// What becomes of an image that the engine lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pull {
    /// It is pulled, whoever names it.
    Missing,
    /// It is missing.
    Never,
    /// It is pulled where its full name, registry included, begins with one of these.
    From(Vec<String>),
}

impl Default for Pull {
    /// Those that engines call official. A name of anybody else's would tell a registry of theirs whatever the name
    /// holds, past a network that is off.
    fn default() -> Self {
        Self::From(vec!["docker.io/library/".to_owned()])
    }
}

impl Pull {
    /// Whether this image may be fetched.
    pub fn allows(&self, image: &str) -> bool {
        match self {
            Self::Missing => true,
            Self::Never => false,
            Self::From(prefixes) => {
                let name = full_name(image);
                prefixes.iter().any(|prefix| name.starts_with(prefix.as_str()))
            }
        }
    }
}

/// The reference with the registry that engines assume: `python` is `docker.io/library/python`.
fn full_name(image: &str) -> String {
    match image.split_once('/') {
        None => format!("docker.io/library/{image}"),
        Some((first, _)) if first.contains(['.', ':']) || first == "localhost" => image.to_owned(),
        Some(_) => format!("docker.io/{image}"),
    }
}

/// Containers, for commands and for disposable sandboxes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Containers {
    /// When commands run in one.
    pub commands: InContainer,
    /// What it is made of; without one there is none.
    pub image: Option<String>,
    /// Whether a container is as much as the floor asks for.
    pub suffices: bool,
    /// Images that the engine lacks, this one and those that a call names.
    pub pull: Pull,
}

/// The setting `PULL`.
pub(super) fn pull(value: Option<&str>) -> Result<Pull, BadSetting> {
    let bad = |problem| BadSetting { name: "PULL", problem };
    let Some(text) = set(value) else { return Ok(Pull::default()) };
    let prefixes =
        text.split_once('=').filter(|(verb, _)| verb.trim().eq_ignore_ascii_case("from"));
    let Some((_, prefixes)) = prefixes else {
        return match text.to_ascii_lowercase().as_str() {
            "missing" => Ok(Pull::Missing),
            "never" => Ok(Pull::Never),
            _ => Err(bad(format!("'{text}' is not one of missing, never, from=PREFIX,PREFIX"))),
        };
    };
    let prefixes: Vec<_> = prefixes.split(',').map(|prefix| prefix.trim().to_owned()).collect();
    // `docker.io` alone would be the beginning of `docker.io.example.org` too.
    match prefixes.iter().find(|prefix| !prefix.contains('/')) {
        None => Ok(Pull::From(prefixes)),
        Some(prefix) => Err(bad(format!("'{prefix}' needs a '/' after its registry"))),
    }
}

#[cfg(test)]
mod tests {
    use super::pull;

    #[test]
    fn images_are_pulled_by_full_name() {
        let allows = |mode: &str, image: &str| pull(Some(mode)).unwrap().allows(image);
        assert!(allows("missing", "evil.example/x") && !allows("never", "python"));
        assert!(allows("", "python:3.13") && !allows("", "evil.example/x"));
        let mode = "from=docker.io/library/, ghcr.io/org/";
        assert!(allows(mode, "python:3.13") && allows(mode, "ghcr.io/org/x@sha256:00"));
        for image in
            ["someone/python", "docker.io.evil.example/library/x", "ghcr.io/organ/x", "localhost/x"]
        {
            assert!(!allows(mode, image), "{image}");
        }
        for mode in ["always", "from=docker.io", "from=", "from=a/,"] {
            assert!(pull(Some(mode)).is_err(), "{mode}");
        }
    }
}
