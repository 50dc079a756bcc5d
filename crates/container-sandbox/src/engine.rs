//! Finding an engine and speaking to it within bounds of time.
//!
//! Invariants: only unix sockets are spoken to; every request ends, since [`Engine::within`] is the one
//! way to wait for an answer. Non-goals: TLS, TCP and SSH transports, starting an engine.

use std::fmt;
use std::future::Future;
use std::path::Path;
use std::time::Duration;

use bollard::errors::Error as Refusal;
use bollard::{API_DEFAULT_VERSION, Docker};

use crate::error::{Candidate, Error, WhyNot};
use crate::place::places;

/// How long an engine may take to say its version. One that is asleep behind its socket must not hold up
/// the search for one that answers.
const HELLO: Duration = Duration::from_secs(10);

/// How long any one request may take. Creating a container on a loaded machine takes seconds.
const ANSWER: Duration = Duration::from_mins(1);

/// Which engine it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum EngineKind {
    /// Docker, or an engine that claims to be nothing else.
    Docker,
    /// Podman, through its Docker-compatible API.
    Podman,
}

impl fmt::Display for EngineKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Docker => "Docker",
            Self::Podman => "Podman",
        })
    }
}

/// A container engine that answered. Cheap to clone.
///
/// Belongs to the tokio runtime it was made in, with its time and I/O drivers on.
#[derive(Clone)]
pub struct Engine {
    docker: Docker,
    kind: EngineKind,
    version: String,
    api_version: String,
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without the socket: its path tells the user's name.
        f.debug_struct("Engine")
            .field("kind", &self.kind)
            .field("version", &self.version)
            .field("api_version", &self.api_version)
            .finish_non_exhaustive()
    }
}

impl Engine {
    /// Finds the engine: the one at the socket `DOCKER_HOST` names, and no other, when it names one; else the
    /// first that answers of `/var/run/docker.sock`, `/run/podman/podman.sock`,
    /// `$XDG_RUNTIME_DIR/podman/podman.sock`, `$XDG_RUNTIME_DIR/docker.sock` and
    /// `~/.docker/run/docker.sock`. Each may take 10 seconds.
    ///
    /// # Errors
    ///
    /// [`Error::EngineUnavailable`] with every place and why it would not do.
    ///
    /// # Security
    ///
    /// Reads `DOCKER_HOST`, `XDG_RUNTIME_DIR` and `HOME` of this process: whoever sets them chooses the
    /// engine. Their values appear in no message.
    pub async fn discover() -> Result<Self, Error> {
        Self::discover_with(|name| std::env::var_os(name)).await
    }

    async fn discover_with(
        variable: impl Fn(&str) -> Option<std::ffi::OsString>,
    ) -> Result<Self, Error> {
        let mut tried = Vec::new();
        for place in places(variable) {
            let found = match place.socket {
                Ok(socket) => Self::hello(&socket).await,
                Err(why_not) => Err(why_not),
            };
            match found {
                Ok(engine) => return Ok(engine),
                Err(why_not) => tried.push(Candidate { place: place.name, why_not }),
            }
        }
        Err(Error::EngineUnavailable { tried })
    }

    /// Connects to the engine behind one unix socket, within 10 seconds.
    ///
    /// # Errors
    ///
    /// [`Error::EngineUnavailable`] with the one place, called "the given socket".
    ///
    /// # Security
    ///
    /// Whoever controls `socket` is told everything that is run and can answer anything.
    pub async fn connect(socket: &Path) -> Result<Self, Error> {
        Self::hello(socket).await.map_err(|why_not| Error::EngineUnavailable {
            tried: vec![Candidate { place: "the given socket", why_not }],
        })
    }

    async fn hello(socket: &Path) -> Result<Self, WhyNot> {
        reachable(socket).await?;
        let path = socket.to_str().ok_or(WhyNot::NotUnix)?;
        let docker = Docker::connect_with_unix(path, ANSWER.as_secs(), API_DEFAULT_VERSION)
            .map_err(|_| WhyNot::Absent)?;
        let greeting = async {
            let docker = docker.negotiate_version().await?;
            let version = docker.version().await?;
            Ok::<_, Refusal>((docker, version))
        };
        let (docker, version) = tokio::time::timeout(HELLO, greeting)
            .await
            .map_err(|_| WhyNot::Silent)?
            .map_err(|_| WhyNot::NotAnEngine)?;
        let components = version.components.unwrap_or_default();
        let podman = components.iter().any(|component| component.name == "Podman Engine");
        Ok(Self {
            docker,
            kind: if podman { EngineKind::Podman } else { EngineKind::Docker },
            version: version.version.ok_or(WhyNot::NotAnEngine)?,
            api_version: version.api_version.ok_or(WhyNot::NotAnEngine)?,
        })
    }

    /// Which engine answered.
    pub fn kind(&self) -> EngineKind {
        self.kind
    }

    /// The engine's own version, such as `28.2.0`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The newest version of Docker's API that it speaks, such as `1.41`.
    pub fn api_version(&self) -> &str {
        &self.api_version
    }

    pub(crate) fn docker(&self) -> &Docker {
        &self.docker
    }

    /// Waits for an answer, at most a minute: the engine's yes, its no, or the error that it said neither.
    pub(crate) async fn within<T>(
        operation: &'static str,
        request: impl Future<Output = Result<T, Refusal>>,
    ) -> Result<Result<T, Refusal>, Error> {
        match tokio::time::timeout(ANSWER, request).await {
            Ok(Err(Refusal::RequestTimeoutError)) | Err(_) => {
                Err(Error::Timeout { operation, after: ANSWER })
            }
            Ok(answer) => Ok(answer),
        }
    }
}

/// Whether the engine refused because it knows no such thing.
pub(crate) fn is_not_found(refusal: &Refusal) -> bool {
    matches!(refusal, Refusal::DockerResponseServerError { status_code: 404, .. })
}

/// Tells apart what the HTTP client would report alike: nothing there, not allowed, nobody listening.
async fn reachable(socket: &Path) -> Result<(), WhyNot> {
    use std::io::ErrorKind;
    match tokio::time::timeout(HELLO, tokio::net::UnixStream::connect(socket)).await {
        Err(_) => Err(WhyNot::Silent),
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) => Err(match error.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory => WhyNot::Absent,
            ErrorKind::PermissionDenied => WhyNot::Forbidden,
            ErrorKind::ConnectionRefused => WhyNot::Refused,
            _ => WhyNot::NotUnix,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn tried(environment: &[(&str, &str)]) -> Vec<(&'static str, WhyNot)> {
        let variable = |name: &str| {
            environment.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into())
        };
        match Engine::discover_with(variable).await {
            Err(Error::EngineUnavailable { tried }) => {
                tried.into_iter().map(|candidate| (candidate.place, candidate.why_not)).collect()
            }
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn a_dead_docker_host_is_not_replaced_by_another_engine() {
        let found = tried(&[("DOCKER_HOST", "unix:///nowhere/x.sock")]).await;
        assert_eq!(found, [("DOCKER_HOST", WhyNot::Absent)]);
    }

    #[tokio::test]
    async fn the_environment_leads_to_the_engine() {
        let probe = std::env::var("AGENT_WORKSPACE_TEST_ENGINE")
            .map_err(|_| testkit::Missing("AGENT_WORKSPACE_TEST_ENGINE is not set".into()));
        let Some(host) = testkit::require("the_environment_leads_to_the_engine", probe) else {
            return;
        };
        let variable = |name: &str| (name == "DOCKER_HOST").then(|| host.clone().into());
        let engine = Engine::discover_with(variable).await.unwrap();
        assert!(!engine.version().is_empty());
        assert!(!format!("{engine:?}").contains(".sock"), "{engine:?}");
    }
}
