//! One call from arguments to answer, whatever happens inside: a panic, a cancellation, the server's end.
//!
//! The SDK leaves a request whose handler panics unanswered and has no notion of blocking work. Here each
//! call runs on a blocking thread, a panic becomes an `internal` error of that call alone, and every call
//! leaves one line in the audit log and two in the server's log.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use proc_runner::Cancel;
use rmcp::model::JsonObject;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::audit;
use crate::progress::Heard;
use crate::reply::{ErrorKind, Failure, Reply};
use crate::tools::Row;
use crate::workspace::{Session, Workspace};

/// What a call has from whoever makes it.
#[derive(Debug, Clone, Default)]
pub struct Caller {
    /// Cancelled when the caller no longer wants the answer.
    pub cancelled: CancellationToken,
    /// Cancelled when the server is to end.
    pub ending: CancellationToken,
    /// Where the call's command can be heard while it runs.
    pub heard: Heard,
}

/// Characters of an answer in the server's log.
const SNIPPET: usize = 200;
/// How long a call may wait for its turn before it is told to come again.
const WAITING: Duration = Duration::from_secs(30);

/// Runs the tool of `row`; the answer comes when everything the call started has ended.
pub async fn call(
    workspace: Arc<Workspace>,
    row: &'static Row,
    arguments: JsonObject,
    caller: Caller,
) -> Reply {
    let Caller { cancelled, ending, heard } = caller;
    let started = Instant::now();
    let shown = audit::cut(&arguments);
    let sent = serde_json::to_string(&arguments).unwrap_or_default();
    tracing::info!(tool = row.name, arguments = %shown, "TOOL_CALL");

    let turn = tokio::select! {
        biased;
        turn = tokio::time::timeout(WAITING, workspace.turns.acquire()) => turn.ok().and_then(Result::ok),
        () = cancelled.cancelled() => None,
        () = ending.cancelled() => None,
    };
    let reply = match (Cancel::new(), &turn) {
        (_, None) if cancelled.is_cancelled() || ending.is_cancelled() => {
            Failure::new(ErrorKind::Cancelled, "[cancelled] before it began").into()
        }
        (_, None) => {
            let most = workspace.config.max_concurrent_calls;
            let text = format!("{most} calls are running and none of them ends; try again later");
            Failure::new(ErrorKind::Busy, text).into()
        }
        (Err(error), _) => {
            Failure::new(ErrorKind::Internal, format!("no descriptor for the call: {error}")).into()
        }
        (Ok(cancel), Some(_)) => {
            let session =
                Session { workspace: Arc::clone(&workspace), cancel: cancel.clone(), heard };
            let mut work = tokio::task::spawn_blocking(move || run(row, &session, arguments));
            let ended = tokio::select! {
                ended = &mut work => ended,
                () = cancelled.cancelled() => { cancel.cancel(); work.await }
                () = ending.cancelled() => { cancel.cancel(); work.await }
            };
            ended.unwrap_or_else(|error| internal(row.name, &error.to_string()))
        }
    };

    drop(turn);
    record(&workspace, row, &shown, &sent, started, &reply);
    reply
}

fn run(row: &Row, session: &Session, arguments: JsonObject) -> Reply {
    let answer = catch_unwind(AssertUnwindSafe(|| (row.call)(session, arguments)));
    match answer {
        Ok(Ok(reply)) => reply,
        Ok(Err(failure)) => failure.into(),
        Err(panic) => {
            let message = panic
                .downcast_ref::<String>()
                .map(String::as_str)
                .or_else(|| panic.downcast_ref::<&str>().copied())
                .unwrap_or("no message");
            internal(row.name, message)
        }
    }
}

/// The panic's own words go to the log; an answer never carries host paths out.
fn internal(tool: &str, message: &str) -> Reply {
    tracing::error!(tool, message, "a tool panicked");
    let text = format!(
        "internal error in {tool}; the call was abandoned and the server goes on. Try again, or another way."
    );
    Failure::new(ErrorKind::Internal, text).into()
}

fn record(
    workspace: &Workspace,
    row: &Row,
    arguments: &Value,
    sent: &str,
    started: Instant,
    reply: &Reply,
) {
    let duration_ms = started.elapsed().as_millis();
    let error_kind = reply.error.map(ErrorKind::as_str);
    let summary = beginning(reply.text.lines().next().unwrap_or_default());
    let snippet = Some(beginning(&reply.text)).filter(|snippet| *snippet != summary);
    let (tool, snippet) = (row.name, snippet.as_deref());
    match error_kind {
        None => tracing::info!(tool, duration_ms, summary, snippet, "TOOL_DONE [OK]"),
        Some(kind) => tracing::warn!(tool, duration_ms, kind, summary, snippet, "TOOL_DONE [FAIL]"),
    }
    if let Some(kind) = reply.error.filter(|kind| is_denial(*kind)) {
        workspace.audit.refused(row.name, kind.as_str(), arguments);
    }
    workspace.audit.call(&audit::Call {
        tool: row.name,
        arguments,
        outcome: if error_kind.is_some() { "error" } else { "ok" },
        error_kind,
        duration_ms,
        bytes_in: sent.len(),
        bytes_out: reply.text.len(),
        tokens_in: token_filter::estimate_tokens(sent),
        tokens_out: token_filter::estimate_tokens(&reply.text),
        raw_tokens: reply.facts.get("raw_tokens"),
        out_tokens: reply.facts.get("out_tokens"),
        exit_code: reply.facts.get("exit_code"),
        sandbox: reply.facts.get("sandbox"),
    });
}

/// What a line of the log shows of a text.
fn beginning(text: &str) -> String {
    let mut shown: String = text.chars().take(SNIPPET).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}

/// Refusals that stand for an attempt, not for a mistake.
fn is_denial(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::OutsideWorkspace | ErrorKind::ProtectedPath | ErrorKind::HardlinkRefused
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::tools::Effect;

    fn row(call: fn(&Session, JsonObject) -> Result<Reply, Failure>) -> &'static Row {
        let row = Row {
            name: "test",
            title: "Test",
            description: "Test",
            effect: Effect::Reads,
            arguments: &[],
            call,
        };
        Box::leak(Box::new(row))
    }

    fn check(calls: &[&'static Row], cancelled: &CancellationToken) -> (Vec<Reply>, String) {
        let fixture = testkit::Fixture::new("//- a\n");
        let mut config = Config::new(fixture.root());
        config.audit_dir = Some(fixture.base().join("state"));
        (config.ceiling, config.floor) = (proc_sandbox::Rung::None, proc_sandbox::Rung::None);
        let workspace = Arc::new(Workspace::open(config).unwrap());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let replies = calls
            .iter()
            .map(|row| {
                let caller = Caller { cancelled: cancelled.clone(), ..Caller::default() };
                runtime.block_on(call(Arc::clone(&workspace), row, JsonObject::new(), caller))
            })
            .collect();
        let dir = cap_std::fs::Dir::open_ambient_dir(
            fixture.base().join("state"),
            cap_std::ambient_authority(),
        );
        (replies, dir.unwrap().read_to_string(audit::FILE).unwrap())
    }

    #[test]
    fn a_panic_is_the_answer_of_its_call_alone() {
        let panics = row(|_, _| panic!("a secret of {}", "/home/someone"));
        let works = row(|_, _| Ok(Reply::text("fine")));
        let (replies, log) = check(&[panics, works], &CancellationToken::new());
        assert_eq!(replies[0].error, Some(ErrorKind::Internal));
        assert!(!replies[0].text.contains("/home/someone"), "{}", replies[0].text);
        assert_eq!((replies[1].error, replies[1].text.as_str()), (None, "fine"));
        assert_eq!(
            log.lines().filter(|line| line.contains("\"event\":\"call\"")).count(),
            2,
            "{log}"
        );
    }

    #[test]
    fn a_cancellation_reaches_the_call() {
        let waits = row(|session, _| {
            let mut fds =
                [rustix::event::PollFd::new(&session.cancel, rustix::event::PollFlags::IN)];
            let minute = rustix::event::Timespec { tv_sec: 60, tv_nsec: 0 };
            let woken = rustix::event::poll(&mut fds, Some(&minute)).unwrap();
            Ok(Reply::text(if woken == 1 { "cancelled" } else { "waited in vain" }))
        });
        let cancelled = CancellationToken::new();
        cancelled.cancel();
        let (replies, _) = check(&[waits], &cancelled);
        assert_eq!(replies[0].text, "cancelled");
    }
}
