//! Leftovers of a killed process, and only those, are removed.

use container_sandbox::{Container, Error, Owner, sweep};

use crate::harness::{LONG, engine, given, line, out, owner_name, small};

#[tokio::test]
async fn only_the_dead_of_the_same_owner_go() {
    let test = "only_the_dead_of_the_same_owner_go";
    let Some(engine) = engine(test).await else { return };
    let Some(image) = given(test, "AGENT_WORKSPACE_TEST_IMAGE") else { return };
    let name = owner_name();
    let other = owner_name();
    let mut containers = Vec::new();
    for (owner, instance) in [(&name, "dead"), (&name, "alive"), (&other, "dead")] {
        let mut hardening = small();
        hardening.owner = Owner::new(owner, instance).unwrap();
        containers.push(Container::start(&engine, &image, &hardening).await.unwrap());
    }
    assert_eq!(sweep(&engine, &name, |instance| instance == "alive").await.unwrap(), 1);
    let error = containers[0].exec(&line("true", LONG)).await.unwrap_err();
    assert!(matches!(error, Error::Gone), "{error:?}");
    for spared in &containers[1..] {
        assert_eq!(out(spared, "echo here").await, "here\n");
    }
    assert_eq!(sweep(&engine, &name, |_| false).await.unwrap(), 1);
    assert_eq!(sweep(&engine, &name, |_| false).await.unwrap(), 0);
    assert_eq!(sweep(&engine, &other, |_| false).await.unwrap(), 1);
}

#[tokio::test]
async fn a_name_that_is_no_label_is_refused() {
    for name in ["", "a b", "a=b", "a,b", "ä", &"x".repeat(129)] {
        assert!(matches!(Owner::new(name, "1"), Err(Error::InvalidArgument { .. })), "{name}");
        assert!(matches!(Owner::new("a", name), Err(Error::InvalidArgument { .. })), "{name}");
    }
    let test = "a_name_that_is_no_label_is_refused";
    let Some(engine) = engine(test).await else { return };
    let error = sweep(&engine, "", |_| false).await.unwrap_err();
    assert!(matches!(error, Error::InvalidArgument { .. }), "{error:?}");
}
