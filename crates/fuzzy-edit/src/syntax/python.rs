//! Python, by ruff's parser: newest grammar, the errors of `ast.parse`.
//!
//! tree-sitter is no judge here: it takes empty blocks, mixed indentation and Python 2. ruff recurses, so
//! texts are measured first; what is too deep is not checked.

use super::Checked;

#[cfg(feature = "python")]
mod parser {
    use ruff_python_parser::{Mode, ParseOptions, parse_unchecked};

    use super::super::{Checked, Fault, Unchecked};

    /// Deepest nesting of brackets.
    const MAX_BRACKETS: usize = 5_000;
    /// Most tokens between two commas or ends of statement: unary operators, attribute and operator chains.
    const MAX_RUN: usize = 50_000;
    /// Most lambdas in one statement: each nests in the one before.
    const MAX_LAMBDAS: usize = 5_000;
    /// Deepest indentation, in bytes.
    const MAX_INDENT: usize = 4_000;

    pub(crate) fn check(text: &str) -> Checked {
        if too_deep(text) {
            return Checked::Unchecked(Unchecked::TooDeep);
        }
        let parsed = parse_unchecked(text, ParseOptions::from(Mode::Module));
        match parsed.errors().iter().min_by_key(|error| error.location.start()) {
            None => Checked::Valid,
            Some(first) => Checked::Invalid(Fault {
                at: first.location.start().to_usize(),
                message: first.error.to_string(),
            }),
        }
    }

    /// How many faults the parser finds after recovering from each.
    pub(crate) fn faults(text: &str) -> usize {
        if too_deep(text) {
            return usize::MAX;
        }
        parse_unchecked(text, ParseOptions::from(Mode::Module)).errors().len()
    }

    /// Whether the text may nest deeper than the parser's stack.
    ///
    /// A comma ends what was said since its bracket was opened, not what stands before the bracket: chains
    /// in nested brackets add up. Strings and comments are counted as if they were code, which errs on the
    /// side of not checking.
    pub(super) fn too_deep(text: &str) -> bool {
        let (mut run, mut lambdas, mut indent) = (0_usize, 0_usize, 0_usize);
        // The run at each open bracket.
        let mut open: Vec<usize> = Vec::new();
        let (mut in_word, mut at_start) = (false, true);
        let bytes = text.as_bytes();
        for (at, &byte) in bytes.iter().enumerate() {
            let word = byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii();
            if word && !in_word {
                run += 1;
                lambdas += usize::from(bytes.get(at..at + 6) == Some(b"lambda"));
            }
            in_word = word;
            if at_start && matches!(byte, b' ' | b'\t') {
                indent += 1;
            } else {
                at_start = false;
            }
            match byte {
                b'(' | b'[' | b'{' => {
                    run += 1;
                    open.push(run);
                }
                b')' | b']' | b'}' => run = open.pop().unwrap_or(run),
                b',' => run = open.last().copied().unwrap_or_default(),
                b';' if open.is_empty() => (run, lambdas) = (0, 0),
                b'\n' | b'\r' => {
                    (at_start, indent) = (true, 0);
                    let continued = at > 0 && bytes.get(at - 1) == Some(&b'\\');
                    if open.is_empty() && !continued {
                        (run, lambdas) = (0, 0);
                    }
                }
                b'+' | b'-' | b'*' | b'/' | b'%' | b'@' | b'&' | b'|' | b'^' | b'~' | b'<'
                | b'>' | b'=' | b'!' | b'.' => run += 1,
                _ => {}
            }
            let brackets = open.len();
            if brackets > MAX_BRACKETS
                || run > MAX_RUN
                || lambdas > MAX_LAMBDAS
                || indent > MAX_INDENT
            {
                return true;
            }
        }
        false
    }
}

#[cfg(not(feature = "python"))]
mod parser {
    use super::super::{Checked, Unchecked};

    pub(crate) fn check(_text: &str) -> Checked {
        Checked::Unchecked(Unchecked::FeatureOff)
    }

    pub(crate) fn faults(_text: &str) -> usize {
        0
    }
}

/// Parses a module.
pub(super) fn check(text: &str) -> Checked {
    parser::check(text)
}

/// How many faults the parser finds.
pub(super) fn faults(text: &str) -> usize {
    parser::faults(text)
}
