//! Pulling: from an engine that says what it does, from one that fails or falls silent, and from the real one.

use std::time::{Duration, Instant};

use container_sandbox::{Engine, Error};
use testkit::Fixture;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};

use crate::harness::engine;

const VERSION: &str =
    r#"{"Version":"1.0","ApiVersion":"1.41","MinAPIVersion":"1.24","Components":[]}"#;
const IMAGE: &str = r#"{"Id":"sha256:00","Config":{}}"#;

/// An engine that knows its version, an image, and how to pull: it answers a pull with `said`, line by line.
fn fake(fixture: &Fixture, said: &'static [&'static str], ends: bool) -> std::path::PathBuf {
    let socket = fixture.root().join("engine.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, said, ends));
        }
    });
    socket
}

async fn serve(mut stream: UnixStream, said: &'static [&'static str], ends: bool) {
    let mut buffer = [0; 4096];
    while let Ok(read @ 1..) = stream.read(&mut buffer).await {
        let request = String::from_utf8_lossy(&buffer[..read]).into_owned();
        let body = if request.contains("/version") { VERSION } else { IMAGE };
        if !request.contains("/images/create") {
            let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n";
            let answer = format!("{head}content-length: {}\r\n\r\n{body}", body.len());
            stream.write_all(answer.as_bytes()).await.unwrap();
            continue;
        }
        assert!(request.contains("fromImage=localhost%2Fx&tag=v1"), "{request}");
        stream.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").await.unwrap();
        for line in said {
            let piece = format!("{:x}\r\n{line}\r\n\r\n", line.len() + 2);
            stream.write_all(piece.as_bytes()).await.unwrap();
        }
        if ends {
            stream.write_all(b"0\r\n\r\n").await.unwrap();
        }
    }
}

async fn pulled(said: &'static [&'static str], ends: bool) -> (Result<(), Error>, Vec<String>) {
    let fixture = Fixture::new("//- d/\n");
    let engine = Engine::connect(&fake(&fixture, said, ends)).await.unwrap();
    let mut steps = Vec::new();
    let timeout = Duration::from_millis(if ends { 30_000 } else { 300 });
    let done = engine
        .pull("localhost/x:v1", timeout, |step| {
            steps
                .push(format!("{:?} {} {:?}/{:?}", step.layer, step.status, step.done, step.total));
        })
        .await;
    (done, steps)
}

#[tokio::test]
async fn every_step_is_told() {
    let (done, steps) = pulled(
        &[
            r#"{"status":"Pulling from x","id":"v1"}"#,
            r#"{"status":"Downloading","progressDetail":{"current":10,"total":100},"id":"ab12"}"#,
            r#"{"status":"Status: Downloaded"}"#,
        ],
        true,
    )
    .await;
    assert!(done.is_ok(), "{done:?}");
    let expected = [
        r#"Some("v1") Pulling from x None/None"#,
        r#"Some("ab12") Downloading Some(10)/Some(100)"#,
        "None Status: Downloaded None/None",
    ];
    assert_eq!(steps, expected);
}

#[tokio::test]
async fn the_engine_s_reason_is_the_source() {
    let (done, _) =
        pulled(&[r#"{"errorDetail":{"message":"manifest unknown"},"error":"x"}"#], true).await;
    let error = done.unwrap_err();
    assert_eq!(error.to_string(), "the engine could not pull localhost/x:v1");
    let reason = std::error::Error::source(&error).unwrap().to_string();
    assert!(reason.contains("manifest unknown"), "{reason}");
}

#[tokio::test]
async fn an_engine_that_falls_silent_is_given_up() {
    let (done, steps) = pulled(&[r#"{"status":"Waiting"}"#], false).await;
    assert!(matches!(done, Err(Error::Timeout { operation: "pull", .. })), "{done:?}");
    assert_eq!(steps.len(), 1);
}

#[tokio::test]
async fn what_the_real_engine_cannot_pull_is_a_reason() {
    let Some(engine) = engine("what_the_real_engine_cannot_pull_is_a_reason").await else { return };
    let began = Instant::now();
    // Nobody listens there.
    let error =
        engine.pull("localhost:1/no/such:x", Duration::from_secs(50), |_| {}).await.unwrap_err();
    assert!(matches!(&error, Error::PullFailed { .. }), "{error:?}");
    let reason = std::error::Error::source(&error).unwrap().to_string();
    assert!(reason.contains("localhost:1"), "{reason}");
    assert!(began.elapsed() < Duration::from_secs(50));
    assert!(engine.pull("a/../b", Duration::from_secs(50), |_| {}).await.is_err());
}
