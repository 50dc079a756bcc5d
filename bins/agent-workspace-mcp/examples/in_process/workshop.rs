//! Tools for a model's function calls, and a loop that answers them.
//!
//! The same guard, limits, sandbox and audit log as a client's calls have; MCP's types do not appear. What is scripted
//! here, a model decides: [`Workshop::functions`] is what it is told, [`Workshop::answer`] what comes of its calls.

use std::fmt::Write as _;
use std::sync::Arc;

use agent_workspace_mcp::config::Config;
use agent_workspace_mcp::guard::{self, Caller};
use agent_workspace_mcp::reply::Reply;
use agent_workspace_mcp::schema::input_schema;
use agent_workspace_mcp::tools;
use agent_workspace_mcp::workspace::Workspace;
use serde_json::{Map, Value, json};

/// A workspace and its tools.
pub(crate) struct Workshop {
    workspace: Arc<Workspace>,
}

impl Workshop {
    /// Opens the workspace that `config` names.
    ///
    /// # Errors
    ///
    /// When the directory cannot be opened.
    pub(crate) fn open(config: Config) -> anyhow::Result<Self> {
        Ok(Self { workspace: Arc::new(Workspace::open(config)?) })
    }

    /// The tools as the function-calling interfaces of models want them.
    pub(crate) fn functions(&self) -> Vec<Value> {
        let offered = tools::offered(self.workspace.config.read_only);
        let function = |row: &tools::Row| {
            json!({
                "type": "function",
                "function": {
                    "name": row.name,
                    "description": row.description,
                    "parameters": input_schema(row.arguments),
                },
            })
        };
        offered.map(function).collect()
    }

    /// One function call of a model; `arguments` is the JSON text that it wrote.
    ///
    /// # Errors
    ///
    /// A name that is no tool, and arguments that are no JSON object: worth telling the model, too.
    pub(crate) async fn answer(&self, name: &str, arguments: &str) -> Result<Reply, String> {
        let mut offered = tools::offered(self.workspace.config.read_only);
        let row = offered.find(|row| row.name == name).ok_or(format!("no tool '{name}'"))?;
        let arguments: Map<String, Value> = serde_json::from_str(arguments)
            .map_err(|error| format!("the arguments are not a JSON object: {error}"))?;
        // Whoever wants to end a call early keeps the token.
        Ok(guard::call(Arc::clone(&self.workspace), row, arguments, Caller::default()).await)
    }
}

/// What the model says, turn by turn.
const TURNS: &[(&str, &str)] = &[
    (
        "write_file",
        r#"{"filepath": "greet.py", "content": "def greet():\n    return 'hi'\n\nprint(greet())\n"}"#,
    ),
    (
        "search_and_replace",
        r#"{"filepath": "greet.py", "edits": [{"old": "return 'hi'", "new": "return 'bye'"}]}"#,
    ),
    (
        "search_and_replace",
        r#"{"filepath": "greet.py", "edits": [{"old": "def greet():", "new": "def greet(:"}]}"#,
    ),
    ("read_file", r#"{"filepath": "../secret.txt"}"#),
    ("run_bash", r#"{"command": "cat greet.py; exit 3"}"#),
];

/// Plays the turns; what an onlooker sees.
///
/// # Errors
///
/// A call that was none.
pub(crate) async fn play(workshop: &Workshop) -> anyhow::Result<String> {
    let mut story = format!("{} tools for the model\n", workshop.functions().len());
    for (name, arguments) in TURNS {
        let reply = workshop.answer(name, arguments).await.map_err(anyhow::Error::msg)?;
        let mark = if reply.error.is_some() { "refused" } else { "done" };
        let first = reply.text.lines().next().unwrap_or_default();
        writeln!(story, "{name}: {mark}: {first}")?;
        // For the program: facts, not words.
        if let Some(kind) = reply.facts.get("error_kind").or(reply.facts.get("exit_code")) {
            writeln!(story, "    {kind}")?;
        }
    }
    Ok(story)
}
