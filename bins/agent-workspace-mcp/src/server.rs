//! The MCP side of the server: what it is, which tools it lists, and the way a call takes through the guard.

use std::sync::Arc;

use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CustomRequest, CustomResult,
    ErrorCode, ErrorData, Implementation, JsonObject, ListToolsResult, PaginatedRequestParams,
    ServerCapabilities, ServerConfig, Tool, ToolAnnotations,
};
use rmcp::service::{RequestContext, RoleServer};
use tokio_util::sync::CancellationToken;

use crate::config::Network;
use crate::guard;
use crate::reply::{Failure, Reply};
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

/// The server of one workspace; clones share it.
#[derive(Debug, Clone)]
pub struct Server {
    workspace: Arc<Workspace>,
    /// Cancelled when the server is to end: running commands end with it.
    ending: CancellationToken,
}

impl Server {
    /// A server of `workspace`; when `ending` is cancelled, running commands are ended.
    pub fn new(workspace: Arc<Workspace>, ending: CancellationToken) -> Self {
        Self { workspace, ending }
    }

    fn rows(&self) -> impl Iterator<Item = &'static Row> {
        tools::offered(self.workspace.config.read_only)
    }

    async fn call(
        &self,
        name: &str,
        arguments: JsonObject,
        cancelled: CancellationToken,
    ) -> Result<Reply, ErrorData> {
        let Some(row) = self.rows().find(|row| row.name == name) else {
            let known: Vec<_> = self.rows().map(|row| row.name).collect();
            let message = format!("unknown tool '{name}'; the tools are {}", known.join(", "));
            return Err(ErrorData::new(ErrorCode::INVALID_PARAMS, message, None));
        };
        let workspace = Arc::clone(&self.workspace);
        Ok(guard::call(workspace, row, arguments, cancelled, self.ending.clone()).await)
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let mut info = ServerConfig::new(ServerCapabilities::builder().enable_tools().build());
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
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.rows().map(describe).collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        let reply = self.call(&request.name, arguments, context.ct).await?;
        Ok(CallToolResult::from(reply).into())
    }

    /// A `tools/call` whose `arguments` are no object does not reach `call_tool`; it is answered here.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let unknown = || ErrorData::new(ErrorCode::METHOD_NOT_FOUND, request.method.clone(), None);
        if request.method != "tools/call" {
            return Err(unknown());
        }
        let params = request.params.as_ref();
        let name = params.and_then(|params| params.get("name")).and_then(|name| name.as_str());
        let Some(name) = name else {
            let message = "tools/call needs a tool's 'name' and its 'arguments'";
            return Err(ErrorData::new(ErrorCode::INVALID_PARAMS, message, None));
        };
        let arguments = params.and_then(|params| params.get("arguments"));
        let reply = match arguments.and_then(|given| given.as_str()).map(serde_json::from_str) {
            Some(Ok(arguments)) => self.call(name, arguments, context.ct).await?,
            _ => Failure::invalid_args("'arguments' must be an object of named arguments").into(),
        };
        serde_json::to_value(CallToolResult::from(reply))
            .map(CustomResult::new)
            .map_err(|error| ErrorData::internal_error(error.to_string(), None))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.rows().find(|row| row.name == name).map(describe)
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
