//! Images that the engine lacks: pulled where the operator allows it, with what the engine says of it told meanwhile.
//!
//! A model may name any image, and a name is enough to tell a registry something; `PULL` says whose names are fetched.

use std::time::Duration;

use container_sandbox::{Engine, Error, PullStep};
use proc_runner::Cancel;

use crate::config::Pull;
use crate::progress::Heard;
use crate::reply::{ErrorKind, Failure};
use crate::shell::with_source;

/// How long an image may take to come.
const COMING: Duration = Duration::from_mins(30);
/// How often a cancellation is looked for.
const LOOK: Duration = Duration::from_millis(50);
/// Characters of an engine's reason that are told.
const REASON: usize = 300;

/// Sees that the engine has `image`, pulling it where it lacks it and `pull` allows that; steps go to `heard`.
///
/// # Errors
///
/// [`ErrorKind::EngineUnavailable`] when it is not to be had, with the engine's reason; [`ErrorKind::Cancelled`].
pub(crate) async fn bring(
    engine: &Engine,
    image: &str,
    pull: &Pull,
    cancel: &Cancel,
    heard: &Heard,
) -> Result<(), Failure> {
    match engine.has_image(image).await {
        Ok(true) => return Ok(()),
        Ok(false) => {}
        Err(error @ Error::InvalidArgument { .. }) => {
            return Err(Failure::invalid_args(error.to_string()));
        }
        Err(error) => {
            tracing::warn!(error = with_source(&error), "no word about an image");
            return Err(unavailable(format!("{error}; the operator's log says more")));
        }
    }
    if !pull.allows(image) {
        let text = "the engine has no image {}, and the operator does not let it be pulled (PULL); name another";
        return Err(unavailable(text.replace("{}", image)));
    }
    tracing::info!(image, "pulling");
    let told = heard.clone();
    let pulled = engine.pull(image, COMING, move |step| told.push(line(&step).as_bytes()));
    let mut pulled = std::pin::pin!(pulled);
    let done = loop {
        tokio::select! {
            done = &mut pulled => break done,
            () = tokio::time::sleep(LOOK) => {
                if cancel.is_cancelled() {
                    let text = format!("[cancelled] while {image} was pulled");
                    return Err(Failure::new(ErrorKind::Cancelled, text));
                }
            }
        }
    };
    done.map_err(|error| {
        tracing::warn!(error = with_source(&error), "an image was not pulled");
        let reason = std::error::Error::source(&error).unwrap_or(&error).to_string();
        unavailable(format!(
            "the engine has no image {image} and could not pull it: {}; the operator can, or name one that it has",
            without_paths(&reason)
        ))
    })
}

fn unavailable(text: String) -> Failure {
    Failure::new(ErrorKind::EngineUnavailable, text)
}

/// One step as a line.
fn line(step: &PullStep<'_>) -> String {
    let layer = step.layer.map_or_else(String::new, |layer| format!("{layer}: "));
    let bytes = match (step.done, step.total) {
        (Some(done), Some(total)) => format!(" {} of {}", megabytes(done), megabytes(total)),
        (Some(done), None) => format!(" {}", megabytes(done)),
        _ => String::new(),
    };
    format!("pulling {layer}{}{bytes}\n", step.status)
}

fn megabytes(bytes: u64) -> String {
    format!("{}.{} MB", bytes / 1_000_000, bytes % 1_000_000 / 100_000)
}

/// An engine's reason on one line, without absolute paths of the machine.
fn without_paths(reason: &str) -> String {
    let is_path = |word: &str| word.trim_start_matches(['"', '\'', '(']).starts_with('/');
    let words = reason.split_whitespace().map(|word| if is_path(word) { "(a path)" } else { word });
    let whole = words.collect::<Vec<_>>().join(" ");
    let mut cut: String = whole.chars().take(REASON).collect();
    if cut.len() < whole.len() {
        cut.push('…');
    }
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_one_short_line_without_paths() {
        let reason =
            "reading\n\"/root/.docker/config.json\": open /x: denied by https://r.example/v2/";
        let expected = "reading (a path) open (a path) denied by https://r.example/v2/";
        assert_eq!(without_paths(reason), expected);
        assert_eq!(without_paths(&"x".repeat(400)).chars().count(), REASON + 1);
    }

    #[test]
    fn bytes_are_told_in_megabytes() {
        assert_eq!(megabytes(12_345_678), "12.3 MB");
        assert_eq!(megabytes(0), "0.0 MB");
    }
}
