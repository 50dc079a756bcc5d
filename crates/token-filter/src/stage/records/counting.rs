//! Rows that are alike but for one number, which counts up by one: the first, a marker, the last.
//!
//! `report_0000.csv` to `report_0419.csv`, `1` to `60000`. The marker says how many lie between, so every row can be
//! written down again.

use crate::marker;

/// Least rows of a run.
const LEAST: usize = 6;

/// Rewrites the counting run that opens `lines`; returns its length and text.
pub(super) fn rewrite(lines: &[&str]) -> Option<(usize, String)> {
    let (first, second) = (*lines.first()?, *lines.get(1)?);
    let (start, end) = number_that_differs(first, second)?;
    let (prefix, suffix) = (first.get(..start)?, first.get(end..)?);
    let digits = first.get(start..end)?;
    let mut value: u64 = digits.parse().ok()?;
    let padded = digits.len() > 1 && digits.starts_with('0');
    let mut count = 1;
    for line in lines.iter().skip(1) {
        let Some(digits) = line.strip_prefix(prefix).and_then(|rest| rest.strip_suffix(suffix))
        else {
            break;
        };
        value += 1;
        let expected = if padded {
            format!("{value:0width$}", width = end - start)
        } else {
            value.to_string()
        };
        if digits != expected {
            break;
        }
        count += 1;
    }
    if count < LEAST {
        return None;
    }
    let mut text = format!("{first}\n");
    marker::counting(count - 2, &mut text);
    text.push('\n');
    text.push_str(lines.get(count - 1)?);
    Some((count, text))
}

/// The digits of `a` in which alone `b` differs.
fn number_that_differs(a: &str, b: &str) -> Option<(usize, usize)> {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let same = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let is_digit = |bytes: &[u8], index: usize| bytes.get(index).is_some_and(u8::is_ascii_digit);
    let mut start = same;
    while start > 0 && is_digit(a, start - 1) {
        start -= 1;
    }
    let run =
        |bytes: &[u8]| bytes.iter().skip(start).take_while(|byte| byte.is_ascii_digit()).count();
    let (end_a, end_b) = (start + run(a), start + run(b));
    // Eighteen digits fit a u64 with room to count.
    let short = end_a > start && end_a - start <= 18;
    (short && a.get(end_a..) == b.get(end_b..)).then_some((start, end_a))
}

#[cfg(test)]
mod tests {
    use super::rewrite;

    #[test]
    fn a_run_is_its_ends() {
        let lines: Vec<String> = (7..=120).map(|n| format!("report_{n:04}.csv")).collect();
        let mut lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        lines.push("stale");
        assert_eq!(
            rewrite(&lines),
            Some((
                114,
                "report_0007.csv\n[… 112 lines counting up by 1 …]\nreport_0120.csv".to_owned()
            ))
        );
        assert_eq!(rewrite(&["a1", "a3", "a4", "a5", "a6", "a7", "a8"]), None);
        assert_eq!(rewrite(&["a8", "a9", "a10", "a11", "a12", "a14"]), None);
        assert_eq!(rewrite(&["x", "x", "x", "x", "x", "x", "x"]), None);
    }
}
