//! The one door to the tree-sitter grammars: a tree for naming places and for comparing counts of faults,
//! never a verdict.
//!
//! Grammars are C that trusts its input. What one of them cannot bear is kept from it here.

use super::Language;

/// Builds a tree; nothing where the grammar was left out or cannot be trusted with the text.
#[cfg(any(feature = "python", feature = "json", feature = "toml", feature = "yaml"))]
pub(super) fn parse(language: Language, text: &str) -> Option<tree_sitter::Tree> {
    /// Bytes up to which a tree is built.
    const MAX_BYTES: usize = 2 << 20;
    if text.len() > MAX_BYTES {
        return None;
    }
    let grammar: tree_sitter::Language = match language {
        #[cfg(feature = "python")]
        Language::Python if !overflows(text) => tree_sitter_python::LANGUAGE.into(),
        #[cfg(feature = "json")]
        Language::Json | Language::Jsonc | Language::Jsonl => tree_sitter_json::LANGUAGE.into(),
        #[cfg(feature = "toml")]
        Language::Toml => tree_sitter_toml::LANGUAGE.into(),
        #[cfg(feature = "yaml")]
        Language::Yaml if !aborts(text) => tree_sitter_yaml::LANGUAGE.into(),
        _ => return None,
    };
    let mut parser = tree_sitter::Parser::new();
    parser.set_language(&grammar).ok()?;
    parser.parse(text, None)
}

/// Counts ERROR and MISSING nodes; nothing where there is no tree.
#[cfg(any(feature = "python", feature = "json", feature = "toml", feature = "yaml"))]
pub(super) fn faults(language: Language, text: &str) -> Option<usize> {
    let tree = parse(language, text)?;
    let mut cursor = tree.walk();
    let mut count = 0;
    loop {
        let node = cursor.node();
        count += usize::from(node.is_error() || node.is_missing());
        if node.has_error() && cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return Some(count);
            }
        }
    }
}

#[cfg(not(any(feature = "python", feature = "json", feature = "toml", feature = "yaml")))]
pub(super) fn faults(_language: Language, _text: &str) -> Option<usize> {
    None
}

/// Whether the Python grammar must not see the text: its scanner saves its state in 1024 bytes and writes
/// one beyond them, two for each level of indentation and up to 257 for the strings that are open.
///
/// Levels are ever wider, so the widest indentation bounds their number. A backslash carries it on into the
/// next line.
#[cfg(feature = "python")]
fn overflows(text: &str) -> bool {
    const MAX_COLUMNS: usize = 380;
    let mut columns = 0_usize;
    text.split('\n').any(|line| {
        let rest = line.trim_start_matches([' ', '\t', '\r', '\u{c}', '\\']);
        let blanks = line.as_bytes().get(..line.len() - rest.len()).unwrap_or_default();
        columns += blanks.iter().map(|&byte| if byte == b'\t' { 8 } else { 1 }).sum::<usize>();
        let wide = columns > MAX_COLUMNS;
        if !(rest.is_empty() && blanks.contains(&b'\\')) {
            columns = 0;
        }
        wide
    })
}

/// Whether the YAML grammar must not see the text: its scanner aborts the process when blocks nest beyond
/// 253 levels, and its rows are 16 bits wide.
///
/// A line opens no more levels than it has marks, and none deeper than its indentation leaves room for
/// below the lines above it; so marks and indentation together bound the nesting.
#[cfg(feature = "yaml")]
fn aborts(text: &str) -> bool {
    const MAX_LINES: usize = 32_000;
    const MAX_LEVELS: usize = 100;
    let levels = |line: &str| {
        let bytes = line.as_bytes();
        let blanks = bytes.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        let marks = bytes
            .iter()
            .enumerate()
            .filter(|(at, byte)| {
                matches!(byte, b'-' | b'?' | b':')
                    && bytes.get(at + 1).is_none_or(|next| !next.is_ascii_graphic())
            })
            .count();
        blanks + marks
    };
    memchr::memchr_iter(b'\n', text.as_bytes()).count() > MAX_LINES
        || text.split(['\n', '\r']).any(|line| levels(line) >= MAX_LEVELS)
}

#[cfg(test)]
mod tests {
    #[cfg(feature = "yaml")]
    #[test]
    fn the_yaml_grammar_never_sees_what_it_cannot_bear() {
        use super::*;

        for mark in ["- ", "? ", ": ", ": - ", "? - : "] {
            assert_eq!(faults(Language::Yaml, &format!("{}a\n", mark.repeat(300))), None);
        }
        assert_eq!(faults(Language::Yaml, &"a: 1\n".repeat(40_000)), None);
        assert_eq!(faults(Language::Yaml, "a:\n  - b\n"), Some(0));
    }

    #[cfg(feature = "python")]
    #[test]
    fn the_python_grammar_never_sees_what_it_cannot_bear() {
        use super::*;

        let nest = |levels: usize, step: &str, end: &str| -> String {
            let line = |level| format!("{}if a:{end}", step.repeat(level));
            (0..levels).map(line).chain([format!("{}f'{{b}}'\n", step.repeat(levels))]).collect()
        };
        assert_eq!(faults(Language::Python, &nest(380, " ", "\n")), Some(0));
        for (levels, step) in [(381, " "), (48, "\t"), (200, "\\\n  ")] {
            assert_eq!(faults(Language::Python, &nest(levels, step, "\n")), None, "{step:?}");
        }
        assert_eq!(faults(Language::Python, &nest(381, " ", "\r\n")), None);
        assert_eq!(faults(Language::Python, &format!("{}x\n", "  y = 1\n".repeat(500))), Some(0));
    }
}
