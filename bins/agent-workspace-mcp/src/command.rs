//! The command line: one file for each command, and the way from arguments to an exit code.

mod call;
mod client_config;
mod compact;
mod demo;
mod doctor;
mod serve;
mod stats;

use std::io::Write as _;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::config::{Config, Settings};

/// A safe workspace for a language model, served over MCP.
#[derive(Debug, Parser)]
#[command(name = "agent-workspace-mcp", version, about)]
struct CommandLine {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    settings: Settings,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve the workspace over MCP (the default)
    Serve(serve::Options),
    /// Show the product working, in a scratch workspace
    Demo,
    /// Say which layers of protection are active here, and how that was found out
    Doctor(doctor::Options),
    /// Call one tool: the text on stdout, exit status 1 on an error result
    Call(call::Options),
    /// Shorten a command's output: raw on stdin, compacted on stdout
    Compact(compact::Options),
    /// Tokens saved, calls and failures, from the audit log
    Stats(stats::Options),
    /// The configuration for a client
    ClientConfig(client_config::Options),
}

/// Parses the command line, runs the command and says how it ended.
pub fn main() -> ExitCode {
    let line = match CommandLine::try_parse() {
        Ok(line) => line,
        Err(error) => {
            // Help and version go to stdout, mistakes to stderr, each with clap's own status.
            let code = u8::try_from(error.exit_code()).unwrap_or(2);
            return match error.print() {
                Ok(()) => ExitCode::from(code),
                Err(_) => ExitCode::FAILURE,
            };
        }
    };
    let config = match line.settings.resolve() {
        Ok(config) => config,
        Err(error) => return fail(&error.into()),
    };
    let done = match line.command {
        None => serve::run(&serve::Options::from_environment(), config),
        Some(Command::Serve(options)) => serve::run(&options, config),
        Some(Command::Demo) => demo::run(),
        Some(Command::Doctor(options)) => doctor::run(&options, &config),
        Some(Command::Call(options)) => call::run(&options, config),
        Some(Command::Compact(options)) => compact::run(&options, &config),
        Some(Command::Stats(options)) => stats::run(&options, &config),
        Some(Command::ClientConfig(options)) => client_config::run(&options, &config),
    };
    done.unwrap_or_else(|error| fail(&error))
}

fn fail(error: &anyhow::Error) -> ExitCode {
    say_error(&format!("agent-workspace-mcp: {error:#}"));
    ExitCode::FAILURE
}

/// Writes to stdout. Only commands do; while `serve` runs, stdout is the protocol's alone.
fn say(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    if !text.ends_with('\n') {
        out.write_all(b"\n")?;
    }
    Ok(out.flush()?)
}

fn say_error(text: &str) {
    // A stderr that is closed leaves nobody to tell.
    drop(writeln!(std::io::stderr().lock(), "{text}"));
}

/// Sends the log to stderr at the configured level.
fn log_to_stderr(config: &Config) {
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_max_level(config.log_level)
        .with_ansi(false)
        .with_target(false)
        .init();
}

fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_multi_thread().enable_all().worker_threads(2).build()?)
}
