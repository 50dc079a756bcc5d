//! Lines far wider than a screen: head, tail and what stands out between them.
//!
//! A run of base64 or hexadecimal says nothing past its start, so it is cut in any output; other wide lines are cut
//! only when the output is over its budget, each to an equal share of it. Kept of the middle: pieces with alarming words and, in lines
//! without words, pieces that read like a sentence. Invariant: a cut saves several times its marker.

use std::borrow::Cow;

use crate::keyed::KeySet;
use crate::marker;
use crate::meta::Recovery;
use crate::row::Row;
use crate::salience::{Severity, severity};
use crate::shape;

/// Width from which a line is long, in bytes.
pub(crate) const WIDE: usize = 600;
/// Length from which a run without blanks is a blob.
const BLOB: usize = 160;
/// Bytes of a piece of the middle that is judged as one.
const PIECE: usize = 120;
/// Pieces of the middle that are kept.
const KEPT: usize = 6;
/// Least number of bytes worth a marker.
const WORTH: usize = 320;

/// Cuts the blobs of every wide row; returns whether one was cut.
pub(crate) fn cut_blobs(rows: &mut [Row<'_>], recovery: &Recovery) -> bool {
    let mut any = false;
    for row in rows.iter_mut().filter(|row| row.text.len() > WIDE) {
        if is_blob(row.text.as_bytes()) {
            any |= cut(row, WIDE, recovery);
        }
    }
    any
}

/// Cuts every wide row to a share of `budget` tokens; returns whether one was cut.
pub(crate) fn cut_wide(rows: &mut [Row<'_>], budget: u64, recovery: &Recovery) -> bool {
    let openings: Vec<u64> = rows
        .iter()
        .filter(|row| row.text.len() > WIDE)
        .map(|row| shape::opening(&row.text))
        .collect();
    let budget = usize::try_from(budget).unwrap_or(usize::MAX);
    let share = (budget / openings.len().max(1)).max(WIDE);
    // The first of those that open alike is the example of the others and gets more room.
    let mut seen = KeySet::default();
    let kinds = openings.iter().filter(|key| seen.insert(**key)).count();
    let example = share.max(budget / 2 / kinds.max(1));
    seen.clear();
    let mut any = false;
    for (row, key) in rows.iter_mut().filter(|row| row.text.len() > WIDE).zip(openings) {
        let width = if seen.insert(key) { example } else { share };
        any |= cut(row, width, recovery);
    }
    any
}

/// Whether most of the line is runs of letters and digits without a blank or a quote.
fn is_blob(line: &[u8]) -> bool {
    let mut blob = 0;
    for run in
        line.split(|byte| matches!(byte, b' ' | b'\t' | b'"' | b'\'' | b'{' | b'(' | b'<' | b'\n'))
    {
        let plain = run.iter().filter(|byte| byte.is_ascii_alphanumeric()).count();
        // Paths and lists have their marks every few letters.
        if run.len() >= BLOB && plain * 100 >= run.len() * 93 {
            blob += run.len();
        }
    }
    blob * 2 > line.len()
}

fn cut(row: &mut Row<'_>, width: usize, recovery: &Recovery) -> bool {
    let text = row.text.as_ref();
    if text.len() < width + WORTH || marker::is_marker(text) || text.contains('\n') {
        return false;
    }
    let head = text.floor_char_boundary(width * 6 / 10);
    let tail = text.ceil_char_boundary(text.len() - width * 3 / 10);
    let mut kept = pieces_that_stand_out(text, head, tail);
    kept.push(tail..text.len());
    let mut out = text.get(..head).unwrap_or_default().to_owned();
    let mut at = head;
    let mut saved = 0;
    for piece in kept {
        let missing = piece.start.saturating_sub(at);
        if missing >= WORTH / 2 {
            marker::cut(missing as u64, row.raw.start, recovery, &mut out);
            saved += missing;
        } else {
            out.push_str(text.get(at..piece.start.max(at)).unwrap_or_default());
        }
        out.push_str(text.get(piece.start.max(at)..piece.end).unwrap_or_default());
        at = piece.end.max(at);
    }
    if saved < WORTH || out.len() + WORTH / 2 > text.len() {
        return false;
    }
    row.text = Cow::Owned(out);
    row.cut = true;
    true
}

fn pieces_that_stand_out(text: &str, head: usize, tail: usize) -> Vec<std::ops::Range<usize>> {
    let wordless = text.bytes().filter(|&byte| byte == b' ').count() * 40 < text.len();
    let mut kept: Vec<std::ops::Range<usize>> = Vec::new();
    let mut seen = Vec::new();
    let mut at = head;
    while at < tail && kept.len() < KEPT {
        let end = text.ceil_char_boundary((at + PIECE).min(tail));
        let piece = text.get(at..end).unwrap_or_default();
        let sentence = wordless && piece.bytes().filter(|&byte| byte == b' ').count() >= 3;
        if sentence || severity(piece) >= Severity::Error {
            let shape = shape::template(piece);
            if !seen.contains(&shape) {
                seen.push(shape);
                let from = text.floor_char_boundary(at.saturating_sub(PIECE / 3).max(head));
                let to = text.ceil_char_boundary((end + PIECE / 3).min(tail));
                match kept.last_mut() {
                    Some(last) if last.end >= from => last.end = to,
                    _ => kept.push(from..to),
                }
            }
        }
        at = end;
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::{cut_blobs, cut_wide};
    use crate::meta::Recovery;
    use crate::row::Row;

    #[test]
    fn a_blob_is_cut_and_a_list_is_not() {
        let blob = format!("data:{}=", "QEnI2DwPwYPY2Go5jDMP5LPNr4BT92tav4".repeat(60));
        let list = (0..300).map(|n| n.to_string()).collect::<Vec<_>>().join(", ");
        let mut rows = [Row::new(0..1, blob.as_str().into()), Row::new(1..2, list.as_str().into())];
        assert!(cut_blobs(&mut rows, &Recovery::None));
        assert!(rows[0].text.len() < 800 && rows[0].text.starts_with("data:QEnI"));
        assert!(rows[0].text.contains("bytes of the line not shown"));
        assert_eq!(rows[1].text, list);
    }

    #[test]
    fn an_error_in_the_middle_stays() {
        let line = format!(
            "{}{{\"error\":\"quota exceeded\"}}{}",
            "{\"a\":1},".repeat(900),
            "{\"b\":2},".repeat(900)
        );
        let mut rows = [Row::new(0..1, line.as_str().into())];
        assert!(cut_wide(&mut rows, 400, &Recovery::None));
        assert!(rows[0].text.contains("quota exceeded"), "{}", rows[0].text);
    }
}
