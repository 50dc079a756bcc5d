//! The head of a request: read strictly, then written anew.
//!
//! Two programs that read one request differently are how a request is smuggled past a proxy. So nothing that
//! has two readings is accepted (folded lines, bare line feeds, a second `Host` or `Content-Length`, a length
//! beside an encoding, a blank before a colon), and the head that goes out is built from what was understood: the
//! `Host` is printed from the checked [`Authority`], never copied.

use crate::body::{Body, Chunks};
use crate::host::Authority;
use crate::refusal::{Denied, Reason, Refusal, Status};

/// The longest head, its last empty line included.
pub(crate) const HEAD_MAX: usize = 16 * 1024;

/// What a client asks for.
#[derive(Debug)]
pub(crate) enum Request {
    /// `CONNECT`: bytes in both directions.
    Tunnel(Authority),
    /// One request in plain HTTP.
    Forward(Forward),
}

/// A request to be sent on.
#[derive(Debug)]
pub(crate) struct Forward {
    pub(crate) target: Authority,
    /// The head as it goes to the target.
    pub(crate) head: Vec<u8>,
    pub(crate) body: Body,
}

impl Request {
    pub(crate) fn target(&self) -> &Authority {
        match self {
            Self::Tunnel(target) => target,
            Self::Forward(forward) => &forward.target,
        }
    }

    /// Reads a head that ends with its empty line.
    pub(crate) fn parse(head: &[u8]) -> Result<Self, Refusal> {
        let head = head.strip_suffix(b"\r\n\r\n").ok_or_else(|| bad("the head has no end"))?;
        let mut lines = Lines { rest: Some(head) };
        let line = lines.next().ok_or_else(|| bad("the head is empty"))?;
        let (method, target, version) = request_line(line)?;
        let fields = lines.map(Field::parse).collect::<Result<Vec<_>, _>>()?;
        let host = single(&fields, "host")?;
        if method == "CONNECT" {
            // Its Host header goes nowhere; what is dialled is the target.
            return Ok(Self::Tunnel(authority(target, None)?));
        }
        let (target, path) = absolute_form(method, target)?;
        if let Some(host) = host {
            agree(host, &target)?;
        }
        let body = body(&fields, version)?;
        let head = rewrite(method, &path, version, &target, &fields, &body)?;
        Ok(Self::Forward(Forward { target, head, body }))
    }
}

/// Finds the end of a head in what has been received; `seen` bytes of it were searched before.
pub(crate) fn head_end(received: &[u8], seen: usize) -> Result<Option<usize>, Refusal> {
    for (index, &byte) in received.iter().enumerate().skip(seen) {
        match byte {
            0 => return Err(bad("the head contains a NUL byte; speak plain HTTP to the proxy")),
            b'\n' => {
                let line = received.get(..=index).unwrap_or_default();
                if line.ends_with(b"\r\n\r\n") {
                    return Ok(Some(index + 1));
                }
                if !line.ends_with(b"\r\n") {
                    return Err(bad("a line of the head ends without a carriage return"));
                }
            }
            _ => {}
        }
    }
    if received.len() >= HEAD_MAX {
        let text = format!("the head of the request is longer than {HEAD_MAX} bytes");
        return Err(Refusal::new(Status::HeadTooLarge, text));
    }
    Ok(None)
}

fn bad(text: &str) -> Refusal {
    Refusal::bad_request(text)
}

/// The lines between CR LF pairs.
struct Lines<'a> {
    rest: Option<&'a [u8]>,
}

impl<'a> Iterator for Lines<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let rest = self.rest.take()?;
        let Some(end) = rest.windows(2).position(|pair| pair == b"\r\n") else {
            return Some(rest);
        };
        let (line, after) = rest.split_at_checked(end)?;
        self.rest = after.get(2..);
        Some(line)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    Http10,
    Http11,
}

fn request_line(line: &[u8]) -> Result<(&str, &str, Version), Refusal> {
    let malformed = || bad("the request line is not METHOD URL HTTP/1.1 with single blanks");
    let text = str::from_utf8(line).map_err(|_| malformed())?;
    let mut parts = text.split(' ');
    let (Some(method), Some(target), Some(version), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(malformed());
    };
    if !is_token(method.as_bytes()) || target.is_empty() {
        return Err(malformed());
    }
    if !target.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(bad("the URL contains a byte that must be percent-encoded"));
    }
    let version = match version {
        "HTTP/1.1" => Version::Http11,
        "HTTP/1.0" => Version::Http10,
        _ => return Err(Refusal::new(Status::Version, "the proxy speaks HTTP/1.1 and HTTP/1.0")),
    };
    Ok((method, target, version))
}

/// Separates `http://AUTHORITY/PATH`; the path is the one to send.
fn absolute_form(method: &str, url: &str) -> Result<(Authority, String), Refusal> {
    let Some((scheme, rest)) = url.split_once("://") else {
        return Err(bad(
            "this is a proxy: ask for a whole URL (GET http://host/path) or for a tunnel (CONNECT host:port)",
        ));
    };
    if scheme.eq_ignore_ascii_case("https") {
        return Err(bad("ask for an https URL through a tunnel (CONNECT host:port)"));
    }
    if !scheme.eq_ignore_ascii_case("http") {
        return Err(Refusal::new(Status::NotImplemented, "only http URLs and tunnels are carried"));
    }
    if rest.contains('#') {
        return Err(bad("the URL has a fragment (#); leave it out"));
    }
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (host, path) = rest.split_at_checked(end).unwrap_or((rest, ""));
    let target = authority(host, Some(80))?;
    let path = match path {
        // RFC 9112, section 3.2.4: the last proxy asks about the whole server.
        "" if method == "OPTIONS" => "*".to_owned(),
        query if !query.starts_with('/') => format!("/{query}"),
        path => path.to_owned(),
    };
    Ok((target, path))
}

fn authority(text: &str, default: Option<u16>) -> Result<Authority, Refusal> {
    Authority::parse(text, default)
        .map_err(|_| Denied::of_text(text.as_bytes(), 0, Reason::NotAHost).into())
}

fn agree(host: &[u8], target: &Authority) -> Result<(), Refusal> {
    let same = str::from_utf8(host)
        .is_ok_and(|host| Authority::parse(host, Some(80)).as_ref() == Ok(target));
    if same {
        return Ok(());
    }
    Err(Denied::of_text(host, target.port, Reason::HostMismatch).into())
}

/// A header field; the value has no blanks around it.
#[derive(Clone, Copy, Debug)]
struct Field<'a> {
    name: &'a [u8],
    value: &'a [u8],
}

impl<'a> Field<'a> {
    fn parse(line: &'a [u8]) -> Result<Self, Refusal> {
        if line.first().is_some_and(|byte| matches!(byte, b' ' | b'\t')) {
            return Err(bad("a header line is folded; write each header on one line"));
        }
        let colon = line.iter().position(|&byte| byte == b':');
        let Some((name, rest)) = colon.and_then(|colon| line.split_at_checked(colon)) else {
            return Err(bad("a header line has no colon"));
        };
        if !is_token(name) {
            return Err(bad(
                "a header name is empty or has a character that is not allowed in one",
            ));
        }
        let value = rest.strip_prefix(b":").unwrap_or(rest);
        // Before trimming: what trims takes some control characters for blanks.
        if value.iter().any(|&byte| byte.is_ascii_control() && byte != b'\t') {
            return Err(bad("a header value contains a control character"));
        }
        Ok(Self { name, value: value.trim_ascii() })
    }

    fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name.as_bytes())
    }
}

fn is_token(bytes: &[u8]) -> bool {
    let token = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    !bytes.is_empty() && bytes.iter().all(token)
}

/// The value of a header that may stand there once.
fn single<'a>(fields: &[Field<'a>], name: &str) -> Result<Option<&'a [u8]>, Refusal> {
    let mut values = fields.iter().filter(|field| field.is(name)).map(|field| field.value);
    let value = values.next();
    if values.next().is_some() {
        return Err(Refusal::bad_request(format!("the header {name} is there twice")));
    }
    Ok(value)
}

fn body(fields: &[Field<'_>], version: Version) -> Result<Body, Refusal> {
    let length = single(fields, "content-length")?;
    let encoding = single(fields, "transfer-encoding")?;
    match (length, encoding) {
        (None, None) => Ok(Body::Sized(0)),
        (Some(_), Some(_)) => {
            Err(bad("the body has both a Content-Length and a Transfer-Encoding"))
        }
        (Some(digits), None) => {
            let digits = str::from_utf8(digits).ok().filter(|digits| {
                !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
            });
            let length = digits.and_then(|digits| digits.parse().ok());
            length.map(Body::Sized).ok_or_else(|| bad("the Content-Length is not one number"))
        }
        (None, Some(encoding)) if !encoding.eq_ignore_ascii_case(b"chunked") => Err(Refusal::new(
            Status::NotImplemented,
            "the only Transfer-Encoding carried is chunked",
        )),
        (None, Some(_)) if version == Version::Http10 => {
            Err(bad("a body in HTTP/1.0 cannot be chunked"))
        }
        (None, Some(_)) => Ok(Body::Chunked(Chunks::new())),
    }
}

/// Headers between the client and the proxy alone, and those that are written anew.
const NOT_COPIED: [&str; 8] = [
    "connection",
    "content-length",
    "host",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

fn rewrite(
    method: &str,
    path: &str,
    version: Version,
    target: &Authority,
    fields: &[Field<'_>],
    body: &Body,
) -> Result<Vec<u8>, Refusal> {
    let named = named_by_connection(fields)?;
    let version = match version {
        Version::Http10 => "HTTP/1.0",
        Version::Http11 => "HTTP/1.1",
    };
    let host = match target.port {
        80 => target.host.to_string(),
        port => format!("{}:{port}", target.host),
    };
    let mut head = format!("{method} {path} {version}\r\nHost: {host}\r\n").into_bytes();
    for field in fields {
        let hop_by_hop = NOT_COPIED.iter().any(|name| field.is(name))
            || field.name.get(..6).is_some_and(|start| start.eq_ignore_ascii_case(b"proxy-"))
            || named.iter().any(|name| field.name.eq_ignore_ascii_case(name));
        if !hop_by_hop {
            head.extend_from_slice(&[field.name, b": ", field.value, b"\r\n"].concat());
        }
    }
    match body {
        Body::Chunked(_) => head.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
        // A length of zero is said only where the client said it.
        Body::Sized(length) if fields.iter().any(|field| field.is("content-length")) => {
            head.extend_from_slice(format!("Content-Length: {length}\r\n").as_bytes());
        }
        Body::Sized(_) | Body::Endless => {}
    }
    head.extend_from_slice(b"Connection: close\r\n\r\n");
    Ok(head)
}

/// The headers that `Connection` takes away; it cannot take those that frame or address the request.
fn named_by_connection<'a>(fields: &[Field<'a>]) -> Result<Vec<&'a [u8]>, Refusal> {
    let connection = fields.iter().filter(|field| field.is("connection"));
    let named: Vec<&[u8]> = connection
        .flat_map(|field| field.value.split(|&byte| byte == b','))
        .map(<[u8]>::trim_ascii)
        .collect();
    let vital = ["content-length", "host", "transfer-encoding"];
    let takes_vital = |name: &&[u8]| vital.iter().any(|v| name.eq_ignore_ascii_case(v.as_bytes()));
    if named.iter().any(takes_vital) {
        return Err(bad("the Connection header names a header that belongs to the request"));
    }
    Ok(named)
}

#[cfg(test)]
mod tests;
