//! Tools that no peer has, at small and large size: stored output and code in a native sandbox.

use std::fmt::Write as _;
use std::path::Path;

use benches::figures::time;
use benches::session::{Server, Session};
use serde_json::json;

use crate::median;

/// Samples of each.
const SAMPLES: usize = 60;

/// The text after a mark of the last answer, up to the next quote.
fn named(session: &Session<'_>, mark: &str) -> String {
    let (_, rest) = session.answer().split_once(mark).expect("what the answer names");
    rest.split('"').next().expect("a name").to_owned()
}

/// The table.
pub(crate) fn table(ours: &Server, root: &Path, state: &Path) -> String {
    let (mut session, _) = Session::start(ours, root, state);
    session.call("run_bash", &json!({"command": "seq 100000"}));
    let output = named(&session, "\"output_id\":\"");
    session.call("initialize_sandbox", &json!({}));
    let sandbox = named(&session, "\"sandbox_id\":\"");
    let code = |code: &str| json!({"language": "sh", "code": code, "sandbox_id": sandbox});
    let rows = [
        (
            "stored output, 20 lines at its middle",
            "read_output",
            json!({"output_id": output, "offset": 50_000, "limit": 20}),
        ),
        (
            "stored output, 5,000 lines of its last tenth",
            "read_output",
            json!({"output_id": output, "offset": 90_000, "limit": 5_000}),
        ),
        ("code in an open native sandbox, one line", "execute_code", code("echo 42")),
        ("code in an open native sandbox, 0.6 MB of output", "execute_code", code("seq 100000")),
    ];
    let mut text = "| ours alone | |\n| --- | ---: |\n".to_owned();
    for (what, tool, arguments) in rows {
        let took = median((0..SAMPLES).map(|_| session.call(tool, &arguments)).collect());
        writeln!(text, "| {what} | {} |", time(took.as_secs_f64())).expect("a string");
    }
    session.leave();
    text
}
