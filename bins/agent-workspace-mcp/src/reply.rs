//! What a tool answers: one text block for the model (and after it a picture, where a picture is what was asked for),
//! one flat object of facts for programs.
//!
//! This file alone turns outcomes and errors into MCP. A failure is an ordinary result with `isError`;
//! a JSON-RPC error never carries something that a model should read.

mod from_edit;
mod from_jail;

pub(crate) use from_jail::sentence;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD as STANDARD;
use rmcp::model::{CallToolResult, ContentBlock, MetaObject, Resource};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::resources;

/// Key of the facts in a result's `_meta`.
pub const FACTS: &str = "agent-workspace/result";

/// Why a call failed, as programs read it in the fact `error_kind`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ErrorKind {
    /// No such job, output or sandbox.
    UnknownId,
    /// The workspace changes too fast, or too many calls run for this one to have its turn; it may go through later.
    Busy,
    /// A missing, unknown or unusable argument.
    InvalidArgs,
    /// An empty path, or one with a NUL.
    InvalidPath,
    /// A component over 255 bytes or a path over 4,095.
    NameTooLong,
    /// The path leads out of the workspace.
    OutsideWorkspace,
    /// More than 40 links on the way.
    SymlinkLoop,
    /// A component of the path is missing.
    NotFound,
    /// A file where a directory is due.
    NotADirectory,
    /// A write to a name that programs outside the workspace trust.
    ProtectedPath,
    /// The workspace, or its mount, takes no writes.
    ReadOnly,
    /// The name is taken.
    AlreadyExists,
    /// A directory where a file is due.
    IsDirectory,
    /// A FIFO, socket or device.
    NotARegularFile,
    /// A file with more than one name, by policy.
    HardlinkRefused,
    /// The file's mode or the system says no.
    PermissionDenied,
    /// Not a text file.
    BinaryFile,
    /// Over one of the operator's limits.
    TooLarge,
    /// The file is not the version the caller knows.
    Stale,
    /// Bytes that are not UTF-8 where text is due.
    NotUtf8,
    /// An edit that says too little, or no edit at all.
    InvalidEdit,
    /// An empty `old`.
    EmptySearch,
    /// A placeholder instead of text.
    Elided,
    /// `old` is not in the file.
    NoMatch,
    /// `old` is there more than once.
    Ambiguous,
    /// Not as many places as `expected_count` says.
    CountMismatch,
    /// Two edits meet.
    Overlap,
    /// The result would not parse.
    SyntaxInvalid,
    /// The disk is full; the old content is whole.
    NoSpace,
    /// The command ran out of time.
    Timeout,
    /// The call was cancelled.
    Cancelled,
    /// The program that runs a language is not there.
    InterpreterMissing,
    /// No container engine answers, or it does not bring the image.
    EngineUnavailable,
    /// The confinement asked for is not to be had.
    SandboxUnavailable,
    /// A fault of the server or of the system below it.
    Internal,
}

impl ErrorKind {
    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::UnknownId => "unknown_id",
            Self::Busy => "busy",
            Self::InvalidArgs => "invalid_args",
            Self::InvalidPath => "invalid_path",
            Self::NameTooLong => "name_too_long",
            Self::OutsideWorkspace => "outside_workspace",
            Self::SymlinkLoop => "symlink_loop",
            Self::NotFound => "not_found",
            Self::NotADirectory => "not_a_directory",
            Self::ProtectedPath => "protected_path",
            Self::ReadOnly => "read_only",
            Self::AlreadyExists => "already_exists",
            Self::IsDirectory => "is_directory",
            Self::NotARegularFile => "not_a_regular_file",
            Self::HardlinkRefused => "hardlink_refused",
            Self::PermissionDenied => "permission_denied",
            Self::BinaryFile => "binary_file",
            Self::TooLarge => "too_large",
            Self::Stale => "stale",
            Self::NotUtf8 => "not_utf8",
            Self::InvalidEdit => "invalid_edit",
            Self::EmptySearch => "empty_search",
            Self::Elided => "elided",
            Self::NoMatch => "no_match",
            Self::Ambiguous => "ambiguous",
            Self::CountMismatch => "count_mismatch",
            Self::Overlap => "overlap",
            Self::SyntaxInvalid => "syntax_invalid",
            Self::NoSpace => "no_space",
            Self::Timeout => "timeout",
            Self::Cancelled => "cancelled",
            Self::InterpreterMissing => "interpreter_missing",
            Self::EngineUnavailable => "engine_unavailable",
            Self::SandboxUnavailable => "sandbox_unavailable",
            Self::Internal => "internal",
        }
    }
}

/// A number and what it counts, as people write it.
pub(crate) fn counted(count: u64, one: &str, more: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { more })
}

/// A flat object of facts, in the order they were added.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Facts(Map<String, Value>);

impl Facts {
    /// Adds one fact; a value that cannot be written as JSON becomes its debug text, never nothing.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Serialize) -> Self {
        let value = serde_json::to_value(value)
            .unwrap_or_else(|error| Value::String(format!("unwritable: {error}")));
        self.0.insert(name.to_owned(), value);
        self
    }

    /// Adds a fact only where there is one.
    #[must_use]
    pub fn with_some(self, name: &str, value: Option<impl Serialize>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// One fact, for the audit log and tests.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }
}

/// A finished call: success, or a failure that still has a text to show.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// What the model reads, once.
    pub text: String,
    /// What programs read.
    pub facts: Facts,
    /// `None` for success.
    pub error: Option<ErrorKind>,
    /// A picture, in a block of its own after the text.
    pub image: Option<Image>,
}

/// A picture as clients show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// `image/png` and the like.
    pub mime_type: &'static str,
    /// The file's bytes.
    pub bytes: Vec<u8>,
}

impl Reply {
    /// A success without facts.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), facts: Facts::default(), error: None, image: None }
    }

    /// The same answer with this picture.
    #[must_use]
    pub fn image(mut self, image: Image) -> Self {
        self.image = Some(image);
        self
    }

    /// The same answer with these facts.
    #[must_use]
    pub fn facts(mut self, facts: Facts) -> Self {
        self.facts = facts;
        self
    }
}

/// Why a tool could not do what it was asked; becomes a [`Reply`] with `isError`.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{text}")]
pub struct Failure {
    kind: ErrorKind,
    text: String,
    facts: Facts,
}

impl Failure {
    /// A failure of `kind`; `text` says what is wrong and what to do next.
    pub fn new(kind: ErrorKind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into(), facts: Facts::default() }
    }

    /// An argument that is missing, unknown or unusable.
    pub fn invalid_args(text: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidArgs, text)
    }

    /// The same failure with these facts beside `error_kind`.
    #[must_use]
    pub fn facts(mut self, facts: Facts) -> Self {
        self.facts = facts;
        self
    }

    /// The same failure, its facts as `change` makes them.
    #[must_use]
    pub fn map_facts(mut self, change: impl FnOnce(Facts) -> Facts) -> Self {
        self.facts = change(self.facts);
        self
    }

    /// What kind of failure this is.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl From<Failure> for Reply {
    fn from(failure: Failure) -> Self {
        let Failure { kind, text, facts } = failure;
        Self { text, facts: facts.with("error_kind", kind), error: Some(kind), image: None }
    }
}

impl Reply {
    /// The answer on the wire. With `structured` it is there a second time, complete, for programs that ask for it,
    /// and a stored output is linked; clients of models show either copy, so without the word there is one.
    pub fn into_result(self, structured: bool) -> CallToolResult {
        let Self { text, facts: Facts(facts), error, image } = self;
        let mut content = vec![ContentBlock::text(text.as_str())];
        if let Some(Image { mime_type, bytes }) = image {
            content.push(ContentBlock::image(STANDARD.encode(bytes), mime_type));
        }
        let mut copy = None;
        if structured {
            if let Some(id) = facts.get("output_id").and_then(Value::as_str) {
                let link = Resource::new(resources::address(id), format!("output {id}"));
                content.push(ContentBlock::resource_link(link.with_mime_type("text/plain")));
            }
            let mut object = facts.clone();
            object.insert("text".to_owned(), Value::String(text));
            copy = Some(Value::Object(object));
        }
        let mut result = if error.is_some() {
            CallToolResult::error(content)
        } else {
            CallToolResult::success(content)
        };
        let mut meta = MetaObject::new();
        meta.insert(FACTS.to_owned(), Value::Object(facts));
        result.meta = Some(meta);
        result.structured_content = copy;
        result
    }
}

impl From<Reply> for CallToolResult {
    fn from(reply: Reply) -> Self {
        reply.into_result(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_on_the_wire_are_what_serde_writes() {
        for kind in [ErrorKind::NotUtf8, ErrorKind::NotARegularFile, ErrorKind::NoMatch] {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.as_str());
        }
    }

    #[test]
    fn a_failure_keeps_text_kind_and_facts_apart() {
        let failure =
            Failure::new(ErrorKind::Stale, "changed").facts(Facts::default().with("n", 1));
        let result = CallToolResult::from(Reply::from(failure));
        let wire = serde_json::to_value(result).unwrap();
        assert_eq!(wire["isError"], true);
        assert_eq!(wire["content"][0]["text"], "changed");
        assert_eq!(wire["_meta"][FACTS], serde_json::json!({"n": 1, "error_kind": "stale"}));
        assert!(wire.get("structuredContent").is_none());
    }
}
