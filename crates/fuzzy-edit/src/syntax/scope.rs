//! In what a place stands, such as `class Greeter > def greet` or `jobs.build.steps[2].run`, so that one who
//! has to choose between several can tell them apart.
//!
//! Names are found on the way down a tree-sitter tree, which also a text with faults has; there they are the
//! best that can be said. What is not known is left out, never guessed. Non-goal: resolving anything, such
//! as YAML anchors or tables that are reopened.

use std::path::Path;

use tree_sitter::{Tree, TreeCursor};

use super::{Language, guarded, language, tree};

mod part;

use part::{Part, parts};

/// Bytes up to which places are named: half a second of plain text, a few of the most hostile.
const MAX_BYTES: usize = 1 << 20;
/// Levels of a tree that are looked at; code does not nest so deep.
const MAX_DEPTH: usize = 2_000;
/// Parts of a scope that are told, the innermost.
const MAX_PARTS: usize = 16;

/// Names what each offset of a text stands in; empty where there is no tree. One parse, whatever the number
/// of places.
pub(crate) fn scopes(
    path: &Path,
    text: &str,
    places: &[usize],
    limit: usize,
) -> Vec<Option<String>> {
    let Some(language) = language::by_name(path).filter(|_| text.len() <= limit.min(MAX_BYTES))
    else {
        return Vec::new();
    };
    let named = guarded(|| {
        let tree = tree::parse(language, text)?;
        Some(places.iter().map(|&at| scope_at(language, &tree, text, at)).collect())
    });
    named.flatten().unwrap_or_default()
}

/// Names what an offset stands in.
fn scope_at(language: Language, tree: &Tree, text: &str, at: usize) -> Option<String> {
    let mut cursor = tree.walk();
    let mut scope = Vec::new();
    for _ in 0..MAX_DEPTH {
        let parent = cursor.node();
        let Some(index) = enter(&mut cursor, at) else {
            return told(&scope);
        };
        scope.extend(parts(language, parent, cursor.node(), index, text)?);
    }
    None
}

/// Goes to the child that holds the offset; its index among all children.
fn enter(cursor: &mut TreeCursor<'_>, at: usize) -> Option<usize> {
    let index = cursor.goto_first_child_for_byte(at)?;
    // The cursor takes the next child, if none holds the offset.
    (cursor.node().start_byte() <= at).then_some(index)
}

/// The scope as it is told.
fn told(parts: &[Part]) -> Option<String> {
    let left_out = parts.len().saturating_sub(MAX_PARTS);
    let mut out = String::new();
    let mut last = None;
    for part in parts.get(left_out..)? {
        out.push_str(part.joint(last));
        out.push_str(&part.to_string());
        last = Some(part);
    }
    if out.is_empty() {
        return None;
    }
    Some(if left_out > 0 { format!("… {out}") } else { out })
}
