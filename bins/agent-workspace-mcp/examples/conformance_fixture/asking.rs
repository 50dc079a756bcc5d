//! Questions to the client's user or model: as a request of the older protocols, as an unfinished result of the newer.

use std::collections::BTreeMap;

use rmcp::model::{
    ClientCapabilities, ErrorData, InputRequest, InputRequiredResult, InputResponses, ServerRequest,
};
use rmcp::service::{Peer, RoleServer};
use serde_json::{Value, json};

/// One question: the name under which its answer comes back, and what is asked.
#[derive(Debug, Clone)]
pub(crate) struct Question {
    key: &'static str,
    request: Value,
}

impl Question {
    /// Asks the user to fill in `field`.
    pub(crate) fn form(key: &'static str, message: &str, field: &str) -> Self {
        let schema = json!({
            "type": "object", "properties": { field: {"type": "string"} }, "required": [field],
        });
        Self::elicit(key, message, &schema)
    }

    /// Asks the user to say yes.
    pub(crate) fn confirm() -> Self {
        let schema = json!({
            "type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"],
        });
        Self::elicit("confirm", "Please confirm", &schema)
    }

    /// The question as the protocol writes it.
    fn request(self) -> Result<InputRequest, ErrorData> {
        serde_json::from_value(self.request)
            .map_err(|error| ErrorData::internal_error(error.to_string(), None))
    }

    /// Asks the user to fill in a form of this schema.
    pub(crate) fn elicit(key: &'static str, message: &str, schema: &Value) -> Self {
        let params = json!({"mode": "form", "message": message, "requestedSchema": schema});
        Self { key, request: json!({"method": "elicitation/create", "params": params}) }
    }

    /// Asks the client's model.
    pub(crate) fn model(key: &'static str, prompt: &str) -> Self {
        let message = json!({"role": "user", "content": {"type": "text", "text": prompt}});
        let params = json!({"messages": [message], "maxTokens": 100});
        Self { key, request: json!({"method": "sampling/createMessage", "params": params}) }
    }

    /// Asks which directories the client works in.
    pub(crate) fn roots() -> Self {
        Self { key: "client_roots", request: json!({"method": "roots/list", "params": {}}) }
    }

    /// The client's answer, where it came and has the shape that was asked for.
    pub(crate) fn answer(&self, given: Option<&InputResponses>) -> Option<Value> {
        given?.get(self.key).filter(|answer| answer.is_object()).cloned()
    }

    /// Whether the client said that it takes such questions.
    pub(crate) fn is_for(&self, client: &ClientCapabilities) -> bool {
        match self.request.get("method").and_then(Value::as_str) {
            Some("elicitation/create") => client.elicitation.is_some(),
            Some("roots/list") => client.roots.is_some(),
            _ => client.sampling.is_some(),
        }
    }
}

/// An unfinished result with these questions.
///
/// # Errors
///
/// If a question is none that the protocol knows.
pub(crate) fn ask(
    questions: Vec<Question>,
    state: Option<String>,
) -> Result<InputRequiredResult, ErrorData> {
    let requests = questions
        .into_iter()
        .map(|question| Ok((question.key.to_owned(), question.request()?)))
        .collect::<Result<BTreeMap<_, _>, ErrorData>>()?;
    Ok(InputRequiredResult::new(Some(requests), state))
}

/// Asks during the call, as the protocols with sessions do, and waits for the answer.
///
/// # Errors
///
/// If the client does not take such questions, or breaks off.
pub(crate) async fn ask_now(
    question: Question,
    peer: &Peer<RoleServer>,
) -> Result<Value, ErrorData> {
    let takes = peer.peer_info().is_some_and(|client| question.is_for(&client.capabilities));
    if !takes {
        return Err(ErrorData::invalid_request("the client takes no such question", None));
    }
    let request = match question.request()? {
        InputRequest::CreateMessage(request) => ServerRequest::CreateMessageRequest(request),
        InputRequest::Elicitation(request) => ServerRequest::ElicitRequest(request),
        InputRequest::ListRoots(request) => ServerRequest::ListRootsRequest(request),
        other => return Err(ErrorData::internal_error(format!("cannot ask {other:?}"), None)),
    };
    let broken = |error: &dyn std::fmt::Display| ErrorData::internal_error(error.to_string(), None);
    let answer = peer.send_request(request).await.map_err(|error| broken(&error))?;
    serde_json::to_value(answer).map_err(|error| broken(&error))
}
