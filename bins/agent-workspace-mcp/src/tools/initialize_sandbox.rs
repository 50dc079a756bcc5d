//! `initialize_sandbox`: opens a disposable place for code, which shares nothing with the workspace.

use rmcp::model::JsonObject;
use serde::Deserialize;

use super::{Effect, Row};
use crate::arguments::decode;
use crate::config::Network;
use crate::disposables::{Backend, Native, Place};
use crate::packages::Packages;
use crate::reply::{Facts, Failure, Reply};
use crate::schema::{Argument, Kind};
use crate::workspace::{Session, Workspace};

const ARGUMENTS: &[Argument] = &[
    Argument::optional(
        "image",
        Kind::Text,
        "container image, pulled where the operator allows (default: none; a native sandbox needs no engine)",
    ),
    Argument::optional(
        "language_packages",
        Kind::Texts,
        "packages to install first, python's or npm:NAME (native only)",
    )
    .also(&["packages"]),
    Argument::optional(
        "network",
        Kind::Choice(&["off", "on"]),
        "on gives what the operator allows, native sandboxes only (default off)",
    ),
];

pub(super) const ROW: Row = Row {
    name: "initialize_sandbox",
    title: "Open disposable sandbox",
    description: "Opens a disposable sandbox for execute_code: an empty place that shares nothing with the workspace, \
without network. Files in it stay until stop_sandbox. Returns its sandbox_id.",
    effect: Effect::Runs,
    arguments: ARGUMENTS,
    call,
};

#[derive(Deserialize)]
struct Arguments {
    image: Option<String>,
    network: Option<String>,
    #[serde(default)]
    language_packages: Vec<String>,
}

fn call(session: &Session, given: JsonObject) -> Result<Reply, Failure> {
    let Arguments { image, network, language_packages } = decode(ARGUMENTS, given)?;
    let workspace = &session.workspace;
    let wants_network = network.as_deref() == Some("on");
    let packages = Packages::parse(&language_packages)?;
    let backend = match image {
        None => {
            let network = packages.network(&workspace.config.network)?;
            let mut native = native(workspace, wants_network)?;
            if let Some(network) = network {
                packages.install(session, &mut native, network)?;
            }
            Backend::Native(Box::new(native))
        }
        Some(_) if wants_network => {
            return Err(Failure::invalid_args(
                "a sandbox from an image has no network; leave 'image' or 'network' out",
            ));
        }
        Some(_) if !packages.is_empty() => {
            return Err(Failure::invalid_args(
                "a sandbox from an image has no network to fetch packages; name an image that holds them, or leave \
                 'image' out",
            ));
        }
        Some(image) => contained(session, &image)?,
    };
    let place = Place::new(backend);
    let what = match &place.backend {
        Backend::Native(native) => {
            // What the installation left is not code's doing.
            native.look(&place);
            format!("native, rung {}", native.shell.rung())
        }
        #[cfg(feature = "container")]
        Backend::Container(contained) => format!("a container of {}", contained.engine()),
    };
    let backend = place.backend();
    let id = workspace.disposables.add(place, &session.cancel)?.id.clone();
    let with = packages.told();
    let text = format!(
        "[sandbox {id} is open: {what}{with}]\nexecute_code(sandbox_id=\"{id}\") runs code in it, \
         write_file and read_file take the same sandbox_id, stop_sandbox(sandbox_id=\"{id}\") removes it with its files."
    );
    Ok(Reply::text(text).facts(Facts::default().with("sandbox_id", id).with("backend", backend)))
}

/// A native place, with the operator's network if that is asked for.
pub(super) fn native(workspace: &Workspace, wants_network: bool) -> Result<Native, Failure> {
    let network = match (&workspace.config.network, wants_network) {
        (Network::Off, true) => {
            return Err(Failure::invalid_args(
                "the operator gives commands no network; leave 'network' out",
            ));
        }
        (allowed, true) => allowed.clone(),
        (_, false) => Network::Off,
    };
    Native::new(&workspace.config, &workspace.jail, network)
}

#[cfg(feature = "container")]
fn contained(session: &Session, image: &str) -> Result<Backend, Failure> {
    let pull = &session.workspace.config.containers.pull;
    let made = crate::contained::Contained::start(image, pull, &session.cancel, &session.heard)?;
    Ok(Backend::Container(Box::new(made)))
}

#[cfg(not(feature = "container"))]
fn contained(_session: &Session, _image: &str) -> Result<Backend, Failure> {
    Err(Failure::new(
        crate::reply::ErrorKind::EngineUnavailable,
        "containers are not built into this binary; without 'image' a native sandbox needs no engine",
    ))
}
