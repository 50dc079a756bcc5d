//! Runs one command in a container that is gone afterwards: `once IMAGE COMMAND [ARGUMENT…]`.
//!
//! The engine is the one that `DOCKER_HOST` names, or one at a usual place; it must hold the image.
//!
//! `cargo run -p container-sandbox --example once -- debian:bookworm-slim id`

use std::io::{self, Write as _};
use std::time::Duration;

use container_sandbox::{Command, Container, Engine, Hardening, Owner};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let image = arguments.next().ok_or("once IMAGE COMMAND [ARGUMENT…]")?;
    let command = Command::new(arguments, Duration::from_mins(1));

    let engine = Engine::discover().await?;
    let owner = Owner::new("once", std::process::id().to_string())?;
    let container = Container::start(&engine, &image, &Hardening::new(owner)).await?;
    let outcome = container.exec(&command).await;
    // It goes in any case; what went wrong inside is told afterwards.
    container.remove().await?;

    let outcome = outcome?;
    writeln!(io::stdout(), "{}", outcome.output)?;
    writeln!(io::stderr(), "exit code {:?}", outcome.exit_code)?;
    Ok(())
}
