//! The tools that the suite calls, described through the product's own schemas.

use std::time::Duration;

use agent_workspace_mcp::schema::{Argument, Kind, input_schema};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, ContentBlock,
    ErrorData, ProgressNotificationParam, ResourceContents, SamplingCapability, Tool,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::{Value, json};

use crate::asking::{self, Question};
use crate::resources::PIXEL;
use crate::server::Session;

/// One silent sample of sound.
const SILENCE: &str = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQIAAAAAAA==";
/// Between the messages of one call.
const PAUSE: Duration = Duration::from_millis(50);

const PROMPT: &[Argument] = &[Argument::required("prompt", Kind::Text, "what to ask the model")];
const MESSAGE: &[Argument] = &[Argument::required("message", Kind::Text, "what to ask the user")];

/// Names and arguments.
const TOOLS: &[(&str, &[Argument])] = &[
    ("test_simple_text", &[]),
    ("test_image_content", &[]),
    ("test_audio_content", &[]),
    ("test_embedded_resource", &[]),
    ("test_multiple_content_types", &[]),
    ("test_tool_with_logging", &[]),
    ("test_logging_tool", &[]),
    ("test_tool_with_progress", &[]),
    ("test_error_handling", &[]),
    ("test_sampling", PROMPT),
    ("test_elicitation", MESSAGE),
    ("test_elicitation_sep1034_defaults", &[]),
    ("test_elicitation_sep1330_enums", &[]),
    ("test_streaming_elicitation", &[]),
    ("test_missing_capability", &[]),
    ("test_input_required_result_elicitation", &[]),
    ("test_input_required_result_sampling", &[]),
    ("test_input_required_result_list_roots", &[]),
    ("test_input_required_result_request_state", &[]),
    ("test_input_required_result_multiple_inputs", &[]),
    ("test_input_required_result_multi_round", &[]),
    ("test_input_required_result_tampered_state", &[]),
    ("test_input_required_result_capabilities", &[]),
];

pub(crate) fn list() -> Vec<Tool> {
    let tool = |(name, arguments): &(&'static str, &[Argument])| {
        Tool::new(*name, "A tool of the conformance suite", input_schema(arguments))
    };
    TOOLS.iter().map(tool).collect()
}

fn text(text: impl Into<String>) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text)])
}

pub(crate) async fn call(
    session: &Session,
    request: CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let given = |name: &str| {
        let arguments = request.arguments.as_ref();
        arguments.and_then(|it| it.get(name)).and_then(Value::as_str).unwrap_or_default()
    };
    let result = match request.name.as_ref() {
        "test_simple_text" => text("This is a simple text response for testing."),
        "test_image_content" => {
            CallToolResult::success(vec![ContentBlock::image(PIXEL, "image/png")])
        }
        "test_audio_content" => {
            CallToolResult::success(vec![ContentBlock::audio(SILENCE, "audio/wav")])
        }
        "test_embedded_resource" => {
            let body = "This is an embedded resource content.";
            let resource = ResourceContents::text(body, "test://embedded-resource");
            CallToolResult::success(vec![ContentBlock::resource(resource)])
        }
        "test_multiple_content_types" => {
            let body = json!({"test": "data", "value": 123}).to_string();
            let resource = ResourceContents::text(body, "test://mixed-content-resource")
                .with_mime_type("application/json");
            CallToolResult::success(vec![
                ContentBlock::text("Multiple content types test:"),
                ContentBlock::image(PIXEL, "image/png"),
                ContentBlock::resource(resource),
            ])
        }
        "test_error_handling" => {
            let said = "This tool intentionally returns an error for testing";
            CallToolResult::error(vec![ContentBlock::text(said)])
        }
        "test_tool_with_logging" | "test_logging_tool" => {
            for said in
                ["Tool execution started", "Tool processing data", "Tool execution completed"]
            {
                session.log(said, context).await;
                tokio::time::sleep(PAUSE).await;
            }
            text("logged")
        }
        "test_tool_with_progress" => progress(context).await?,
        "test_sampling" => answered(Question::model("model", given("prompt")), context).await,
        "test_elicitation" => {
            let schema = json!({
                "type": "object",
                "properties": {
                    "username": {"type": "string", "description": "User's response"},
                    "email": {"type": "string", "description": "User's email address"},
                },
                "required": ["username", "email"],
            });
            answered(Question::elicit("user", given("message"), &schema), context).await
        }
        "test_elicitation_sep1034_defaults" => {
            answered(Question::elicit("user", "All have defaults", &defaults()), context).await
        }
        "test_elicitation_sep1330_enums" => {
            answered(Question::elicit("user", "Choose", &choices()), context).await
        }
        "test_missing_capability" => {
            let mut needed = ClientCapabilities::default();
            needed.sampling = Some(SamplingCapability::default());
            let client = context.meta.client_capabilities().unwrap_or_default();
            if client.sampling.is_none() {
                return Err(ErrorData::missing_required_client_capability(needed));
            }
            text("the client can sample")
        }
        name if name.starts_with("test_input_required_result_")
            || name == "test_streaming_elicitation" =>
        {
            return unfinished(session, &request, context);
        }
        other => return Err(ErrorData::invalid_params(format!("unknown tool '{other}'"), None)),
    };
    Ok(result.into())
}

async fn progress(context: &RequestContext<RoleServer>) -> Result<CallToolResult, ErrorData> {
    for progress in [0.0, 50.0, 100.0] {
        if let Some(token) = context.meta.get_progress_token() {
            let mut beat = ProgressNotificationParam::new(token, progress);
            beat.total = Some(100.0);
            let sent = context.peer.notify_progress(beat).await;
            sent.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        }
        tokio::time::sleep(PAUSE).await;
    }
    Ok(text("all steps done"))
}

/// The answer to `question`, asked while the call runs.
async fn answered(question: Question, context: &RequestContext<RoleServer>) -> CallToolResult {
    match asking::ask_now(question, &context.peer).await {
        Ok(answer) => text(format!("The client answered: {answer}")),
        Err(error) => CallToolResult::error(vec![ContentBlock::text(error.message)]),
    }
}

/// The tools that ask by an unfinished result.
fn unfinished(
    session: &Session,
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let given = request.input_responses.as_ref();
    let state = request.request_state.as_deref();
    let name = || Question::form("user_name", "What is your name?", "name");
    let model = || Question::model("capital_question", "What is the capital of France?");
    // Whether a state is asked for, and which questions are open in which round.
    let (with_state, rounds) = match request.name.trim_start_matches("test_input_required_result_")
    {
        "elicitation" | "test_streaming_elicitation" => (false, vec![vec![name()]]),
        "sampling" => (false, vec![vec![model()]]),
        "list_roots" => (false, vec![vec![Question::roots()]]),
        "request_state" | "tampered_state" => (true, vec![vec![Question::confirm()]]),
        "multiple_inputs" => (true, vec![vec![name(), model(), Question::roots()]]),
        "multi_round" => {
            let first = Question::form("step1", "Step 1: What is your name?", "name");
            let second = Question::form("step2", "Step 2: What is your favorite color?", "color");
            (true, vec![vec![first], vec![second]])
        }
        "capabilities" => {
            let client = context.meta.client_capabilities().unwrap_or_default();
            let all = [name(), model(), Question::roots()];
            (false, vec![all.into_iter().filter(|question| question.is_for(&client)).collect()])
        }
        other => return Err(ErrorData::invalid_params(format!("unknown tool '{other}'"), None)),
    };
    let round = match state {
        Some(state) => session.open_state(state)?,
        None => 0,
    };
    let open = rounds.get(round).cloned().unwrap_or_default();
    let is_first = with_state && state.is_none();
    if is_first || open.iter().any(|question| question.answer(given).is_none()) {
        let state = with_state.then(|| session.new_state(round));
        return Ok(asking::ask(open, state)?.into());
    }
    if let Some(next) = rounds.get(round + 1) {
        let state = session.new_state(round + 1);
        return Ok(asking::ask(next.clone(), Some(state))?.into());
    }
    let answers: Vec<_> = open.iter().filter_map(|question| question.answer(given)).collect();
    let state = if with_state { "state-ok: " } else { "" };
    Ok(text(format!("{state}The client answered: {}", Value::from(answers))).into())
}

fn defaults() -> Value {
    json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "default": "John Doe"},
            "age": {"type": "integer", "default": 30},
            "score": {"type": "number", "default": 95.5},
            "status": {
                "type": "string", "enum": ["active", "inactive", "pending"], "default": "active",
            },
            "verified": {"type": "boolean", "default": true},
        },
    })
}

fn choices() -> Value {
    let titled = |word: &str| {
        let choice = |(at, which): (usize, &str)| json!({"const": format!("value{}", at + 1), "title": format!("{which} {word}")});
        ["First", "Second", "Third"].into_iter().enumerate().map(choice).collect::<Value>()
    };
    json!({
        "type": "object",
        "properties": {
            "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
            "titledSingle": {"type": "string", "oneOf": titled("Option")},
            "legacyEnum": {
                "type": "string", "enum": ["opt1", "opt2", "opt3"],
                "enumNames": ["Option One", "Option Two", "Option Three"],
            },
            "untitledMulti": {
                "type": "array",
                "items": {"type": "string", "enum": ["option1", "option2", "option3"]},
            },
            "titledMulti": {"type": "array", "items": {"anyOf": titled("Choice")}},
        },
    })
}
