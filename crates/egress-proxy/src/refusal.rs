//! What is said when a request is not carried out: to the client as a response, to the model as a denial.

use std::fmt;
use std::sync::Arc;

use crate::address::{Reach, reach};
use crate::host::{Authority, Host, NAME_MAX};
use crate::rules::PRIVATE;

/// A request that the allow-list refused. Its `Display` is one line that says what the operator can do, in the
/// words of [`HostRules::given_as`](crate::HostRules::given_as).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Denied {
    /// The host as it was asked for: bytes outside printable ASCII escaped, cut at 253 characters. Written by the
    /// command, so it is data, never an instruction.
    pub host: String,
    /// The port; 0 where none could be read.
    pub port: u16,
    /// Why.
    pub reason: Reason,
    /// The entry that would allow it, where one would.
    pub entry: Option<String>,
    /// What stands before an entry.
    setting: Arc<str>,
}

/// Why the allow-list refused a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// No rule names the host.
    HostNotListed,
    /// The host is named, with other ports.
    PortNotListed,
    /// The request names an address, and no rule has that very address.
    AddressNotListed,
    /// The host is listed without `private:`, and all its addresses are private ones, the server's own among them.
    PrivateAddress,
    /// All addresses of the host are unspecified, multicast, broadcast or reserved ones.
    UnusableAddress,
    /// What was asked for is no host name or no port.
    NotAHost,
    /// The `Host` header names another host than the URL.
    HostMismatch,
}

impl Denied {
    /// `private`: whether an entry would have to say so, as far as is known.
    pub(crate) fn new(
        target: &Authority,
        reason: Reason,
        private: bool,
        setting: &Arc<str>,
    ) -> Self {
        let Authority { host, port } = target;
        let (reason, reach) = match (reason, host) {
            (Reason::HostNotListed, Host::Address(address)) => {
                (Reason::AddressNotListed, reach(*address))
            }
            (_, Host::Address(address)) => (reason, reach(*address)),
            _ => (reason, Reach::Public),
        };
        let hopeless = reach == Reach::Never || reason == Reason::UnusableAddress;
        let entry = (!hopeless).then(|| {
            let near = private || reach == Reach::Private || reason == Reason::PrivateAddress;
            let prefix = if near { PRIVATE } else { "" };
            if matches!(port, 80 | 443) && reason != Reason::PortNotListed {
                format!("{prefix}{host}")
            } else {
                format!("{prefix}{host}:{port}")
            }
        });
        let setting = Arc::clone(setting);
        Self { host: host.to_string(), port: *port, reason, entry, setting }
    }

    /// A denial of something that is not an [`Authority`], or must not be taken for one.
    pub(crate) fn of_text(text: &[u8], port: u16, reason: Reason) -> Self {
        Self { host: shown(text), port, reason, entry: None, setting: "".into() }
    }
}

impl fmt::Display for Denied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port, reason, entry, setting } = self;
        match reason {
            Reason::HostNotListed => write!(f, "host {host} is not on the allow-list")?,
            Reason::PortNotListed => {
                write!(f, "port {port} of host {host} is not on the allow-list")?;
            }
            Reason::AddressNotListed => {
                write!(f, "address {host} is not on the allow-list")?;
                if entry.is_none() {
                    f.write_str("; no rule can allow it, for it is not the address of one host")?;
                } else if entry.as_ref().is_some_and(|entry| !entry.starts_with(PRIVATE)) {
                    f.write_str("; ask for the host by its name")?;
                }
            }
            Reason::PrivateAddress => write!(f, "host {host} has no public address")?,
            Reason::UnusableAddress => write!(
                f,
                "host {host} resolves to nothing that can be reached, such as 0.0.0.0; its name server may block it"
            )?,
            Reason::NotAHost => {
                write!(
                    f,
                    "{host:?} is not a host name with a port; only plain ASCII names are allowed"
                )?;
            }
            Reason::HostMismatch => write!(
                f,
                "the Host header names \"{host}\", the URL another host; send the same host in both"
            )?,
        }
        match entry {
            Some(entry) if setting.is_empty() => write!(f, "; the entry {entry} would allow it"),
            Some(entry) => write!(f, "; the operator can allow it with {setting}{entry}"),
            None => Ok(()),
        }
    }
}

/// Bytes of a client made fit for a line of a log.
fn shown(bytes: &[u8]) -> String {
    bytes.escape_ascii().take(NAME_MAX).map(char::from).collect()
}

/// The statuses that the proxy itself answers with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    BadRequest,
    Forbidden,
    RequestTimeout,
    HeadTooLarge,
    NotImplemented,
    BadGateway,
    GatewayTimeout,
    Version,
}

impl Status {
    fn line(self) -> &'static str {
        match self {
            Self::BadRequest => "400 Bad Request",
            Self::Forbidden => "403 Forbidden",
            Self::RequestTimeout => "408 Request Timeout",
            Self::HeadTooLarge => "431 Request Header Fields Too Large",
            Self::NotImplemented => "501 Not Implemented",
            Self::BadGateway => "502 Bad Gateway",
            Self::GatewayTimeout => "504 Gateway Timeout",
            Self::Version => "505 HTTP Version Not Supported",
        }
    }
}

/// A response of the proxy itself, and the denial behind it if there is one.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) status: Status,
    pub(crate) text: String,
    pub(crate) denied: Option<Denied>,
}

impl Refusal {
    pub(crate) fn new(status: Status, text: impl Into<String>) -> Self {
        Self { status, text: text.into(), denied: None }
    }

    /// The request cannot be understood in one way only.
    pub(crate) fn bad_request(text: impl Into<String>) -> Self {
        Self::new(Status::BadRequest, text)
    }

    /// The whole response; without its body for a `HEAD` request.
    pub(crate) fn response(&self, with_body: bool) -> Vec<u8> {
        let Self { status, text, .. } = self;
        let status = status.line();
        let length = text.len() + 1;
        let mut response = format!(
            "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
        );
        if with_body {
            response.push_str(text);
            response.push('\n');
        }
        response.into_bytes()
    }
}

impl From<Denied> for Refusal {
    fn from(denied: Denied) -> Self {
        let status = match denied.reason {
            Reason::NotAHost | Reason::HostMismatch => Status::BadRequest,
            _ => Status::Forbidden,
        };
        Self { status, text: denied.to_string(), denied: Some(denied) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(target: &str, reason: Reason, expected: &str) {
        let target = Authority::parse(target, None).unwrap();
        let denied = Denied::new(&target, reason, false, &"".into());
        assert_eq!(denied.to_string(), expected);
    }

    #[test]
    fn a_denial_says_what_to_do() {
        check(
            "example.com:443",
            Reason::HostNotListed,
            "host example.com is not on the allow-list; the entry example.com would allow it",
        );
        check(
            "example.com:8443",
            Reason::HostNotListed,
            "host example.com is not on the allow-list; the entry example.com:8443 would allow it",
        );
        check(
            "example.com:22",
            Reason::PortNotListed,
            "port 22 of host example.com is not on the allow-list; the entry example.com:22 would allow it",
        );
        check(
            "[2606:4700::1]:443",
            Reason::HostNotListed,
            "address [2606:4700::1] is not on the allow-list; ask for the host by its name; the entry [2606:4700::1] would allow it",
        );
        check(
            "169.254.169.254:80",
            Reason::HostNotListed,
            "address 169.254.169.254 is not on the allow-list; the entry private:169.254.169.254 would allow it",
        );
        check(
            "0.0.0.0:8080",
            Reason::HostNotListed,
            "address 0.0.0.0 is not on the allow-list; no rule can allow it, for it is not the address of one host",
        );
        check(
            "db.example:5432",
            Reason::PrivateAddress,
            "host db.example has no public address; the entry private:db.example:5432 would allow it",
        );
    }

    #[test]
    fn an_entry_that_is_offered_is_one_that_a_list_takes() {
        for (target, reason, private, expected) in [
            ("[::1]:8080", Reason::PortNotListed, false, Some("private:[::1]:8080")),
            ("localhost:8080", Reason::PortNotListed, true, Some("private:localhost:8080")),
            ("example.com:80", Reason::PortNotListed, false, Some("example.com:80")),
            ("10.0.0.1:443", Reason::HostNotListed, false, Some("private:10.0.0.1")),
            ("255.255.255.255:80", Reason::HostNotListed, false, None),
            ("blocked.example:80", Reason::UnusableAddress, false, None),
        ] {
            let target = Authority::parse(target, None).unwrap();
            let denied = Denied::new(&target, reason, private, &"--allow=".into());
            assert_eq!(denied.entry.as_deref(), expected, "{target:?}");
            if let Some(entry) = &denied.entry {
                let rules = crate::HostRules::parse(entry).unwrap();
                assert!(matches!(rules.verdict(&target), crate::rules::Verdict::Allowed { .. }));
                let end = format!("; the operator can allow it with --allow={entry}");
                assert!(denied.to_string().ends_with(&end), "{denied}");
            }
        }
    }

    #[test]
    fn text_of_a_client_is_escaped_and_cut() {
        let denied = Denied::of_text(b"a\r\n\x1b[2J\xff\"", 0, Reason::NotAHost);
        assert_eq!(denied.host, r#"a\r\n\x1b[2J\xff\""#);
        let long = Denied::of_text(&[b'\n'; 1000], 0, Reason::NotAHost);
        assert_eq!(long.host.len(), NAME_MAX);
        assert!(!long.to_string().contains('\n'));
    }

    #[test]
    fn a_response_is_whole_and_closes() {
        let refusal = Refusal::bad_request("no");
        let whole = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 3\r\nConnection: close\r\n\r\nno\n";
        assert_eq!(refusal.response(true), whole.as_bytes());
        assert!(refusal.response(false).ends_with(b"\r\n\r\n"));
    }
}
