//! Texts of the log as a browser may have them.
//!
//! Invariant: what [`Text`] writes is inert in an element and in a double-quoted attribute, and everything in it can be seen.

use std::fmt::{self, Display, Write as _};

/// A text of the log, inert in an element and in a quoted attribute; what cannot be seen is spelled out.
pub(super) struct Text<'a>(pub(super) &'a str);

impl Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for letter in self.0.chars() {
            match letter {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                '\n' | '\t' => f.write_char(letter)?,
                // Marks that turn the direction of what follows, and characters without a width.
                '\u{200b}'
                | '\u{200e}'
                | '\u{200f}'
                | '\u{202a}'..='\u{202e}'
                | '\u{2060}'..='\u{2069}'
                | '\u{feff}' => write!(f, "{}", letter.escape_unicode())?,
                _ if letter.is_control() => write!(f, "{}", letter.escape_default())?,
                _ => f.write_char(letter)?,
            }
        }
        Ok(())
    }
}
