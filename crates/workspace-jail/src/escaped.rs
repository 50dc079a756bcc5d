//! Names as one line of text: what a listing, a search or an error shows.
//!
//! Invariant: the text holds no control character and is valid UTF-8, so that one entry is one line and
//! no terminal acts on it. Distinct names stay distinct: a backslash is doubled where anything in the
//! name had to be escaped.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt as _;

/// Shows a name or a path with control characters and bytes that are not UTF-8 escaped.
///
/// ```
/// use workspace_jail::Escaped;
///
/// assert_eq!(Escaped::new("a\nb\u{1b}[31m").to_string(), r"a\nb\u{1b}[31m");
/// assert_eq!(Escaped::new("plain ä\\ name").to_string(), r"plain ä\ name");
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Escaped<'a>(&'a OsStr);

impl<'a> Escaped<'a> {
    /// Wraps a name or a path for display.
    pub fn new<S: AsRef<OsStr> + ?Sized>(name: &'a S) -> Self {
        Self(name.as_ref())
    }
}

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.0.as_bytes();
        if let Ok(text) = std::str::from_utf8(bytes)
            && !text.chars().any(is_unsafe)
        {
            return f.write_str(text);
        }
        for chunk in bytes.utf8_chunks() {
            for char in chunk.valid().chars() {
                match char {
                    '\\' => f.write_str(r"\\")?,
                    char if is_unsafe(char) => write!(f, "{}", char.escape_default())?,
                    char => write!(f, "{char}")?,
                }
            }
            for byte in chunk.invalid() {
                write!(f, r"\x{byte:02x}")?;
            }
        }
        Ok(())
    }
}

/// Control characters, line separators, and the marks that reorder the text around them
/// (<https://trojansource.codes>).
fn is_unsafe(char: char) -> bool {
    char.is_control()
        || matches!(char, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &[u8], shown: &str) {
        assert_eq!(Escaped::new(OsStr::from_bytes(name)).to_string(), shown);
    }

    #[test]
    fn one_name_is_one_line_and_distinct_names_stay_distinct() {
        check(b"plain", "plain");
        check(b"back\\slash", r"back\slash");
        check(b"bad\xffname", r"bad\xffname");
        check(b"a\\\n", r"a\\\n");
        check(b"a\\n", r"a\n");
        check("a\u{202e}b".as_bytes(), r"a\u{202e}b");
    }
}
