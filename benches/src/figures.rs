//! Figures as a page shows them, and the place where it does.

use std::path::Path;
use std::time::Duration;

/// The middle one of some samples; nothing of none.
pub fn median(mut samples: Vec<Duration>) -> Option<Duration> {
    samples.sort_unstable();
    samples.get(samples.len() / 2).copied()
}

/// Seconds in the unit that suits them.
pub fn time(seconds: f64) -> String {
    match seconds {
        s if s < 1e-3 => format!("{:.0} µs", s * 1e6),
        s if s < 1.0 => format!("{:.2} ms", s * 1e3),
        s => format!("{s:.2} s"),
    }
}

/// Puts `text` between two marks of the page that this program's command line names after `--write`, if it names one. Its
/// path is absolute or begins at the top of the repository, since cargo starts benches in their package's folder.
///
/// # Panics
///
/// If the page cannot be read or written, or has no such marks.
pub fn write_page(marks: [&str; 2], text: &str) {
    let mut arguments = std::env::args().skip_while(|argument| argument != "--write").skip(1);
    let Some(page) = arguments.next() else { return };
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(page);
    let old = std::fs::read_to_string(&page).expect("the page");
    let (before, rest) = old.split_once(marks[0]).expect("the first mark");
    let (_, after) = rest.split_once(marks[1]).expect("the second mark");
    let new = format!("{before}{}\n\n{text}\n{}{after}", marks[0], marks[1]);
    std::fs::write(page, new).expect("the page");
}
