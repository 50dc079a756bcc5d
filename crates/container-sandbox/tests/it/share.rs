//! A directory of the host in a container: written to as its owner, its read-only places as they are, nothing else.

use container_sandbox::{Container, Error, Network, Share};
use testkit::{Fixture, Missing, Snapshot, require};

use crate::harness::{engine, given, out, sh, small, with_image};

const OWNER: u32 = 10_001;
const IMAGE: &str = "AGENT_WORKSPACE_TEST_IMAGE";

/// A fixture that belongs to the commands' user.
fn fixture(test: &str, files: &str) -> Option<Fixture> {
    let fixture = Fixture::new(files);
    let given = hand_over(&fixture).map_err(|_| Missing("root, to be somebody else".into()));
    require(test, given)?;
    Some(fixture)
}

#[expect(clippy::disallowed_methods, reason = "a test hands files over as root would")]
fn hand_over(fixture: &Fixture) -> std::io::Result<()> {
    let done = std::process::Command::new("chown")
        .args(["-hR", &format!("{OWNER}:{OWNER}")])
        .arg(fixture.root())
        .status()?;
    done.success().then_some(()).ok_or_else(|| std::io::Error::other("chown"))
}

fn share(fixture: &Fixture) -> Share {
    Share::new(fixture.root().to_str().unwrap())
}

#[tokio::test]
async fn commands_write_to_the_directory_and_not_to_its_read_only_places() {
    let test = "commands_write_to_the_directory_and_not_to_its_read_only_places";
    let files = "//- .git/config\n[core]\n//- .git/hooks/x\nold\n//- a.txt\nhello\n";
    let Some(fixture) = fixture(test, files) else { return };
    let mut hardening = small();
    hardening.share = Some(share(&fixture).keep([".git"]).read_only([".git/config", ".git/hooks"]));
    with_image(test, IMAGE, hardening, async |container| {
        let root = fixture.root().display().to_string();
        let line = format!("cd {root} && cat a.txt && echo made > b.txt && id -u");
        assert_eq!(out(container, &line).await, "hello\n10001\n");
        let line = format!(
            "cd {root}; for f in .git/config .git/hooks/x .git/hooks/new; do echo evil > $f && echo WROTE $f; done; \
             mv .git/config gone && echo MOVED; mv .git gone && echo MOVED; cat {}/secret.txt && echo READ; true",
            fixture.outside().display()
        );
        let outcome = sh(container, &line).await;
        let said = outcome.output.to_string();
        for proof in ["WROTE", "MOVED", "READ", Fixture::CANARY] {
            assert!(!said.contains(proof), "{said}");
        }
    })
    .await;
    assert_eq!(fixture.read("b.txt"), "made\n");
    assert_eq!(
        (fixture.read(".git/config"), fixture.read(".git/hooks/x")),
        ("[core]\n".into(), "old\n".into())
    );
}

/// The engine follows the link, as root; the container that shows where it leads is never handed out.
#[tokio::test]
async fn a_link_in_the_path_of_a_read_only_place_shows_nothing_of_the_host() {
    let test = "a_link_in_the_path_of_a_read_only_place_shows_nothing_of_the_host";
    let Some(engine) = engine(test).await else { return };
    let Some(image) = given(test, IMAGE) else { return };
    let Some(fixture) = fixture(test, "//- .git/config\n[core]\n") else { return };
    let before = Snapshot::of(&fixture.outside());
    std::os::unix::fs::symlink(fixture.outside(), fixture.root().join("link")).unwrap();
    let mut hardening = small();
    hardening.share = Some(share(&fixture).read_only(["link/secret.txt"]));
    match Container::start(&engine, &image, &hardening).await {
        Err(Error::ShareDiffers { place }) => assert_eq!(place, "link/secret.txt"),
        // A runtime may refuse by itself.
        Err(Error::StartFailed { .. }) => {}
        other => panic!("{other:?}"),
    }
    assert!(Snapshot::of(&fixture.outside()) == before);
}

#[tokio::test]
async fn the_engine_s_network_is_there_when_asked_for() {
    let test = "the_engine_s_network_is_there_when_asked_for";
    let mut hardening = small();
    hardening.network = Network::Engine;
    with_image(test, IMAGE, hardening, async |container| {
        let links = out(container, "ip -o link").await;
        assert!(links.lines().any(|line| !line.contains(" lo:")), "{links}");
    })
    .await;
}
