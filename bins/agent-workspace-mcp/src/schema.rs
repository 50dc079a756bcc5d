//! A tool's arguments as one table, from which its input schema, its leniency and its errors follow.
//!
//! The schema is written by hand on purpose. Clients in the field break on `$ref`, unions, `null` types,
//! `format`, `default` and untyped properties, each of which a derived schema contains; a table of plain
//! kinds cannot express them. Non-goal: JSON Schema in general.

use serde_json::{Map, Value, json};

/// What values an argument takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A string.
    Text,
    /// One of these strings.
    Choice(&'static [&'static str]),
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// `true` or `false`.
    Boolean,
    /// A list of strings.
    Texts,
    /// A list of objects with these fields.
    Objects(&'static [Argument]),
}

/// Whether an argument has to be there, and who says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// Absent is `invalid_args`.
    Required,
    /// Absent, `null`, `""`, `0` and `[]` all mean "not given".
    Optional,
    /// Required by the schema, but the tool itself answers its absence, with a kind of its own.
    RequiredByTool,
}

/// One argument of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Argument {
    /// The name in the schema.
    pub name: &'static str,
    /// Other names that models are known to send.
    pub aliases: &'static [&'static str],
    /// What values it takes.
    pub kind: Kind,
    /// Whether it has to be there.
    pub presence: Presence,
    /// What a model reads about it.
    pub description: &'static str,
}

/// Names that models send for the path of a file.
pub const FILE_ALIASES: &[&str] = &["path", "file_path", "file", "filename"];
/// Files of a disposable sandbox in place of the workspace's.
pub const SANDBOX: Argument =
    Argument::optional("sandbox_id", Kind::Text, "in that sandbox, not the workspace")
        .also(&["id", "sandbox"]);
/// Names that models send for the path of a directory.
pub const DIRECTORY_ALIASES: &[&str] = &["filepath", "file_path", "directory", "dir"];

impl Argument {
    /// An argument that has to be there.
    pub const fn required(name: &'static str, kind: Kind, description: &'static str) -> Self {
        Self { name, aliases: &[], kind, presence: Presence::Required, description }
    }

    /// An argument that may be left out.
    pub const fn optional(name: &'static str, kind: Kind, description: &'static str) -> Self {
        Self { presence: Presence::Optional, ..Self::required(name, kind, description) }
    }

    /// The same argument, its absence answered by the tool.
    #[must_use]
    pub const fn answered_by_tool(self) -> Self {
        Self { presence: Presence::RequiredByTool, ..self }
    }

    /// The same argument with these other names.
    #[must_use]
    pub const fn also(self, aliases: &'static [&'static str]) -> Self {
        Self { aliases, ..self }
    }

    /// Whether `name` means this argument.
    pub fn answers_to(&self, name: &str) -> bool {
        self.name == name || self.aliases.contains(&name)
    }
}

/// The input schema of a tool: a closed object, each property with a type and a description.
pub fn input_schema(arguments: &[Argument]) -> Map<String, Value> {
    let properties: Map<String, Value> =
        arguments.iter().map(|argument| (argument.name.to_owned(), property(argument))).collect();
    let required: Vec<&str> = arguments
        .iter()
        .filter(|argument| argument.presence != Presence::Optional)
        .map(|argument| argument.name)
        .collect();
    let mut schema = Map::new();
    schema.insert("additionalProperties".into(), false.into());
    schema.insert("properties".into(), properties.into());
    if !required.is_empty() {
        schema.insert("required".into(), json!(required));
    }
    schema.insert("type".into(), "object".into());
    schema
}

fn property(argument: &Argument) -> Value {
    let description = argument.description;
    match argument.kind {
        Kind::Text => json!({"type": "string", "description": description}),
        Kind::Choice(names) => {
            json!({"type": "string", "enum": names, "description": description})
        }
        Kind::Integer => json!({"type": "integer", "description": description}),
        Kind::Number => json!({"type": "number", "description": description}),
        Kind::Boolean => json!({"type": "boolean", "description": description}),
        Kind::Texts => {
            json!({"type": "array", "items": {"type": "string"}, "description": description})
        }
        Kind::Objects(fields) => {
            json!({"type": "array", "items": input_schema(fields), "description": description})
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIELDS: &[Argument] =
        &[Argument::required("old", Kind::Text, "text to find").answered_by_tool()];
    const TABLE: &[Argument] = &[
        Argument::required("filepath", Kind::Text, "a file").also(FILE_ALIASES),
        Argument::optional("limit", Kind::Integer, "how many"),
        Argument::required("edits", Kind::Objects(FIELDS), "edits").answered_by_tool(),
    ];

    #[test]
    fn a_schema_is_closed_and_typed_all_the_way_down() {
        insta::assert_snapshot!(serde_json::to_string(&input_schema(TABLE)).unwrap(), @r#"{"additionalProperties":false,"properties":{"edits":{"description":"edits","items":{"additionalProperties":false,"properties":{"old":{"description":"text to find","type":"string"}},"required":["old"],"type":"object"},"type":"array"},"filepath":{"description":"a file","type":"string"},"limit":{"description":"how many","type":"integer"}},"required":["filepath","edits"],"type":"object"}"#);
    }

    #[test]
    fn a_tool_without_arguments_still_has_properties() {
        let schema = serde_json::to_string(&input_schema(&[])).unwrap();
        assert_eq!(schema, r#"{"additionalProperties":false,"properties":{},"type":"object"}"#);
    }
}
