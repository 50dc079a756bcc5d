//! What the engine says of one command it was asked to run.
//!
//! Invariant: "ended" is said only of what has begun. Podman answers before it has noted the beginning, and what
//! has not begun looks to it like what ended well: not running, exit code 0.

use bollard::models::ExecInspectResponse;

use crate::container::Container;
use crate::engine::{Engine, EngineKind, is_not_found};
use crate::error::Error;

/// Where a command is in its life.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Session {
    /// Not begun, as far as the engine has noted.
    Pending,
    /// Running, under this process id of the host.
    Running(String),
    /// Ended, with this exit code.
    Ended(i64),
    /// The engine knows no such command: its container is no more.
    Unknown,
}

impl Container {
    /// Asks the engine about a command.
    pub(crate) async fn session(&self, exec: &str) -> Result<Session, Error> {
        let request = self.engine.docker().inspect_exec(exec);
        match Engine::within("inspect", request).await? {
            Ok(seen) => Ok(read(self.engine.kind(), &seen)),
            Err(refusal) if is_not_found(&refusal) || self.is_ending().await? => {
                Ok(Session::Unknown)
            }
            Err(refusal) => Err(Error::ExecFailed { source: refusal.into() }),
        }
    }
}

fn read(kind: EngineKind, seen: &ExecInspectResponse) -> Session {
    let ended = match kind {
        // Docker has no exit code until there is one; its "can remove" follows later.
        EngineKind::Docker => seen.running == Some(false),
        EngineKind::Podman => seen.can_remove == Some(true),
    };
    match (seen.exit_code, seen.pid) {
        (Some(code), _) if ended => Session::Ended(code),
        (_, Some(pid)) if seen.running == Some(true) && pid > 0 => {
            Session::Running(pid.to_string())
        }
        _ => Session::Pending,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(
        kind: EngineKind,
        (running, can_remove): (bool, bool),
        (exit_code, pid): (Option<i64>, i64),
        expected: &Session,
    ) {
        let seen = ExecInspectResponse {
            running: Some(running),
            can_remove: Some(can_remove),
            exit_code,
            pid: Some(pid),
            ..ExecInspectResponse::default()
        };
        assert_eq!(&read(kind, &seen), expected, "{kind}: {seen:?}");
    }

    #[test]
    fn what_has_not_begun_has_not_ended() {
        check(EngineKind::Docker, (false, false), (None, 0), &Session::Pending);
        check(EngineKind::Podman, (false, false), (Some(0), 0), &Session::Pending);
    }

    #[test]
    fn what_runs_has_a_process() {
        check(EngineKind::Docker, (true, false), (None, 7), &Session::Running("7".into()));
        check(EngineKind::Podman, (true, false), (Some(0), 7), &Session::Running("7".into()));
        check(EngineKind::Podman, (true, false), (Some(0), 0), &Session::Pending);
    }

    #[test]
    fn what_ended_has_a_code() {
        check(EngineKind::Docker, (false, false), (Some(3), 7), &Session::Ended(3));
        check(EngineKind::Podman, (false, true), (Some(0), 0), &Session::Ended(0));
    }
}
