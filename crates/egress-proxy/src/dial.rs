//! From a checked name to a connected socket: resolved once, every address judged, a judged address dialled.
//!
//! A second resolution would be a second answer, and the one who answers may be hostile (DNS rebinding).

use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs as _, UdpSocket};
use std::time::{Duration, Instant};

use crate::address::{Reach, reach};
use crate::host::{Authority, Host};

/// The most addresses of one name that are tried.
const ADDRESSES_MAX: usize = 8;

/// Why there is no connection.
#[derive(Debug)]
pub(crate) enum NotDialled {
    /// The host has addresses, and a `private:` rule would open some.
    Private,
    /// The host has addresses, and no rule opens any.
    Unusable,
    Resolution(io::Error),
    Connection(io::Error),
}

/// Connects to `target` within `limit` (the resolution not counted: the resolver has its own limits).
pub(crate) fn dial(
    target: &Authority,
    private: bool,
    limit: Duration,
) -> Result<TcpStream, NotDialled> {
    let found: Vec<SocketAddr> = match &target.host {
        Host::Address(address) => vec![SocketAddr::new(*address, target.port)],
        Host::Name(name) => {
            let found = (name.as_str(), target.port).to_socket_addrs();
            found.map_err(NotDialled::Resolution)?.collect()
        }
    };
    if found.is_empty() {
        return Err(NotDialled::Resolution(io::ErrorKind::NotFound.into()));
    }
    let judged = permitted(&found, private, is_own);
    if judged.is_empty() {
        let hopeless = found.iter().all(|address| reach(address.ip()) == Reach::Never);
        return Err(if hopeless { NotDialled::Unusable } else { NotDialled::Private });
    }
    connect(&judged, limit).map_err(NotDialled::Connection)
}

/// The addresses that may be dialled, in the resolver's order.
fn permitted(found: &[SocketAddr], private: bool, is_own: fn(IpAddr) -> bool) -> Vec<SocketAddr> {
    let may_dial = |address: &&SocketAddr| match reach(address.ip()) {
        Reach::Public => private || !is_own(address.ip()),
        Reach::Private => private,
        Reach::Never => false,
    };
    found.iter().filter(may_dial).copied().take(ADDRESSES_MAX).collect()
}

/// Whether a public address is this machine's: what listens there may be meant for its neighbours alone.
///
/// Asks the routing table through a datagram socket that sends nothing: the kernel gives a packet to oneself the same
/// address as its source.
fn is_own(address: IpAddr) -> bool {
    let any: IpAddr = match address {
        IpAddr::V4(_) => std::net::Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
    };
    let source = UdpSocket::bind((any, 0)).and_then(|socket| {
        socket.connect((address, 9))?;
        socket.local_addr()
    });
    // Without a route there is nothing to dial either.
    source.is_ok_and(|source| source.ip() == address)
}

/// Tries each address; one that does not answer leaves the later ones their share of the time.
fn connect(addresses: &[SocketAddr], limit: Duration) -> io::Result<TcpStream> {
    let deadline = Instant::now() + limit;
    let mut failure = io::Error::from(io::ErrorKind::TimedOut);
    for (address, left) in addresses.iter().zip((1..=addresses.len()).rev()) {
        let share = deadline
            .saturating_duration_since(Instant::now())
            .checked_div(u32::try_from(left).unwrap_or(u32::MAX))
            .unwrap_or_default();
        if share.is_zero() {
            break;
        }
        match TcpStream::connect_timeout(address, share) {
            Ok(stream) => return Ok(stream),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(found: &[&str], private: bool, expected: &[&str]) {
        let parse = |texts: &[&str]| -> Vec<SocketAddr> {
            texts.iter().map(|text| text.parse().unwrap()).collect()
        };
        let own = |address: IpAddr| address.to_string() == "8.8.4.4";
        assert_eq!(permitted(&parse(found), private, own), parse(expected), "{found:?}");
    }

    #[test]
    fn only_judged_addresses_remain() {
        check(&["8.8.8.8:443", "127.0.0.1:443"], false, &["8.8.8.8:443"]);
        check(&["127.0.0.1:443", "[::1]:443", "[::ffff:10.0.0.1]:443"], false, &[]);
        check(&["169.254.169.254:80", "[fd00:ec2::254]:80"], false, &[]);
        check(&["127.0.0.1:443", "8.8.8.8:443"], true, &["127.0.0.1:443", "8.8.8.8:443"]);
        check(&["0.0.0.0:80", "[::]:80", "255.255.255.255:80"], true, &[]);
        check(&["8.8.4.4:80"], false, &[]);
        check(&["8.8.4.4:80"], true, &["8.8.4.4:80"]);
        check(&["1.1.1.1:80"; 20], false, &["1.1.1.1:80"; ADDRESSES_MAX]);
    }

    #[test]
    fn a_refusal_says_whether_a_rule_could_help() {
        let dial = |target: &str, private| {
            let target = Authority::parse(target, None).unwrap();
            dial(&target, private, Duration::from_secs(1)).unwrap_err()
        };
        assert!(matches!(dial("localhost:80", false), NotDialled::Private));
        assert!(matches!(dial("127.0.0.1:80", false), NotDialled::Private));
        assert!(matches!(dial("0.0.0.0:80", false), NotDialled::Unusable));
        assert!(matches!(dial("[::]:80", true), NotDialled::Unusable));
    }

    #[test]
    fn the_machine_knows_its_own_address() {
        assert!(is_own(std::net::Ipv4Addr::LOCALHOST.into()));
        assert!(!is_own(std::net::Ipv4Addr::new(192, 0, 2, 1).into()));
    }

    #[test]
    fn an_address_that_refuses_leaves_the_next_its_turn() {
        let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let open = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let open_at = open.local_addr().unwrap();
        let stream = connect(&[closed, open_at], Duration::from_secs(5)).unwrap();
        assert_eq!(stream.peer_addr().unwrap(), open_at);
        let error = connect(&[closed], Duration::from_secs(5)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
        assert_eq!(
            connect(&[open_at], Duration::ZERO).unwrap_err().kind(),
            io::ErrorKind::TimedOut
        );
    }
}
