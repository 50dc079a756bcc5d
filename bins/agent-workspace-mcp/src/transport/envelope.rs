//! The id and method of a JSON-RPC message that cannot be parsed: too long, cut off, or not quite JSON.
//!
//! A byte-wise scan that follows strings and nesting and remembers only what stands at the top level, in
//! a few hundred bytes, however long the message is.

use serde_json::Value;

/// Longer keys, ids and methods than this are of no client.
const TOKEN: usize = 256;

/// What is known of a message so far.
#[derive(Debug, Default)]
pub(crate) struct Envelope {
    depth: usize,
    in_string: bool,
    escaped: bool,
    in_value: bool,
    token: Vec<u8>,
    key: Vec<u8>,
    id: Option<Value>,
    method: Option<String>,
}

impl Envelope {
    /// The request's id, a string or a number.
    pub(crate) fn id(&self) -> Option<&Value> {
        self.id.as_ref()
    }

    /// The request's method.
    pub(crate) fn method(&self) -> Option<&str> {
        self.method.as_deref()
    }

    /// Follows the next bytes of the message.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.step(byte);
        }
    }

    fn step(&mut self, byte: u8) {
        if self.in_string {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.in_string = false,
                _ => {}
            }
            self.keep(byte);
            if !self.in_string && self.depth == 1 && !self.in_value {
                self.key = std::mem::take(&mut self.token);
            }
            return;
        }
        match byte {
            b'"' => {
                self.in_string = true;
                self.keep(byte);
            }
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => {
                self.end_member();
                self.depth = self.depth.saturating_sub(1);
            }
            b':' if self.depth == 1 => self.in_value = true,
            b',' => self.end_member(),
            byte if byte.is_ascii_whitespace() => {}
            byte => self.keep(byte),
        }
    }

    fn keep(&mut self, byte: u8) {
        if self.depth == 1 && self.token.len() < TOKEN {
            self.token.push(byte);
        }
    }

    /// Takes the value of a top-level member, now that it has ended.
    fn end_member(&mut self) {
        if self.depth != 1 {
            return;
        }
        let value = serde_json::from_slice(&self.token).ok();
        match (self.key.as_slice(), value) {
            (b"\"id\"", Some(id @ (Value::String(_) | Value::Number(_)))) => self.id = Some(id),
            (b"\"method\"", Some(Value::String(method))) => self.method = Some(method),
            _ => {}
        }
        self.token.clear();
        self.key.clear();
        self.in_value = false;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(message: &str, id: Option<Value>, method: Option<&str>) {
        let mut envelope = Envelope::default();
        for byte in message.bytes() {
            envelope.push(&[byte]);
        }
        assert_eq!((envelope.id().cloned(), envelope.method()), (id, method), "{message}");
    }

    #[test]
    fn id_and_method_are_found_wherever_they_stand() {
        check(r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#, Some(json!(7)), Some("ping"));
        check(
            r#"{ "params" : {"id":1,"a":["x",{"method":"no"}]} , "method":"tools/call", "id" : "q\"1" }"#,
            Some(json!("q\"1")),
            Some("tools/call"),
        );
    }

    #[test]
    fn a_broken_message_gives_what_came_before_or_after_the_fault() {
        check(r#"{"id":3,"method":"m","params":{"x":"\ud800"}}"#, Some(json!(3)), Some("m"));
        check(r#"{"method":"m","params":{"x":"\ud800"},"id":3}"#, Some(json!(3)), Some("m"));
        check(r#"{"id":3,"params":{"cut"#, Some(json!(3)), None);
    }

    #[test]
    fn what_is_no_request_has_no_id() {
        check("plain words", None, None);
        check(r#"["id",1]"#, None, None);
        check(r#"{"x":{"id":1}}"#, None, None);
        check(r#"{"id":null,"method":"m"}"#, None, Some("m"));
    }
}
