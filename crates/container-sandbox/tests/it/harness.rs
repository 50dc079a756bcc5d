//! The engine and the images under test, and a container for the length of a test.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use container_sandbox::{Command, Container, Engine, ExecOutcome, Hardening, Owner};
use testkit::{Missing, require};

/// For commands that are expected to end by themselves.
pub(crate) const LONG: Duration = Duration::from_mins(1);

/// A value from the environment, or a skip.
pub(crate) fn given(test: &str, name: &str) -> Option<String> {
    require(test, std::env::var(name).map_err(|_| Missing(format!("{name} is not set"))))
}

/// The engine under test, or a skip.
pub(crate) async fn engine(test: &str) -> Option<Engine> {
    let host = given(test, "AGENT_WORKSPACE_TEST_ENGINE")?;
    let socket = PathBuf::from(host.strip_prefix("unix://").expect("a unix:// address"));
    Some(Engine::connect(&socket).await.expect("the engine of AGENT_WORKSPACE_TEST_ENGINE answers"))
}

/// A name for containers that no other test uses.
pub(crate) fn owner_name() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("test-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Small limits, and a short life for the container of a test that panics.
pub(crate) fn small() -> Hardening {
    let mut hardening = Hardening::new(Owner::new(owner_name(), "1").unwrap());
    hardening.pids = 32;
    hardening.memory = 128 << 20;
    hardening.cpu_millis = 500;
    hardening.tmp = 8 << 20;
    hardening.work = 16 << 20;
    hardening.lifetime = Duration::from_mins(5);
    hardening
}

/// Runs `body` in a container of the image named by the variable, and removes the container.
pub(crate) async fn with_image(
    test: &str,
    variable: &str,
    hardening: Hardening,
    body: impl AsyncFnOnce(&Container),
) {
    let Some(engine) = engine(test).await else { return };
    let Some(image) = given(test, variable) else { return };
    let container = Container::start(&engine, &image, &hardening).await.unwrap();
    body(&container).await;
    container.remove().await.unwrap();
}

/// Runs `body` in a container with small limits.
pub(crate) async fn with_container(test: &str, body: impl AsyncFnOnce(&Container)) {
    with_image(test, "AGENT_WORKSPACE_TEST_IMAGE", small(), body).await;
}

/// A shell line as a command.
pub(crate) fn line(text: &str, timeout: Duration) -> Command {
    Command::new(["sh", "-c", text], timeout)
}

/// Runs a shell line to its end.
pub(crate) async fn sh(container: &Container, text: &str) -> ExecOutcome {
    container.exec(&line(text, LONG)).await.unwrap_or_else(|error| panic!("{text}: {error:?}"))
}

/// The output of a shell line that must succeed.
pub(crate) async fn out(container: &Container, text: &str) -> String {
    let outcome = sh(container, text).await;
    assert_eq!(outcome.exit_code, Some(0), "{text}: {outcome:?}");
    assert!(outcome.leftovers == 0 && !outcome.container_ended, "{text}: {outcome:?}");
    outcome.output.to_string()
}

/// Runs `body` while a shell line that says something and goes on is running, then drops that.
pub(crate) async fn while_running(container: &Container, text: &str, body: impl AsyncFnOnce()) {
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let mut sender = Some(sender);
    let command = line(text, LONG);
    let running = container.exec_with(&command, |_| {
        if let Some(sender) = sender.take() {
            sender.send(()).expect("the test waits");
        }
    });
    let body = async {
        receiver.await.expect("the command says something");
        body().await;
    };
    tokio::select! {
        outcome = running => panic!("{text}: {outcome:?}"),
        () = body => {}
    }
}
