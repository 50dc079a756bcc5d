//! How many faults a JSON text has, for comparing two texts that are both not valid.
//!
//! The verdict is `serde_json`'s; this reader only goes on where that one stops. It recovers at the next
//! token, so that a second fault behind an old one is seen. tree-sitter merges the two into one node.

/// What may come next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    /// A value, or the end of an array just opened.
    Value,
    /// A key, or the end of an object just opened.
    Key,
    Colon,
    /// A comma or the end of the container; after the root value, nothing.
    Comma,
}

/// Counts faults; `lenient` allows comments and trailing commas.
pub(super) fn count(text: &str, lenient: bool) -> usize {
    let mut reader =
        Reader { open: Vec::new(), next: Next::Value, fresh: false, faults: 0, lenient };
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let rest = bytes.get(at..).unwrap_or_default();
        at += match byte {
            b' ' | b'\t' | b'\r' | b'\n' => 1,
            b'{' | b'[' => {
                reader.value();
                reader.open.push(byte);
                (reader.next, reader.fresh) =
                    (if byte == b'{' { Next::Key } else { Next::Value }, true);
                1
            }
            b'}' | b']' => reader.close(if byte == b'}' { b'{' } else { b'[' }),
            b',' => reader.comma(),
            b':' => {
                reader.faults += usize::from(reader.next != Next::Colon);
                reader.next = Next::Value;
                1
            }
            b'"' => {
                let (length, sound) = string(rest);
                reader.faults += usize::from(!sound);
                reader.string();
                length
            }
            b'/' if matches!(rest.get(1), Some(b'/' | b'*')) => {
                reader.faults += usize::from(!lenient);
                let (end, extra): (&[u8], usize) =
                    if rest.get(1) == Some(&b'/') { (b"\n", 0) } else { (b"*/", 2) };
                memchr::memmem::find(rest, end).map_or(rest.len(), |found| found + extra)
            }
            _ => {
                let length = rest
                    .iter()
                    .position(|byte| b" \t\r\n{}[],:\"".contains(byte))
                    .unwrap_or(rest.len());
                let word = rest.get(..length).unwrap_or_default();
                reader.faults += usize::from(!is_literal(word));
                reader.value();
                length
            }
        };
    }
    reader.faults + reader.open.len() + usize::from(reader.next != Next::Comma)
}

struct Reader {
    open: Vec<u8>,
    next: Next,
    /// The container was just opened, so it may end at once.
    fresh: bool,
    faults: usize,
    lenient: bool,
}

impl Reader {
    /// A value begins.
    fn value(&mut self) {
        let extra = self.next == Next::Comma && self.open.is_empty() && self.faults > 0;
        self.faults += usize::from(self.next != Next::Value && !extra);
        (self.next, self.fresh) = (Next::Comma, false);
    }

    fn string(&mut self) {
        if self.next == Next::Key {
            (self.next, self.fresh) = (Next::Colon, false);
        } else if self.next == Next::Comma && self.open.last() == Some(&b'{') {
            // A comma is missing before a key.
            self.faults += 1;
            self.next = Next::Colon;
        } else {
            self.value();
        }
    }

    fn close(&mut self, opener: u8) -> usize {
        let early = match self.next {
            Next::Comma => false,
            Next::Colon => true,
            Next::Key => !self.fresh && !self.lenient,
            Next::Value => self.open.last() == Some(&b'{') || (!self.fresh && !self.lenient),
        };
        self.faults += usize::from(early);
        if self.open.last() == Some(&opener) {
            self.open.pop();
        } else {
            self.faults += 1;
        }
        (self.next, self.fresh) = (Next::Comma, false);
        1
    }

    fn comma(&mut self) -> usize {
        self.faults += usize::from(self.next != Next::Comma || self.open.is_empty());
        self.next = if self.open.last() == Some(&b'{') { Next::Key } else { Next::Value };
        self.fresh = false;
        1
    }
}

/// Length of the string a text begins with, and whether it is sound; one without end ends with its line.
fn string(text: &[u8]) -> (usize, bool) {
    let (mut at, mut sound) = (1, true);
    while let Some(&byte) = text.get(at) {
        match byte {
            b'"' => return (at + 1, sound),
            b'\n' => break,
            b'\\' => {
                sound &= match text.get(at + 1) {
                    Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => true,
                    Some(b'u') => text
                        .get(at + 2..at + 6)
                        .is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)),
                    _ => false,
                };
                at += if text.get(at + 1) == Some(&b'\n') { 1 } else { 2 };
            }
            _ => {
                sound &= byte >= b' ';
                at += 1;
            }
        }
    }
    (at.min(text.len()), false)
}

fn is_literal(word: &[u8]) -> bool {
    matches!(word, b"true" | b"false" | b"null") || is_number(word)
}

fn is_number(word: &[u8]) -> bool {
    let mut rest = word.strip_prefix(b"-").unwrap_or(word);
    let digits = |text: &[u8]| text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let whole = digits(rest);
    if whole == 0 || (whole > 1 && rest.first() == Some(&b'0')) {
        return false;
    }
    rest = rest.get(whole..).unwrap_or_default();
    if let Some(fraction) = rest.strip_prefix(b".") {
        let length = digits(fraction);
        if length == 0 {
            return false;
        }
        rest = fraction.get(length..).unwrap_or_default();
    }
    if let Some(power) = rest.strip_prefix(b"e").or(rest.strip_prefix(b"E")) {
        let power = power.strip_prefix(b"+").or(power.strip_prefix(b"-")).unwrap_or(power);
        let length = digits(power);
        return length > 0 && length == power.len();
    }
    rest.is_empty()
}

#[cfg(test)]
mod tests {
    use super::count;

    #[test]
    fn sound_texts_have_no_fault() {
        for text in
            ["1", "{}", "[]", " {\"a\": [1, -2.5e+3, \"\\u00e9\\n\"], \"b\": {\"c\": null}}\n"]
        {
            assert_eq!(count(text, false), 0, "{text}");
        }
        assert_eq!(count("{\"a\": [1, 2,], // x\n/* } */}", true), 0);
    }

    #[test]
    fn each_fault_counts() {
        for (text, faults) in [
            ("", 1),
            ("[1, 2,]", 1),
            ("[1 2]", 1),
            ("{\"a\": NaN}", 1),
            ("{\"a\": NaN, \"b\": ]}", 3),
            ("[1", 1),
            ("{\"a\" 1}", 1),
            ("{\"a\": }", 1),
            ("[01]", 1),
            ("[\"a\tb\"]", 1),
            ("{} {}", 1),
            ("[\"a]\n", 2),
            ("[1] // x", 1),
            ("{\"a\": 1 \"b\": 2}", 1),
        ] {
            assert_eq!(count(text, false), faults, "{text}");
        }
    }
}
