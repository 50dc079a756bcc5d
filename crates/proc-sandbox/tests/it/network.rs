//! Sockets: none without the network, internet alone with it.

use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};

use proc_sandbox::Net;

use crate::host::with_python;
use crate::{Place, check_attack};

/// A Python program that prints `REACHED` when `body` ends without an error.
fn attack(body: &str) -> String {
    format!("python3 - <<'X'\nimport socket\n{body}\nprint('REACHED')\nX\n")
}

fn online() -> Place {
    let home = std::env::var_os("HOME").unwrap();
    Place::with("", |policy| policy.home(&home).net(Net::On))
}

#[test]
fn tcp_is_closed_without_the_network_and_open_with_it() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let attack = attack(&format!("socket.create_connection(('127.0.0.1', {port}), 5)"));
    let Some(place) = with_python() else { return };
    check_attack(&place, &attack, "REACHED");
    let online = online();
    for sandbox in online.all() {
        assert_eq!(online.confined_by(sandbox, &attack).succeeded(), "REACHED\n");
    }
}

#[test]
fn udp_is_closed_without_the_network() {
    let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
    receiver.set_nonblocking(true).unwrap();
    let port = receiver.local_addr().unwrap().port();
    let attack = attack(&format!(
        "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', {port}))"
    ));
    let Some(place) = with_python() else { return };
    place.open(&attack).succeeded();
    for sandbox in place.all() {
        // On a loopback network of its own it is sent, to nobody.
        place.confined_by(sandbox, &attack);
    }
    // That of the open run, and no more.
    assert_eq!((0..9).take_while(|_| receiver.recv(&mut [0; 4]).is_ok()).count(), 1);
}

#[test]
fn unix_sockets_of_others_are_closed_with_and_without_the_network() {
    let Some(place) = with_python() else { return };
    let name = format!("proc-sandbox-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    let _abstract = UnixListener::bind_addr(&address).unwrap();
    let path = place.fixture.outside().join("engine.sock");
    let _path = UnixListener::bind(&path).unwrap();
    for address in [format!("'\\0{name}'"), format!("'{}'", path.display())] {
        let attack = attack(&format!("socket.socket(socket.AF_UNIX).connect({address})"));
        check_attack(&place, &attack, "REACHED");
        let online = online();
        for sandbox in online.all() {
            assert!(!online.confined_by(sandbox, &attack).text.contains("REACHED"));
        }
    }
}

#[test]
fn a_datagram_pair_cannot_send_to_a_path() {
    let Some(place) = with_python() else { return };
    let path = place.fixture.outside().join("log.sock");
    let receiver = std::os::unix::net::UnixDatagram::bind(&path).unwrap();
    receiver.set_nonblocking(true).unwrap();
    for kind in ["SOCK_DGRAM", "SOCK_RAW"] {
        let attack = attack(&format!(
            "socket.socketpair(socket.AF_UNIX, socket.{kind})[0].sendto(b'x', '{}')",
            path.display()
        ));
        check_attack(&place, &attack, "REACHED");
    }
    // The two of the open runs, and no more.
    let mut buffer = [0; 4];
    assert_eq!((0..9).take_while(|_| receiver.recv(&mut buffer).is_ok()).count(), 2);
}

#[test]
fn pairs_of_streams_work() {
    let script = attack("a, b = socket.socketpair(); a.send(b'x'); assert b.recv(1) == b'x'");
    let Some(place) = with_python() else { return };
    assert_eq!(place.confined(&script).succeeded(), "REACHED\n");
}

#[test]
fn other_families_are_closed_with_the_network() {
    for family in ["AF_PACKET, socket.SOCK_RAW", "AF_NETLINK, socket.SOCK_RAW, 16"] {
        let attack = attack(&format!("socket.socket(socket.{family})"));
        assert!(!online().confined(&attack).text.contains("REACHED"), "{family}");
    }
    let route = attack("socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)");
    assert_eq!(online().confined(&route).succeeded(), "REACHED\n");
}
