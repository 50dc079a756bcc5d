//! YAML, by serde-saphyr: streams, application tags, no duplicate keys, no unknown aliases.
//!
//! It misses a tab that indents a nested key; tree-sitter sees that one.

use std::ops::Range;

use super::Checked;

#[cfg(feature = "yaml")]
mod parser {
    use std::ops::Range;

    use serde::de::IgnoredAny;
    use serde_saphyr::{Error, options::NonFiniteFloatPolicy};

    use super::super::{Checked, Fault, Language, Unchecked, tree};
    use crate::text::{indent_of, lines};

    pub(super) fn check(text: &str, edited: Option<&[Range<usize>]>) -> Checked {
        let options = serde_saphyr::options! {
            budget: None,
            with_snippet: false,
            non_finite_float_policy: NonFiniteFloatPolicy::PassThrough,
        };
        match serde_saphyr::from_multiple_with_options::<IgnoredAny>(text, options) {
            Ok(_) => indented_by_tab(text, edited),
            Err(error) => fault(text, &error),
        }
    }

    /// What an error means: a fault of the text, or the parser's own limits and opinions on values.
    fn fault(text: &str, error: &Error) -> Checked {
        match error.without_snippet() {
            Error::AliasError { error, .. } => return fault(text, error),
            Error::InvalidScalar { .. }
            | Error::InvalidBinaryBase64 { .. }
            | Error::BinaryNotUtf8 { .. }
            | Error::NonFiniteFloat { .. }
            | Error::UnsupportedTag { .. }
            | Error::UnsupportedIncludeForm { .. }
            | Error::AliasReplayCounterOverflow { .. }
            | Error::AliasReplayLimitExceeded { .. }
            | Error::AliasExpansionLimitExceeded { .. }
            | Error::AliasReplayStackDepthExceeded { .. }
            | Error::RecursiveReferencesRequireWeakTypes { .. } => {
                return Checked::Unchecked(Unchecked::ParserFailed);
            }
            Error::Budget { .. } => return Checked::Unchecked(Unchecked::TooDeep),
            _ => {}
        }
        let message = error.to_string();
        if message.contains("recursion limit") || message.contains("nesting") {
            return Checked::Unchecked(Unchecked::TooDeep);
        }
        let at = error.location().map_or(0, |location| {
            let number = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
            let (line, column) = (number(location.line()), number(location.column()));
            let start: usize =
                text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
            let line = text.get(start..).unwrap_or_default();
            start + line.char_indices().nth(column.saturating_sub(1)).map_or(0, |(at, _)| at)
        });
        let message = match error.without_snippet() {
            // The parser's own words speak to its caller, of an option that allows it.
            Error::DuplicateMappingKey { key: Some(key), .. } => {
                format!("duplicate mapping key: {key}")
            }
            Error::DuplicateMappingKey { key: None, .. } => "duplicate mapping key".to_owned(),
            _ => plain(&message),
        };
        Checked::Invalid(Fault { at, message })
    }

    /// The message without the position that is told beside it.
    fn plain(message: &str) -> String {
        let first = message.lines().next().unwrap_or_default();
        let text = match first.split_once(": ") {
            Some((position, text)) if position.starts_with("line ") => text,
            _ => first,
        };
        text.split(" at line ").next().unwrap_or(text).to_owned()
    }

    fn indented_by_tab(text: &str, edited: Option<&[Range<usize>]>) -> Checked {
        if !text.contains('\t') {
            return Checked::Valid;
        }
        let tab = lines(text).enumerate().find(|(number, (_, line))| {
            indent_of(line).contains('\t')
                && edited.is_none_or(|edited| {
                    let at = edited.partition_point(|range| range.end <= *number);
                    edited.get(at).is_some_and(|range| range.contains(number))
                })
        });
        match tab {
            Some((_, (start, line))) if tree::faults(Language::Yaml, text).unwrap_or(0) > 0 => {
                Checked::Invalid(Fault {
                    at: start + indent_of(line).find('\t').unwrap_or(0),
                    message: "a tab may not indent".to_owned(),
                })
            }
            _ => Checked::Valid,
        }
    }
}

#[cfg(not(feature = "yaml"))]
mod parser {
    use std::ops::Range;

    use super::super::{Checked, Unchecked};

    pub(super) fn check(_text: &str, _edited: Option<&[Range<usize>]>) -> Checked {
        Checked::Unchecked(Unchecked::FeatureOff)
    }
}

/// Parses a stream; `edited` are the 0-based lines in which tabs are looked for, all if none.
pub(super) fn check(text: &str, edited: Option<&[Range<usize>]>) -> Checked {
    parser::check(text, edited)
}
