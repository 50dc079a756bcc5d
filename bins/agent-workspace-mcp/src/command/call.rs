//! `call TOOL JSON`: one tool call from a shell, through the same guard and audit as a client's.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use clap::Args;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::{log_to_stderr, runtime, say, say_error};
use crate::config::Config;
use crate::guard::{self, Caller};
use crate::tools;
use crate::workspace::Workspace;

#[derive(Debug, Clone, Args)]
pub(super) struct Options {
    /// Name of the tool
    tool: String,
    /// Its arguments, a JSON object
    #[arg(default_value = "{}")]
    arguments: String,
    /// Print the facts for programs, as one line of JSON on stderr
    #[arg(long)]
    facts: bool,
}

pub(super) fn run(options: &Options, mut config: Config) -> anyhow::Result<ExitCode> {
    let arguments = match serde_json::from_str(&options.arguments) {
        Ok(Value::Object(arguments)) => arguments,
        Ok(_) => bail!("the arguments must be a JSON object"),
        Err(error) => return Err(error).context("the arguments are not JSON"),
    };
    let Some(row) = tools::offered(config.read_only).find(|row| row.name == options.tool) else {
        let known: Vec<_> = tools::offered(config.read_only).map(|row| row.name).collect();
        bail!("unknown tool '{}'; the tools are {}", options.tool, known.join(", "));
    };
    // The log of a server would drown the answer of a single call.
    config.log_level = config.log_level.min(tracing::Level::ERROR);
    log_to_stderr(&config);
    let workspace = Arc::new(Workspace::open(config)?);
    let cancelled = CancellationToken::new();
    let opens = row.name == "initialize_sandbox";
    let reply = runtime()?.block_on(async {
        let interrupted = cancelled.clone();
        tokio::spawn(async move {
            if tokio::signal::ctrl_c().await.is_ok() {
                interrupted.cancel();
            }
        });
        guard::call(workspace, row, arguments, Caller { cancelled, ..Caller::default() }).await
    });
    if !reply.text.is_empty() {
        say(&reply.text)?;
    }
    if reply.error.is_none() && (opens || reply.facts.get("job_id").is_some()) {
        say_error("What was started ends with this command; a server (serve) keeps it.");
    }
    if options.facts {
        say_error(&serde_json::to_string(&reply.facts)?);
    }
    Ok(if reply.error.is_some() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
