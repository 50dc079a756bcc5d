//! `doctor`: which layers protect this machine from commands, found out by trying, and what a workspace wants.

use std::process::ExitCode;

use clap::Args;
use proc_sandbox::State;
use serde::Serialize;

use super::say;
use crate::config::Config;
use crate::shell::Tried;
use crate::workspace::Workspace;

/// Programs that agents reach for.
const PROGRAMS: &[&str] =
    &["bash", "git", "uv", "python3", "node", "rg", "fd", "jq", "curl", "patch"];

#[derive(Debug, Clone, Args)]
pub(super) struct Options {
    /// One JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Diagnosis {
    rung: String,
    floor: String,
    ok: bool,
    /// Why commands are refused, where they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    refusal: Option<String>,
    layers: Vec<Tried>,
    programs: Vec<Program>,
    engine: String,
    /// Where audit log and outputs go; a reason where they go nowhere.
    state: String,
}

#[derive(Debug, Serialize)]
struct Program {
    name: &'static str,
    found: bool,
}

pub(super) fn run(options: &Options, config: &Config) -> anyhow::Result<ExitCode> {
    let diagnosis = diagnose(config)?;
    if options.json {
        say(&serde_json::to_string_pretty(&diagnosis)?)?;
    } else {
        say(&render(&diagnosis))?;
    }
    Ok(if diagnosis.ok { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn diagnose(config: &Config) -> anyhow::Result<Diagnosis> {
    let workspace = Workspace::open(config.clone())?;
    let shell = &workspace.shell;
    Ok(Diagnosis {
        rung: shell.standing(),
        floor: config.floor_name(),
        ok: shell.refusal().is_none(),
        refusal: shell.refusal(),
        layers: shell.layers(),
        programs: PROGRAMS.iter().map(|name| Program { name, found: on_path(name) }).collect(),
        engine: engine(),
        state: match &workspace.unrecorded {
            None => "audit log and outputs are kept".into(),
            Some(reason) => format!("no audit log and no stored outputs: {reason}"),
        },
    })
}

fn on_path(program: &str) -> bool {
    std::env::var_os("PATH").is_some_and(|path| {
        std::env::split_paths(&path).any(|dir| dir.is_absolute() && dir.join(program).is_file())
    })
}

#[cfg(feature = "container")]
fn engine() -> String {
    let found =
        super::runtime().map(|runtime| runtime.block_on(container_sandbox::Engine::discover()));
    match found {
        Ok(Ok(engine)) => {
            format!("{} {}, API {}", engine.kind(), engine.version(), engine.api_version())
        }
        Ok(Err(error)) => format!("none: {error}"),
        Err(error) => format!("unknown: {error}"),
    }
}

#[cfg(not(feature = "container"))]
fn engine() -> String {
    "not built into this binary".into()
}

fn render(diagnosis: &Diagnosis) -> String {
    let mut lines = vec![match &diagnosis.refusal {
        None => {
            format!("Commands run on the rung '{}' (floor: '{}').", diagnosis.rung, diagnosis.floor)
        }
        Some(reason) => format!("Commands are refused: {reason}"),
    }];
    if !diagnosis.layers.is_empty() {
        lines.push("\nLayers, each tried out just now:".into());
    }
    for layer in &diagnosis.layers {
        let state = match layer.state {
            State::Active => "active",
            State::Unavailable => "MISSING",
            State::Off => "off",
        };
        lines.push(format!("  {:<22} {state:<8} {}", layer.name, layer.detail));
        if let Some(remedy) = &layer.remedy {
            lines.push(format!("  {:<31} remedy: {remedy}", ""));
        }
    }
    lines.push(
        "\nFiles: every path is resolved by descriptor inside the workspace, whatever the rung."
            .into(),
    );
    lines.push(format!("State: {}", diagnosis.state));
    lines.push(format!("Container engine: {}", diagnosis.engine));
    let named = |found: bool| {
        let names = diagnosis.programs.iter().filter(|program| program.found == found);
        names.map(|program| program.name).collect::<Vec<_>>().join(", ")
    };
    lines.push(format!("Programs found: {}", named(true)));
    lines.push(format!("Programs not found: {}", named(false)));
    lines.join("\n")
}
