//! JSON, JSON with comments, and JSON lines.
//!
//! The grammar is checked, not the values: numbers beyond a double, lone surrogates and any depth are
//! legal JSON.

use std::collections::HashSet;

use super::{Checked, Fault};
use crate::text::{cut, lines};

#[cfg(feature = "json")]
mod parser {
    use jsonc_parser::{CollectOptions, ParseOptions, errors::ParseErrorKind, parse_to_ast};
    use serde::de::IgnoredAny;

    use super::super::{Checked, Fault, Unchecked};
    use super::strings;

    pub(super) fn check(text: &str) -> Checked {
        match serde_json::from_str::<IgnoredAny>(text) {
            Ok(_) => Checked::Valid,
            Err(error) => Checked::Invalid(Fault {
                at: offset(text, error.line(), error.column()),
                message: without_position(&error.to_string()),
            }),
        }
    }

    /// The offset of a 1-based line and byte.
    fn offset(text: &str, line: usize, column: usize) -> usize {
        let start: usize =
            text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
        start + column.saturating_sub(1)
    }

    fn without_position(message: &str) -> String {
        message.rsplit_once(" at line ").map_or(message, |(text, _)| text).to_owned()
    }

    pub(super) fn check_with_comments(text: &str) -> Checked {
        let options = ParseOptions {
            allow_comments: true,
            allow_trailing_commas: true,
            allow_loose_object_property_names: false,
            allow_missing_commas: false,
            allow_single_quoted_strings: false,
            allow_hexadecimal_numbers: false,
            allow_unary_plus_numbers: false,
            allow_bare_decimal_point_numbers: false,
            allow_non_finite_numbers: false,
            allow_extended_string_escapes: false,
        };
        if let Err(error) = parse_to_ast(text, &CollectOptions::default(), &options) {
            if matches!(error.kind(), ParseErrorKind::NestingDepthExceeded) {
                return Checked::Unchecked(Unchecked::TooDeep);
            }
            return Checked::Invalid(Fault {
                at: error.range().start,
                message: error.kind().to_string().to_lowercase(),
            });
        }
        // The parser takes raw control characters in strings.
        let bare = strings(text).find_map(|string| {
            let at = text.get(string.clone())?.bytes().position(|byte| byte < b' ')?;
            Some(string.start + at)
        });
        match bare {
            Some(at) => Checked::Invalid(Fault {
                at,
                message: "control character in a string must be escaped".to_owned(),
            }),
            None => Checked::Valid,
        }
    }
}

#[cfg(not(feature = "json"))]
mod parser {
    use super::super::{Checked, Unchecked};

    pub(super) fn check(_text: &str) -> Checked {
        Checked::Unchecked(Unchecked::FeatureOff)
    }

    pub(super) fn check_with_comments(_text: &str) -> Checked {
        Checked::Unchecked(Unchecked::FeatureOff)
    }
}

/// Parses one document.
pub(super) fn check(text: &str) -> Checked {
    parser::check(text)
}

/// Parses one document that may have comments and trailing commas.
pub(super) fn check_with_comments(text: &str) -> Checked {
    parser::check_with_comments(text)
}

/// Parses each line that is not blank.
pub(super) fn check_lines(text: &str) -> Checked {
    if let Checked::Unchecked(reason) = check("0") {
        return Checked::Unchecked(reason);
    }
    bad_lines(text).next().map_or(Checked::Valid, |(_, fault)| Checked::Invalid(fault))
}

/// The 0-based lines that are no JSON, with their fault in the whole text.
pub(super) fn bad_lines(text: &str) -> impl Iterator<Item = (usize, Fault)> {
    lines(text).enumerate().filter(|(_, (_, line))| !line.trim().is_empty()).filter_map(
        |(number, (start, line))| match check(line) {
            Checked::Invalid(fault) => {
                let at = start + fault.at.min(line.len());
                Some((number, Fault { at, message: fault.message }))
            }
            _ => None,
        },
    )
}

/// The ranges of the strings of a valid text, without their quotes; comments are skipped.
fn strings(text: &str) -> impl Iterator<Item = std::ops::Range<usize>> {
    let bytes = text.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        while let Some(&byte) = bytes.get(at) {
            match (byte, bytes.get(at + 1)) {
                (b'"', _) => {
                    let start = at + 1;
                    at = start;
                    while let Some(&byte) = bytes.get(at).filter(|&&byte| byte != b'"') {
                        at += if byte == b'\\' { 2 } else { 1 };
                    }
                    at += 1;
                    return Some(start..(at - 1).min(bytes.len()));
                }
                (b'/', Some(b'/')) => {
                    while bytes.get(at).is_some_and(|&byte| byte != b'\n') {
                        at += 1;
                    }
                }
                (b'/', Some(b'*')) => {
                    let rest = bytes.get(at + 2..).unwrap_or_default();
                    at += memchr::memmem::find(rest, b"*/").map_or(bytes.len(), |end| end + 4);
                }
                _ => at += 1,
            }
        }
        None
    })
}

/// Keys that are in one object twice, as spelled, with the offset of the later one; the text is valid.
pub(super) fn duplicate_keys(text: &str) -> Vec<(&str, usize)> {
    let bytes = text.as_bytes();
    // Made at the first key: most of what nests deep has none.
    let mut open: Vec<Option<Box<HashSet<&str>>>> = Vec::new();
    let mut twice = Vec::new();
    let mut strings = strings(text);
    let mut from = 0;
    loop {
        let string = strings.next();
        let to = string.as_ref().map_or(bytes.len(), |string| string.start - 1);
        // Brackets between two strings; those in comments pair up with nothing and are not looked at.
        for byte in plain(cut(text, from..to)) {
            match byte {
                b'{' | b'[' => open.push(None),
                b'}' | b']' => drop(open.pop()),
                _ => {}
            }
        }
        let Some(string) = string else {
            return twice;
        };
        from = string.end + 1;
        let rest = bytes.get(from..).unwrap_or_default();
        let next = rest.iter().find(|byte| !byte.is_ascii_whitespace());
        if next == Some(&b':')
            && let Some(keys) = open.last_mut()
        {
            let key = cut(text, string.clone());
            if !keys.get_or_insert_default().insert(key) {
                twice.push((key, string.start));
            }
        }
    }
}

/// The bytes of a text between strings, without comments.
fn plain(text: &str) -> impl Iterator<Item = u8> {
    let bytes = text.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            match (bytes.get(at)?, bytes.get(at + 1)) {
                (b'/', Some(b'/')) => {
                    while bytes.get(at).is_some_and(|&byte| byte != b'\n') {
                        at += 1;
                    }
                }
                (b'/', Some(b'*')) => {
                    let rest = bytes.get(at + 2..).unwrap_or_default();
                    at += memchr::memmem::find(rest, b"*/").map_or(bytes.len(), |end| end + 4);
                }
                (&byte, _) => {
                    at += 1;
                    return Some(byte);
                }
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_twice_in_one_object() {
        let keys = |text| duplicate_keys(text).into_iter().map(|(key, _)| key).collect::<Vec<_>>();
        assert_eq!(keys(r#"{"a": {"a": 1}, "b": ["a", "a"]}"#), [""; 0]);
        assert_eq!(keys(r#"{"a": {"b": 1, "b": "{"}, "a" : 2}"#), ["b", "a"]);
        assert_eq!(keys("{\"a\": 1, /* { \" */ \"a\": 2}"), ["a"]);
    }
}
