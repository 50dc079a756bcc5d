//! The stdio transport: one JSON-RPC message a line, every request answered, memory bounded.
//!
//! The SDK's own line transport drops a line that is too long or not quite JSON without a word, and its
//! caller waits for ever. This one reads the id out of such a line and answers under it. Invariants: a
//! line is never held beyond [`MAX_LINE`]; a read that is dropped half-way loses nothing; the end of
//! input cancels the commands that still run, at once; a client that does not take its answers is not read from
//! until it does.

mod batch;
pub(crate) mod envelope;
mod owed;

use std::io;
use std::sync::Arc;

use rmcp::RoleServer;
use rmcp::model::{CallToolResult, ClientNotification, JsonRpcMessage, RequestId};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use self::batch::Batch;
use self::envelope::Envelope;
use self::owed::Owed;
use crate::reply::{ErrorKind, Failure, Reply};

/// The longest request line that is read, a batch or a message: 32 MiB.
pub const MAX_LINE: usize = 32 * 1024 * 1024;

/// What is said about a longer one.
pub(crate) const OVER: &str = "the request is over 32 MiB; send it in parts";

/// A buffer that once held a large line is not kept at that size.
const KEPT_CAPACITY: usize = 1024 * 1024;

/// Lines in, lines out.
#[derive(Debug)]
pub struct Lines<R, W> {
    read: BufReader<R>,
    line: Vec<u8>,
    /// Messages that came in one line and are still to be handed on.
    batch: Batch,
    /// Set while the rest of a line that is too long passes by.
    oversized: Option<Envelope>,
    ended: bool,
    write: Arc<Mutex<Option<W>>>,
    owed: Owed,
    end_of_input: CancellationToken,
}

enum Step {
    Line,
    Oversized(Envelope),
    End,
}

impl<R: AsyncRead + Unpin + Send, W: AsyncWrite + Unpin + Send> Lines<R, W> {
    /// Speaks over `read` and `write`; `end_of_input` is cancelled when `read` ends or breaks.
    pub fn new(read: R, write: W, end_of_input: CancellationToken) -> Self {
        Self {
            read: BufReader::new(read),
            line: Vec::new(),
            batch: Batch::default(),
            oversized: None,
            ended: false,
            write: Arc::new(Mutex::new(Some(write))),
            owed: Owed::default(),
            end_of_input,
        }
    }

    /// Reads to the next line end. Everything read so far lives in `self`, so the future may be dropped.
    async fn step(&mut self) -> Step {
        loop {
            let available = match self.read.fill_buf().await {
                Ok(available) => available,
                Err(error) => {
                    tracing::warn!(%error, "input broke off");
                    &[]
                }
            };
            if available.is_empty() {
                // A last line without its newline is still a request.
                self.ended = true;
                return match self.oversized.take() {
                    Some(envelope) => Step::Oversized(envelope),
                    None if self.line.is_empty() => Step::End,
                    None => Step::Line,
                };
            }
            let newline = memchr::memchr(b'\n', available);
            let taken = newline.map_or(available.len(), |at| at + 1);
            let (piece, _) = available.split_at(taken);
            if let Some(envelope) = &mut self.oversized {
                envelope.push(piece);
            } else if self.line.len() + piece.len() > MAX_LINE {
                let mut envelope = Envelope::default();
                envelope.push(&self.line);
                envelope.push(piece);
                self.line = Vec::new();
                self.oversized = Some(envelope);
            } else {
                self.line.extend_from_slice(piece);
            }
            self.read.consume(taken);
            if newline.is_some() {
                return self.oversized.take().map_or(Step::Line, Step::Oversized);
            }
        }
    }

    /// Notes what a message of so many bytes asks for.
    fn note(&self, message: &RxJsonRpcMessage<RoleServer>, bytes: usize) {
        match message {
            JsonRpcMessage::Request(request) => self.owed.asked(request.id.clone(), bytes),
            JsonRpcMessage::Notification(notice) => {
                if let ClientNotification::CancelledNotification(cancelled) = &notice.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.owed.cancelled(id);
                }
            }
            _ => {}
        }
    }

    fn take_line(&mut self) -> Vec<u8> {
        let mut line = std::mem::take(&mut self.line);
        if line.capacity() <= KEPT_CAPACITY {
            self.line = Vec::with_capacity(line.capacity());
        }
        while line.last().is_some_and(|byte| matches!(byte, b'\n' | b'\r')) {
            line.pop();
        }
        line
    }
}

/// The answer to a request that could not be read, under its own id; what has none has no asker.
pub(crate) fn unreadable(envelope: &Envelope, kind: ErrorKind, why: &str) -> Option<Value> {
    let Some(id) = envelope.id() else {
        tracing::warn!(why, "ignored what is no request");
        return None;
    };
    tracing::warn!(%id, why, "answered a request that cannot be read");
    Some(if envelope.method() == Some("tools/call") {
        let result = CallToolResult::from(Reply::from(Failure::new(kind, why)));
        json!({"jsonrpc": "2.0", "id": id, "result": result})
    } else {
        json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32600, "message": why}})
    })
}

async fn answer_unreadable<W: AsyncWrite + Unpin>(
    write: Arc<Mutex<Option<W>>>,
    owed: Owed,
    envelope: Envelope,
    kind: ErrorKind,
    why: &str,
) {
    let Some(answer) = unreadable(&envelope, kind, why) else { return };
    if let Err(error) = send(write, owed, None, answer).await {
        tracing::warn!(%error, "could not answer");
    }
}

async fn send<W: AsyncWrite + Unpin>(
    write: Arc<Mutex<Option<W>>>,
    owed: Owed,
    id: Option<RequestId>,
    message: impl Serialize,
) -> io::Result<()> {
    let mut line = serde_json::to_vec(&message)?;
    drop(message);
    line.push(b'\n');
    let _counts = owed.answer(id, line.len());
    let mut write = write.lock().await;
    let Some(write) = write.as_mut() else {
        return Err(io::Error::new(io::ErrorKind::NotConnected, "transport is closed"));
    };
    write.write_all(&line).await?;
    write.flush().await
}

impl<R, W> Transport<RoleServer> for Lines<R, W>
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let id = match &item {
            JsonRpcMessage::Response(response) => Some(response.id.clone()),
            JsonRpcMessage::Error(error) => error.id.clone(),
            _ => None,
        };
        send(Arc::clone(&self.write), self.owed.clone(), id, item)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            self.owed.room().await;
            let (write, owed) = (Arc::clone(&self.write), self.owed.clone());
            let line = match self.batch.next() {
                Some(message) => message,
                None if self.ended => break,
                None => match self.step().await {
                    Step::End => break,
                    Step::Oversized(envelope) => {
                        answer_unreadable(write, owed, envelope, ErrorKind::TooLarge, OVER).await;
                        continue;
                    }
                    Step::Line => match Batch::of(self.take_line()) {
                        Ok(batch) => {
                            self.batch = batch;
                            continue;
                        }
                        Err(line) => line,
                    },
                },
            };
            let text = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&line);
            if text.trim_ascii().is_empty() {
                continue;
            }
            match serde_json::from_slice(text) {
                Ok(message) => {
                    self.note(&message, text.len());
                    return Some(message);
                }
                Err(error) => {
                    let mut envelope = Envelope::default();
                    envelope.push(text);
                    let why = format!("the request cannot be read: {error}");
                    let kind = ErrorKind::InvalidArgs;
                    answer_unreadable(write, owed, envelope, kind, &why).await;
                }
            }
        }
        self.end_of_input.cancel();
        None
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        drop(self.write.lock().await.take());
        Ok(())
    }
}
