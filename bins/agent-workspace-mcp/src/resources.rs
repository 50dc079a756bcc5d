//! Stored outputs as MCP resources, and a guide as a prompt: the same things that tools give, for clients that list them.
//!
//! `output://ID` is the exact output that an answer left something out of, whole up to the limit of one read, else by
//! `?offset=…&limit=…` in raw lines, as `read_output` pages it.

use rmcp::model::{
    ErrorData, ListResourceTemplatesResult, ListResourcesResult, ReadResourceResult, Resource,
    ResourceContents, ResourceTemplate,
};

use crate::workspace::Workspace;

/// The scheme of a stored output's address.
const SCHEME: &str = "output://";
/// Outputs that are listed, the newest first; older ones are still read by their address.
const LISTED: usize = 50;
const TEMPLATE: &str = "output://{output_id}{?offset,limit}";
/// The template's variable that can be completed.
pub const VARIABLE: &str = "output_id";

/// The address of the output `id`.
pub fn address(id: &str) -> String {
    format!("{SCHEME}{id}")
}

/// The outputs that are stored.
///
/// # Errors
///
/// When the store cannot be read.
pub fn list(workspace: &Workspace) -> Result<ListResourcesResult, ErrorData> {
    let newest = workspace.outputs.newest(LISTED).map_err(|error| unreadable(&error))?;
    let shown = newest.into_iter().map(|(id, bytes)| {
        Resource::new(address(&id), format!("output {id}"))
            .with_description("Exact output of an earlier command")
            .with_mime_type("text/plain")
            .with_size(bytes)
    });
    Ok(ListResourcesResult::with_all_items(shown.collect()))
}

/// How outputs are addressed.
pub fn templates() -> ListResourceTemplatesResult {
    let template = ResourceTemplate::new(TEMPLATE, "output")
        .with_title("Stored output")
        .with_description(
            "Exact output of an earlier command or job; offset and limit are raw lines from 0",
        )
        .with_mime_type("text/plain");
    ListResourceTemplatesResult::with_all_items(vec![template])
}

/// Ids that begin with `start`, the newest first.
///
/// # Errors
///
/// When the store cannot be read.
pub fn complete(workspace: &Workspace, start: &str) -> Result<Vec<String>, ErrorData> {
    let newest = workspace.outputs.newest(usize::MAX).map_err(|error| unreadable(&error))?;
    Ok(newest.into_iter().map(|(id, _)| id).filter(|id| id.starts_with(start)).collect())
}

/// Reads the output at `uri`.
///
/// # Errors
///
/// "Resource not found" for an address that names none; an internal error when it cannot be read.
///
/// # Security
///
/// `uri` comes from a client. An id in it opens something only when it has the form of one of ours.
pub fn read(workspace: &Workspace, uri: &str) -> Result<ReadResourceResult, ErrorData> {
    let missing = || {
        let data = serde_json::json!({ "uri": uri });
        ErrorData::resource_not_found(
            "no such resource: it was never stored or has expired",
            Some(data),
        )
    };
    let (id, query) = parse(uri).ok_or_else(missing)?;
    let mut stored =
        workspace.outputs.open(id).map_err(|error| unreadable(&error))?.ok_or_else(missing)?;
    let max_bytes = workspace.config.max_read_bytes;
    let lines =
        stored.lines(query.offset, query.limit, max_bytes).map_err(|error| unreadable(&error))?;
    let mut pieces = Vec::new();
    let mut expected = query.offset;
    for line in &lines {
        if line.number > expected {
            let last = line.number - 1;
            pieces.push(format!("[lines {expected}-{last} were dropped by MAX_OUTPUT_BYTES]\n"));
        }
        pieces.push(String::from_utf8_lossy(&line.bytes).into_owned());
        expected = line.number + 1;
    }
    let total = stored.total_lines();
    if expected < total && query.limit == u64::MAX {
        let (first, last) = (query.offset, expected.saturating_sub(1));
        pieces
            .push(format!("\n[lines {first}-{last} of {total}; continue with ?offset={expected}]"));
    }
    let text = pieces.concat();
    Ok(ReadResourceResult::new(vec![ResourceContents::text(text, uri)]))
}

struct Query {
    offset: u64,
    limit: u64,
}

fn parse(uri: &str) -> Option<(&str, Query)> {
    let rest = uri.strip_prefix(SCHEME)?;
    let (id, given) = rest.split_once('?').unwrap_or((rest, ""));
    let mut query = Query { offset: 0, limit: u64::MAX };
    for pair in given.split('&').filter(|pair| !pair.is_empty()) {
        match pair.split_once('=')? {
            ("offset", value) => query.offset = value.parse().ok()?,
            ("limit", value) => query.limit = value.parse().ok()?,
            _ => return None,
        }
    }
    Some((id, query))
}

fn unreadable(error: &std::io::Error) -> ErrorData {
    tracing::error!(%error, "stored outputs unreadable");
    ErrorData::internal_error("stored outputs cannot be read", None)
}
