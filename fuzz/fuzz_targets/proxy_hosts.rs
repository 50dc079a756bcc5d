//! Any text as an allow-list, any targets asked of a proxy that has it: no panic, one spelling for one meaning, and what
//! a naive reading of the list does not name is refused without being looked up.
//!
//! An input is text: the list in the first line, then `HOST:PORT` a line. Targets that the list names are not asked,
//! since the proxy would dial them.
#![no_main]

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use egress_proxy::{Event, HostRules, Proxy, Reason};
use libfuzzer_sys::fuzz_target;

/// Targets asked for one input.
const TARGETS: usize = 4;

/// One entry as a person would read it.
struct Entry {
    below: bool,
    host: String,
    port: Option<u16>,
}

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let mut lines = text.split('\n');
    let list = lines.next().unwrap_or_default();
    let read: Option<Vec<Entry>> = list.split(',').map(entry).collect();
    let rules = match HostRules::parse(list) {
        Err(error) => {
            assert!(!error.to_string().is_empty());
            // Blanks and letter case make nothing allowed.
            assert!(HostRules::parse(&format!(" {}\t", list.to_ascii_lowercase())).is_err());
            return;
        }
        Ok(rules) => rules,
    };
    let read = read.expect("what was taken is an entry for a person too");
    let printed = rules.to_string();
    assert!(printed.is_ascii() && printed == printed.to_ascii_lowercase(), "{printed}");
    // A host that is itself called `private`, with a port, is printed like the word before another host.
    let unclear = read.iter().any(|entry| entry.host == "private" && entry.port.is_some());
    assert!(unclear || HostRules::parse(&printed).as_ref() == Ok(&rules), "{printed}");

    let targets: Vec<&str> = lines
        .filter(|target| target.len() < 400 && !target.contains('\r'))
        .filter(|target| !target.contains([' ', '\t', '\0']) && !target.is_empty())
        .take(TARGETS)
        .collect();
    if !targets.is_empty() {
        ask(rules, &read, &targets);
    }
});

/// Asks the proxy for targets that the entries do not name; each is refused.
fn ask(rules: HostRules, read: &[Entry], targets: &[&str]) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let address = listener.local_addr().expect("an address");
    let proxy =
        Proxy::start(listener.into(), rules, Arc::new(|_: &Event<'_>| {})).expect("a proxy");
    for target in targets {
        let wanted = match split(target) {
            Some((host, Some(port))) if is_host(&host) => Some((host, port)),
            _ => None,
        };
        let reason = match &wanted {
            None => None,
            Some((host, port)) => {
                let mut named = read.iter().filter(|entry| entry.names(host)).peekable();
                let by_host = named.peek().is_some();
                if named.any(|entry| entry.allows(*port)) {
                    continue;
                }
                Some(if by_host { Reason::PortNotListed } else { Reason::HostNotListed })
            }
        };
        let before = proxy.denials().len();
        let mut client = TcpStream::connect(address).expect("the proxy listens");
        client.set_read_timeout(Some(Duration::from_secs(5))).expect("a time-out");
        write!(client, "CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n").expect("it reads");
        client.shutdown(Shutdown::Write).expect("open");
        let mut answer = String::new();
        client.read_to_string(&mut answer).expect("it answers and closes");
        assert!(answer.starts_with("HTTP/1.1 4"), "{target}: {answer}");
        if let (Some(reason), Some((_, port))) = (reason, wanted) {
            let denials = proxy.denials();
            let last = denials.last().expect("a refusal is remembered");
            // An address that is not listed has a reason of its own, and the proxy may be stricter about what a host is.
            let fits = match last.reason {
                Reason::NotAHost => true,
                Reason::AddressNotListed => last.port == port,
                other => other == reason && last.port == port,
            };
            assert!(fits && denials.len() >= before, "{target}: {last:?}");
        }
    }
}

impl Entry {
    fn names(&self, host: &str) -> bool {
        if self.below { host.ends_with(&format!(".{}", self.host)) } else { host == self.host }
    }

    fn allows(&self, port: u16) -> bool {
        self.port.map_or(port == 80 || port == 443, |own| own == port)
    }
}

fn entry(text: &str) -> Option<Entry> {
    let text = text.trim();
    let text = match text.split_at_checked("private:".len()) {
        Some((word, rest)) if word.eq_ignore_ascii_case("private:") => rest.trim_start(),
        _ => text,
    };
    let below = text.starts_with("*.");
    let (host, port) = split(text.strip_prefix("*.").unwrap_or(text))?;
    is_host(&host).then_some(Entry { below, host, port })
}

/// Host and port of a text, the host in the one spelling that is compared.
fn split(text: &str) -> Option<(String, Option<u16>)> {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port.parse().ok()?)),
        _ => (text, None),
    };
    let host = host.to_ascii_lowercase();
    if let Some(inside) = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        let address: Ipv6Addr = inside.parse().ok()?;
        return Some((format!("[{address}]"), port));
    }
    Some((host.strip_suffix('.').map_or(host.clone(), str::to_owned), port))
}

/// An address, or dotted labels that no resolver takes for a number.
fn is_host(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    if bare.parse::<IpAddr>().is_ok() {
        return true;
    }
    let labels: Vec<&str> = host.split('.').collect();
    let last = labels.last().copied().unwrap_or_default();
    host.len() <= 253
        && labels.iter().all(|label| (1..=63).contains(&label.len()))
        && host.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
        && !last.starts_with("0x")
        && last.parse::<u128>().is_err()
}
