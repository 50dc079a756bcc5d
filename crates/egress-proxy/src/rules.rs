//! The allow-list as the operator writes it, and what it says about a host and a port.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use crate::address::{Reach, reach};
use crate::host::{Authority, BadHost, Host, parse_port, split};

/// The ports of a rule that names none: HTTP and HTTPS.
const WEB_PORTS: [u16; 2] = [80, 443];

/// What stands before a host that may have a private address, in any case.
pub(crate) const PRIVATE: &str = "private:";

/// Why an allow-list cannot be used; `item` is the entry as it was written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadRule {
    /// There is no entry, or one is missing between two commas.
    #[error("the allow-list has an empty entry; write HOST,HOST or leave the network off")]
    Empty,
    /// The entry is not `HOST`, `HOST:PORT` or `*.HOST` with an optional `private:` before it.
    #[error("the entry `{item}` names no host")]
    Host {
        /// The entry.
        item: String,
        /// What is wrong with its host or port.
        source: BadHost,
    },
    /// A wildcard below a single label would allow half of the internet.
    #[error(
        "the entry `{item}` allows a whole top-level domain; name the hosts, or write `private:{item}` for a local one"
    )]
    TooWide {
        /// The entry.
        item: String,
    },
    /// An address near the server stands there without `private:`.
    #[error("the entry `{item}` is a private address; write `private:{item}` to allow it")]
    Private {
        /// The entry.
        item: String,
    },
    /// A multicast, broadcast, reserved or unspecified address.
    #[error("the entry `{item}` is not the address of one host")]
    Never {
        /// The entry.
        item: String,
    },
}

/// The hosts that commands may reach.
///
/// A rule is `HOST`, `HOST:PORT` or `*.HOST` (every name below `HOST`, not `HOST` itself); without a port it
/// allows 80 and 443. `private:` before it, in any case, lets the host resolve to a loopback, private or link-local address.
/// `HOST` is an ASCII name in any case, or one exact address (`192.0.2.1`, `[2001:db8::1]`); an address
/// in a request never matches a rule with a name.
///
/// ```
/// use egress_proxy::HostRules;
///
/// let rules = HostRules::parse("index.example.net, *.files.example.net, private:registry.internal:5000")?;
/// assert_eq!(rules.to_string(), "index.example.net,*.files.example.net,private:registry.internal:5000");
/// assert!(HostRules::parse("http://index.example.net/").is_err());
/// # Ok::<(), egress_proxy::BadRule>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostRules {
    rules: Vec<Rule>,
    given_as: Arc<str>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Rule {
    pattern: Pattern,
    /// `None`: [`WEB_PORTS`].
    port: Option<u16>,
    private: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Pattern {
    Exact(Host),
    Below(String),
}

/// What the list says about a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Allowed {
        private: bool,
    },
    HostNotListed,
    /// `private` if any rule for the host says so.
    PortNotListed {
        private: bool,
    },
}

impl HostRules {
    /// Reads a comma-separated list; blanks around an entry are ignored.
    ///
    /// # Errors
    ///
    /// [`BadRule::Empty`] for a list or an entry without text, [`BadRule::Host`] for a host or port that is none,
    /// [`BadRule::TooWide`] for `*.com`, [`BadRule::Private`] and [`BadRule::Never`] for addresses that need
    /// `private:` or cannot be allowed. One bad entry refuses the whole list.
    ///
    /// # Security
    ///
    /// The list is the operator's word; text of a model or a workspace must not reach it.
    pub fn parse(list: &str) -> Result<Self, BadRule> {
        let rules =
            list.split(',').map(|item| Rule::parse(item.trim())).collect::<Result<_, _>>()?;
        Ok(Self { rules, given_as: "".into() })
    }

    /// What stands before an entry where the operator gives the list, such as `--allow=`: denials then name the whole
    /// setting that would help, else the entry alone.
    #[must_use]
    pub fn given_as(self, setting: &str) -> Self {
        Self { given_as: setting.into(), ..self }
    }

    /// Whether some entry is for `host`, whatever the port: a name, or an address as an entry has it. A text that is
    /// neither is in no list.
    #[must_use]
    pub fn mentions(&self, host: &str) -> bool {
        Host::parse(host)
            .is_ok_and(|host| self.rules.iter().any(|rule| rule.pattern.matches(&host)))
    }

    /// The setting before an entry, empty where none is known.
    pub(crate) fn setting(&self) -> &Arc<str> {
        &self.given_as
    }

    /// Judges a host and a port; `private` if any rule that matches says so.
    pub(crate) fn verdict(&self, target: &Authority) -> Verdict {
        let mut verdict = Verdict::HostNotListed;
        for rule in self.rules.iter().filter(|rule| rule.pattern.matches(&target.host)) {
            let port_listed = match rule.port {
                Some(port) => port == target.port,
                None => WEB_PORTS.contains(&target.port),
            };
            verdict = match verdict {
                Verdict::Allowed { private } if port_listed => {
                    Verdict::Allowed { private: private || rule.private }
                }
                Verdict::Allowed { .. } => verdict,
                _ if port_listed => Verdict::Allowed { private: rule.private },
                Verdict::PortNotListed { private } => {
                    Verdict::PortNotListed { private: private || rule.private }
                }
                Verdict::HostNotListed => Verdict::PortNotListed { private: rule.private },
            };
        }
        verdict
    }
}

impl fmt::Display for HostRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, rule) in self.rules.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            let private = if rule.private { PRIVATE } else { "" };
            write!(f, "{comma}{private}{}", rule.pattern)?;
            if let Some(port) = rule.port {
                write!(f, ":{port}")?;
            }
        }
        Ok(())
    }
}

impl Rule {
    fn parse(item: &str) -> Result<Self, BadRule> {
        if item.is_empty() {
            return Err(BadRule::Empty);
        }
        let bad_host = |source| BadRule::Host { item: item.to_owned(), source };
        let (private, text) = match item.split_at_checked(PRIVATE.len()) {
            Some((prefix, rest)) if prefix.eq_ignore_ascii_case(PRIVATE) => {
                (true, rest.trim_start())
            }
            _ => (false, item),
        };
        let (below, text) = match text.strip_prefix("*.") {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (host, port) = split(text).map_err(bad_host)?;
        let host = Host::parse(host).map_err(bad_host)?;
        let port = port.map(parse_port).transpose().map_err(bad_host)?;
        let pattern = match host {
            Host::Address(_) if below => return Err(bad_host(BadHost::Character)),
            Host::Address(address) => {
                may_list(address, private, item)?;
                Pattern::Exact(host)
            }
            Host::Name(name) if below => {
                if !private && !name.contains('.') {
                    return Err(BadRule::TooWide { item: item.to_owned() });
                }
                Pattern::Below(name)
            }
            Host::Name(_) => Pattern::Exact(host),
        };
        Ok(Self { pattern, port, private })
    }
}

fn may_list(address: IpAddr, private: bool, item: &str) -> Result<(), BadRule> {
    match reach(address) {
        Reach::Public => Ok(()),
        Reach::Private if private => Ok(()),
        Reach::Private => Err(BadRule::Private { item: item.to_owned() }),
        Reach::Never => Err(BadRule::Never { item: item.to_owned() }),
    }
}

impl Pattern {
    fn matches(&self, host: &Host) -> bool {
        match (self, host) {
            (Self::Exact(listed), host) => listed == host,
            (Self::Below(parent), Host::Name(name)) => name
                .strip_suffix(parent.as_str())
                .and_then(|rest| rest.strip_suffix('.'))
                .is_some_and(|label| !label.is_empty()),
            (Self::Below(_), Host::Address(_)) => false,
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(host) => host.fmt(f),
            Self::Below(parent) => write!(f, "*.{parent}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALLOWED: Verdict = Verdict::Allowed { private: false };
    const WEB_ONLY: Verdict = Verdict::PortNotListed { private: false };
    const NEAR: Verdict = Verdict::Allowed { private: true };

    fn check(rules: &str, target: &str, expected: Verdict) {
        let rules = HostRules::parse(rules).unwrap();
        let target = Authority::parse(target, None).unwrap();
        assert_eq!(rules.verdict(&target), expected, "{rules} for {target:?}");
    }

    #[test]
    fn exact_names() {
        check("example.com", "example.com:443", ALLOWED);
        check("example.com", "example.com:80", ALLOWED);
        check("example.com", "EXAMPLE.com.:443", ALLOWED);
        check("Example.COM.", "example.com:443", ALLOWED);
        check("example.com", "example.com:22", WEB_ONLY);
        check("example.com", "www.example.com:443", Verdict::HostNotListed);
        check("example.com", "example.com.evil.example:443", Verdict::HostNotListed);
        check("example.com", "evilexample.com:443", Verdict::HostNotListed);
        check("example.com:8443", "example.com:8443", ALLOWED);
        check("example.com:8443", "example.com:443", WEB_ONLY);
    }

    #[test]
    fn names_below() {
        check("*.example.com", "a.example.com:443", ALLOWED);
        check("*.example.com", "a.b.example.com:80", ALLOWED);
        check("*.example.com", "example.com:443", Verdict::HostNotListed);
        check("*.example.com", "evilexample.com:443", Verdict::HostNotListed);
        check("*.example.com:8080", "a.example.com:80", WEB_ONLY);
        check("private:*.internal", "a.internal:443", NEAR);
        check("PRIVATE:*.internal,Private: b.example", "a.internal:443", NEAR);
        check("PRIVATE:*.internal,Private: b.example", "b.example:443", NEAR);
    }

    #[test]
    fn addresses_match_only_themselves() {
        check("*.example.com,1.1.1.1", "1.1.1.1:443", ALLOWED);
        check("*.example.com,1.1.1.1", "1.1.1.2:443", Verdict::HostNotListed);
        check("1.1.1.1", "[::ffff:1.1.1.1]:443", Verdict::HostNotListed);
        check("private:[::1]:8080", "[::1]:8080", NEAR);
        let near_port = Verdict::PortNotListed { private: true };
        check("private:127.0.0.1:8080", "127.0.0.1:8081", near_port);
        check("private:a.example:81,a.example:82", "a.example:80", near_port);
        check("a.example:82,private:a.example:81", "a.example:80", near_port);
        check("private:localhost", "127.0.0.1:80", Verdict::HostNotListed);
    }

    #[test]
    fn any_rule_that_matches_counts() {
        check("a.example,a.example:22", "a.example:22", ALLOWED);
        check("a.example:22,a.example", "a.example:80", ALLOWED);
        check("a.example,private:a.example", "a.example:80", NEAR);
        check("private:a.example,a.example", "a.example:80", NEAR);
        // `private:` goes no further than its own port.
        check("private:a.example:5000,a.example", "a.example:80", ALLOWED);
        check("a.example,private:a.example:5000", "a.example:80", ALLOWED);
    }

    #[test]
    fn a_host_is_mentioned_with_any_port() {
        let rules = HostRules::parse("private:localhost:8080,*.example.com,private:[::1]").unwrap();
        for host in ["localhost", "LOCALHOST.", "a.example.com", "[::1]"] {
            assert!(rules.mentions(host), "{host}");
        }
        for host in ["127.0.0.1", "example.com", "::1", "a b", ""] {
            assert!(!rules.mentions(host), "{host}");
        }
    }

    #[test]
    fn bad_lists_are_refused_whole() {
        for list in ["", " ", "a.example,", ",a.example", "a.example,,b.example"] {
            assert_eq!(HostRules::parse(list), Err(BadRule::Empty), "{list:?}");
        }
        for list in [
            "*",
            "*.",
            "*.*.example",
            "a.*.example",
            "http://a.example",
            "a.example/path",
            "u@a.example",
            "a.example:0",
            "a.example:http",
            "a.example:",
            "private:",
            "private:8080",
            "a example",
            "*.1.1.1.1",
            "::1",
            "127.1",
            "a.example\0",
            "PRIVATE:",
            "PRIVATE:57",
            "good.example,bad host",
        ] {
            let seen = HostRules::parse(list);
            assert!(matches!(seen, Err(BadRule::Host { .. })), "{list:?}: {seen:?}");
        }
        for list in ["*.com", "*.com:443", "*.internal"] {
            assert!(matches!(HostRules::parse(list), Err(BadRule::TooWide { .. })), "{list:?}");
        }
        for list in ["127.0.0.1", "10.0.0.1:80", "[::1]", "169.254.169.254", "[::ffff:10.0.0.1]"] {
            assert!(matches!(HostRules::parse(list), Err(BadRule::Private { .. })), "{list:?}");
        }
        for list in ["private:0.0.0.0", "255.255.255.255", "private:[::]", "private:[ff02::1]"] {
            assert!(matches!(HostRules::parse(list), Err(BadRule::Never { .. })), "{list:?}");
        }
    }

    #[test]
    fn an_error_names_the_entry_and_keeps_its_cause() {
        let error = HostRules::parse("a.example,b example").unwrap_err();
        assert_eq!(error.to_string(), "the entry `b example` names no host");
        let source = std::error::Error::source(&error).unwrap().to_string();
        assert!(source.starts_with("only ASCII letters"), "{source}");
    }
}
