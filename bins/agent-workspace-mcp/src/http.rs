//! Streamable HTTP: the same server, for clients that reach it over a socket and show a key.
//!
//! The SDK speaks the protocol; what it leaves open is closed here. Invariants: nothing but a refusal is said to
//! whoever shows no key; a key leads to one workspace, with sessions of its own, so that two clients never meet;
//! an answer outlives its connection and no command its session;
//! connections, requests and sessions are bounded in number, headers in time, bodies in size; a server that is told to
//! stop ends its commands and answers its calls before it closes their connections. No TLS: that is a proxy's work.

mod clients;
mod gate;
mod sessions;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use rmcp::ServerHandler;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

pub use self::clients::{Client, ClientsError, Key, read as read_clients};
pub use self::gate::{Answer, Gate, Names};

/// Where the protocol is served.
pub const PATH: &str = "/mcp";
/// Connections at one time, over all clients; the next ones wait to be accepted.
const CONNECTIONS: usize = 512;
/// A client that takes longer to send its headers is dropped.
const HEADERS: Duration = Duration::from_secs(15);
/// How long calls may take to end after their commands were told to.
const ENDING: Duration = Duration::from_secs(2);
/// How long answers may take to reach their clients after that.
const CLOSING: Duration = Duration::from_secs(1);

/// Serves `gate` on `listener` until `ending` is cancelled, then ends what runs and answers what waits.
///
/// # Security
///
/// Whoever reaches the socket can send bytes; see [`Gate`] for who is answered.
pub async fn serve<S>(listener: TcpListener, gate: Gate<S>, ending: CancellationToken)
where
    S: ServerHandler + Send + 'static,
{
    let gate = Arc::new(gate);
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    let graceful = GracefulShutdown::new();
    loop {
        let accepted = tokio::select! {
            accepted = accept(&listener, &places) => accepted,
            () = ending.cancelled() => break,
        };
        let Some((stream, peer, place)) = accepted else { continue };
        let gate = Arc::clone(&gate);
        let service = service_fn(move |request| {
            let gate = Arc::clone(&gate);
            async move { Ok::<_, Infallible>(gate.answer(request, peer).await) }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEADERS)
            .serve_connection(TokioIo::new(stream), service);
        let watched = graceful.watch(connection);
        tokio::spawn(async move {
            if let Err(error) = watched.await {
                tracing::debug!(%error, %peer, "connection broke off");
            }
            drop(place);
        });
    }
    drop(listener);
    // Commands were told to end by the same token. Their answers go out before streams are cut.
    if tokio::time::timeout(ENDING, gate.idle()).await.is_err() {
        tracing::info!("calls that do not end are left behind");
    }
    gate.close();
    if tokio::time::timeout(CLOSING, graceful.shutdown()).await.is_err() {
        tracing::info!("clients keep connections open; leaving them");
    }
}

/// The next connection, and its place among those that may be open at one time.
async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> Option<(tokio::net::TcpStream, SocketAddr, tokio::sync::OwnedSemaphorePermit)> {
    let place = Arc::clone(places).acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, peer)) => {
            // Small messages go out at once; a socket that does not take the option works all the same.
            if let Err(error) = stream.set_nodelay(true) {
                tracing::debug!(%error, "TCP_NODELAY not set");
            }
            Some((stream, peer, place))
        }
        Err(error) => {
            // Out of descriptors, most likely: it passes when others close.
            tracing::warn!(%error, "no connection accepted");
            tokio::time::sleep(Duration::from_millis(50)).await;
            None
        }
    }
}
