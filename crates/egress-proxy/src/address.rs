//! Which addresses lie out on the internet, and which lie near the server.
//!
//! A name on the allow-list says nothing about where it resolves to: whoever owns the name can point it at
//! the server itself, its neighbours or its cloud's metadata service. The ranges are those of the IANA
//! special-purpose registries ([IPv4], [IPv6]); IPv6 is public only within `2000::/3`, so that a range nobody
//! thought of is refused.
//!
//! [IPv4]: https://www.iana.org/assignments/iana-ipv4-special-registry
//! [IPv6]: https://www.iana.org/assignments/iana-ipv6-special-registry

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Where an address leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// A host on the internet.
    Public,
    /// The server itself, its networks, its cloud's metadata: only through a `private:` rule.
    Private,
    /// No single host: no rule allows it.
    Never,
}

/// Says where `address` leads; an IPv6 address that carries an IPv4 one leads where that does.
pub(crate) fn reach(address: IpAddr) -> Reach {
    match address {
        IpAddr::V4(address) => reach_v4(address),
        IpAddr::V6(address) => reach_v6(address),
    }
}

#[expect(clippy::match_same_arms, reason = "one line for each kind of range")]
fn reach_v4(address: Ipv4Addr) -> Reach {
    match address.octets() {
        // "This network" (0.0.0.0 dials the machine itself), multicast, reserved and broadcast.
        [0 | 224..=255, ..] => Reach::Never,
        // Loopback and RFC 1918.
        [10 | 127, ..] | [192, 168, ..] | [172, 16..=31, ..] => Reach::Private,
        // Link-local with the metadata services; Azure keeps one at a public address.
        [169, 254, ..] | [168, 63, 129, 16] => Reach::Private,
        // Carrier-grade NAT and benchmarks.
        [100, 64..=127, ..] | [198, 18..=19, ..] => Reach::Private,
        // Protocol assignments, the 6to4 relay, documentation.
        [192, 0, 0 | 2, _] | [192, 88, 99, _] | [198, 51, 100, _] | [203, 0, 113, _] => {
            Reach::Private
        }
        _ => Reach::Public,
    }
}

#[expect(clippy::match_same_arms, reason = "one line for each kind of range")]
fn reach_v6(address: Ipv6Addr) -> Reach {
    let segments = address.segments();
    match segments {
        [0, 0, 0, 0, 0, 0, 0, 1] => Reach::Private,
        // IPv4-mapped, NAT64 (RFC 6052) and 6to4 (RFC 3056).
        [0, 0, 0, 0, 0, 0xffff, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x2002, high, low, ..] => reach_v4(join(high, low)),
        // Translation prefixes of a local network (RFC 8215): they can carry any address.
        [0x64, 0xff9b, 1, ..] => Reach::Private,
        // Unique local, link-local, site-local.
        [0xfc00..=0xfdff | 0xfe80..=0xfeff, ..] => Reach::Private,
        // Protocol assignments with Teredo and benchmarks (2001::/23), documentation (two blocks).
        [0x2001, 0..=0x1ff | 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => Reach::Private,
        [0x2000..=0x3fff, ..] => Reach::Public,
        // Unspecified, IPv4-compatible, discard, multicast, and whatever is not assigned.
        _ => Reach::Never,
    }
}

fn join(high: u16, low: u16) -> Ipv4Addr {
    let [[a, b], [c, d]] = [high.to_be_bytes(), low.to_be_bytes()];
    Ipv4Addr::new(a, b, c, d)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(expected: Reach, addresses: &[&str]) {
        for text in addresses {
            let address: IpAddr = text.parse().unwrap();
            assert_eq!(reach(address), expected, "{text}");
        }
    }

    #[test]
    fn public() {
        check(
            Reach::Public,
            &[
                "1.1.1.1",
                "8.8.8.8",
                "9.255.255.255",
                "11.0.0.0",
                "100.63.255.255",
                "100.128.0.0",
                "126.255.255.255",
                "128.0.0.0",
                "168.63.129.15",
                "168.63.129.17",
                "169.253.255.255",
                "169.255.0.0",
                "172.15.255.255",
                "172.32.0.0",
                "192.0.1.0",
                "192.0.3.0",
                "192.167.255.255",
                "192.169.0.0",
                "198.17.255.255",
                "198.20.0.0",
                "223.255.255.255",
                "2606:4700::1111",
                "2001:200::1",
                "2a00::1",
                "::ffff:8.8.8.8",
                "64:ff9b::8.8.8.8",
                "2002:808:808::1",
            ],
        );
    }

    #[test]
    fn private() {
        check(
            Reach::Private,
            &[
                "127.0.0.1",
                "127.255.255.254",
                "10.0.0.0",
                "10.255.255.255",
                "172.16.0.0",
                "172.31.255.255",
                "192.168.0.1",
                "169.254.169.254",
                "169.254.0.0",
                "168.63.129.16",
                "100.64.0.0",
                "100.100.100.200",
                "100.127.255.255",
                "192.0.0.192",
                "192.0.2.1",
                "198.18.0.0",
                "198.19.255.255",
                "198.51.100.7",
                "203.0.113.9",
                "192.88.99.1",
                "::1",
                "fc00::1",
                "fd00:ec2::254",
                "fdff::1",
                "fe80::1",
                "febf::1",
                "fec0::1",
                "2001::1",
                "2001:2::1",
                "2001:1ff::1",
                "2001:db8::1",
                "3fff:fff::1",
                "64:ff9b:1::808:808",
                // The same, carried inside.
                "::ffff:127.0.0.1",
                "::ffff:10.1.2.3",
                "::ffff:169.254.169.254",
                "64:ff9b::127.0.0.1",
                "64:ff9b::a9fe:a9fe",
                "2002:7f00:1::",
                "2002:a9fe:a9fe::1",
                "2002:c0a8:101::1",
            ],
        );
    }

    #[test]
    fn never() {
        check(
            Reach::Never,
            &[
                "0.0.0.0",
                "0.1.2.3",
                "224.0.0.1",
                "239.255.255.255",
                "240.0.0.1",
                "255.255.255.255",
                "::",
                "::8.8.8.8",
                "::127.0.0.1",
                "ff02::1",
                "100::1",
                "5f00::1",
                "4000::1",
                "::ffff:0.0.0.0",
                "::ffff:255.255.255.255",
                "64:ff9b::0.0.0.0",
                "2002::1",
                "::ffff:0:7f00:1",
            ],
        );
    }
}
