//! Time, number and end: what a hostile client cannot use up, and what dropping a proxy leaves.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use egress_proxy::{Event, HostRules, Limits, Proxy};

use crate::proxy::{PATIENCE, connect, listener, read_head, start, start_with, upstream};

#[test]
fn a_slow_head_runs_out_of_time() {
    let mut limits = Limits::default();
    limits.head = Duration::from_millis(300);
    let running = start_with("a.example", limits);
    let mut client = running.client();
    // A byte whenever the proxy has been silent for a moment: each one is progress, together they are too slow.
    client.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    let started = Instant::now();
    let mut answer = [0; 12];
    loop {
        match client.read(&mut answer) {
            Ok(count) => break assert_eq!(&answer[..count], b"HTTP/1.1 408"),
            Err(error) if error.kind() == ErrorKind::WouldBlock => client.write_all(b"G").unwrap(),
            Err(error) => panic!("{error}"),
        }
        assert!(started.elapsed() < PATIENCE, "a slow head is never cut");
    }
    assert!(started.elapsed() >= Duration::from_millis(290));
}

#[test]
fn a_silent_tunnel_ends_and_one_that_moves_one_way_does_not() {
    let mut limits = Limits::default();
    limits.idle = Duration::from_secs(1);
    let (target, serving) = upstream(|mut stream| {
        // The client never sends: each read times out and paces a byte the other way, for longer than the limit.
        stream.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        for _ in 0..30 {
            let error = stream.read(&mut [0]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::WouldBlock);
            stream.write_all(b"x").unwrap();
        }
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let silent = Instant::now();
        assert_eq!(stream.read(&mut [0]).unwrap(), 0);
        silent.elapsed()
    });
    let running = start_with(&format!("private:{target}"), limits);
    let mut client = running.tunnel(&target.to_string());
    let mut received = String::new();
    client.read_to_string(&mut received).unwrap();
    assert_eq!(received, "x".repeat(30));
    let silence = serving.join().unwrap();
    assert!(silence >= Duration::from_millis(900), "{silence:?}");
}

#[test]
fn connections_beyond_the_limit_wait() {
    let mut limits = Limits::default();
    limits.connections = 1;
    let (target, serving) = upstream(|mut stream| stream.read(&mut [0]).unwrap());
    let running = start_with(&format!("private:{target}"), limits);
    let first = running.tunnel(&target.to_string());
    let mut second = running.client();
    second.write_all(b"GET http://b.example/ HTTP/1.1\r\n\r\n").unwrap();
    second.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    assert_eq!(second.read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
    drop(first);
    second.set_read_timeout(Some(PATIENCE)).unwrap();
    assert!(read_head(&mut second).starts_with("HTTP/1.1 403 "));
    assert_eq!(serving.join().unwrap(), 0);
}

#[test]
fn dropping_ends_every_thread_and_connection() {
    let probe = Arc::new(());
    let log = {
        let probe = Arc::clone(&probe);
        Arc::new(move |_: &Event<'_>| drop(Arc::clone(&probe)))
    };
    let (quiet, quiet_serving) = upstream(|mut stream| stream.read(&mut [0]).unwrap());
    // Sends until the tunnel is full and its writer blocks.
    let (flood, flood_serving) = upstream(|mut stream| {
        stream.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
        let full = loop {
            if let Err(error) = stream.write(&[0; 8192]) {
                break error.kind();
            }
        };
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        (full, stream)
    });
    let (listener, address) = listener();
    let rules = HostRules::parse(&format!("private:{quiet},private:{flood}")).unwrap();
    let proxy = Proxy::start(OwnedFd::from(listener), rules, log).unwrap();
    let open = |request: String| {
        let mut client = connect(address);
        client.write_all(request.as_bytes()).unwrap();
        client
    };
    let mut tunnel = open(format!("CONNECT {quiet} HTTP/1.1\r\n\r\n"));
    read_head(&mut tunnel);
    let mut flooded = open(format!("CONNECT {flood} HTTP/1.1\r\n\r\n"));
    read_head(&mut flooded);
    let mut undecided = open("GET http://".to_owned());
    let (full, _flooding) = flood_serving.join().unwrap();
    assert_eq!(full, ErrorKind::WouldBlock, "the tunnel is full");
    assert!(Arc::strong_count(&probe) > 1);

    let started = Instant::now();
    drop(proxy);
    let took = started.elapsed();
    assert!(took < Duration::from_millis(900), "{took:?}: some thread was waited for in vain");
    // The last thread lets go of what it shares just after it said that it is done.
    while Arc::strong_count(&probe) > 1 {
        assert!(started.elapsed() < PATIENCE, "a thread lives on");
        thread::yield_now();
    }
    assert_eq!(quiet_serving.join().unwrap(), 0);
    for client in [&mut tunnel, &mut flooded, &mut undecided] {
        // An end or a reset, after what was on its way.
        let ended = io::copy(client, &mut io::sink()).map_err(|error| error.kind());
        assert!(matches!(ended, Ok(_) | Err(ErrorKind::ConnectionReset)), "{ended:?}");
    }
    assert_eq!(TcpStream::connect(address).unwrap_err().kind(), ErrorKind::ConnectionRefused);
}

#[test]
fn denials_are_bounded_and_repeated_ones_kept_once() {
    let running = start("a.example");
    for index in 0..70 {
        running.ask(&format!("CONNECT h{index}.example:443 HTTP/1.1\r\n\r\n"));
        running.ask("CONNECT again.example:443 HTTP/1.1\r\n\r\n");
    }
    let hosts: Vec<String> =
        running.proxy.denials().into_iter().map(|denied| denied.host).collect();
    assert_eq!(hosts.len(), 64);
    assert_eq!(hosts.first().map(String::as_str), Some("h7.example"));
    assert_eq!(hosts.last().map(String::as_str), Some("again.example"));
    assert_eq!(hosts.iter().filter(|host| *host == "again.example").count(), 1);
    assert_eq!(running.logged.lock().unwrap().len(), 140);
}

#[test]
fn an_allowed_host_that_is_down_is_no_denial() {
    let (closed, address) = listener();
    drop(closed);
    let running = start(&format!("private:{address}"));
    let answer = running.ask(&format!("CONNECT {address} HTTP/1.1\r\n\r\n"));
    assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
    assert!(answer.contains("host 127.0.0.1 is allowed and cannot be reached on port"), "{answer}");
    assert_eq!(running.proxy.denials(), []);
}

#[test]
fn only_a_loopback_socket_is_served() {
    let start = |listener: OwnedFd, limits: Limits| {
        let rules = HostRules::parse("a.example").unwrap();
        let started = Proxy::start_with(listener, rules, limits, Arc::new(|_: &Event<'_>| {}));
        started.map(drop).map_err(|error| error.kind())
    };
    let everywhere = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
    assert_eq!(start(everywhere.into(), Limits::default()), Err(ErrorKind::InvalidInput));
    let (pipe, _writer) = io::pipe().unwrap();
    assert_eq!(start(pipe.into(), Limits::default()), Err(ErrorKind::InvalidInput));
    let mut none = Limits::default();
    none.connections = 0;
    assert_eq!(start(listener().0.into(), none), Err(ErrorKind::InvalidInput));
    // Another kind of socket shows itself at the first accept: the acceptor ends, nothing spins or hangs.
    let datagrams = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    assert_eq!(start(datagrams.into(), Limits::default()), Ok(()));
}
