//! Where the body of a forwarded request ends.
//!
//! One request goes out on one connection. Bytes behind the body would be a second request, with a `Host` that
//! nobody checked; they are not sent. The framing is only followed, never rewritten: a chunked body goes out as it came.

/// How the end of the bytes from the client is known.
#[derive(Debug)]
pub(crate) enum Body {
    /// A tunnel: everything until the client closes.
    Endless,
    /// This many bytes more; a request without a body has none.
    Sized(u64),
    /// `Transfer-Encoding: chunked`.
    Chunked(Chunks),
}

/// The chunked framing is broken, or uses what no client of a package registry needs.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BadChunk;

impl Body {
    /// Says how many of the next bytes belong to the body, and moves on past them.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> Result<usize, BadChunk> {
        match self {
            Self::Endless => Ok(bytes.len()),
            Self::Sized(left) => Ok(skip(left, bytes.len())),
            Self::Chunked(chunks) => chunks.take(bytes),
        }
    }

    /// Whether nothing more belongs to the body.
    pub(crate) fn is_complete(&self) -> bool {
        match self {
            Self::Endless => false,
            Self::Sized(left) => *left == 0,
            Self::Chunked(chunks) => chunks.state == State::Done,
        }
    }
}

/// Counts off at most `len` of `left`.
fn skip(left: &mut u64, len: usize) -> usize {
    let taken = usize::try_from(*left).map_or(len, |left| left.min(len));
    *left -= taken as u64;
    taken
}

/// Follows a chunked body (RFC 9112, section 7.1) in its strict form: no extensions, no trailers.
#[derive(Debug)]
pub(crate) struct Chunks {
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// In the digits of a size; `None` before the first.
    Size(Option<u64>),
    SizeLf(u64),
    Data(u64),
    DataCr,
    DataLf,
    EndCr,
    EndLf,
    Done,
}

impl Chunks {
    pub(crate) fn new() -> Self {
        Self { state: State::Size(None) }
    }

    fn take(&mut self, bytes: &[u8]) -> Result<usize, BadChunk> {
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            if let State::Data(left) = &mut self.state {
                at += skip(left, bytes.len() - at);
                if *left == 0 {
                    self.state = State::DataCr;
                }
                continue;
            }
            self.state = match (self.state, byte) {
                (State::Size(Some(size)), b'\r') => State::SizeLf(size),
                (State::Size(size), digit) => State::Size(Some(append(size, digit)?)),
                (State::SizeLf(0), b'\n') => State::EndCr,
                (State::SizeLf(size), b'\n') => State::Data(size),
                (State::DataCr, b'\r') => State::DataLf,
                (State::DataLf, b'\n') => State::Size(None),
                (State::EndCr, b'\r') => State::EndLf,
                (State::EndLf, b'\n') => State::Done,
                (State::Done, _) => break,
                _ => return Err(BadChunk),
            };
            at += 1;
        }
        Ok(at)
    }
}

/// Another hexadecimal digit of a size; more than sixteen significant ones are refused, not wrapped.
fn append(size: Option<u64>, digit: u8) -> Result<u64, BadChunk> {
    let digit = char::from(digit).to_digit(16).ok_or(BadChunk)?;
    let size = size.unwrap_or(0);
    size.checked_mul(16).map(|shifted| shifted + u64::from(digit)).ok_or(BadChunk)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds `bytes` in pieces of every size: the pieces must not matter.
    fn check(bytes: &str, expected: &Result<(usize, bool), BadChunk>) {
        for piece in 1..=bytes.len() {
            let mut body = Body::Chunked(Chunks::new());
            let mut taken = 0;
            let seen = bytes.as_bytes().chunks(piece).try_for_each(|chunk| {
                taken += body.take(chunk)?;
                Ok(())
            });
            let seen = seen.map(|()| (taken, body.is_complete()));
            assert_eq!(&seen, expected, "{bytes:?} by {piece}");
        }
    }

    #[test]
    fn chunks_end_where_they_say() {
        check("0\r\n\r\n", &Ok((5, true)));
        check("3\r\nabc\r\n00A\r\n0123456789\r\n0\r\n\r\n", &Ok((30, true)));
        check("1\r\na\r\n0\r\n\r\nGET / HTTP/1.1\r\n", &Ok((11, true)));
        check("5\r\nab", &Ok((5, false)));
        check("ffffffffffffffff\r\nab", &Ok((20, false)));
    }

    #[test]
    fn anything_else_is_refused() {
        for bytes in [
            "\r\n",
            "g\r\n",
            "-1\r\n",
            "+1\r\na",
            "0x1\r\na",
            " 1\r\na",
            "1 \r\na",
            "1;ext=a\r\na\r\n",
            "1;\r\na\r\n",
            "1;a\r\na\r\n",
            "1\na\n",
            "1\r\nab\r\n",
            "1\r\na\n",
            "1\r\na\rb",
            "0\r\nTrailer: a\r\n\r\n",
            "0\r\n\n",
            "10000000000000000\r\n",
        ] {
            check(bytes, &Err(BadChunk));
        }
    }

    #[test]
    fn a_length_is_counted_down() {
        let mut body = Body::Sized(5);
        assert_eq!(body.take(b"abc"), Ok(3));
        assert!(!body.is_complete());
        assert_eq!(body.take(b"defgh"), Ok(2));
        assert!(body.is_complete());
        assert_eq!(body.take(b"more"), Ok(0));
        assert!(Body::Sized(0).is_complete());
        assert!(!Body::Endless.is_complete());
    }
}
