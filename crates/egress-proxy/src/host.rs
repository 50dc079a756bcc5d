//! A host and its port as a client or a rule may write them: one spelling for one meaning.
//!
//! Everything that decides compares [`Host`] values, and everything that dials or forwards is printed from
//! them, so what was checked is what is used. A text that another program could read as a different host
//! (userinfo, percent signs, control characters, `127.1`, `0x7f000001`, zone identifiers) is no host here.
//! Internationalised names are written in their ASCII form (`xn--…`).

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The longest name, without the trailing dot (RFC 1035, section 2.3.4).
pub(crate) const NAME_MAX: usize = 253;
/// The longest label.
const LABEL_MAX: usize = 63;

/// Why a text is not a host, or not a host with its port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadHost {
    /// Nothing is there.
    #[error("the host is empty")]
    Empty,
    /// The name has more than 253 characters.
    #[error("the name is longer than {NAME_MAX} characters")]
    TooLong,
    /// A label is empty, longer than 63 characters, or begins or ends with a hyphen.
    #[error("a part between dots is empty, too long, or begins or ends with a hyphen")]
    Label,
    /// Something other than ASCII letters, digits, hyphens, underscores and dots.
    #[error("only ASCII letters, digits, hyphens, underscores and dots make a name")]
    Character,
    /// The last label is a number, and the whole is not a dotted IPv4 address.
    #[error("it ends in a number and is not an IPv4 address in dotted form")]
    Number,
    /// Brackets around something else than an IPv6 address.
    #[error("only an IPv6 address without a zone stands in brackets")]
    Brackets,
    /// The port is missing, zero, above 65535, or not written in plain digits.
    #[error("the port is not a number from 1 to 65535")]
    Port,
}

/// A name in lower case without a trailing dot, or an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Host {
    Name(String),
    Address(IpAddr),
}

impl Host {
    /// Reads a name, a dotted IPv4 address or an IPv6 address in brackets.
    pub(crate) fn parse(text: &str) -> Result<Self, BadHost> {
        if let Some(rest) = text.strip_prefix('[') {
            let inside = rest.strip_suffix(']').ok_or(BadHost::Brackets)?;
            let address: Ipv6Addr = inside.parse().map_err(|_| BadHost::Brackets)?;
            return Ok(Self::Address(address.into()));
        }
        match text.parse::<Ipv4Addr>() {
            Ok(address) => Ok(Self::Address(address.into())),
            Err(_) => name(text).map(Self::Name),
        }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(IpAddr::V4(address)) => address.fmt(f),
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

fn name(text: &str) -> Result<String, BadHost> {
    let text = text.strip_suffix('.').unwrap_or(text);
    if text.is_empty() {
        return Err(BadHost::Empty);
    }
    if text.len() > NAME_MAX {
        return Err(BadHost::TooLong);
    }
    if !text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte)) {
        return Err(BadHost::Character);
    }
    let sound = |label: &str| {
        !label.is_empty()
            && label.len() <= LABEL_MAX
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().any(|byte| byte != b'_')
    };
    if !text.split('.').all(sound) {
        return Err(BadHost::Label);
    }
    // Resolvers read `127.1`, `2130706433` and `0x7f.1` as addresses; a name never ends like that.
    let last = text.rsplit('.').next().unwrap_or(text);
    let hexadecimal = last.starts_with("0x") || last.starts_with("0X");
    if hexadecimal || last.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(BadHost::Number);
    }
    Ok(text.to_ascii_lowercase())
}

/// A host and a port: what a request asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Authority {
    pub(crate) host: Host,
    pub(crate) port: u16,
}

impl Authority {
    /// Reads `HOST` or `HOST:PORT`; without a default the port must be there.
    pub(crate) fn parse(text: &str, default: Option<u16>) -> Result<Self, BadHost> {
        let (host, port) = split(text)?;
        let host = Host::parse(host)?;
        let port = match port {
            Some(digits) => parse_port(digits)?,
            None => default.ok_or(BadHost::Port)?,
        };
        Ok(Self { host, port })
    }
}

/// Separates the port, if one is written; neither half is judged.
pub(crate) fn split(text: &str) -> Result<(&str, Option<&str>), BadHost> {
    if !text.starts_with('[') {
        return Ok(match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        });
    }
    let end = text.find(']').ok_or(BadHost::Brackets)? + 1;
    let (host, rest) = text.split_at_checked(end).ok_or(BadHost::Brackets)?;
    match rest.strip_prefix(':') {
        Some(port) => Ok((host, Some(port))),
        None if rest.is_empty() => Ok((host, None)),
        None => Err(BadHost::Brackets),
    }
}

/// Reads a port in its one spelling: digits, no sign, no leading zero.
pub(crate) fn parse_port(digits: &str) -> Result<u16, BadHost> {
    if digits.starts_with('0') || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(BadHost::Port);
    }
    digits.parse().map_err(|_| BadHost::Port)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<&str, BadHost>) {
        let seen = Host::parse(text).map(|host| host.to_string());
        assert_eq!(seen, expected.map(str::to_owned), "{text:?}");
    }

    #[test]
    fn one_spelling_for_one_host() {
        check("example.com", Ok("example.com"));
        check("EXAMPLE.Com.", Ok("example.com"));
        check("_dmarc.my_bucket.example", Ok("_dmarc.my_bucket.example"));
        check("xn--bcher-kva.example", Ok("xn--bcher-kva.example"));
        check("1.2.3.4", Ok("1.2.3.4"));
        check("[2606:4700:0::1]", Ok("[2606:4700::1]"));
        check("3com.example", Ok("3com.example"));
    }

    #[test]
    fn what_someone_could_read_differently_is_refused() {
        for text in ["", "."] {
            check(text, Err(BadHost::Empty));
        }
        for text in ["a..b", "a.b..", ".a", "-a.b", "a-.b", "_", "a.__.b"] {
            check(text, Err(BadHost::Label));
        }
        for text in [
            "a b",
            "a\0.b",
            "a\r\n",
            "a%2eb",
            "u@h",
            "a/b",
            "a\\b",
            "a:b",
            "bücher.example",
            "::1",
            "a\u{3002}b",
            "*.a",
            "a?b",
            "a#b",
            "a\t",
        ] {
            check(text, Err(BadHost::Character));
        }
        for text in
            ["127.1", "2130706433", "0x7f000001", "0177.0.0.01", "1.2.3.4.", "a.0xFF", "256.1.1.1"]
        {
            check(text, Err(BadHost::Number));
        }
        for text in ["[::1", "[1.2.3.4]", "[fe80::1%eth0]", "[]", "[v1.a]"] {
            check(text, Err(BadHost::Brackets));
        }
    }

    #[test]
    fn lengths() {
        let label = "a".repeat(LABEL_MAX);
        let longest = [label.as_str(), &label, &label, &"b".repeat(61)].join(".");
        assert_eq!(longest.len(), NAME_MAX);
        check(&longest, Ok(&longest));
        check(&format!("{longest}."), Ok(&longest));
        check(&format!("{longest}b"), Err(BadHost::TooLong));
        check(&format!("{label}a.example"), Err(BadHost::Label));
    }

    #[test]
    fn ports() {
        let port = |text| Authority::parse(text, None).map(|authority| authority.port);
        assert_eq!(port("a.b:443"), Ok(443));
        assert_eq!(port("[::1]:8080"), Ok(8080));
        assert_eq!(Authority::parse("a.b", Some(80)).map(|authority| authority.port), Ok(80));
        for text in
            ["a.b", "a.b:", "a.b:0", "a.b:080", "a.b:+80", "a.b:65536", "a.b:80:80", "a.b: 80"]
        {
            assert_eq!(port(text), Err(BadHost::Port), "{text:?}");
        }
        assert_eq!(port("[::1]80"), Err(BadHost::Brackets));
        assert_eq!(port("good.example@evil.example:80"), Err(BadHost::Character));
        assert_eq!(port("good.example:80@evil.example"), Err(BadHost::Port));
    }
}
