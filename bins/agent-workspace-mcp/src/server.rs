//! The MCP side of the server: what it is, which tools it lists, and the way a call takes through the guard.

use std::sync::Arc;
use std::time::Instant;

use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CompleteRequestParams, CompleteResult,
    CompletionInfo, CustomRequest, CustomResult, ErrorCode, ErrorData, GetPromptRequestParams,
    GetPromptResponse, GetPromptResult, Implementation, JsonObject, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    Prompt, PromptMessage, ReadResourceRequestParams, ReadResourceResponse, Reference, Role,
    ServerCapabilities, ServerConfig, Tool, ToolAnnotations,
};
use rmcp::service::{RequestContext, RoleServer};
use tokio_util::sync::CancellationToken;

use crate::client_log::{ClientLog, SetLevel};
use crate::config::Network;
use crate::guard::{self, Caller};
use crate::progress::{self, Heard};
use crate::reply::{Failure, Reply};
use crate::resources;
use crate::schema::input_schema;
use crate::tools::{self, Effect, Row};
use crate::workspace::Workspace;

/// What a client tells its model about this server.
const INSTRUCTIONS: &str = "\
Files, edits and commands in one workspace directory. Paths are relative to its root.
Look before you change: search_workspace finds names, read_file pages through text.
Change existing files with search_and_replace: copy `old` from what read_file showed, with enough lines \
to be the only place. It refuses ambiguous places and results that no longer parse, and then nothing is written.
write_file makes new files. run_bash runs bash; output is shortened around what matters, and each gap \
names the read_output call that returns it.";

/// How an agent works well here, for clients that offer prompts.
const GUIDE: &str = include_str!("guide.md");
/// The guide's name as a prompt.
const GUIDE_NAME: &str = "agent-workspace";

/// Methods whose requests come as custom ones only when their `params` are not what the method takes.
const KNOWN_METHODS: [&str; 10] = [
    "completion/complete",
    "initialize",
    "logging/setLevel",
    "ping",
    "prompts/get",
    "prompts/list",
    "resources/list",
    "resources/read",
    "resources/templates/list",
    "tools/list",
];

/// Cancelled when the session of a request is ended: its calls end with it. An extension of the request.
#[derive(Debug, Clone)]
pub(crate) struct SessionEnd(pub(crate) CancellationToken);

/// The server of one workspace, for one session; clones share both.
#[derive(Debug, Clone)]
pub struct Server {
    workspace: Arc<Workspace>,
    /// Cancelled when the server is to end: running commands end with it.
    ending: CancellationToken,
    log: ClientLog,
}

impl Server {
    /// A server of `workspace`; when `ending` is cancelled, running commands are ended.
    pub fn new(workspace: Arc<Workspace>, ending: CancellationToken) -> Self {
        Self { workspace, ending, log: ClientLog::default() }
    }

    fn rows(&self) -> impl Iterator<Item = &'static Row> {
        tools::offered(self.workspace.config.read_only)
    }

    async fn call(
        &self,
        name: &str,
        arguments: JsonObject,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResult, ErrorData> {
        let Some(row) = self.rows().find(|row| row.name == name) else {
            let known: Vec<_> = self.rows().map(|row| row.name).collect();
            let message = format!("unknown tool '{name}'; the tools are {}", known.join(", "));
            return Err(ErrorData::new(ErrorCode::INVALID_PARAMS, message, None));
        };
        let started = Instant::now();
        let heard = Heard::default();
        let cancelled = context.ct.child_token();
        let caller = Caller {
            cancelled: cancelled.clone(),
            ending: self.ending.clone(),
            heard: heard.clone(),
        };
        let work = guard::call(Arc::clone(&self.workspace), row, arguments, caller);
        let token = context.meta.get_progress_token();
        let work = progress::during(work, &context.peer, token, &heard);
        let session_ended = async {
            match context.extensions.get::<SessionEnd>() {
                Some(SessionEnd(end)) => end.cancelled().await,
                None => std::future::pending().await,
            }
        };
        tokio::pin!(work);
        let reply = tokio::select! {
            reply = &mut work => reply,
            () = session_ended => { cancelled.cancel(); work.await }
        };
        self.log.call(row.name, reply.error, started.elapsed(), context).await;
        Ok(reply.into_result(self.workspace.config.structured))
    }

    /// Runs what looks at stored outputs on a thread that may block.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Workspace) -> Result<T, ErrorData> + Send + 'static,
    ) -> Result<T, ErrorData> {
        let workspace = Arc::clone(&self.workspace);
        tokio::task::spawn_blocking(move || work(&workspace))
            .await
            .map_err(|error| ErrorData::internal_error(error.to_string(), None))?
    }
}

impl ServerHandler for Server {
    #[expect(
        deprecated,
        reason = "clients of the older protocol versions still ask for log messages"
    )]
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_completions()
            .enable_logging()
            .enable_prompts()
            .enable_resources()
            .enable_tools()
            .build();
        let mut info = ServerConfig::new(capabilities);
        let mut implementation =
            Implementation::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"));
        implementation.title = Some("Agent Workspace".into());
        implementation.description = Some(env!("CARGO_PKG_DESCRIPTION").into());
        info.server_info = implementation;
        let network = match &self.workspace.config.network {
            Network::Off => "\nCommands have no network.".to_owned(),
            Network::Allow(rules) => {
                format!("\nCommands reach these hosts alone, over HTTP and HTTPS: {rules}.")
            }
            Network::On => String::new(),
        };
        info.instructions = Some(format!("{INSTRUCTIONS}{network}"));
        info
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        one_page(request)?;
        Ok(ListToolsResult::with_all_items(self.rows().map(describe).collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        Ok(self.call(&request.name, arguments, &context).await?.into())
    }

    async fn set_level(
        &self,
        request: SetLevel,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.log.set_level(&request);
        Ok(())
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        one_page(request)?;
        self.blocking(resources::list).await
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        one_page(request)?;
        Ok(resources::templates())
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let read = self.blocking(move |workspace| resources::read(workspace, &request.uri)).await?;
        Ok(read.into())
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        one_page(request)?;
        let guide = Prompt::new(GUIDE_NAME, Some("How to work well in this workspace"), None)
            .with_title("Working in an agent workspace");
        Ok(ListPromptsResult::with_all_items(vec![guide]))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        if request.name != GUIDE_NAME {
            let message = format!("unknown prompt; the only one is '{GUIDE_NAME}'");
            return Err(ErrorData::invalid_params(message, None));
        }
        Ok(GetPromptResult::new(vec![PromptMessage::new_text(Role::User, GUIDE)]).into())
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let is_output = matches!(request.r#ref, Reference::Resource(_))
            && request.argument.name == resources::VARIABLE;
        let mut values = Vec::new();
        if is_output {
            let start = request.argument.value;
            values = self.blocking(move |workspace| resources::complete(workspace, &start)).await?;
        }
        let total = u32::try_from(values.len()).ok();
        let more = values.len() > CompletionInfo::MAX_VALUES;
        values.truncate(CompletionInfo::MAX_VALUES);
        let mut found = CompletionInfo::default();
        (found.values, found.total, found.has_more) = (values, total, Some(more));
        Ok(CompleteResult::new(found))
    }

    /// Requests that the SDK could not read as those of a method it knows: a `tools/call` whose `arguments` are no
    /// object does not reach `call_tool` and is answered here.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let method = request.method.as_str();
        if KNOWN_METHODS.contains(&method) {
            let message = format!("unusable params of '{method}'");
            return Err(ErrorData::new(ErrorCode::INVALID_PARAMS, message, None));
        }
        if method != "tools/call" {
            return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, request.method.clone(), None));
        }
        let params = request.params.as_ref();
        let name = params.and_then(|params| params.get("name")).and_then(|name| name.as_str());
        let Some(name) = name else {
            let message = "tools/call needs a tool's 'name' and its 'arguments'";
            return Err(ErrorData::new(ErrorCode::INVALID_PARAMS, message, None));
        };
        let arguments = params.and_then(|params| params.get("arguments"));
        let object = arguments
            .and_then(|given| given.as_str())
            .and_then(|text| serde_json::from_str(text).ok());
        let result = if let Some(arguments) = object {
            self.call(name, arguments, &context).await?
        } else {
            let text = "'arguments' must be an object of named arguments";
            CallToolResult::from(Reply::from(Failure::invalid_args(text)))
        };
        serde_json::to_value(result)
            .map(CustomResult::new)
            .map_err(|error| ErrorData::internal_error(error.to_string(), None))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.rows().find(|row| row.name == name).map(describe)
    }
}

/// Every list is one page, so no cursor was ever given out.
fn one_page(request: Option<PaginatedRequestParams>) -> Result<(), ErrorData> {
    match request.and_then(|request| request.cursor).filter(|cursor| !cursor.is_empty()) {
        None => Ok(()),
        Some(_) => Err(ErrorData::invalid_params("unknown cursor: this list has one page", None)),
    }
}

/// A row as `tools/list` shows it.
pub fn describe(row: &Row) -> Tool {
    let annotations = ToolAnnotations::from_raw(
        Some(row.title.to_owned()),
        Some(row.effect == Effect::Reads),
        Some(row.effect != Effect::Reads),
        Some(row.effect == Effect::Reads),
        Some(row.effect == Effect::Runs),
    );
    Tool::new(row.name, row.description, input_schema(row.arguments))
        .with_title(row.title)
        .with_annotations(annotations)
}
