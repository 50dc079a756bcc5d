//! `stop_job`: ends a background job and its whole tree.

use rmcp::model::JsonObject;
use serde::Deserialize;

use super::{Effect, Row};
use crate::arguments::decode;
use crate::jobs::Ended;
use crate::reply::{ErrorKind, Facts, Failure, Reply};
use crate::schema::{Argument, Kind};
use crate::workspace::Session;

const ARGUMENTS: &[Argument] =
    &[Argument::required("job_id", Kind::Text, "the id that run_bash answered").also(&["id"])];

pub(super) const ROW: Row = Row {
    name: "stop_job",
    title: "Stop background job",
    description: "Ends a background job of run_bash with everything it started, and says how it ended. Its output \
stays readable with read_output.",
    effect: Effect::Runs,
    arguments: ARGUMENTS,
    call,
};

#[derive(Deserialize)]
struct Arguments {
    job_id: String,
}

fn call(session: &Session, given: JsonObject) -> Result<Reply, Failure> {
    let Arguments { job_id } = decode(ARGUMENTS, given)?;
    let Some(job) = session.workspace.jobs.get(&job_id) else {
        return Err(Failure::new(
            ErrorKind::UnknownId,
            format!("no background job '{job_id}'; run_bash with background=true starts one"),
        ));
    };
    let before = job.ended().is_some();
    let Some(ended) = job.stop() else {
        return Err(Failure::new(
            ErrorKind::Internal,
            format!("job {job_id} was told to end and hangs in the system"),
        ));
    };
    let mut lines = ended.lines(&job_id, before);
    let facts = facts(&job_id, &ended);
    if let Some(reason) = job.broken() {
        lines.push(format!("[its output is not whole: {reason}]"));
    }
    Ok(Reply::text(lines.join("\n")).facts(facts))
}

/// What programs read about a job's end.
pub(super) fn facts(job_id: &str, ended: &Ended) -> Facts {
    let facts = Facts::default().with("job_id", job_id).with("state", "finished");
    let Ended::Ran { how, sandbox, .. } = ended else { return facts };
    facts
        .with("exit_code", how.exit_code)
        .with("signal", how.signal)
        .with("timed_out", how.timed_out)
        .with("cancelled", how.cancelled)
        .with("duration_ms", how.duration.as_millis())
        .with("leftovers", how.leftovers)
        .with("sandbox", sandbox)
}
