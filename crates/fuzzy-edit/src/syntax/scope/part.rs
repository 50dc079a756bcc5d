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

/// What a node, child `index` of its parent, adds to the scope; no list at all if the tree is in doubt there.
pub(super) fn parts(
    language: Language,
    parent: Node<'_>,
    node: Node<'_>,
    index: usize,
    text: &str,
) -> Option<Vec<Part>> {
    if language == Language::Toml && hides_a_header(parent, index) {
        return None;
    }
    if !is_content(node) {
        return Some(Vec::new());
    }
    let is_item = matches!(parent.kind(), "array" | "block_sequence" | "flow_sequence");
    let item = is_item.then(|| Part::Index(before(parent, index, is_content)));
    let own = match language {
        Language::Python => python(parent, node, text),
        Language::Toml => toml(parent, node, index, text),
        Language::Json | Language::Jsonc | Language::Jsonl | Language::Yaml => {
            data(parent, node, index, text)
        }
    };
    Some(item.into_iter().chain(own).collect())
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
    let told = || name(toml_key(node)?, text);
    match node.kind() {
        "table" => Some(Part::Head(format!("[{}]", told()?))),
        "table_array_element" => {
            let spelled = |node: Node<'_>| text.get(toml_key(node)?.byte_range());
            let own = spelled(node)?;
            let is_same =
                |other: Node<'_>| other.kind() == node.kind() && spelled(other) == Some(own);
            let number = Part::Index(before(parent, index, is_same));
            Some(Part::Head(format!("[[{}]]{number}", told()?)))
        }
        "pair" => Some(Part::Key(told()?)),
        _ => None,
    }
}

/// The key of a table or pair, unless a fault stands in its place.
fn toml_key(node: Node<'_>) -> Option<Node<'_>> {
    let key = node.named_child(0)?;
    matches!(key.kind(), "bare_key" | "dotted_key" | "quoted_key").then_some(key)
}

/// Whether the header of a later table may be inside a fault of this one, at or before child `index`.
fn hides_a_header(parent: Node<'_>, index: usize) -> bool {
    let is_table = matches!(parent.kind(), "table" | "table_array_element");
    let mut cursor = parent.walk();
    is_table
        && parent.has_error()
        && (index > MAX_COUNTED
            || parent.children(&mut cursor).take(index + 1).any(|child| child.has_error()))
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
