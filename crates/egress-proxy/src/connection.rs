//! One connection of a client, from its first byte to its last.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Instant;

use crate::body::Body;
use crate::dial::{NotDialled, dial};
use crate::host::Authority;
use crate::refusal::{Denied, Reason, Refusal, Status};
use crate::relay::{Idle, Opening, Relay, is_timeout, send_last};
use crate::request::{Forward, HEAD_MAX, Request, head_end};
use crate::rules::Verdict;
use crate::shared::Shared;

const ESTABLISHED: &[u8] = b"HTTP/1.1 200 Connection established\r\n\r\n";

/// Serves one request and closes.
pub(crate) fn serve(shared: &Shared, client: TcpStream) {
    let client = Arc::new(client);
    let Some(_watched) = shared.watch(&client) else { return };
    let mut received = Vec::new();
    let head = receive(shared, &client, &mut received);
    let with_body = !received.starts_with(b"HEAD ");
    let served = match head {
        Ok(Some(head_len)) => carry(shared, &client, received, head_len),
        // Closed before it asked for anything.
        Ok(None) => Ok(()),
        Err(refusal) => Err(refusal),
    };
    let Err(refusal) = served else { return };
    let response = refusal.response(with_body);
    if let Some(denied) = refusal.denied {
        shared.deny(denied);
    }
    // A client that does not wait for its answer does without.
    send_last(&client, &response, shared.limits.linger).ok();
}

/// Reads until the head is complete; `None` if the client closes before.
fn receive(
    shared: &Shared,
    mut client: &TcpStream,
    received: &mut Vec<u8>,
) -> Result<Option<usize>, Refusal> {
    let too_late = || {
        let seconds = shared.limits.head.as_secs_f32();
        let text = format!("the head of the request was not complete within {seconds} seconds");
        Refusal::new(Status::RequestTimeout, text)
    };
    let deadline = Instant::now() + shared.limits.head;
    let mut buffer = vec![0; HEAD_MAX];
    loop {
        // One time for the whole head: a byte now and then gains nothing.
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(too_late());
        }
        let room = HEAD_MAX.saturating_sub(received.len()).min(buffer.len());
        let space = buffer.get_mut(..room).unwrap_or_default();
        let read = client.set_read_timeout(Some(left)).and_then(|()| client.read(space));
        let count = match read {
            Ok(0) => return Ok(None),
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) if is_timeout(&error) => return Err(too_late()),
            Err(_) => return Ok(None),
        };
        let seen = received.len();
        received.extend_from_slice(space.get(..count).unwrap_or_default());
        if let Some(end) = head_end(received, seen)? {
            return Ok(Some(end));
        }
    }
}

/// Checks, dials and relays what was `received`, a head of `head_len` bytes and what came behind it.
fn carry(
    shared: &Shared,
    client: &TcpStream,
    mut received: Vec<u8>,
    head_len: usize,
) -> Result<(), Refusal> {
    let early = received.split_off(head_len);
    let request = Request::parse(&received)?;
    drop(received);
    let upstream = Arc::new(connect(shared, request.target())?);
    // `None`: the proxy ended while the target was dialled.
    let Some(_watched) = shared.watch(&upstream) else { return Ok(()) };
    let (opening, linger) = match request {
        Request::Tunnel(_) => (Opening { head: Vec::new(), early, body: Body::Endless }, None),
        Request::Forward(Forward { head, body, .. }) => {
            (Opening { head, early, body }, Some(shared.limits.linger))
        }
    };
    let relay = Relay { client, upstream: &upstream, idle: Idle::new(shared.limits.idle) };
    // Bytes may have gone out by now: closing is the only answer left.
    prepare(client, &upstream, linger.is_none()).and_then(|()| relay.run(opening, linger)).ok();
    Ok(())
}

fn prepare(mut client: &TcpStream, upstream: &TcpStream, tunnel: bool) -> io::Result<()> {
    client.set_nodelay(true)?;
    upstream.set_nodelay(true)?;
    if tunnel {
        client.write_all(ESTABLISHED)?;
    }
    Ok(())
}

fn connect(shared: &Shared, target: &Authority) -> Result<TcpStream, Refusal> {
    let denied = |reason, private| {
        Refusal::from(Denied::new(target, reason, private, shared.rules.setting()))
    };
    let private = match shared.rules.verdict(target) {
        Verdict::Allowed { private } => private,
        Verdict::HostNotListed => return Err(denied(Reason::HostNotListed, false)),
        Verdict::PortNotListed { private } => return Err(denied(Reason::PortNotListed, private)),
    };
    let Authority { host, port } = target;
    dial(target, private, shared.limits.connect).map_err(|failure| match failure {
        NotDialled::Private => denied(Reason::PrivateAddress, true),
        NotDialled::Unusable => denied(Reason::UnusableAddress, private),
        NotDialled::Resolution(error) => Refusal::new(
            Status::BadGateway,
            format!("host {host} is allowed and has no address ({error}); check the name"),
        ),
        NotDialled::Connection(error) if is_timeout(&error) => Refusal::new(
            Status::GatewayTimeout,
            format!("host {host} is allowed and does not answer on port {port}; try again later"),
        ),
        NotDialled::Connection(error) => Refusal::new(
            Status::BadGateway,
            format!("host {host} is allowed and cannot be reached on port {port} ({error})"),
        ),
    })
}
