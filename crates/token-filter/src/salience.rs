//! How alarming a line's words are.
//!
//! Words come second: rarity (`shape.rs`) protects lines that use none of them. So the list is short and
//! its misses are cheap. Invariants: linear in the line, no allocation. Non-goal: languages other than
//! English.

/// How alarming.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Severity {
    /// No usual word.
    None,
    /// May matter.
    Warning,
    /// Something went wrong.
    Error,
    /// Something ended.
    Fatal,
}

/// Longest word of the lists.
const LONGEST: usize = 16;

/// Rates `line` by its most alarming word.
///
/// A word counts only where it stands alone: not inside an identifier or a file name, and not after
/// a zero or a "no".
pub(crate) fn severity(line: &str) -> Severity {
    let bytes = line.as_bytes();
    let mut found = Severity::None;
    let mut index = 0;
    let mut negated = false;
    while let Some(&byte) = bytes.get(index) {
        if !is_word(byte) {
            index += 1;
            continue;
        }
        let start = index;
        while bytes.get(index).is_some_and(|&byte| is_word(byte)) {
            index += 1;
        }
        let word = bytes.get(start..index).unwrap_or_default();
        let level = rate(word);
        if level > found && !negated && stands_alone(bytes, start, index) {
            found = level;
            if found == Severity::Fatal {
                return found;
            }
        }
        // The last part of `v0.1.0 failed` counts nothing.
        let part = start > 0 && matches!(bytes.get(start - 1), Some(b'.' | b':'));
        negated = matches!(word, b"no" | b"No" | b"zero" | b"without") || (word == b"0" && !part);
    }
    found
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

fn stands_alone(bytes: &[u8], start: usize, end: usize) -> bool {
    let before = start.checked_sub(1).and_then(|index| bytes.get(index)).copied();
    let after = bytes.get(end).copied();
    let next = bytes.get(end + 1).copied();
    if matches!(before, Some(b'/' | b'\\' | b'-')) {
        return false;
    }
    match after {
        Some(b'/' | b'(' | b'\\') => false,
        Some(b'.' | b'-') => !next.is_some_and(|byte| byte.is_ascii_alphanumeric()),
        Some(b'=' | b':') => {
            let rest = bytes.get(end + 1..).unwrap_or_default();
            let value = rest.iter().position(|&byte| byte != b' ').unwrap_or(rest.len());
            rest.get(value) != Some(&b'0')
                || rest.get(value + 1).is_some_and(u8::is_ascii_alphanumeric)
        }
        _ => true,
    }
}

/// Something ended.
const FATAL: &[&[u8]] = &[
    b"fatal",
    b"panic",
    b"panicked",
    b"segfault",
    b"oom",
    b"killed",
    b"aborted",
    b"critical",
    b"emerg",
    b"emergency",
    b"dumped",
    b"crashed",
    b"sigsegv",
    b"sigkill",
    b"sigabrt",
];
/// Something went wrong.
const ERROR: &[&[u8]] = &[
    b"err",
    b"failed",
    b"failure",
    b"failures",
    b"fail",
    b"fails",
    b"failing",
    b"exception",
    b"traceback",
    b"denied",
    b"refused",
    b"timeout",
    b"timed",
    b"cannot",
    b"could",
    b"couldn",
    b"unable",
    b"undefined",
    b"unresolved",
    b"invalid",
    b"corrupt",
    b"corrupted",
    b"mismatch",
    b"unreachable",
    b"rejected",
    b"conflict",
    b"lost",
    b"dead",
    b"unhealthy",
    b"violates",
    b"exhausted",
    b"unexpected",
    b"deadlock",
    b"overflow",
    b"crash",
    b"abort",
    b"severe",
    b"forbidden",
    b"unauthorized",
    b"missing",
    b"leak",
    b"leaked",
    b"stale",
    b"fixme",
    b"throttled",
    b"unknown",
    b"violation",
    b"unsafe",
    b"incompatible",
    b"stopped",
    b"degraded",
    b"expired",
    b"replaced",
    b"destroyed",
];
/// May matter.
const WARNING: &[&[u8]] = &[
    b"warning",
    b"warn",
    b"warnings",
    b"deprecated",
    b"retrying",
    b"skipped",
    b"skipping",
    b"ignored",
    b"slow",
    b"not",
    b"unset",
    b"untracked",
    b"obsolete",
    b"vulnerable",
    b"vulnerabilities",
    b"insecure",
    b"todo",
    b"outdated",
];
/// Ends of words that tell: `NullPointerException`, `TypeError`.
const ENDS: &[&[u8]] = &[b"error", b"errors", b"exception"];

/// For every first letter the lengths, as bits, of the words above: most words need no closer look.
static LENGTHS: [u32; 256] = {
    let mut table = [0; 256];
    let lists = [FATAL, ERROR, WARNING];
    let mut list = 0;
    while list < lists.len() {
        let mut index = 0;
        while index < lists[list].len() {
            let word = lists[list][index];
            table[word[0] as usize] |= 1 << word.len();
            table[word[0].to_ascii_uppercase() as usize] |= 1 << word.len();
            index += 1;
        }
        list += 1;
    }
    table
};

fn rate(word: &[u8]) -> Severity {
    let whole = word.len() <= LONGEST;
    let listed = whole
        && word.first().is_some_and(|&first| LENGTHS[usize::from(first)] >> word.len() & 1 == 1);
    let ended =
        word.len() >= 5 && matches!(word.last(), Some(b'r' | b'R' | b's' | b'S' | b'n' | b'N'));
    if !listed && !ended {
        return Severity::None;
    }
    let mut lower = [0_u8; LONGEST];
    let tail = word.get(word.len().saturating_sub(LONGEST)..).unwrap_or_default();
    for (to, from) in lower.iter_mut().zip(tail) {
        *to = from.to_ascii_lowercase();
    }
    let lower = lower.get(..tail.len()).unwrap_or_default();
    for (list, level) in
        [(FATAL, Severity::Fatal), (ERROR, Severity::Error), (WARNING, Severity::Warning)]
    {
        if listed && list.contains(&lower) {
            return level;
        }
    }
    // `test_error` is a name, `TypeError` and `error` are statements.
    let statement = !word.contains(&b'_') && word.is_ascii();
    if statement && ENDS.iter().any(|end| lower.ends_with(end)) {
        Severity::Error
    } else {
        Severity::None
    }
}

#[cfg(test)]
mod tests {
    use super::{Severity, severity};

    fn check(line: &str, expected: Severity) {
        assert_eq!(severity(line), expected, "{line}");
    }

    #[test]
    fn words_count_where_they_stand_alone() {
        check("FATAL: role does not exist", Severity::Fatal);
        check("error[E0425]: cannot find value", Severity::Error);
        check("java.lang.NullPointerException: cart is null", Severity::Error);
        check("warning: unused variable", Severity::Warning);
        check("src/error.rs | 3 +++", Severity::None);
        check("test error_is_kept ... ok", Severity::None);
        check("0 errors, no failures, errors: 0, failed=0", Severity::None);
        check("10 errors", Severity::Error);
        check("demo v0.1.0 failed", Severity::Error);
        check("all workers drained", Severity::None);
    }
}
