//! The bracketed lines that stand for what is not shown, written and recognised in one place.

use crate::meta::Recovery;
use crate::receipt::OmissionKind;
use std::fmt::Write as _;
use std::ops::Range;

/// How every marker opens.
const OPEN: &str = "[… ";

/// Writes the marker of a gap on a line of its own.
pub(crate) fn gap(lines: &Range<u64>, kind: OmissionKind, recovery: &Recovery, into: &mut String) {
    let count = lines.end - lines.start;
    let noun = if count == 1 { "line" } else { "lines" };
    let what = match kind {
        OmissionKind::Similar => "similar ",
        OmissionKind::Binary => "binary ",
        OmissionKind::Gap | OmissionKind::Cut => "",
    };
    into.push_str(OPEN);
    // Writing into a string cannot fail.
    let _done = match recovery {
        Recovery::ReadOutput { .. } => {
            write!(into, "{count} {what}{noun} omitted, {}", numbers(lines))
        }
        Recovery::None => write!(into, "{count} {what}{noun} not shown"),
    };
    call(lines, recovery, into);
    into.push(']');
}

/// Writes the names that omitted rows open with; `+2` stands for two more that open like the name before it.
pub(crate) fn names(names: &str, into: &mut String) {
    into.push_str(OPEN);
    into.push_str("they start with: ");
    into.push_str(names);
    into.push(']');
}

/// Writes the marker below blocks of which `count` rows within `lines` are left out.
pub(crate) fn trimmed(count: u64, lines: &Range<u64>, recovery: &Recovery, into: &mut String) {
    into.push_str(OPEN);
    let _done = match recovery {
        Recovery::ReadOutput { .. } => {
            write!(into, "{count} similar lines omitted within {}", numbers(lines))
        }
        Recovery::None => write!(into, "{count} similar lines not shown"),
    };
    call(lines, recovery, into);
    into.push(']');
}

/// Writes the marker inside a line whose middle is cut out.
pub(crate) fn cut(bytes: u64, line: u64, recovery: &Recovery, into: &mut String) {
    into.push_str(OPEN);
    let _done = match recovery {
        Recovery::ReadOutput { .. } => {
            write!(into, "{bytes} bytes omitted of line {}", line + 1)
        }
        Recovery::None => write!(into, "{bytes} bytes of the line not shown"),
    };
    call(&(line..line + 1), recovery, into);
    into.push_str(" …]");
}

/// Writes the line that describes an output that is no text.
pub(crate) fn binary(bytes: u64, nature: &str, into: &mut String) {
    into.push_str(OPEN);
    let _done = write!(into, "binary output, {nature}, {bytes} bytes]");
}

/// Writes the line between the ends of a run that counts up.
pub(crate) fn counting(between: usize, into: &mut String) {
    into.push_str(OPEN);
    let _done = write!(into, "{between} lines counting up by 1 …]");
}

/// Writes the line above rows that are written with braces.
pub(crate) fn braces(rows: usize, into: &mut String) {
    into.push_str(OPEN);
    let _done = write!(into, "rewritten: {rows} lines, one for each word in braces]");
}

/// Writes the line above rows that stand under a path.
pub(crate) fn headings(rows: usize, into: &mut String) {
    into.push_str(OPEN);
    let _done = write!(into, "rewritten: {rows} lines, each under the path it starts with]");
}

/// Writes the line above a form and the words that fill it.
pub(crate) fn columns(rows: usize, into: &mut String) {
    into.push_str(OPEN);
    let _done =
        write!(into, "rewritten: {rows} lines, the form below filled with the words of each row]");
}

fn numbers(lines: &Range<u64>) -> String {
    if lines.end - lines.start == 1 {
        format!("{}", lines.end)
    } else {
        format!("{}-{}", lines.start + 1, lines.end)
    }
}

fn call(lines: &Range<u64>, recovery: &Recovery, into: &mut String) {
    if let Recovery::ReadOutput { output_id } = recovery {
        let limit = lines.end - lines.start;
        let _done = write!(
            into,
            ": read_output(output_id=\"{output_id}\", offset={}, limit={limit})",
            lines.start
        );
    }
}

/// Whether `line` is one of ours, or holds one.
pub(crate) fn is_marker(line: &str) -> bool {
    // Most lines are told by the first byte of the ellipsis.
    memchr::memchr(0xe2, line.as_bytes()).is_some()
        && line.match_indices(OPEN).any(|(at, _)| {
            let rest = line.get(at + OPEN.len()..).unwrap_or_default();
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            let rest = rest.get(digits..).unwrap_or_default();
            (digits > 0
                && ["line ", "lines ", "similar line", "binary line", "bytes "]
                    .iter()
                    .any(|noun| rest.strip_prefix(' ').is_some_and(|rest| rest.starts_with(noun))))
                || rest.starts_with("binary output, ")
                || rest.starts_with("rewritten: ")
                || rest.starts_with("they start with: ")
        })
}
