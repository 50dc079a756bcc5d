//! `demo`: a newcomer sees the real server work. It drives this binary over a pipe, as any client would, in a
//! scratch workspace, and succeeds only if every step did what it should.
#![expect(clippy::disallowed_methods, reason = "the demo starts its own server, as a client does")]

use std::process::{ExitCode, Stdio};

use anyhow::{Context as _, Result, ensure};
use rmcp::ServiceExt as _;
use rmcp::model::{CallToolRequestParams, CallToolResult, JsonObject};
use rmcp::service::{RoleClient, RunningService};
use serde_json::{Value, json};

use super::{runtime, say};
use crate::reply::FACTS;

/// Lines of an answer that are shown.
const SHOWN: usize = 24;

/// Tokens of output in one answer, fewer than the default so that the demo fits a screen.
const BUDGET: &str = "400";

const GREETING: &str = "\
class Greeter:
    def greet(self, name):
        message = 'Hello, ' + name
        return message
";

/// A build with one fault in the middle of much that is not worth reading.
const BUILD: &str = "for i in $(seq 1 4000); do echo \"Compiling unit_$i v0.1.$i\"; \
    [ $i = 2170 ] && echo 'src/unit_2170.c:41:9: error: expected a semicolon before return'; done; \
    echo 'build failed: 1 error'; exit 2";

pub(super) fn run() -> Result<ExitCode> {
    let steps = runtime()?.block_on(drive())?;
    let failed = steps.iter().filter(|done| !**done).count();
    if failed == 0 {
        say(&format!("\nAll {} steps did what they should.", steps.len()))?;
        return Ok(ExitCode::SUCCESS);
    }
    say(&format!("\n{failed} of {} steps did not do what they should.", steps.len()))?;
    Ok(ExitCode::FAILURE)
}

async fn drive() -> Result<Vec<bool>> {
    let scratch = tempfile::tempdir().context("no scratch directory")?;
    let workspace = scratch.path().join("workspace");
    std::fs::DirBuilder::new().create(&workspace).context("no scratch workspace")?;
    let program = std::env::current_exe().context("cannot name this program")?;
    let mut child = tokio::process::Command::new(program)
        .args(["serve", "--log-level", "error", "--output-budget", BUDGET, "--workspace"])
        .arg(&workspace)
        .arg("--audit-dir")
        .arg(scratch.path().join("state"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .context("cannot start the server")?;
    let input = child.stdin.take().context("the server has no stdin")?;
    let output = child.stdout.take().context("the server has no stdout")?;
    let client = ().serve((output, input)).await.context("the server does not answer")?;
    let version = client.peer_info().map(|info| info.protocol_version.to_string());
    say(&format!(
        "agent-workspace-mcp {} over stdio, protocol {}, in a scratch workspace.",
        env!("CARGO_PKG_VERSION"),
        version.unwrap_or_else(|| "unknown".into())
    ))?;

    let demo = Demo { client };
    let steps = vec![
        demo.write().await?,
        demo.fuzzy_edit().await?,
        demo.refused_edit().await?,
        demo.refused_escape().await?,
        demo.run_command().await?,
    ];

    demo.client.cancel().await.context("the session does not end")?;
    let status = child.wait().await.context("the server does not end")?;
    ensure!(status.success(), "the server ended with {status}");
    Ok(steps)
}

struct Demo {
    client: RunningService<RoleClient, ()>,
}

struct Answer {
    text: String,
    facts: Value,
    is_error: bool,
}

impl Demo {
    async fn call(&self, tool: &'static str, arguments: Value) -> Result<Answer> {
        let Value::Object(arguments) = arguments else { anyhow::bail!("arguments are an object") };
        let arguments: JsonObject = arguments;
        let request = CallToolRequestParams::new(tool).with_arguments(arguments);
        let result: CallToolResult = self.client.call_tool(request).await?;
        let text = result
            .content
            .iter()
            .filter_map(|block| block.as_text().map(|text| text.text.as_str()))
            .collect::<Vec<_>>()
            .join("\n");
        let facts = result.meta.as_ref().and_then(|meta| meta.get(FACTS)).cloned();
        let is_error = result.is_error == Some(true);
        Ok(Answer { text, facts: facts.unwrap_or_default(), is_error })
    }

    async fn write(&self) -> Result<bool> {
        title("1. A file is written: write_file greeter.py")?;
        let answer =
            self.call("write_file", json!({"filepath": "greeter.py", "content": GREETING})).await?;
        verdict(!answer.is_error && answer.facts["created"] == true, &answer, "written")
    }

    async fn fuzzy_edit(&self) -> Result<bool> {
        title(
            "2. An edit whose indentation is wrong lands all the same, in the file's own indentation",
        )?;
        let edit = json!({
            "old": "message = 'Hello, ' + name\nreturn message",
            "new": "message = f'Hello, {name}!'\nreturn message",
        });
        let answer = self
            .call("search_and_replace", json!({"filepath": "greeter.py", "edits": [edit]}))
            .await?;
        let file = self.call("read_file", json!({"filepath": "greeter.py"})).await?.text;
        let kept = file.contains("\n        message = f'Hello, {name}!'\n        return message\n");
        verdict(kept && answer.text.contains("1 fuzzy-matched"), &answer, "indentation kept")
    }

    async fn refused_edit(&self) -> Result<bool> {
        title("3. An edit that would break the Python is refused, and nothing is written")?;
        let before = self.call("read_file", json!({"filepath": "greeter.py"})).await?.text;
        let edit = json!({"old": "def greet(self, name):", "new": "def greet(self, name:"});
        let answer = self
            .call("search_and_replace", json!({"filepath": "greeter.py", "edits": [edit]}))
            .await?;
        let after = self.call("read_file", json!({"filepath": "greeter.py"})).await?.text;
        let refused = answer.is_error && answer.facts["error_kind"] == "syntax_invalid";
        verdict(refused && before == after, &answer, "refused, file unchanged")
    }

    async fn refused_escape(&self) -> Result<bool> {
        title(
            "4. A path that leads out of the workspace is refused: read_file ../../../etc/passwd",
        )?;
        let answer = self.call("read_file", json!({"filepath": "../../../etc/passwd"})).await?;
        let refused = answer.is_error && answer.facts["error_kind"] == "outside_workspace";
        verdict(refused, &answer, "refused")
    }

    async fn run_command(&self) -> Result<bool> {
        title("5. A command runs confined, and its output is cut to what matters")?;
        let answer = self.call("run_bash", json!({"command": BUILD})).await?;
        let (raw, out) = (&answer.facts["raw_tokens"], &answer.facts["out_tokens"]);
        let smaller = out.as_u64().zip(raw.as_u64()).is_some_and(|(out, raw)| out * 2 < raw);
        let kept = answer.text.contains("src/unit_2170.c:41:9: error");
        let exit = answer.text.starts_with("[Exit code: 2]");
        let what = format!("{raw} tokens became {out}, error line kept");
        let done = verdict(!answer.is_error && smaller && kept && exit, &answer, &what)?;
        say(&format!(
            "   The command ran on the rung '{}'. `agent-workspace-mcp doctor` tells what each layer does here.",
            answer.facts["sandbox"].as_str().unwrap_or("unknown")
        ))?;
        Ok(done)
    }
}

fn title(text: &str) -> Result<()> {
    say(&format!("\n{text}"))
}

fn verdict(done: bool, answer: &Answer, what: &str) -> Result<bool> {
    let lines: Vec<&str> = answer.text.lines().collect();
    for line in lines.iter().take(SHOWN) {
        say(&format!("   | {line}"))?;
    }
    if lines.len() > SHOWN {
        say(&format!("   | … {} more lines", lines.len() - SHOWN))?;
    }
    say(&if done { format!("   ok: {what}") } else { format!("   FAILED; expected: {what}") })?;
    Ok(done)
}
