//! The log that a client may ask for: one message for each call, refusals as warnings.
//!
//! Nothing is sent unasked. A session asks once by `logging/setLevel`; a request of the sessionless protocol asks for
//! itself. The protocol has deprecated this in favour of stderr and telemetry; clients in use still ask.
#![expect(deprecated, reason = "clients of the older protocol versions still ask for log messages")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rmcp::model::{
    LoggingLevel, LoggingMessageNotificationParam, ProtocolVersion, SetLevelRequestParams,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::json;

use crate::locked::lock;
use crate::reply::ErrorKind;

/// What a session asks with.
pub type SetLevel = SetLevelRequestParams;

/// A client that takes longer to take a message misses it.
const PATIENCE: Duration = Duration::from_secs(1);

/// The log of one session; clones share it.
#[derive(Debug, Clone, Default)]
pub struct ClientLog {
    /// The least level the session asked for; nothing is sent without one.
    level: Arc<Mutex<Option<LoggingLevel>>>,
}

impl ClientLog {
    /// The session asks for messages of this level and above.
    pub fn set_level(&self, asked: &SetLevel) {
        *lock(&self.level) = Some(asked.level);
    }

    /// Tells how a call ended, where the client wants to know.
    pub async fn call(
        &self,
        tool: &str,
        error: Option<ErrorKind>,
        duration: Duration,
        context: &RequestContext<RoleServer>,
    ) {
        let level = if error.is_some() { LoggingLevel::Warning } else { LoggingLevel::Info };
        // The SDK does not look at what a sessionless request asks for.
        let is_sessionless = context
            .protocol_version()
            .is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str());
        let wanted = if is_sessionless { context.meta.log_level() } else { *lock(&self.level) };
        if wanted.is_none_or(|wanted| rank(level) < rank(wanted)) {
            return;
        }
        let data = json!({
            "tool": tool,
            "outcome": if error.is_some() { "error" } else { "ok" },
            "error_kind": error.map(ErrorKind::as_str),
            "duration_ms": duration.as_millis(),
        });
        let message =
            LoggingMessageNotificationParam::new(level, data).with_logger(env!("CARGO_PKG_NAME"));
        let sent = context.peer.notify_logging_message(message);
        match tokio::time::timeout(PATIENCE, sent).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(%error, "no log message"),
            Err(_) => tracing::debug!("the client takes no log message"),
        }
    }
}

/// Severities in order; the SDK's enum has none.
fn rank(level: LoggingLevel) -> u8 {
    match level {
        LoggingLevel::Debug => 0,
        LoggingLevel::Info => 1,
        LoggingLevel::Notice => 2,
        LoggingLevel::Warning => 3,
        LoggingLevel::Error => 4,
        LoggingLevel::Critical => 5,
        LoggingLevel::Alert => 6,
        LoggingLevel::Emergency => 7,
    }
}
