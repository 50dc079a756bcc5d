//! Chatter folded: repeated shapes of lines that report routine, the first ones and the end of each run shown.
//!
//! A line takes part only if its own form proves it chatter (a log stamp, a passing test, a download): rows
//! of data look alike too, and folding them would lose them. Or a recipe says so of its tool. Rare and alarming lines never fold unless
//! equal. A run is folded only where that saves more than its marker costs.

use crate::keyed::KeyMap;
use crate::mark::Mark;
use crate::row::{Fate, Kind, Row};
use crate::salience::Severity;
use crate::stage::window::Traits;

/// How many lines of a shape are shown before the rest folds.
const SHOWN: u32 = 2;
/// How many lines a shape needs to fold.
const COMMON: u32 = 4;
/// Keys from here on are forms of recipes, and not of passed tests.
const FORMS: u64 = 100;

/// Whether and how a row may be left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Foldable {
    No,
    /// One more of its kind: the end of a run is shown.
    Repeat,
    /// Not worth showing at all.
    Dropped,
}

/// Marks what folds in `fates`; `marker` is the price of one marker in tokens.
pub(crate) fn fold(rows: &[Row<'_>], traits: &[Traits], marker: u64, fates: &mut [Fate]) {
    let keys: Vec<Option<u64>> =
        rows.iter().zip(traits).map(|(row, it)| key(&row.text, it)).collect();
    let mut totals: KeyMap<u32> = KeyMap::default();
    for key in keys.iter().flatten() {
        *totals.entry(*key).or_insert(0) += 1;
    }
    let mut seen: KeyMap<u32> = KeyMap::default();
    let mut foldable = vec![Foldable::No; rows.len()];
    let mut repeats = 0_u32;
    for (index, key) in keys.iter().enumerate() {
        let previous = index.checked_sub(1).and_then(|before| rows.get(before));
        let text = rows.get(index).map(|row| row.text.as_ref()).unwrap_or_default();
        let equal = previous.is_some_and(|row| row.text == text) && !text.is_empty();
        repeats = if equal { repeats + 1 } else { 0 };
        let Some(slot) = foldable.get_mut(index) else { continue };
        match traits.get(index).map(|it| it.mark) {
            Some(Mark::Drop(_)) => *slot = Foldable::Dropped,
            Some(mark) if mark.is_kept() => continue,
            _ => {}
        }
        if let Some(key) = key {
            let total = totals.get(key).copied().unwrap_or(0);
            let count = seen.entry(*key).or_insert(0);
            *count += 1;
            if total >= COMMON && *count > SHOWN {
                *slot = Foldable::Repeat;
            }
        }
        if repeats >= SHOWN && *slot == Foldable::No {
            *slot = Foldable::Repeat;
        }
    }
    settle(rows, traits, marker, &foldable, fates);
}

/// Folds the runs of foldable rows that are worth it.
fn settle(
    rows: &[Row<'_>],
    traits: &[Traits],
    marker: u64,
    foldable: &[Foldable],
    fates: &mut [Fate],
) {
    let mut start = 0;
    while start < foldable.len() {
        let end = start + foldable.iter().skip(start).take_while(|it| **it != Foldable::No).count();
        if end == start {
            start += 1;
            continue;
        }
        // The last line of a run tells how far it went.
        let tells = end - start >= 4 && foldable.get(end - 1) == Some(&Foldable::Repeat);
        let stop = if tells { end - 1 } else { end };
        let run = traits.get(start..stop).unwrap_or_default();
        let tokens: u64 = run.iter().map(|it| it.tokens).sum();
        let whole =
            rows.get(start..stop).unwrap_or_default().iter().all(|row| row.kind == Kind::Text);
        if whole && tokens >= marker * 2 {
            for (fate, it) in fates.get_mut(start..stop).unwrap_or_default().iter_mut().zip(run) {
                *fate = match it.mark {
                    Mark::Group(_) => Fate::Grouped,
                    Mark::Drop(_) => Fate::Left,
                    _ => Fate::Folded,
                };
            }
        }
        start = end;
    }
}

/// What a line of chatter is alike by; `None` for anything else.
fn key(text: &str, it: &Traits) -> Option<u64> {
    if it.marker || it.blank {
        return None;
    }
    match it.mark {
        Mark::Group(form) => return Some(FORMS + u64::from(form)),
        Mark::Summary(_) | Mark::Keep(_) | Mark::Drop(_) => return None,
        Mark::None => {}
    }
    if let Some(verdict) = passing(text) {
        return Some(verdict);
    }
    if it.severity >= Severity::Error {
        // Only equal lines fold, apart from the time they were written.
        return stamp(text).map(|length| exact(text.get(length..).unwrap_or_default()));
    }
    is_chatter(text).then_some(it.shape.template)
}

/// A key of the bytes, values included.
fn exact(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// Whether a line reports a passed test.
pub(crate) fn is_passing(text: &str) -> bool {
    passing(text).is_some()
}

/// The form of a passed test, whatever its name.
fn passing(text: &str) -> Option<u64> {
    let text = trimmed(text);
    let first = *text.as_bytes().first()?;
    let form = match first {
        b't' if text.starts_with("test ") && text.ends_with(" ... ok") => 1,
        b'-' if text.starts_with("--- PASS: ") => 3,
        b'=' if ["=== RUN ", "=== PAUSE ", "=== CONT "].iter().any(|it| text.starts_with(it)) => 4,
        0xe2 if ["✓ ", "✔ ", "√ "].iter().any(|mark| text.starts_with(mark)) => 5,
        b'o' if is_tap_pass(text) => 6,
        _ if text.ends_with(") ... ok") => 7,
        _ if text.ends_with(['D', ']']) && text.contains("::") && is_pytest_pass(text) => 2,
        _ => return None,
    };
    (!has_remark(text)).then_some(form)
}

/// Whether something is said beside the pass: `✔ rounds (2 ms) # not for halves yet`.
fn has_remark(text: &str) -> bool {
    text.find(" # ").is_some_and(|at| {
        let remark = text.get(at + " # ".len()..).unwrap_or_default();
        !remark.starts_with("time")
    })
}

/// `text` without blanks at its ends; most lines have none.
fn trimmed(text: &str) -> &str {
    match text.as_bytes() {
        [first, .., last] if first.is_ascii_graphic() && last.is_ascii_graphic() => text,
        _ => text.trim(),
    }
}

/// `ok 12 - adds`
fn is_tap_pass(text: &str) -> bool {
    text.strip_prefix("ok ").is_some_and(|rest| {
        rest.trim_start_matches(|char: char| char.is_ascii_digit()).starts_with(" - ")
    })
}

fn is_pytest_pass(text: &str) -> bool {
    text.find(" PASSED").is_some_and(|at| {
        let rest = text.get(at + " PASSED".len()..).unwrap_or_default().trim();
        rest.is_empty() || (rest.starts_with('[') && rest.ends_with("%]"))
    })
}

/// Whether a line's own form shows that it reports routine.
fn is_chatter(text: &str) -> bool {
    let text = trimmed(text);
    stamp(text).is_some_and(|length| is_prose(text.get(length..).unwrap_or_default()))
        || is_levelled(text)
        || is_step(text)
        || is_doing(text)
        || is_done(text)
}

/// Not the cells of a table.
fn is_prose(text: &str) -> bool {
    !text.starts_with([',', '|', ';', '\t'])
        && text.bytes().filter(|&b| b == b'|' || b == b'\t').count() < 2
}

/// The length of a time stamp that opens the line.
fn stamp(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let start = usize::from(bytes.first() == Some(&b'['));
    let rest = bytes.get(start..)?;
    let length = if matches(rest, b"0000-00-00") || matches(rest, b"0000/00/00") {
        let clock = rest.get(11..)?;
        (matches!(rest.get(10), Some(b'T' | b' ')) && matches(clock, b"00:00:00")).then_some(19)?
    } else if matches(rest, b"00:00:00") {
        8
    } else if matches(rest, b"Aaa 00 00:00:00") || matches(rest, b"Aaa  0 00:00:00") {
        15
    } else if start == 1 {
        let inner = rest.iter().position(|&byte| byte == b']')?;
        let seconds = rest.get(..inner)?;
        let number =
            seconds.iter().all(|byte| byte.is_ascii_digit() || matches!(byte, b' ' | b'.'));
        (number && seconds.contains(&b'.')).then_some(inner)?
    } else {
        return None;
    };
    let tail = rest.get(length..)?;
    let zone = tail
        .iter()
        .take_while(|byte| {
            byte.is_ascii_digit() || matches!(byte, b'.' | b',' | b'Z' | b'+' | b']')
        })
        .count();
    // A comma that is followed by no digit separates cells.
    Some(start + length + zone)
        .filter(|&end| bytes.get(end).is_none_or(|&b| matches!(b, b' ' | b':' | b'\t')))
}

/// Whether `bytes` begins like `model`: `0` is a digit, `A` and `a` letters.
fn matches(bytes: &[u8], model: &[u8]) -> bool {
    bytes.len() >= model.len()
        && bytes.iter().zip(model).all(|(byte, model)| match model {
            b'0' => byte.is_ascii_digit(),
            b'A' => byte.is_ascii_uppercase(),
            b'a' => byte.is_ascii_lowercase(),
            other => byte == other,
        })
}

/// `[info] …`, `INFO …`, `debug: …`.
fn is_levelled(text: &str) -> bool {
    const LEVELS: &[&str] = &["info", "debug", "trace", "notice", "verbose", "warn", "warning"];
    let open = text.strip_prefix('[').unwrap_or(text);
    let length = open.bytes().take_while(u8::is_ascii_alphabetic).count();
    let word = open.get(..length).unwrap_or_default();
    let closed = open.get(length..).unwrap_or_default();
    let shouted = word.bytes().all(|byte| byte.is_ascii_uppercase());
    LEVELS.iter().any(|level| word.eq_ignore_ascii_case(level))
        && if text.starts_with('[') {
            closed.starts_with(']')
        } else {
            shouted && closed.starts_with([' ', ':', '\t'])
        }
}

/// `[12/300] …`, `Step 3/9`, `(4/10)`, `45% …`.
fn is_step(text: &str) -> bool {
    let bytes = text.as_bytes();
    memchr::memchr_iter(b'/', bytes).any(|at| {
        let digit = |index: Option<usize>| {
            index.and_then(|index| bytes.get(index)).is_some_and(u8::is_ascii_digit)
        };
        if !digit(at.checked_sub(1)) || !digit(Some(at + 1)) {
            return false;
        }
        let before = bytes.iter().take(at).rev().find(|byte| !byte.is_ascii_digit());
        let after = bytes.iter().skip(at + 1).find(|byte| !byte.is_ascii_digit());
        matches!((before, after), (Some(b'[' | b'(' | b' '), Some(b']' | b')')))
    })
}

/// `Refreshing state... [id=1]`, `waiting…`.
fn is_doing(text: &str) -> bool {
    let bytes = text.as_bytes();
    text.ends_with('…')
        || memchr::memchr_iter(b'.', bytes).any(|at| {
            let before = at.checked_sub(1).and_then(|index| bytes.get(index));
            before.is_some_and(u8::is_ascii_alphabetic)
                && bytes.get(at..).is_some_and(|rest| rest.starts_with(b"..."))
                && matches!(bytes.get(at + 3), None | Some(b' '))
        })
}

/// `check 3 ok`, `chunk 1/6 ok (13ms)`, `step done`.
fn is_done(text: &str) -> bool {
    if !text.ends_with(['k', 'K', 'd', 'D', 'e', ')', ']', '✓', '✔']) {
        return false;
    }
    let text = match text.rfind(" (") {
        Some(at) if text.ends_with(')') => text.get(..at).unwrap_or_default(),
        _ => text,
    };
    // `acct-7   523.50   ok` is a row of data whose last cell is a state.
    let gaps = text.as_bytes().windows(3);
    let gaps = gaps.filter(|it| matches!(it, [before, b' ', b' '] if *before != b' ')).count();
    gaps < 2
        && [" ok", " OK", " passed", " PASSED", " done", " Done", " [ok]", " [OK]", " ✓", " ✔"]
            .iter()
            .any(|end| text.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::{is_chatter, passing, stamp};

    #[test]
    fn chatter_is_told_from_data() {
        for line in [
            "2026-03-04T08:16:32.714Z INFO  http.access: GET /v1/items/2979 200 67ms",
            "Mar 04 00:00:35 node1 sshd[812]: Started Session 0 of User root.",
            "[info] queue depth 0",
            "    [lint] chunk 1/6 ok (13ms)",
            "aws_subnet.private[0]: Refreshing state... [id=subnet-04164d839f767c45]",
            "[ 12/300] CXX obj/main.o",
            "check 3 ok",
        ] {
            assert!(is_chatter(line), "{line}");
        }
        for line in [
            "2026-03-04 10:00:00,eu,7510,ok",
            "2026-03-04,eu,7510,3",
            "-rw-r--r-- 1 root root  397 Nov 29 19:54 api.ts",
            "root  812  0.0  0.1 /usr/sbin/sshd -D",
            " 12 | open | 2026-03-01 10:00:00",
            "acct-0007      523.50   ok",
            "src/main.py:12: # TODO",
            "let all = [...rest];",
        ] {
            assert!(!is_chatter(line), "{line}");
        }
    }

    #[test]
    fn passed_tests_are_alike_whatever_their_name() {
        for line in [
            "test tests::parses_an_empty_list ... ok",
            "tests/test_a.py::test_b PASSED          [ 12%]",
            "    --- PASS: TestMany/n_3 (0.00s)",
            "  ✓ adds (2 ms)",
            "ok 12 - adds",
            "test_add (unit_case.Sums.test_add) ... ok",
        ] {
            assert!(passing(line).is_some(), "{line}");
        }
        assert!(passing("test tests::x ... FAILED").is_none());
        assert!(passing("ok for me").is_none());
        assert!(passing("✔ rounds (2 ms) # not for halves yet").is_none());
        assert!(passing("ok 3 - rounds # TODO halves").is_none());
        assert!(passing("ok 3 - rounds # time=2ms").is_some());
    }

    #[test]
    fn stamps_end_where_the_message_starts() {
        assert_eq!(stamp("2026-03-04 09:00:00,123 ERROR x"), Some(23));
        assert_eq!(stamp("[    1.234567] usb 1-1"), Some(14));
        assert_eq!(stamp("10:00"), None);
    }
}
