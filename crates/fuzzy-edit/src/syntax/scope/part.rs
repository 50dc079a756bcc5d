//! What one node of a tree adds to a scope, for each grammar.

use std::fmt;

use tree_sitter::Node;

use super::super::Language;

/// Characters of a name that are told.
const MAX_NAME: usize = 60;
/// Children up to which one is counted out; a place behind them is told without its number.
const MAX_COUNTED: usize = 20_000;

/// One part of a scope.
pub(super) enum Part {
    /// A definition: `class A`.
    Definition(String),
    /// What keys stand under: `[package]`, `document 2:`.
    Head(String),
    /// The key of a mapping.
    Key(String),
    /// The 0-based place in a sequence, if it was counted.
    Index(Option<usize>),
}

impl Part {
    /// What stands between this part and the one before it.
    pub(super) fn joint(&self, last: Option<&Self>) -> &'static str {
        match (last, self) {
            (None, _) | (Some(Self::Key(_) | Self::Index(_)), Self::Index(_)) => "",
            (Some(Self::Key(_) | Self::Index(_)), Self::Key(_)) => ".",
            (Some(Self::Definition(_)), _) => " > ",
            _ => " ",
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Definition(text) | Self::Head(text) | Self::Key(text) => f.write_str(text),
            Self::Index(Some(index)) => write!(f, "[{index}]"),
            Self::Index(None) => f.write_str("[…]"),
        }
    }
}

/// What a node, child `index` of its parent, adds to the scope.
pub(super) fn parts(
    language: Language,
    parent: Node<'_>,
    node: Node<'_>,
    index: usize,
    text: &str,
) -> Vec<Part> {
    if !is_content(node) {
        return Vec::new();
    }
    let is_item = matches!(parent.kind(), "array" | "block_sequence" | "flow_sequence")
        && language != Language::Python;
    let item = is_item.then(|| Part::Index(before(parent, index, is_content)));
    let own = match language {
        Language::Python => python(parent, node, text),
        Language::Toml => toml(parent, node, index, text),
        Language::Json | Language::Jsonc | Language::Jsonl | Language::Yaml => {
            data(parent, node, index, text)
        }
    };
    item.into_iter().chain(own).collect()
}

/// Classes and functions. A decorator stands in what it decorates.
fn python(parent: Node<'_>, node: Node<'_>, text: &str) -> Option<Part> {
    let defined =
        if node.kind() == "decorator" { parent.child_by_field_name("definition")? } else { node };
    let word = match defined.kind() {
        "class_definition" => "class",
        "function_definition" => "def",
        _ => return None,
    };
    let name = name(defined.child_by_field_name("name")?, text)?;
    Some(Part::Definition(format!("{word} {name}")))
}

/// JSON and YAML: documents of a stream and keys.
fn data(parent: Node<'_>, node: Node<'_>, index: usize, text: &str) -> Option<Part> {
    let is_document = |node: Node<'_>| node.kind() == "document";
    match node.kind() {
        "document" if parent.kind() == "stream" => {
            let number = before(parent, index, is_document)?;
            // One document alone needs no number.
            let alone = number == 0 && !node.next_named_sibling().is_some_and(is_document);
            (!alone).then(|| Part::Head(format!("document {}:", number + 1)))
        }
        "pair" | "block_mapping_pair" | "flow_pair" => {
            let told = name(node.child_by_field_name("key")?, text)?;
            Some(Part::Key(bare(&told).unwrap_or(&told).to_owned()))
        }
        _ => None,
    }
}

/// Tables, numbered where they are elements of an array, and the keys in them.
fn toml(parent: Node<'_>, node: Node<'_>, index: usize, text: &str) -> Option<Part> {
    let key = |node: Node<'_>| text.get(node.named_child(0)?.byte_range());
    let told = || name(node.named_child(0)?, text);
    match node.kind() {
        "table" => Some(Part::Head(format!("[{}]", told()?))),
        "table_array_element" => {
            let own = key(node);
            let is_same =
                |other: Node<'_>| other.kind() == "table_array_element" && key(other) == own;
            let number = Part::Index(before(parent, index, is_same));
            Some(Part::Head(format!("[[{}]]{number}", told()?)))
        }
        "pair" => Some(Part::Key(told()?)),
        _ => None,
    }
}

/// Whether a node is neither punctuation nor a comment nor a fault.
fn is_content(node: Node<'_>) -> bool {
    node.is_named() && !node.is_extra() && !node.is_error()
}

/// How many of the first `index` children are alike; nothing if they are too many to look at.
fn before(parent: Node<'_>, index: usize, is_alike: impl Fn(Node<'_>) -> bool) -> Option<usize> {
    let counted =
        || parent.children(&mut parent.walk()).take(index).filter(|&node| is_alike(node)).count();
    (index <= MAX_COUNTED).then(counted)
}

/// What a quoted key has between its quotes, if it could be read as nothing else in a path.
fn bare(key: &str) -> Option<&str> {
    let inside = |quote| key.strip_prefix(quote)?.strip_suffix(quote);
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '/' | '$' | '@');
    inside('"').or_else(|| inside('\'')).filter(|key| !key.is_empty() && key.chars().all(is_plain))
}

/// The text of a node in one line, cut to a useful width.
fn name(node: Node<'_>, text: &str) -> Option<String> {
    let text = text.get(node.byte_range())?;
    let mut name: String = text.chars().take(MAX_NAME).collect();
    if name.len() < text.len() {
        name.push('…');
    }
    let name: String = name.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    Some(name.trim().to_owned()).filter(|name| !name.is_empty())
}
