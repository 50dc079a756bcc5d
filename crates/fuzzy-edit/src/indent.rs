//! Indentation: its unit in a text, and the mapping from the search's to the file's.
//!
//! A mapping is found from pairs of leading blanks, one pair a line, and then applied to the lines of a
//! replacement. It explains all pairs or it is none.

use crate::text::{cut, indent_of, is_blank, lines, trim};

/// What one step of indentation is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    /// A tab.
    Tab,
    /// So many blanks.
    Blanks(usize),
}

impl Unit {
    /// How many steps the blanks are, if they are whole steps.
    fn steps(self, blanks: &str) -> Option<usize> {
        match self {
            Self::Tab => blanks.bytes().all(|b| b == b'\t').then_some(blanks.len()),
            Self::Blanks(n) => (blanks.bytes().all(|b| b == b' ')
                && blanks.len().is_multiple_of(n))
            .then(|| blanks.len() / n),
        }
    }

    fn repeat(self, steps: usize) -> String {
        match self {
            Self::Tab => "\t".repeat(steps),
            Self::Blanks(n) => " ".repeat(n * steps),
        }
    }

    fn width(self) -> usize {
        match self {
            Self::Tab => 4,
            Self::Blanks(n) => n,
        }
    }
}

/// Lines of a file looked at to learn its unit.
const SAMPLE: usize = 20_000;

/// The unit of a text: tabs where most indented lines begin with one, else the greatest common divisor of
/// all depths; where alignment spoils that, the most common step inwards; else four blanks.
pub(crate) fn unit_of(text: &str) -> Unit {
    let (mut tabs, mut blanks, mut divisor, mut last) = (0_usize, 0_usize, 0, 0);
    let mut inward = [0_usize; 9];
    for (_, line) in lines(text).take(SAMPLE).filter(|(_, line)| !trim(line).is_empty()) {
        let indent = indent_of(line);
        if indent.starts_with('\t') {
            tabs += 1;
        } else if !indent.is_empty() {
            blanks += 1;
            divisor = gcd(divisor, indent.len());
        }
        if let Some(count) = indent.len().checked_sub(last).and_then(|step| inward.get_mut(step)) {
            *count += 1;
        }
        last = indent.len();
    }
    if tabs > blanks {
        return Unit::Tab;
    }
    match divisor {
        0 => Unit::Blanks(4),
        1 => {
            let usual = (2..inward.len()).rev().max_by_key(|&n| inward.get(n).copied());
            Unit::Blanks(usual.filter(|&n| inward.get(n).is_some_and(|&c| c > 0)).unwrap_or(4))
        }
        n if n > 8 => Unit::Blanks(if n.is_multiple_of(4) { 4 } else { 2 }),
        n => Unit::Blanks(n),
    }
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// How the indentation of the search becomes that of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Mapping<'t> {
    /// Each line gets this in front.
    Add(&'t str),
    /// Each line loses this in front.
    Remove(&'t str),
    /// Steps of one unit become steps of another, shifted by some.
    Units { from: Unit, to: Unit, shift: isize },
    /// All lines of the search stand at one depth: `from` becomes `to`, deeper parts the file's unit.
    Single { from: &'t str, to: &'t str },
}

/// Units a text may be written in, in the order they are tried.
const UNITS: [Unit; 5] =
    [Unit::Tab, Unit::Blanks(8), Unit::Blanks(4), Unit::Blanks(3), Unit::Blanks(2)];

/// Finds the mapping that explains all pairs (search, file); `also` are depths of the replacement that a
/// change of units has to explain as well.
pub(crate) fn mapping<'t>(
    pairs: &[(&'t str, &'t str)],
    file_unit: Option<Unit>,
    also: &[&str],
) -> Option<Mapping<'t>> {
    let &(from, to) = pairs.first()?;
    if pairs.iter().all(|&pair| pair == (from, to)) {
        return Some(Mapping::Single { from, to });
    }
    if let Some(added) = to.strip_suffix(from)
        && pairs.iter().all(|(s, f)| f.strip_prefix(added) == Some(s))
    {
        return Some(Mapping::Add(added));
    }
    if let Some(removed) = from.strip_suffix(to)
        && pairs.iter().all(|(s, f)| s.strip_prefix(removed) == Some(f))
    {
        return Some(Mapping::Remove(removed));
    }
    let targets = file_unit.into_iter().chain(UNITS);
    for to in targets {
        for from in UNITS {
            let shift_of = |(s, f): &(&str, &str)| {
                let steps = isize::try_from(from.steps(s)?).ok()?;
                Some(isize::try_from(to.steps(f)?).ok()? - steps)
            };
            let Some(shift) = pairs.first().and_then(shift_of) else {
                continue;
            };
            if pairs.iter().all(|pair| shift_of(pair) == Some(shift))
                && also.iter().all(|depth| from.steps(depth).is_some())
            {
                return Some(Mapping::Units { from, to, shift });
            }
        }
    }
    None
}

/// How the replacement's own steps become the file's.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Steps {
    /// The step of the given texts, if they have one that can be told.
    pub(crate) given: Option<Unit>,
    /// The step of the file.
    pub(crate) file: Unit,
}

impl Steps {
    /// Learns the step of the given texts from blanks beyond their base.
    pub(crate) fn learn<'t>(
        beyond_base: impl Iterator<Item = &'t str>,
        search: impl Iterator<Item = &'t str>,
        file: Unit,
    ) -> Self {
        let (mut divisor, mut tabs, mut mixed) = (0, false, false);
        for blanks in beyond_base.filter(|blanks| !blanks.is_empty()) {
            let all_tabs = blanks.bytes().all(|b| b == b'\t');
            let all_blanks = blanks.bytes().all(|b| b == b' ');
            tabs |= all_tabs;
            mixed |= !all_tabs && !all_blanks;
            if all_blanks {
                divisor = gcd(divisor, blanks.len());
            }
        }
        if divisor > 4 {
            divisor = search
                .filter(|s| s.bytes().all(|b| b == b' '))
                .fold(divisor, |d, s| gcd(d, s.len()));
        }
        let given = match divisor {
            _ if mixed || (tabs && divisor > 0) => None,
            0 if tabs => Some(Unit::Tab),
            n @ 2..=4 => Some(Unit::Blanks(n)),
            // Two steps at once are likelier than a step of eight, unless the file has such.
            n if n.is_multiple_of(4) && !matches!(file, Unit::Blanks(5..)) => Some(Unit::Blanks(4)),
            _ => None,
        };
        Self { given, file }
    }

    /// Blanks beyond a base, in the file's steps where they are whole steps.
    pub(crate) fn convert(self, blanks: &str) -> String {
        match self.given.and_then(|unit| unit.steps(blanks)) {
            Some(steps) => self.file.repeat(steps),
            None => blanks.to_owned(),
        }
    }

    /// Takes the steps that `less` is off the end of `blanks`.
    fn outdent(self, blanks: &str, less: &str) -> String {
        let width = match self.given.and_then(|unit| unit.steps(less)) {
            Some(steps) if self.file == Unit::Tab => steps,
            Some(steps) => steps * self.file.width(),
            None => less.len(),
        };
        cut(blanks, 0..blanks.len().saturating_sub(width)).to_owned()
    }
}

impl Mapping<'_> {
    /// The indentation in the file for one of the given texts.
    pub(crate) fn apply(&self, blanks: &str, steps: Steps) -> String {
        match *self {
            Self::Add(added) => format!("{added}{blanks}"),
            Self::Remove(removed) => match blanks.strip_prefix(removed) {
                Some(rest) => rest.to_owned(),
                None => String::new(),
            },
            Self::Units { from, to, shift } => {
                let mut whole = blanks;
                while from.steps(whole).is_none() {
                    whole = cut(whole, 0..whole.len().saturating_sub(1));
                }
                let depth = from.steps(whole).unwrap_or_default().saturating_add_signed(shift);
                format!("{}{}", to.repeat(depth), cut(blanks, whole.len()..blanks.len()))
            }
            Self::Single { from, to } => {
                if from == to {
                    return blanks.to_owned();
                }
                move_base(blanks, from, to, steps)
            }
        }
    }
}

/// Moves blanks from the base `from` to the base `to`, what is beyond it in the file's steps.
fn move_base(blanks: &str, from: &str, to: &str, steps: Steps) -> String {
    if let Some(beyond) = blanks.strip_prefix(from) {
        format!("{to}{}", steps.convert(beyond))
    } else if let Some(less) = from.strip_prefix(blanks) {
        steps.outdent(to, less)
    } else {
        to.to_owned()
    }
}

/// Moves blanks as a line was moved whose blanks went from `from` to `to`.
pub(crate) fn shift(blanks: &str, from: &str, to: &str) -> String {
    if let Some(beyond) = blanks.strip_prefix(from) {
        format!("{to}{beyond}")
    } else if let Some(less) = from.strip_prefix(blanks) {
        cut(to, 0..to.len().saturating_sub(less.len())).to_owned()
    } else {
        to.to_owned()
    }
}

/// Whether a line under a list mark is aligned to the text after the mark, which is no step.
pub(crate) fn aligns_to_marks(given: &[&str]) -> bool {
    given.windows(2).any(|pair| {
        let [upper, lower] = pair else { return false };
        let text = trim(upper);
        let Some(rest) = text.strip_prefix(['-', '*', '+']).filter(|rest| rest.starts_with(' '))
        else {
            return false;
        };
        let mark = text.len() - rest.trim_start_matches(is_blank).len();
        indent_of(lower).len() == indent_of(upper).len() + mark
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOUR: Unit = Unit::Blanks(4);

    #[track_caller]
    fn check(pairs: &[(&str, &str)], given: &str, expected: &str) {
        let steps = Steps { given: Some(Unit::Blanks(2)), file: FOUR };
        let found = mapping(pairs, Some(FOUR), &[]).map(|m| m.apply(given, steps));
        assert_eq!(found.as_deref(), Some(expected));
    }

    #[test]
    fn mappings_from_pairs() {
        check(&[("", "    "), ("    ", "        ")], "        ", "            ");
        check(&[("    ", ""), ("        ", "    ")], "            ", "        ");
        check(&[("  ", "    "), ("    ", "        ")], "      ", "            ");
        check(&[("\t", "    "), ("\t\t", "        ")], "\t\t\t", "            ");
        check(&[("  ", "    "), ("  ", "    ")], "    ", "        ");
        check(&[("    ", "    ")], "  ", "  ");
        assert_eq!(mapping(&[("", "    "), ("", "        ")], Some(FOUR), &[]), None);
    }

    #[test]
    fn units_of_texts() {
        assert_eq!(unit_of("a\n  b\n    c\n"), Unit::Blanks(2));
        assert_eq!(unit_of("a\n\tb\n"), Unit::Tab);
        assert_eq!(unit_of("a\nb\n"), FOUR);
        assert_eq!(unit_of("f(\n    a\n)\n/**\n * b\n */\nx\n    y\n"), FOUR);
    }

    #[test]
    fn list_marks_align() {
        assert!(aligns_to_marks(&["- name: a", "  run: b"]));
        assert!(!aligns_to_marks(&["if a:", "  b"]));
    }
}
