//! A request's body, read whole and bounded; and the answer, under its own id, to one that cannot be used.

use std::fmt::Display;
use std::time::Duration;

use http_body_util::BodyExt as _;
use hyper::StatusCode;
use hyper::body::{Body, Bytes};

use super::{Answer, json_answer, refusal};
use crate::reply::ErrorKind;
use crate::transport::envelope::Envelope;
use crate::transport::{MAX_LINE, OVER, unreadable as answer_to};

/// A client that sends nothing for so long is not waited for.
const PATIENCE: Duration = Duration::from_secs(30);

/// Why a body was not read.
pub(super) enum Unread {
    /// Longer than any request; this is known of it.
    Over(Box<Envelope>),
    /// It broke off, or nothing more came.
    Broken(String),
}

impl Unread {
    pub(super) fn answer(&self) -> Answer {
        match self {
            Self::Broken(why) => refusal(StatusCode::BAD_REQUEST, &format!("Bad Request: {why}")),
            Self::Over(envelope) => answer_to(envelope, ErrorKind::TooLarge, OVER)
                .map_or_else(|| refusal(StatusCode::PAYLOAD_TOO_LARGE, OVER), |it| answered(&it)),
        }
    }
}

/// Reads a body of at most [`MAX_LINE`] bytes; of a longer one its envelope, in no more memory than that.
pub(super) async fn read<B>(mut body: B) -> Result<Bytes, Unread>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Display,
{
    let mut read = Vec::new();
    let mut over: Option<Box<Envelope>> = None;
    loop {
        let frame = match tokio::time::timeout(PATIENCE, body.frame()).await {
            Err(_) => return Err(Unread::Broken("the body did not come".to_owned())),
            Ok(None) => break,
            Ok(Some(Err(error))) => return Err(Unread::Broken(error.to_string())),
            Ok(Some(Ok(frame))) => frame,
        };
        let Some(bytes) = frame.data_ref() else { continue };
        if let Some(envelope) = &mut over {
            envelope.push(bytes);
        } else if read.len() + bytes.len() > MAX_LINE {
            let mut envelope = Box::<Envelope>::default();
            envelope.push(&read);
            envelope.push(bytes);
            read = Vec::new();
            over = Some(envelope);
        } else {
            read.extend_from_slice(bytes);
        }
    }
    over.map_or_else(|| Ok(read.into()), |envelope| Err(Unread::Over(envelope)))
}

/// The answer to a body that is no message; nothing where it was the request's kind that was refused.
pub(super) fn unreadable(body: &[u8]) -> Option<Answer> {
    let error = serde_json::from_slice::<rmcp::model::ClientJsonRpcMessage>(body).err()?;
    let mut envelope = Envelope::default();
    envelope.push(body);
    let why = if body.trim_ascii_start().starts_with(b"[") {
        "batches are not taken over HTTP; send one message a request".to_owned()
    } else {
        format!("the request cannot be read: {error}")
    };
    let answer = answer_to(&envelope, ErrorKind::InvalidArgs, &why);
    Some(answer.map_or_else(
        || refusal(StatusCode::BAD_REQUEST, &format!("Bad Request: {why}")),
        |answer| answered(&answer),
    ))
}

fn answered(message: &serde_json::Value) -> Answer {
    let status =
        if message.get("error").is_some() { StatusCode::BAD_REQUEST } else { StatusCode::OK };
    json_answer(status, message)
}
