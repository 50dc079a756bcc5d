//! Heads as honest and hostile clients write them.

use proptest::prelude::*;

use super::*;

/// Parses `head` (its line ends written out) and gives the target and what would be sent.
fn parse(head: &str) -> Result<(String, String), Refusal> {
    Request::parse(head.as_bytes()).map(|request| match request {
        Request::Tunnel(target) => (format!("{}:{}", target.host, target.port), String::new()),
        Request::Forward(forward) => {
            let target = format!("{}:{}", forward.target.host, forward.target.port);
            (target, String::from_utf8(forward.head).unwrap())
        }
    })
}

fn check(head: &str, target: &str, sent: &str) {
    assert_eq!(parse(head), Ok((target.to_owned(), sent.to_owned())), "{head:?}");
}

fn refused(head: &str, status: Status) -> Refusal {
    let refusal = parse(head).expect_err(head);
    assert_eq!(refusal.status, status, "{head:?}: {refusal:?}");
    refusal
}

#[test]
fn tunnels() {
    check("CONNECT a.example:443 HTTP/1.1\r\n\r\n", "a.example:443", "");
    check("CONNECT A.Example.:443 HTTP/1.1\r\nHost: A.Example.:443\r\n\r\n", "a.example:443", "");
    check("CONNECT a.example:443 HTTP/1.0\r\nProxy-Authorization: x\r\n\r\n", "a.example:443", "");
    check("CONNECT [2606:4700::1]:443 HTTP/1.1\r\n\r\n", "[2606:4700::1]:443", "");
}

#[test]
fn plain_requests_are_written_anew() {
    check(
        "GET http://a.example/p?q HTTP/1.1\r\nHost: a.example\r\nAccept: */*\r\n\r\n",
        "a.example:80",
        "GET /p?q HTTP/1.1\r\nHost: a.example\r\nAccept: */*\r\nConnection: close\r\n\r\n",
    );
    check(
        "get HTTP://A.Example.:8080 HTTP/1.0\r\nhost: a.EXAMPLE:8080\r\n\r\n",
        "a.example:8080",
        "get / HTTP/1.0\r\nHost: a.example:8080\r\nConnection: close\r\n\r\n",
    );
    check(
        "GET http://a.example?q=http://b.example/ HTTP/1.1\r\n\r\n",
        "a.example:80",
        "GET /?q=http://b.example/ HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n",
    );
    check(
        "OPTIONS http://a.example HTTP/1.1\r\n\r\n",
        "a.example:80",
        "OPTIONS * HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n",
    );
    check(
        "GET http://a.example//b.example/ HTTP/1.1\r\nHost: a.example:80\r\n\r\n",
        "a.example:80",
        "GET //b.example/ HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n",
    );
}

#[test]
fn headers_of_the_hop_stay_behind() {
    check(
        "POST http://a.example/ HTTP/1.1\r\nConnection: keep-alive, X-Mine\r\nKeep-Alive: 5\r\nx-mine: 1\r\n\
         Proxy-Authorization: Basic c2VjcmV0\r\nproxy-connection: keep-alive\r\nTE: trailers\r\n\
         Upgrade: h2c\r\nTrailer: x\r\nX-Kept:  a b\t\r\nContent-Length: 003\r\n\r\n",
        "a.example:80",
        "POST / HTTP/1.1\r\nHost: a.example\r\nX-Kept: a b\r\nContent-Length: 3\r\nConnection: close\r\n\r\n",
    );
    check(
        "PUT http://a.example/ HTTP/1.1\r\nTransfer-Encoding: Chunked\r\n\r\n",
        "a.example:80",
        "PUT / HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n",
    );
    check(
        "POST http://a.example/ HTTP/1.1\r\nContent-Length: 0\r\n\r\n",
        "a.example:80",
        "POST / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
    );
}

#[test]
fn another_host_in_disguise() {
    for target in [
        "http://allowed.example@evil.example/",
        "http://allowed.example:80@evil.example/",
        "http://allowed.example%00.evil.example/",
        "http://allowed.example\\@evil.example/",
        "http:///path",
        "http://127.1/",
        "http://0x7f000001/",
        "http://a.example:/",
        "http://a.example:99999/",
        "http://[::1/",
    ] {
        let refusal = refused(&format!("GET {target} HTTP/1.1\r\n\r\n"), Status::BadRequest);
        assert_eq!(refusal.denied.map(|denied| denied.reason), Some(Reason::NotAHost), "{target}");
    }
    for target in [
        "a.example",
        "u@a.example:443",
        "http://a.example/",
        "/",
        "a.example:443/",
        "*",
        "a.example:https",
    ] {
        refused(&format!("CONNECT {target} HTTP/1.1\r\n\r\n"), Status::BadRequest);
    }
    for host in [
        "b.example",
        "a.example:8080",
        "",
        "a.example b.example",
        "a.example,b.example",
        "u@a.example",
        "\u{e4}",
    ] {
        let head = format!("GET http://a.example/ HTTP/1.1\r\nHost: {host}\r\n\r\n");
        let refusal = refused(&head, Status::BadRequest);
        assert_eq!(
            refusal.denied.map(|denied| denied.reason),
            Some(Reason::HostMismatch),
            "{host}"
        );
    }
}

#[test]
fn request_lines_with_two_readings() {
    for line in [
        "",
        "GET",
        "GET http://a.example/",
        "GET  http://a.example/ HTTP/1.1",
        "GET http://a.example/ HTTP/1.1 ",
        " GET http://a.example/ HTTP/1.1",
        "GET http://a.example/ b HTTP/1.1",
        "GET\thttp://a.example/ HTTP/1.1",
        "G\u{e4}T http://a.example/ HTTP/1.1",
        "GET http://a.example/\u{e4} HTTP/1.1",
        "GET /path HTTP/1.1",
        "GET http://a.example/\x01 HTTP/1.1",
        "GET http://a.example/\r HTTP/1.1",
        "GET http://a.example/#f HTTP/1.1",
        "GET https://a.example/ HTTP/1.1",
        "connect a.example:443 HTTP/1.1",
        "GET http:/a.example/ HTTP/1.1",
        "(GET) http://a.example/ HTTP/1.1",
    ] {
        refused(&format!("{line}\r\n\r\n"), Status::BadRequest);
    }
    for version in ["HTTP/2.0", "HTTP/0.9", "http/1.1", "HTTP/1.10", "HTTP/1.1\r", ""] {
        refused(&format!("GET http://a.example/ {version}\r\n\r\n"), Status::Version);
    }
    refused("GET ftp://a.example/ HTTP/1.1\r\n\r\n", Status::NotImplemented);
}

#[test]
fn smuggling() {
    for headers in [
        "Host: a.example\r\nHost: a.example",
        "Host: a.example\r\nhOST: b.example",
        "Content-Length: 5\r\nContent-Length: 5",
        "Content-Length: 5, 5",
        "Content-Length: +5",
        "Content-Length: -5",
        "Content-Length: 0x5",
        "Content-Length:",
        "Content-Length: 5 5",
        "Content-Length: 99999999999999999999",
        "Content-Length: 5\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 5",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
        "Transfer-Encoding : chunked",
        "Content-Length : 5",
        " Host: b.example",
        "X: a\r\n b",
        "X: a\r\n\tb",
        "X: a\rContent-Length: 5",
        "X: a\nb: c",
        "X: a\0b",
        "X: \x7f",
        "X\0: a",
        "NoColon",
        ": empty",
        "X Y: a",
        "Connection: content-length\r\nContent-Length: 5",
        "Connection: close, Transfer-Encoding\r\nTransfer-Encoding: chunked",
        "Connection: host",
        "\x0bTransfer-Encoding: chunked",
        "Transfer-Encoding:\x0bchunked",
        "X: \u{c}",
    ] {
        refused(
            &format!("POST http://a.example/ HTTP/1.1\r\n{headers}\r\n\r\n"),
            Status::BadRequest,
        );
    }
    for encoding in ["gzip, chunked", "identity", "xchunked", "chunked, chunked", "\"chunked\"", ""]
    {
        let head =
            format!("POST http://a.example/ HTTP/1.1\r\nTransfer-Encoding: {encoding}\r\n\r\n");
        refused(&head, Status::NotImplemented);
    }
    let old = "POST http://a.example/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n";
    refused(old, Status::BadRequest);
    refused("CONNECT a.example:443 HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", Status::BadRequest);
}

#[test]
fn the_end_of_a_head() {
    let head = b"GET http://a.example/ HTTP/1.1\r\nA: b\r\n\r\nbody\n";
    assert_eq!(head_end(head, 0), Ok(Some(head.len() - 5)));
    for seen in 0..head.len() - 5 {
        assert_eq!(head_end(&head[..seen], 0), Ok(None), "{seen}");
        assert_eq!(head_end(head, seen), Ok(Some(head.len() - 5)), "{seen}");
    }
    for bytes in [
        "GET http://a.example/ HTTP/1.1\nA: b\r\n\r\n",
        "\n",
        "GET\0",
        "A\r\n\n",
        "\u{16}\u{3}\u{1}\0",
    ] {
        assert_eq!(
            head_end(bytes.as_bytes(), 0).unwrap_err().status,
            Status::BadRequest,
            "{bytes:?}"
        );
    }
    let long = vec![b'a'; HEAD_MAX];
    assert_eq!(head_end(&long, 0).unwrap_err().status, Status::HeadTooLarge);
    assert_eq!(head_end(&long[1..], 0), Ok(None));
}

/// Bytes that look enough like a request to get past the first checks.
fn hostile_head() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        4 => proptest::sample::select(vec![
            "GET ", "POST ", "CONNECT ", "http://", "HTTP://", "a.example", "evil.example", "A.EXAMPLE.", "@", ":80",
            ":443", "/", "?", "\\", "%00", " HTTP/1.1", " HTTP/1.0", "\r\n", "\n", "\r", " ", "\t", "Host: ",
            "Content-Length: ", "Transfer-Encoding: ", "chunked", "Connection: ", "5", ",", "\0", "[::1]", "127.1",
        ]).prop_map(|text| text.as_bytes().to_vec()),
        1 => proptest::collection::vec(any::<u8>(), 0..4),
    ];
    proptest::collection::vec(piece, 0..24).prop_map(|pieces| {
        let mut head = pieces.concat();
        head.extend_from_slice(b"\r\n\r\n");
        head
    })
}

/// A sound request with one hole for hostile bytes.
fn request_with_a_hole() -> impl Strategy<Value = Vec<u8>> {
    let places = [
        ("GET http://", "a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n"),
        ("GET http://a.example", "/ HTTP/1.1\r\nHost: a.example\r\n\r\n"),
        ("GET http://a.example/", " HTTP/1.1\r\nHost: a.example\r\n\r\n"),
        ("GET http://a.example/ HTTP/1.1\r\nHost: ", "a.example\r\n\r\n"),
        ("GET http://a.example/ HTTP/1.1\r\nHost: a.example", "\r\n\r\n"),
        ("GET http://a.example/ HTTP/1.1\r\n", "\r\n\r\n"),
        ("POST http://a.example/ HTTP/1.1\r\nContent-Length: 5", "\r\n\r\n"),
        ("POST http://a.example/ HTTP/1.1\r\nX: ", "\r\nTransfer-Encoding: chunked\r\n\r\n"),
    ];
    (proptest::sample::select(places.to_vec()), hostile_head()).prop_map(
        |((before, after), hole)| {
            let hole = hole.strip_suffix(b"\r\n\r\n").unwrap_or(&hole);
            [before.as_bytes(), hole, after.as_bytes()].concat()
        },
    )
}

/// Reads a head the way a lenient server would: any line end, any blanks, every header counts.
fn lenient(head: &[u8]) -> (String, Vec<(String, String)>) {
    let text = String::from_utf8_lossy(head).into_owned();
    let mut lines = text.split(['\r', '\n', '\0']).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or_default().to_owned();
    let fields = lines.filter_map(|line| line.split_once(':'));
    let tidy = |text: &str| text.trim().to_ascii_lowercase();
    (first, fields.map(|(name, value)| (tidy(name), tidy(value))).collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4096, failure_persistence: None, ..ProptestConfig::default() })]

    /// No bytes make the parser panic, and whatever it sends on names the checked host, once, framed in one way.
    #[test]
    fn what_is_sent_names_what_was_checked(head in prop_oneof![hostile_head(), request_with_a_hole()]) {
        let end = head_end(&head, 0);
        let Ok(request) = Request::parse(&head) else { return Ok(()) };
        let target = request.target().clone();
        let Request::Forward(forward) = request else { return Ok(()) };
        // One head, as far as this and any other reader can tell.
        prop_assert_eq!(head_end(&forward.head, 0), Ok(Some(forward.head.len())));
        if let Ok(Some(end)) = end {
            prop_assert_eq!(end, head.len());
        }
        let (first, fields) = lenient(&forward.head);
        let path = first.split(' ').nth(1).unwrap_or_default();
        prop_assert!(path.starts_with('/') || path == "*", "{first}");
        let all = |name: &str| {
            fields.iter().filter(|field| field.0 == name).map(|field| field.1.as_str()).collect::<Vec<_>>()
        };
        let hosts = all("host");
        prop_assert_eq!(hosts.len(), 1);
        let sent = Authority::parse(hosts[0], Some(80));
        prop_assert_eq!(sent, Ok(target));
        prop_assert_eq!(all("connection"), ["close"]);
        let (lengths, encodings) = (all("content-length"), all("transfer-encoding"));
        match forward.body {
            Body::Chunked(_) => prop_assert_eq!((lengths.len(), encodings), (0, vec!["chunked"])),
            Body::Sized(0) => prop_assert!(encodings.is_empty() && (lengths.is_empty() || lengths == ["0"])),
            Body::Sized(length) => {
                prop_assert!(encodings.is_empty());
                let length = length.to_string();
                prop_assert_eq!(lengths, [length.as_str()]);
            }
            Body::Endless => prop_assert!(false, "a forwarded request ends"),
        }
    }
}
