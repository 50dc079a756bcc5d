//! The fixture as a handler: what it declares, and what its sessions remember.
#![expect(deprecated, reason = "the suite asks for what the protocol has deprecated, too")]

use std::collections::hash_map::{HashMap, RandomState};
use std::hash::{BuildHasher as _, Hasher as _};
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult, ErrorData,
    GetPromptRequestParams, GetPromptResponse, Implementation, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, LoggingLevel,
    LoggingMessageNotificationParam, PaginatedRequestParams, ProtocolVersion,
    ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities, ServerConfig,
    SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter, UnsubscribeRequestParams,
};
use rmcp::service::{RequestContext, RoleServer};

use crate::{prompts, resources, tools};

/// What all sessions share.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fixture {
    /// Calls that wait for answers, by the state their clients hold; each state is good for one answer.
    ///
    /// The state names an entry here and carries nothing, so that a forged one leads nowhere.
    waiting: Arc<Mutex<HashMap<String, usize>>>,
}

impl Fixture {
    pub(crate) fn session(&self) -> Session {
        Session { fixture: self.clone(), level: Arc::default() }
    }
}

/// One client's session, or one request of a client without one.
#[derive(Debug, Clone)]
pub(crate) struct Session {
    fixture: Fixture,
    level: Arc<Mutex<Option<LoggingLevel>>>,
}

impl Session {
    /// The state of a call that waits in `round`.
    pub(crate) fn new_state(&self, round: usize) -> String {
        let state = format!("{:016x}", RandomState::new().build_hasher().finish());
        let mut waiting = self.fixture.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.insert(state.clone(), round);
        state
    }

    /// The round of the call that `state` belongs to.
    pub(crate) fn open_state(&self, state: &str) -> Result<usize, ErrorData> {
        let mut waiting = self.fixture.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let forged = || ErrorData::invalid_params("requestState was not given out here", None);
        waiting.remove(state).ok_or_else(forged)
    }

    /// Logs to a client that asked for messages.
    pub(crate) async fn log(&self, said: &str, context: &RequestContext<RoleServer>) {
        let is_sessionless = context
            .protocol_version()
            .is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str());
        let asked = if is_sessionless {
            context.meta.log_level()
        } else {
            *self.level.lock().unwrap_or_else(PoisonError::into_inner)
        };
        if asked.is_none() {
            return;
        }
        let message = LoggingMessageNotificationParam::new(LoggingLevel::Info, said.into());
        if let Err(error) = context.peer.notify_logging_message(message).await {
            tracing::warn!(%error, "no log message");
        }
    }
}

impl ServerHandler for Session {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_completions()
            .enable_logging()
            .enable_prompts()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_tools()
            .build();
        let mut info = ServerConfig::new(capabilities);
        info.server_info = Implementation::new("conformance-fixture", env!("CARGO_PKG_VERSION"));
        info
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools::list()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        tools::call(self, request, &context).await
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        *self.level.lock().unwrap_or_else(PoisonError::into_inner) = Some(request.level);
        Ok(())
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::with_all_items(resources::list()))
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(resources::templates()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        resources::read(&request.uri).map(Into::into)
    }

    async fn subscribe(
        &self,
        _request: SubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        // Nothing here ever changes, so that no subscriber has to be remembered.
        Ok(())
    }

    async fn unsubscribe(
        &self,
        _request: UnsubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(prompts::list()))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        prompts::get(&request)
    }

    async fn complete(
        &self,
        _request: CompleteRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        Ok(CompleteResult::default())
    }
}
