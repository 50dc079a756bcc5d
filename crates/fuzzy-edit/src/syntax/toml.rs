//! TOML, by the `toml` crate: version 1.1 of the language, duplicate keys and tables refused.

use super::Checked;

#[cfg(feature = "toml")]
mod parser {
    use serde::de::IgnoredAny;

    use super::super::{Checked, Fault, Unchecked};

    pub(super) fn check(text: &str) -> Checked {
        match toml::from_str::<IgnoredAny>(text) {
            Ok(_) => Checked::Valid,
            Err(error) if error.message().contains("recursion limit") => {
                Checked::Unchecked(Unchecked::TooDeep)
            }
            Err(error) => Checked::Invalid(Fault {
                at: error.span().map_or(0, |span| span.start),
                message: error.message().to_owned(),
            }),
        }
    }
}

#[cfg(not(feature = "toml"))]
mod parser {
    use super::super::{Checked, Unchecked};

    pub(super) fn check(_text: &str) -> Checked {
        Checked::Unchecked(Unchecked::FeatureOff)
    }
}

/// Parses a document.
pub(super) fn check(text: &str) -> Checked {
    parser::check(text)
}

/// The offset of the first construct of TOML 1.1 in a valid text: a line break or a last comma in an inline
/// table, `\e`, `\x`, a time without seconds.
pub(super) fn newer_than_1_0(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut open = Vec::new();
    let mut at = 0;
    let mut comma = None;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'#' => {
                at += memchr::memchr(b'\n', bytes.get(at..).unwrap_or_default())
                    .unwrap_or(bytes.len() - at);
                continue;
            }
            b'"' | b'\'' => match string(bytes, at, byte) {
                Ok(end) => {
                    at = end;
                    comma = None;
                    continue;
                }
                Err(escape) => return Some(escape),
            },
            b'[' | b'{' => open.push(byte),
            b']' => {
                open.pop();
            }
            b'}' => {
                if comma.is_some() && open.last() == Some(&b'{') {
                    return comma;
                }
                open.pop();
            }
            b'\n' if open.last() == Some(&b'{') => return Some(at),
            b':' if lacks_seconds(bytes, at) => return Some(at),
            _ => {}
        }
        if byte == b',' {
            comma = Some(at);
        } else if !byte.is_ascii_whitespace() {
            comma = None;
        }
        at += 1;
    }
    None
}

/// The end of the string that begins at `at`, or an escape that 1.0 does not have.
fn string(bytes: &[u8], at: usize, quote: u8) -> Result<usize, usize> {
    let triple = [quote; 3];
    let long = bytes.get(at..).is_some_and(|rest| rest.starts_with(&triple));
    let mut i = at + if long { 3 } else { 1 };
    while let Some(&byte) = bytes.get(i) {
        if byte == b'\\' && quote == b'"' {
            if matches!(bytes.get(i + 1), Some(b'e' | b'x')) {
                return Err(i);
            }
            i += 2;
        } else if long && bytes.get(i..).is_some_and(|rest| rest.starts_with(&triple)) {
            i += 3;
            // Up to two quotes may stand before the closing three.
            while bytes.get(i) == Some(&quote) {
                i += 1;
            }
            return Ok(i);
        } else if !long && byte == quote {
            return Ok(i + 1);
        } else {
            i += 1;
        }
    }
    Ok(i)
}

/// Whether the colon stands between hour and minute of a time that ends there; an offset does.
fn lacks_seconds(bytes: &[u8], colon: usize) -> bool {
    let digit = |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_digit);
    let pair = |at: Option<usize>| digit(at) && digit(at.and_then(|at| at.checked_add(1)));
    let before = colon.checked_sub(3).and_then(|at| bytes.get(at));
    pair(colon.checked_sub(2))
        && pair(colon.checked_add(1))
        && !matches!(before, Some(b'+' | b'-' | b':'))
        && bytes.get(colon + 3) != Some(&b':')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constructs_of_version_1_1() {
        for new in
            ["a = {\n}", "a = {b = 1,}", "a = \"\\e\"", "t = 07:32", "t = 2024-01-01T07:32-05:00"]
        {
            assert!(newer_than_1_0(new).is_some(), "{new}");
        }
        for old in [
            "a = {b = [1,\n2,]}\n[x]\n",
            "t = 07:32:10",
            "t = 2024-01-01T07:32:00+07:30",
            "a = '\\e' # {\n",
            "a = \"\"\"x\\\\e\"\"\"\"\"\nb = {c = \"07:32\"}",
        ] {
            assert_eq!(newer_than_1_0(old), None, "{old}");
        }
    }
}
