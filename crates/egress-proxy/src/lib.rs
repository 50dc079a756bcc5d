//! An allow-list for the network of hostile programs: an HTTP proxy that reaches the listed hosts and nothing else.
//!
//! The programs run in a network namespace that has nothing but loopback. A socket that listens *there* is accepted from
//! *here*, in the embedding program's own namespace: what the proxy dials goes out, and it is the one way out. Clients
//! find it through `HTTP_PROXY`, `HTTPS_PROXY` and `ALL_PROXY`; one that ignores them reaches nobody.
//!
//! `CONNECT host:port` opens a tunnel; `GET http://host/path` (any method) sends one request in plain HTTP and closes.
//! Everything else gets a 4xx or 5xx with one line of text that says what to do.
//!
//! The way of a connection through the private modules: `connection` reads its head, `request` understands and rewrites
//! it, `rules` judges the host, `dial` resolves it once, judges what came of it (`address`) and connects, `relay` carries
//! the bytes and `body` knows where a plain request ends. `host` is the one spelling of a name, `refusal` what is said
//! where the answer is no, `shared` what the threads have in common.
//!
//! # Security
//!
//! Clients are hostile, and so may the servers behind the listed names be. What holds:
//!
//! - Only a listed host on a listed port is resolved; a refused name never reaches a resolver.
//! - The address that is dialled is one that was judged: there is no second resolution (DNS rebinding). Loopback,
//!   private, link-local, metadata, carrier-grade NAT and the machine's own addresses need a `private:` rule, also
//!   inside IPv6 (mapped, NAT64, 6to4). An address in a request never matches a rule with a name.
//! - A plain request goes out as a new head whose `Host` is printed from what was judged. Ambiguous heads are refused
//!   (request smuggling); bytes behind the first request's body are not sent. `Proxy-*` headers stay here.
//! - Bounded: 64 connections (more wait in the listener's backlog), a head of 16 KiB within 10 seconds, 10 seconds to
//!   connect, 120 seconds without a byte, two buffers of 16 KiB for each connection, the latest 64 denials.
//! - A listener that is not on loopback is refused: this must not become a proxy for the neighbours.
//!
//! What does not hold, by the nature of an allow-list of names:
//!
//! - A listed host is trusted with whatever a command can read, and so is the DNS of every domain listed as
//!   `*.HOST`: data fits into a name that is looked up.
//! - Inside a tunnel the bytes are opaque. Where a listed host shares its address with others (a content delivery
//!   network), a client can ask it for another name (domain fronting), and a host that relays is a way out.
//! - The resolver is the embedding program's: its search list and `/etc/hosts` apply.
//! - A public address that leads back here through somebody's address translation is not known for the machine's own.
//! - Time-outs measure silence: a peer that sends a byte a minute keeps its connection until the proxy is dropped.
//!
//! # Non-goals
//!
//! No caching, no authentication, no TLS interception, no UDP, no keep-alive, no protocol upgrade outside a tunnel;
//! responses are passed on as they come, and no `Via` is added to either side. Linux: ending the acceptor relies on `shutdown(2)` of a listening socket.

mod address;
mod body;
mod connection;
mod dial;
mod host;
mod refusal;
mod relay;
mod request;
mod rules;
mod shared;

use std::fmt;
use std::io;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

pub use host::BadHost;
pub use refusal::{Denied, Reason};
pub use rules::{BadRule, HostRules};

use shared::Shared;

/// How long a proxy that is dropped waits for its threads.
const FAREWELL: Duration = Duration::from_secs(1);
/// How long the acceptor waits when the process has no descriptor or thread left.
const EXHAUSTED: Duration = Duration::from_millis(100);
/// A connection's thread resolves names, and what a resolver's plug-ins need is theirs to say.
const STACK: usize = 1024 * 1024;

/// What a proxy has to say while it runs.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A client wanted what the list does not allow. A hostile one can cause any number of these.
    Denied(&'a Denied),
    /// No connection could be taken; the proxy goes on.
    Trouble(&'a io::Error),
    /// The socket does not listen: the proxy has ended.
    Deaf(&'a io::Error),
}

/// Called for every event, on the thread of its connection: it delays that and must not panic.
pub type Log = Arc<dyn Fn(&Event<'_>) + Send + Sync>;

/// The limits of a [`Proxy`]; the defaults are right outside tests.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// Connections at once; more wait in the listener's backlog. At least one.
    pub connections: usize,
    /// From the first moment of a connection to the end of its head.
    pub head: Duration,
    /// To connect to a target, over all its addresses.
    pub connect: Duration,
    /// Without a byte in either direction.
    pub idle: Duration,
    /// From the last byte of an answer to a client that does not close.
    pub linger: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 64,
            head: Duration::from_secs(10),
            connect: Duration::from_secs(10),
            idle: Duration::from_mins(2),
            linger: Duration::from_secs(2),
        }
    }
}

/// A running proxy; dropping it ends it.
///
/// ```
/// use std::net::{Ipv4Addr, TcpListener};
/// use std::sync::Arc;
///
/// use egress_proxy::{Event, HostRules, Proxy};
///
/// // In earnest this socket comes from inside a network namespace.
/// let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
/// let rules = HostRules::parse("index.example.net,*.files.example.net")?;
/// let log = Arc::new(|event: &Event<'_>| println!("{event:?}"));
/// let proxy = Proxy::start(listener.into(), rules, log)?;
/// // The command runs, and then:
/// for denied in proxy.denials() {
///     println!("[network: {denied}]");
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Dropping blocks (not for an executor's thread): it refuses new connections, closes those that are open, and waits at
/// most a second for their threads. A thread that is resolving or connecting at that moment cannot be interrupted: it has
/// lost its client, ends by itself when the resolver or the connect time-out lets it go, and relays nothing any more.
pub struct Proxy {
    shared: Arc<Shared>,
    /// The listening socket, under the type that can shut it down.
    listener: TcpStream,
    acceptor: Option<JoinHandle<()>>,
}

impl Proxy {
    /// Starts to serve `listener`, a listening TCP socket on a loopback address of any network namespace.
    ///
    /// # Errors
    ///
    /// `InvalidInput` if the descriptor is no socket on a loopback address; whatever the system says if the descriptor
    /// cannot be duplicated or the acceptor's thread not be started.
    ///
    /// # Security
    ///
    /// Whoever can connect to `listener` can reach what `rules` allow, from this process's network namespace. The
    /// descriptor must be close-on-exec, and should be held by nobody else. `log` gets text of a hostile client, escaped.
    pub fn start(listener: OwnedFd, rules: HostRules, log: Log) -> io::Result<Self> {
        Self::start_with(listener, rules, Limits::default(), log)
    }

    /// As [`Proxy::start`], with other limits.
    ///
    /// # Errors
    ///
    /// As [`Proxy::start`], and `InvalidInput` for a limit of zero.
    ///
    /// # Security
    ///
    /// As [`Proxy::start`].
    pub fn start_with(
        listener: OwnedFd,
        rules: HostRules,
        limits: Limits,
        log: Log,
    ) -> io::Result<Self> {
        let times = [limits.head, limits.connect, limits.idle, limits.linger];
        if limits.connections == 0 || times.iter().any(Duration::is_zero) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "a limit of the proxy is zero",
            ));
        }
        let listener = TcpListener::from(listener);
        let address = listener
            .local_addr()
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        if !address.ip().is_loopback() {
            let text = format!("the proxy would listen on {address}, beyond loopback");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        listener.set_nonblocking(false)?;
        let handle = TcpStream::from(OwnedFd::from(listener.try_clone()?));
        let shared = Arc::new(Shared::new(rules, limits, log));
        let acceptor = thread::Builder::new().name("proxy-accept".to_owned()).spawn({
            let shared = Arc::clone(&shared);
            move || accept(&shared, &listener)
        })?;
        Ok(Self { shared, listener: handle, acceptor: Some(acceptor) })
    }

    /// Takes the denials since the last call, the oldest first; the latest 64 different ones are kept.
    ///
    /// A denial is there before its client has been answered.
    pub fn denials(&self) -> Vec<Denied> {
        self.shared.take_denials()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let streams = self.shared.stop();
        relay::close(&self.listener, Shutdown::Both);
        for stream in &streams {
            relay::close(stream, Shutdown::Both);
        }
        let left = self.shared.wait_for_end(FAREWELL);
        if left == 0
            && let Some(acceptor) = self.acceptor.take()
        {
            // That it panicked would have been seen on standard error; there is nothing left to end.
            acceptor.join().ok();
        }
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxy").field("rules", &self.shared.rules).finish_non_exhaustive()
    }
}

fn accept(shared: &Arc<Shared>, listener: &TcpListener) {
    while let Some(slot) = shared.slot() {
        let started = listener.accept().and_then(|(client, _)| {
            let thread = thread::Builder::new().name("proxy-client".to_owned()).stack_size(STACK);
            thread.spawn(move || connection::serve(&slot.shared, client))
        });
        match started {
            Ok(_detached) => {}
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            // The socket does not listen: shut down from here at the end, or it never did.
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported
                ) =>
            {
                if !shared.is_stopping() {
                    (shared.log)(&Event::Deaf(&error));
                }
                return;
            }
            Err(error) => {
                (shared.log)(&Event::Trouble(&error));
                shared.pause(EXHAUSTED);
            }
        }
    }
}

#[doc = include_str!("../README.md")]
#[cfg(doctest)]
struct ReadmeDoctests;
