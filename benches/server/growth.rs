//! How cost grows as size grows tenfold twice, with the exponent of the power that fits best: 1 is proportional, below 1 less.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use benches::figures::time;
use benches::session::{Server, Session, Task};

use crate::median;

/// Samples at each size.
const SAMPLES: usize = 7;

/// One thing that grows.
struct Growth {
    what: &'static str,
    sizes: [u32; 3],
    /// Makes what is needed at a size, below the workspace.
    prepare: fn(&Path, u32),
    call: fn(u32) -> (&'static str, Value),
}

const GROWN: [Growth; 6] = [
    // First, while there is nothing else to walk.
    Growth {
        what: "files searched by name",
        sizes: [100, 1_000, 10_000],
        prepare: files,
        call: |_| ("search_workspace", json!({"pattern": "*77.txt"})),
    },
    Growth {
        what: "files searched by content",
        sizes: [100, 1_000, 10_000],
        prepare: |_, _| {},
        call: |size| ("search_content", json!({"path": format!("g{size}"), "pattern": "absent"})),
    },
    Growth {
        what: "files listed",
        sizes: [100, 1_000, 10_000],
        prepare: |_, _| {},
        call: |size| ("list_directory", json!({"path": format!("g{size}"), "limit": 100_000})),
    },
    Growth {
        what: "lines read, one page",
        sizes: [1_000, 10_000, 100_000],
        prepare: lines,
        call: |size| ("read_file", json!({"filepath": format!("l{size}.txt"), "limit": size})),
    },
    Growth {
        what: "lines of a file of which 100 are read at its middle",
        sizes: [1_000, 10_000, 100_000],
        prepare: |_, _| {},
        call: |size| ("read_file", json!({"filepath": format!("l{size}.txt"), "offset": size / 2})),
    },
    Growth {
        what: "lines of a command's output",
        sizes: [10_000, 100_000, 1_000_000],
        prepare: |_, _| {},
        call: |size| {
            let command = format!(
                "awk 'BEGIN {{ for (i = 0; i < {size}; i++) print \"step \" i \" of the work\" }}'"
            );
            ("run_bash", json!({"command": command}))
        },
    },
];

fn files(root: &Path, size: u32) {
    let dir = root.join(format!("g{size}"));
    std::fs::create_dir(&dir).expect("a directory");
    for file in 0..size {
        std::fs::write(dir.join(format!("{file}.txt")), "x\n").expect("a file");
    }
}

fn lines(root: &Path, size: u32) {
    let lines: Vec<_> = (0..size).map(|line| format!("line {line} of a file\n")).collect();
    std::fs::write(root.join(format!("l{size}.txt")), lines.concat()).expect("a file");
}

/// The exponent of the power of the size that fits the costs best, by least squares of the logarithms.
fn exponent(points: &[(f64, f64)]) -> f64 {
    let count: f64 = points.iter().map(|_| 1.0).sum();
    let logs: Vec<(f64, f64)> = points.iter().map(|(x, y)| (x.ln(), y.ln())).collect();
    let (sum_x, sum_y) =
        logs.iter().fold((0.0, 0.0), |sum, point| (sum.0 + point.0, sum.1 + point.1));
    let (mean_x, mean_y) = (sum_x / count, sum_y / count);
    let up: f64 = logs.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
    let down: f64 = logs.iter().map(|(x, _)| (x - mean_x).powi(2)).sum();
    up / down
}

fn row(text: &mut String, what: &str, sizes: &[u32], costs: &[Duration]) {
    let points: Vec<(f64, f64)> = sizes
        .iter()
        .zip(costs)
        .map(|(size, cost)| (f64::from(*size), cost.as_secs_f64()))
        .collect();
    write!(text, "| {what} |").expect("a string");
    for (size, cost) in &points {
        write!(text, " {size}: {} |", time(*cost)).expect("a string");
    }
    writeln!(text, " {:.2} |", exponent(&points)).expect("a string");
}

/// The table of what grows. The workspace is still empty.
pub(crate) fn table(ours: &Server, root: &Path, state: &Path) -> String {
    let mut text =
        "| what grows | | | | exponent |\n| --- | ---: | ---: | ---: | ---: |\n".to_owned();
    let (mut session, _) = Session::start(ours, root, state);
    for growth in &GROWN {
        let costs = growth.sizes.map(|size| {
            (growth.prepare)(root, size);
            let (tool, arguments) = (growth.call)(size);
            median((0..SAMPLES).map(|_| session.call(tool, &arguments)).collect())
        });
        row(&mut text, growth.what, &growth.sizes, &costs);
    }
    let read = Task::Read("l1000.txt".to_owned(), 20);
    let sizes = [2, 20, 200];
    let costs = sizes.map(|size| {
        let samples =
            (0..SAMPLES).filter_map(|_| session.pipeline(&read, u64::from(size))).collect();
        median(samples)
    });
    row(&mut text, "calls at one time, until the last answer", &sizes, &costs);
    session.end();
    text
}
