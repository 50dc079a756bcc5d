//! Connecting: to an engine, to nothing, and to what is no engine.

use std::path::Path;

use container_sandbox::{Container, Engine, Error, WhyNot};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixListener;

use crate::harness::{engine, small};

async fn check(socket: &Path, expected: WhyNot) {
    match Engine::connect(socket).await {
        Err(Error::EngineUnavailable { tried }) => {
            assert_eq!(tried.len(), 1);
            assert_eq!(tried[0].why_not, expected, "{}", socket.display());
            let message = Error::EngineUnavailable { tried }.to_string();
            assert!(!message.contains(socket.to_str().unwrap()), "{message}");
        }
        other => panic!("{}: {other:?}", socket.display()),
    }
}

#[tokio::test]
async fn an_engine_says_what_it_is() {
    let Some(engine) = engine("an_engine_says_what_it_is").await else { return };
    let number = |text: &str| text.split('.').take(2).all(|part| part.parse::<u32>().is_ok());
    assert!(number(engine.version()), "{engine:?}");
    assert!(number(engine.api_version()), "{engine:?}");
}

#[tokio::test]
async fn where_nothing_is_there_is_no_engine() {
    let fixture = testkit::Fixture::new("//- file\nx\n");
    check(&fixture.root().join("absent.sock"), WhyNot::Absent).await;
    check(&fixture.root().join("file/x.sock"), WhyNot::Absent).await;
    check(&fixture.root().join("file"), WhyNot::Refused).await;
}

#[tokio::test]
async fn a_socket_without_a_listener_is_no_engine() {
    let fixture = testkit::Fixture::new("//- d/\n");
    let socket = fixture.root().join("x.sock");
    drop(UnixListener::bind(&socket).unwrap());
    check(&socket, WhyNot::Refused).await;
}

#[tokio::test]
async fn a_listener_that_never_answers_is_given_up() {
    let fixture = testkit::Fixture::new("//- d/\n");
    let socket = fixture.root().join("x.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    check(&socket, WhyNot::Silent).await;
    drop(listener);
}

#[tokio::test]
async fn a_listener_that_speaks_otherwise_is_no_engine() {
    let fixture = testkit::Fixture::new("//- d/\n");
    for (name, answer) in [
        ("s1", "SSH-2.0-OpenSSH_9.2\r\n"),
        ("s2", "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"),
        ("s3", "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n[]"),
        ("s4", "HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n"),
    ] {
        let socket = fixture.root().join(name);
        let listener = UnixListener::bind(&socket).unwrap();
        let speaker = tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut request = [0; 1024];
                if stream.read(&mut request).await.is_ok_and(|read| read > 0) {
                    stream.write_all(answer.as_bytes()).await.unwrap();
                }
            }
        });
        check(&socket, WhyNot::NotAnEngine).await;
        speaker.abort();
    }
}

#[tokio::test]
async fn an_image_the_engine_lacks_is_named() {
    let Some(engine) = engine("an_image_the_engine_lacks_is_named").await else { return };
    let error = Container::start(&engine, "localhost/no-such:image", &small()).await.unwrap_err();
    assert!(matches!(&error, Error::ImageMissing { image } if image == "localhost/no-such:image"));
    assert_eq!(error.to_string(), "the engine has no image localhost/no-such:image");
}

#[tokio::test]
async fn a_reference_that_is_a_path_never_reaches_the_engine() {
    let Some(engine) = engine("a_reference_that_is_a_path_never_reaches_the_engine").await else {
        return;
    };
    for reference in ["", "../containers/x", "a/../../version", "a?all=1"] {
        let error = Container::start(&engine, reference, &small()).await.unwrap_err();
        assert!(matches!(error, Error::InvalidArgument { argument: "image", .. }), "{reference}");
    }
}
