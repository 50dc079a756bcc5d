//! `client-config NAME`: what to put into a client's configuration, with this binary and this workspace.

use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use serde_json::json;

use super::say;
use crate::config::Config;

#[derive(Debug, Clone, Args)]
pub(super) struct Options {
    /// The client
    #[arg(value_enum)]
    client: Client,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Client {
    Claude,
    ClaudeCode,
    Cursor,
    Vscode,
    Codex,
    Gemini,
    OpenaiAgents,
}

const NAME: &str = "agent-workspace";

pub(super) fn run(options: &Options, config: &Config) -> anyhow::Result<ExitCode> {
    let program = std::env::current_exe().context("cannot name this program")?;
    let program = program.to_str().context("this program's path is not UTF-8")?;
    let workspace = std::path::absolute(&config.workspace).context("cannot name the workspace")?;
    let workspace = workspace.to_str().context("the workspace's path is not UTF-8")?;
    say(&text(options.client, program, workspace)?)?;
    Ok(ExitCode::SUCCESS)
}

fn text(client: Client, program: &str, workspace: &str) -> anyhow::Result<String> {
    let arguments = ["serve", "--workspace", workspace];
    let server = json!({"command": program, "args": arguments});
    let pretty = |value| serde_json::to_string_pretty(&value);
    Ok(match client {
        Client::Claude => format!(
            "Add to claude_desktop_config.json (Settings, Developer, Edit Config):\n\n{}\n",
            pretty(json!({"mcpServers": {NAME: server}}))?
        ),
        Client::ClaudeCode => format!(
            "Run:\n\nclaude mcp add {NAME} -- {} serve --workspace {}\n",
            shell_quote(program),
            shell_quote(workspace)
        ),
        Client::Cursor => format!(
            "Add to ~/.cursor/mcp.json:\n\n{}\n",
            pretty(json!({"mcpServers": {NAME: server}}))?
        ),
        Client::Vscode => format!(
            "Run:\n\ncode --add-mcp {}\n\nor add to the user's mcp.json:\n\n{}\n",
            shell_quote(&json!({"name": NAME, "command": program, "args": arguments}).to_string()),
            pretty(
                json!({"servers": {NAME: {"type": "stdio", "command": program, "args": arguments}}})
            )?
        ),
        // TOML's basic strings take JSON's escapes.
        Client::Codex => format!(
            "Add to ~/.codex/config.toml:\n\n[mcp_servers.{NAME}]\ncommand = {}\nargs = {}\n",
            json!(program),
            json!(arguments)
        ),
        Client::Gemini => format!(
            "Add to ~/.gemini/settings.json:\n\n{}\n",
            pretty(json!({"mcpServers": {NAME: server}}))?
        ),
        // Python reads JSON's strings and lists as its own.
        Client::OpenaiAgents => format!(
            "from agents.mcp import MCPServerStdio\n\n\
             server = MCPServerStdio(\n    name=\"{NAME}\",\n    params={{\n        \"command\": {},\n        \
             \"args\": {},\n    }},\n    client_session_timeout_seconds=630,\n)\n",
            json!(program),
            json!(arguments)
        ),
    })
}

/// One word of a POSIX shell.
fn shell_quote(word: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./=:@%+,".contains(&byte);
    if !word.is_empty() && word.bytes().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn awkward_paths_survive_every_client() {
        let (program, workspace) = ("/opt/a b/\"x\"", "/home/o'neil/w\\s");
        for client in Client::value_variants() {
            let text = text(*client, program, workspace).unwrap();
            let json = text.find("\n{").map(|at| text.split_at(at + 1).1);
            match (client, json) {
                (Client::ClaudeCode, _) => {
                    assert!(
                        text.contains(
                            r#"-- '/opt/a b/"x"' serve --workspace '/home/o'\''neil/w\s'"#
                        )
                    );
                }
                (Client::Codex, _) => {
                    assert!(text.contains(r#"command = "/opt/a b/\"x\"""#), "{text}");
                    assert!(text.contains(r#""/home/o'neil/w\\s"]"#), "{text}");
                }
                (Client::OpenaiAgents, _) => assert!(text.contains(r#""/opt/a b/\"x\"""#)),
                (_, Some(json)) => {
                    let value: serde_json::Value = serde_json::from_str(json).unwrap();
                    let found = value.to_string();
                    assert!(found.contains(r#""/home/o'neil/w\\s""#), "{found}");
                }
                (_, None) => unreachable!("{client:?} has no JSON"),
            }
        }
    }
}
