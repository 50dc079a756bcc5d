//! `stop_sandbox`: removes a disposable sandbox with its files.

use rmcp::model::JsonObject;
use serde::Deserialize;

use super::{Effect, Row};
use crate::arguments::decode;
#[cfg(feature = "container")]
use crate::disposables::Backend;
use crate::reply::{ErrorKind, Facts, Failure, Reply};
use crate::schema::{Argument, Kind};
use crate::workspace::Session;

const ARGUMENTS: &[Argument] =
    &[Argument::optional("sandbox_id", Kind::Text, "which one (default: the only open one)")
        .also(&["id"])];

pub(super) const ROW: Row = Row {
    name: "stop_sandbox",
    title: "Remove disposable sandbox",
    description: "Removes a disposable sandbox with all its files; what runs in it is ended.",
    effect: Effect::Runs,
    arguments: ARGUMENTS,
    call,
};

#[derive(Deserialize)]
struct Arguments {
    sandbox_id: Option<String>,
}

fn call(session: &Session, given: JsonObject) -> Result<Reply, Failure> {
    let Arguments { sandbox_id } = decode(ARGUMENTS, given)?;
    let disposables = &session.workspace.disposables;
    let Some(place) = disposables.get(sandbox_id.as_deref(), &session.cancel)? else {
        return Err(Failure::new(
            ErrorKind::UnknownId,
            "no sandbox is open; initialize_sandbox opens one",
        ));
    };
    place.end_others();
    #[cfg(feature = "container")]
    if let Backend::Container(contained) = &place.backend {
        contained.remove().map_err(|error| {
            tracing::warn!(
                error = crate::shell::with_source(&error),
                "a container was not removed"
            );
            Failure::new(ErrorKind::EngineUnavailable, format!("{error}; try again"))
        })?;
    }
    let (id, backend) = (place.id.clone(), place.backend());
    disposables.close(place);
    let facts = Facts::default().with("sandbox_id", &id).with("backend", backend);
    Ok(Reply::text(format!("[sandbox {id} is removed]")).facts(facts))
}
