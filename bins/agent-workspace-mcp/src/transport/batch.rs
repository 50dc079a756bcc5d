//! A batch: several messages in one line, as an array. Protocol 2025-03-26 has them, and no other.
//!
//! Its messages are handed on one at a time and answered one at a time, each on a line of its own, so that a batch
//! costs no more memory than its line. Where it is broken, the messages before the fault count, and the one that holds
//! it is answered like a line that cannot be read.

/// The messages of a line that are still to be read.
#[derive(Debug, Default)]
pub(super) struct Batch {
    line: Vec<u8>,
    /// What stands before was handed on.
    at: usize,
}

impl Batch {
    /// Takes a line that is an array; any other comes back.
    pub(super) fn of(line: Vec<u8>) -> Result<Self, Vec<u8>> {
        let start = line.iter().position(|byte| !byte.is_ascii_whitespace());
        match start {
            Some(start) if line.get(start) == Some(&b'[') => Ok(Self { line, at: start + 1 }),
            _ => Err(line),
        }
    }

    /// The text of the next message.
    pub(super) fn next(&mut self) -> Option<Vec<u8>> {
        let rest = self.line.get(self.at..).filter(|rest| !rest.is_empty())?;
        let end = end_of_element(rest);
        let element = rest.get(..end).unwrap_or(rest).trim_ascii().to_vec();
        // Behind the array there is nothing.
        self.at = if rest.get(end) == Some(&b',') { self.at + end + 1 } else { self.line.len() };
        if self.at == self.line.len() {
            self.line = Vec::new();
            self.at = 0;
        }
        Some(element)
    }
}

/// Where the element of an array ends that `text` begins with: at its comma, at the array's end, or with the text.
fn end_of_element(text: &[u8]) -> usize {
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for (at, byte) in text.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'{' | b'[' => depth += 1,
            b',' | b']' if depth == 0 => return at,
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expected: &[&str]) {
        let mut batch = Batch::of(line.as_bytes().to_vec()).unwrap();
        let elements: Vec<String> = std::iter::from_fn(|| batch.next())
            .map(|element| String::from_utf8(element).unwrap())
            .collect();
        assert_eq!(elements, expected, "{line}");
    }

    #[test]
    fn an_array_falls_into_its_elements() {
        check(r#"[{"a":[1,2]},{"b":"],}"}]"#, &[r#"{"a":[1,2]}"#, r#"{"b":"],}"}"#]);
        check(r#" [ {"a":"\"]"} , 5 ] "#, &[r#"{"a":"\"]"}"#, "5"]);
        check("[]", &[""]);
        check("[[1,2],3]", &["[1,2]", "3"]);
    }

    #[test]
    fn a_broken_array_gives_what_there_is() {
        check(r#"[{"a":1},{"b":"#, &[r#"{"a":1}"#, r#"{"b":"#]);
        check("[1}}},2", &["1}}}", "2"]);
        check("[1] [2]", &["1"]);
        check("[", &[]);
    }

    #[test]
    fn another_line_is_no_batch() {
        for line in ["", "  ", "{}", "x[", "\"[\""] {
            assert_eq!(Batch::of(line.into()).map(|_| ()), Err(line.into()), "{line}");
        }
    }
}
