//! The proxy between raw sockets: hostile clients in front, a listener on loopback behind a `private:` rule.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use egress_proxy::{Denied, Event, HostRules, Limits, Proxy, Reason};

/// Long enough for a loaded machine; reaching it fails the test.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct Running {
    pub(crate) proxy: Proxy,
    pub(crate) address: SocketAddr,
    pub(crate) logged: Arc<Mutex<Vec<Denied>>>,
}

pub(crate) fn listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

pub(crate) fn start_with(rules: &str, limits: Limits) -> Running {
    let (listener, address) = listener();
    let logged = Arc::new(Mutex::new(Vec::new()));
    let log = {
        let logged = Arc::clone(&logged);
        Arc::new(move |event: &Event<'_>| {
            if let Event::Denied(denied) = event {
                logged.lock().unwrap().push((*denied).clone());
            }
        })
    };
    let rules = HostRules::parse(rules).unwrap();
    let proxy = Proxy::start_with(OwnedFd::from(listener), rules, limits, log).unwrap();
    Running { proxy, address, logged }
}

pub(crate) fn start(rules: &str) -> Running {
    start_with(rules, Limits::default())
}

/// Connects, with patience in both directions.
pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream
}

impl Running {
    pub(crate) fn client(&self) -> TcpStream {
        connect(self.address)
    }

    /// Sends `request`, reads all there is to read.
    pub(crate) fn ask(&self, request: &str) -> String {
        let mut client = self.client();
        client.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        answer
    }

    /// Opens a tunnel.
    pub(crate) fn tunnel(&self, target: &str) -> TcpStream {
        let mut client = self.client();
        client.write_all(format!("CONNECT {target} HTTP/1.1\r\n\r\n").as_bytes()).unwrap();
        assert_eq!(read_head(&mut client), "HTTP/1.1 200 Connection established\r\n\r\n");
        client
    }
}

/// Reads to the end of a head, and not a byte more.
pub(crate) fn read_head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        head.extend(byte);
    }
    String::from_utf8(head).unwrap()
}

/// A target that serves one connection.
pub(crate) fn upstream<T: Send + 'static>(
    serve: impl FnOnce(TcpStream) -> T + Send + 'static,
) -> (SocketAddr, JoinHandle<T>) {
    let (listener, address) = listener();
    let serving = thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        serve(stream)
    });
    (address, serving)
}

/// A target for one plain request: answers after the head and gives everything it was sent.
pub(crate) fn web(answer: &'static str) -> (SocketAddr, JoinHandle<String>) {
    upstream(move |mut stream| {
        let mut received = read_head(&mut stream);
        stream.write_all(answer.as_bytes()).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        stream.read_to_string(&mut received).unwrap();
        received
    })
}

/// Runs `request` (TARGET stands for the target's address) and compares what the target was sent.
fn check_sent(request: &str, expected: &str) {
    const ANSWER: &str = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello";
    let (target, serving) = web(ANSWER);
    let running = start(&format!("private:{target}"));
    let answer = running.ask(&request.replace("TARGET", &target.to_string()));
    assert_eq!(answer, ANSWER, "{request:?}");
    let sent = serving.join().unwrap();
    assert_eq!(sent, expected.replace("TARGET", &target.to_string()), "{request:?}");
    assert_eq!(running.proxy.denials(), []);
}

/// Runs `request` against `rules` (TARGET stands for a listener's port); the target must never see a connection.
fn check_refused(rules: &str, request: &str, status: &str, text: &str, reason: Option<Reason>) {
    let (target, address) = listener();
    target.set_nonblocking(true).unwrap();
    let fill = |text: &str| text.replace("TARGET", &address.port().to_string());
    let running = start(&fill(rules));
    let answer = running.ask(&fill(request));
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{request:?}: {answer}");
    assert!(head.contains("\r\nConnection: close"), "{head}");
    assert!(body.contains(&fill(text)), "{request:?}: {body}");
    assert!(body.ends_with('\n') && body.lines().count() == 1, "{body:?}");
    let denials = running.proxy.denials();
    assert_eq!(denials.first().map(|denied| denied.reason), reason, "{request:?}");
    assert_eq!(*running.logged.lock().unwrap(), denials);
    assert_eq!(running.proxy.denials(), [], "drained");
    assert_eq!(target.accept().unwrap_err().kind(), ErrorKind::WouldBlock, "{request:?}");
}

#[test]
fn a_listed_host_is_reached_in_any_spelling() {
    for name in ["localhost", "LocalHost", "localhost.", "LOCALHOST."] {
        let (target, serving) = upstream(|mut stream| {
            let mut received = [0; 4];
            stream.read_exact(&mut received).unwrap();
            stream.write_all(&received).unwrap();
        });
        let port = target.port();
        let running = start(&format!("example.com,private:localhost:{port}"));
        let mut client = running.tunnel(&format!("{name}:{port}"));
        client.write_all(b"ping").unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        assert_eq!(answer, "ping");
        serving.join().unwrap();
    }
}

#[test]
fn what_is_not_listed_is_refused() {
    let unlisted = Some(Reason::HostNotListed);
    check_refused(
        "private:localhost:TARGET",
        "CONNECT evil.example:TARGET HTTP/1.1\r\n\r\n",
        "403",
        "host evil.example is not on the allow-list; the entry evil.example:TARGET would allow it",
        unlisted,
    );
    check_refused(
        "allowed.example",
        "GET http://allowed.example.evil.example/ HTTP/1.1\r\nHost: allowed.example.evil.example\r\n\r\n",
        "403",
        "host allowed.example.evil.example is not on the allow-list",
        unlisted,
    );
    check_refused(
        "*.allowed.example",
        "CONNECT evilallowed.example:443 HTTP/1.1\r\n\r\n",
        "403",
        "evilallowed.example is not",
        unlisted,
    );
    check_refused(
        "private:localhost",
        "CONNECT localhost:TARGET HTTP/1.1\r\n\r\n",
        "403",
        "port TARGET of host localhost is not on the allow-list; the entry private:localhost:TARGET would allow it",
        Some(Reason::PortNotListed),
    );
    check_refused(
        "private:localhost:TARGET",
        "CONNECT 127.0.0.1:TARGET HTTP/1.1\r\n\r\n",
        "403",
        "address 127.0.0.1 is not on the allow-list",
        Some(Reason::AddressNotListed),
    );
    check_refused(
        "private:127.0.0.1:TARGET",
        "CONNECT [::ffff:127.0.0.1]:TARGET HTTP/1.1\r\n\r\n",
        "403",
        "address [::ffff:127.0.0.1] is not",
        Some(Reason::AddressNotListed),
    );
}

#[test]
fn a_listed_name_does_not_open_private_addresses() {
    let private = Some(Reason::PrivateAddress);
    check_refused(
        "localhost:TARGET",
        "CONNECT localhost:TARGET HTTP/1.1\r\n\r\n",
        "403",
        "host localhost has no public address; the entry private:localhost:TARGET would allow it",
        private,
    );
    check_refused(
        "localhost:TARGET,private:localhost:1",
        "GET http://localhost:TARGET/ HTTP/1.1\r\n\r\n",
        "403",
        "has no public address",
        private,
    );
}

#[test]
fn another_host_in_disguise_is_refused() {
    let disguise = Some(Reason::NotAHost);
    let rules = "private:localhost:TARGET,allowed.example";
    for target in [
        "http://allowed.example@localhost:TARGET/",
        "http://localhost:TARGET@allowed.example/",
        "http://localhost%00.allowed.example:TARGET/",
        "http://127.1:TARGET/",
        "http://2130706433:TARGET/",
        "http://localhost\\.allowed.example:TARGET/",
        "http://localhost:TARGET:80/",
    ] {
        let request = format!("GET {target} HTTP/1.1\r\nHost: allowed.example\r\n\r\n");
        check_refused(rules, &request, "400", "is not a host name", disguise);
    }
    check_refused(
        rules,
        "CONNECT localhost HTTP/1.1\r\n\r\n",
        "400",
        "is not a host name",
        disguise,
    );
    check_refused(
        rules,
        "GET http://localhost:TARGET/ HTTP/1.1\r\nHost: allowed.example\r\n\r\n",
        "400",
        "the Host header names \"allowed.example\", the URL another host",
        Some(Reason::HostMismatch),
    );
}

#[test]
fn what_has_two_readings_is_refused() {
    let rules = "private:localhost:TARGET";
    for headers in [
        "Content-Length: 5\r\nTransfer-Encoding: chunked",
        "Content-Length: 5\r\nContent-Length: 6",
        "Host: localhost:TARGET\r\nHost: localhost:TARGET",
        "X: a\r\n folded",
        "X: a\nY: b",
        "X: a\0b",
        "Transfer-Encoding : chunked",
        "Connection: Content-Length\r\nContent-Length: 5",
    ] {
        let request = format!("POST http://localhost:TARGET/ HTTP/1.1\r\n{headers}\r\n\r\n");
        check_refused(rules, &request, "400", "", None);
    }
    check_refused(
        rules,
        "GET / HTTP/1.1\r\nHost: localhost:TARGET\r\n\r\n",
        "400",
        "this is a proxy",
        None,
    );
    check_refused(rules, "GET http://localhost:TARGET/ HTTP/2.0\r\n\r\n", "505", "HTTP/1.1", None);
    check_refused(rules, "GET ftp://localhost:TARGET/ HTTP/1.1\r\n\r\n", "501", "only http", None);
    check_refused(rules, "\u{16}\u{3}\u{1}\0", "400", "speak plain HTTP", None);
    let long = format!("GET http://localhost:TARGET/{} HTTP/1.1\r\n\r\n", "a".repeat(200_000));
    check_refused(rules, &long, "431", "longer than 16384 bytes", None);
}

#[test]
fn a_refused_client_may_finish_its_sentence() {
    let mut limits = Limits::default();
    limits.linger = PATIENCE;
    let running = start_with("a.example", limits);
    let mut client = running.client();
    // More than the proxy reads of a head: closing over the rest would reset the connection.
    client.write_all(&vec![b'a'; 100_000]).unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
    for _ in 0..100 {
        client.write_all(&[b'a'; 1000]).unwrap();
    }
}

#[test]
fn a_refused_head_request_gets_no_body() {
    let answer = start("a.example").ask("HEAD http://b.example/ HTTP/1.1\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 403 ") && answer.ends_with("\r\n\r\n"), "{answer:?}");
}

#[test]
fn a_plain_request_is_sent_on_alone() {
    check_sent(
        "GET http://TARGET/p?q HTTP/1.1\r\nHost: TARGET\r\nProxy-Connection: keep-alive\r\nAccept: */*\r\n\r\n",
        "GET /p?q HTTP/1.1\r\nHost: TARGET\r\nAccept: */*\r\nConnection: close\r\n\r\n",
    );
    // What follows would be a request with a host that nobody checked.
    check_sent(
        "GET http://TARGET/ HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\nHost: other.example\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: TARGET\r\nConnection: close\r\n\r\n",
    );
    check_sent(
        "POST http://TARGET/ HTTP/1.1\r\nContent-Length: 5\r\n\r\nhelloGET / HTTP/1.1\r\nHost: other.example\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: TARGET\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello",
    );
    check_sent(
        "POST http://TARGET/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\nGET / HTTP/1.1\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: TARGET\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    );
}

#[test]
fn a_broken_body_ends_the_exchange() {
    let (target, serving) = upstream(|mut stream| {
        let mut received = read_head(&mut stream);
        stream.read_to_string(&mut received).unwrap();
        received
    });
    let running = start(&format!("private:{target}"));
    let request = format!(
        "POST http://{target}/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5;smuggled\r\n"
    );
    let mut client = running.client();
    client.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    client.read_to_end(&mut answer).unwrap();
    assert_eq!(answer, b"");
    let received = serving.join().unwrap();
    assert!(received.ends_with("Connection: close\r\n\r\n"), "{received:?}");
}

#[test]
fn a_client_that_closes_its_half_still_gets_its_answer() {
    let (target, serving) = web("HTTP/1.0 200 OK\r\n\r\nlate");
    let running = start(&format!("private:{target}"));
    let mut client = running.client();
    client.write_all(format!("GET http://{target}/ HTTP/1.0\r\n\r\n").as_bytes()).unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    assert_eq!(answer, "HTTP/1.0 200 OK\r\n\r\nlate");
    serving.join().unwrap();
}

#[test]
fn half_close_keeps_the_other_direction() {
    // The client closes first: the target answers after the end.
    let (target, serving) = upstream(|mut stream| {
        let mut received = String::new();
        stream.read_to_string(&mut received).unwrap();
        stream.write_all(format!("got {received}").as_bytes()).unwrap();
    });
    let running = start(&format!("private:{target}"));
    let mut client = running.client();
    // What comes along with the head belongs to the tunnel.
    client.write_all(format!("CONNECT {target} HTTP/1.1\r\n\r\nearly ").as_bytes()).unwrap();
    assert!(read_head(&mut client).starts_with("HTTP/1.1 200 "));
    client.write_all(b"and late").unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    assert_eq!(answer, "got early and late");
    serving.join().unwrap();

    // The target closes first: what the client sends after that arrives.
    let (target, serving) = upstream(|mut stream| {
        stream.write_all(b"banner").unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut received = String::new();
        stream.read_to_string(&mut received).unwrap();
        received
    });
    let running = start(&format!("private:{target}"));
    let mut client = running.tunnel(&target.to_string());
    let mut banner = String::new();
    client.read_to_string(&mut banner).unwrap();
    assert_eq!(banner, "banner");
    client.write_all(b"after the end").unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    assert_eq!(serving.join().unwrap(), "after the end");
}

/// The byte at a place of a large transfer: a lost, doubled or moved piece shows.
fn byte_at(place: usize, seed: usize) -> u8 {
    let mixed = (place ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed.to_be_bytes()[0]
}

fn send_large(mut to: &TcpStream, len: usize, seed: usize) {
    let mut place = 0;
    while place < len {
        let end = len.min(place + 60_000);
        let piece: Vec<u8> = (place..end).map(|place| byte_at(place, seed)).collect();
        to.write_all(&piece).unwrap();
        place = end;
    }
    to.shutdown(Shutdown::Write).unwrap();
}

fn receive_large(mut from: &TcpStream, len: usize, seed: usize) {
    let mut place = 0;
    let mut buffer = vec![0; 50_000];
    loop {
        let count = from.read(&mut buffer).unwrap();
        if count == 0 {
            break;
        }
        for &byte in &buffer[..count] {
            assert!(byte == byte_at(place, seed), "differs at {place}");
            place += 1;
        }
    }
    assert_eq!(place, len);
}

#[test]
fn large_transfers_arrive_whole_in_both_directions_at_once() {
    const LEN: usize = 50_000_000;
    let both = |stream: &TcpStream, sent: usize, received: usize| {
        thread::scope(|scope| {
            scope.spawn(|| send_large(stream, LEN, sent));
            receive_large(stream, LEN, received);
        });
    };
    let (target, serving) = upstream(move |stream| both(&stream, 1, 2));
    let running = start(&format!("private:{target}"));
    let client = running.tunnel(&target.to_string());
    both(&client, 2, 1);
    serving.join().unwrap();
}
