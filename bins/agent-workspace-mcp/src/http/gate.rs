//! Which request is answered, and by whom: key, then path, then host and origin, then the client's own service.

mod body;

use std::fmt;
use std::net::{Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body, Bytes};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue, WWW_AUTHENTICATE};
use hyper::http::uri::Authority;
use hyper::{Method, Request, Response, StatusCode};
use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::json;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::PATH;
use super::clients::Key;
use super::sessions::Sessions;
use crate::transport::MAX_LINE;

/// Requests of one client that may be open at one time, streams included.
const REQUESTS: usize = 128;
/// Sessions of one client at one time; idle ones end by themselves.
const SESSIONS: usize = 128;
/// How much longer than the longest command a session may be idle.
const IDLE: Duration = Duration::from_mins(5);

/// An answer's body.
pub type Answer = Response<BoxBody<Bytes, std::convert::Infallible>>;

/// The names under which the server may be called, and the origins of pages that may call it.
///
/// A page in a browser of the operator's machine could be led to this server by DNS. The key stops it; this
/// stops it before the key is looked at by the protocol.
#[derive(Debug, Clone)]
pub struct Names {
    hosts: Vec<String>,
    origins: Vec<String>,
}

impl Names {
    /// The loopback names of `bound` and the operator's own `hosts`, with http and https origins of each: at any port,
    /// or at the one that a host is written with. With `*` among them any host is taken, and origins are still those of
    /// the names. What is no host, see [`Names::is_host`], names nothing.
    pub fn new(bound: SocketAddr, hosts: &[String]) -> Self {
        let port = bound.port();
        let mut names: Vec<String> =
            ["localhost", "127.0.0.1", "::1"].into_iter().map(str::to_owned).collect();
        let mut origins: Vec<String> = ["localhost", "127.0.0.1", "[::1]"]
            .into_iter()
            .map(|host| format!("http://{host}:{port}"))
            .collect();
        if !bound.ip().is_unspecified() && !bound.ip().is_loopback() {
            names.push(bound.ip().to_string());
        }
        let any = hosts.iter().any(|host| host == "*");
        for host in hosts.iter().filter_map(|host| authority(host)) {
            let port = if host.port().is_some() { "" } else { ":*" };
            origins.extend(["http", "https"].map(|scheme| format!("{scheme}://{host}{port}")));
            names.push(host.to_string());
        }
        // The SDK takes an empty list for any host.
        Self { hosts: if any { Vec::new() } else { names }, origins }
    }

    /// Whether `text` names a host, with a port or without, or is `*` for any.
    pub fn is_host(text: &str) -> bool {
        text == "*" || authority(text).is_some()
    }
}

/// A host as it stands in a URL.
fn authority(host: &str) -> Option<Authority> {
    if host == "*" {
        return None;
    }
    let bracketed = host.parse::<Ipv6Addr>().map(|address| format!("[{address}]"));
    let text = bracketed.as_deref().unwrap_or(host);
    Authority::try_from(text).ok().filter(|authority| !authority.as_str().contains('@'))
}

/// Everything that one client reaches.
struct Door<S> {
    name: String,
    key: Key,
    service: StreamableHttpService<S, Sessions>,
    sessions: Arc<Sessions>,
    open: Arc<AtomicUsize>,
}

/// The way in. Generic over what answers, so that a fixture can be put behind the very same gate.
pub struct Gate<S> {
    doors: Vec<Door<S>>,
    names: Names,
    longest_call: Duration,
    closing: CancellationToken,
    /// Calls that are being answered.
    busy: Arc<Busy>,
}

#[derive(Debug, Default)]
struct Busy {
    calls: AtomicUsize,
    changed: Notify,
}

impl<S> fmt::Debug for Gate<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.doors.iter().map(|door| &door.name).collect();
        f.debug_struct("Gate").field("clients", &names).finish_non_exhaustive()
    }
}

impl<S: ServerHandler + Send + 'static> Gate<S> {
    /// A gate that nobody passes yet; no call takes longer than `longest_call`.
    pub fn new(names: Names, longest_call: Duration) -> Self {
        let closing = CancellationToken::new();
        Self { doors: Vec::new(), names, longest_call, closing, busy: Arc::default() }
    }

    /// Whoever shows `key` is answered by what `make` gives: one for each session, and for each request of a client
    /// that has none.
    #[must_use]
    pub fn admit(
        mut self,
        name: &str,
        key: Key,
        make: impl Fn() -> S + Send + Sync + 'static,
    ) -> Self {
        let mut sessions = LocalSessionManager::default();
        sessions.session_config.keep_alive = Some(self.longest_call + IDLE);
        let sessions = Arc::new(Sessions::new(sessions));
        let config = StreamableHttpServerConfig::default()
            .with_allowed_hosts(self.names.hosts.iter().cloned())
            .with_allowed_origins(self.names.origins.iter().cloned())
            .enforce_origin_validation()
            .with_max_request_body_bytes(MAX_LINE)
            .with_cancellation_token(self.closing.child_token());
        let service = StreamableHttpService::new(move || Ok(make()), Arc::clone(&sessions), config);
        let open = Arc::default();
        self.doors.push(Door { name: name.to_owned(), key, service, sessions, open });
        self
    }

    /// Answers one request.
    ///
    /// # Security
    ///
    /// Every byte of `request` is hostile until its key was seen. All keys are compared, whichever fits.
    pub async fn answer<B>(&self, request: Request<B>, peer: SocketAddr) -> Answer
    where
        B: Body<Data = Bytes> + Send + Unpin + 'static,
        B::Error: fmt::Display,
    {
        let shown = bearer(request.headers().get(AUTHORIZATION));
        let mut found = None;
        for door in &self.doors {
            if door.key.is(shown.unwrap_or_default()) && shown.is_some() {
                found = Some(door);
            }
        }
        let Some(door) = found else {
            tracing::warn!(%peer, shown = shown.is_some(), "refused: no valid key");
            let text = "Unauthorized: send the server's key as 'Authorization: Bearer KEY'";
            let mut answer = refusal(StatusCode::UNAUTHORIZED, text);
            answer.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            return answer;
        };
        if request.uri().path().trim_end_matches('/') != PATH {
            return refusal(StatusCode::NOT_FOUND, "Not Found: the protocol is served at /mcp");
        }
        let Some(open) = Counted::within(&door.open, REQUESTS) else {
            tracing::warn!(client = door.name, "refused: too many requests at once");
            let text = "Too Many Requests: this client has 128 open; wait for some to end";
            return refusal(StatusCode::TOO_MANY_REQUESTS, text);
        };
        let is_post = request.method() == Method::POST;
        if is_post
            && !request.headers().contains_key("mcp-session-id")
            && door.sessions.count().await >= SESSIONS
        {
            tracing::warn!(client = door.name, "refused: too many sessions");
            let text = "Too Many Requests: this client has 128 sessions; end some by DELETE";
            return refusal(StatusCode::TOO_MANY_REQUESTS, text);
        }
        let busy = is_post.then(|| Calling::begin(&self.busy));
        let (parts, body) = request.into_parts();
        let body = match body::read(body).await {
            Ok(body) => body,
            Err(unread) => return unread.answer(),
        };
        // The SDK answers what it cannot read without its id, and so its caller would wait for ever.
        let sent = body.clone();
        let answer = door.service.handle(Request::from_parts(parts, Full::new(body))).await;
        if answer.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE
            && let Some(answer) = body::unreadable(&sent)
        {
            return answer;
        }
        drop(sent);
        let held = Held(busy, open);
        answer.map(|body| {
            body.map_frame(move |frame| {
                // Dropped with the body: the request is open until its last byte is on its way.
                let _held = &held;
                frame
            })
            .boxed()
        })
    }

    /// Waits until no call is being answered.
    pub async fn idle(&self) {
        loop {
            let changed = self.busy.changed.notified();
            if self.busy.calls.load(Ordering::SeqCst) == 0 {
                return;
            }
            changed.await;
        }
    }

    /// Ends every session and stream.
    pub fn close(&self) {
        self.closing.cancel();
    }
}

/// The key that a request shows; the scheme's letters may be of any case.
fn bearer(header: Option<&HeaderValue>) -> Option<&str> {
    let (scheme, key) = header?.to_str().ok()?.trim().split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| key.trim()).filter(|key| !key.is_empty())
}

fn refusal(status: StatusCode, detail: &str) -> Answer {
    json_answer(status, &json!({ "detail": detail }))
}

fn json_answer(status: StatusCode, value: &serde_json::Value) -> Answer {
    let mut answer = Response::new(Full::new(Bytes::from(value.to_string())).boxed());
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
}

/// What a request holds until it is answered whole.
#[expect(dead_code, reason = "held for its end alone")]
struct Held(Option<Calling>, Counted);

/// One of a bounded number.
struct Counted(Arc<AtomicUsize>);

impl Counted {
    fn within(count: &Arc<AtomicUsize>, most: usize) -> Option<Self> {
        let taken = count.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |count| {
            (count < most).then_some(count + 1)
        });
        taken.ok().map(|_| Self(Arc::clone(count)))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// One call that is being answered.
struct Calling(Arc<Busy>);

impl Calling {
    fn begin(busy: &Arc<Busy>) -> Self {
        busy.calls.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(busy))
    }
}

impl Drop for Calling {
    fn drop(&mut self) {
        self.0.calls.fetch_sub(1, Ordering::SeqCst);
        self.0.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_from_a_bearer_header_alone() {
        fn check(header: &str, expected: Option<&str>) {
            let header = HeaderValue::from_str(header).unwrap();
            assert_eq!(bearer(Some(&header)), expected, "{header:?}");
        }
        check("Bearer k", Some("k"));
        check("bearer  k ", Some("k"));
        check("Bearer ", None);
        check("Bearer", None);
        check("Basic k", None);
        assert_eq!(bearer(None), None);
    }

    #[test]
    fn a_named_host_has_its_origins_at_the_port_it_was_given() {
        fn check(host: &str, name: &str, origin: &str) {
            let bound = SocketAddr::from(([127, 0, 0, 1], 1));
            let names = Names::new(bound, &[host.to_owned()]);
            assert!(Names::is_host(host) && names.hosts.iter().any(|it| it == name), "{names:?}");
            assert!(names.origins.iter().any(|it| it == origin), "{names:?}");
        }
        check("box.example", "box.example", "https://box.example:*");
        check("box.example:8443", "box.example:8443", "https://box.example:8443");
        check("2001:db8::1", "[2001:db8::1]", "http://[2001:db8::1]:*");
        check("[2001:db8::1]:81", "[2001:db8::1]:81", "http://[2001:db8::1]:81");
        for wrong in ["http://box.example", "a b", "me@box", "", "box/mcp"] {
            assert!(!Names::is_host(wrong), "{wrong}");
        }
        assert!(Names::is_host("*"));
    }

    #[test]
    fn a_count_is_given_back() {
        let count = Arc::default();
        let one = Counted::within(&count, 1);
        assert!(one.is_some() && Counted::within(&count, 1).is_none());
        drop(one);
        assert!(Counted::within(&count, 1).is_some());
    }
}
