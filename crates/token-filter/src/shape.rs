//! What a line looks like once its values are masked, and how unlike the others it is.
//!
//! Two masks: the *template* keeps words and masks numbers, hashes and times; the *skeleton* keeps punctuation
//! alone. A line is rare when its template is; how rare, its novel words and its skeleton tell. Language-free: no list of
//! words is used here. Invariants: linear time, keys are 64-bit hashes in keyed maps, results independent of map
//! order. Non-goal: meaning.

use crate::keyed::KeyMap;

/// Words of a line that count towards its novelty.
const WORDS: usize = 24;

/// How many makes there are.
const MAKES: usize = 8;

/// Keys that a bounded census holds.
const BOUND: usize = 1 << 18;

/// Counts of everything that makes lines alike, over a whole output.
#[derive(Debug, Default)]
pub(crate) struct Census {
    templates: KeyMap<u32>,
    skeletons: KeyMap<u32>,
    words: KeyMap<u32>,
    makes: [u32; MAKES],
    lines: u32,
}

/// The masks of one line.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Shape {
    /// Hash of the line with its values masked.
    pub(crate) template: u64,
    /// Hash of its punctuation.
    pub(crate) skeleton: u64,
    /// Its make: whether words stand apart, whether columns do, whether another script is used.
    pub(crate) make: u8,
}

impl Census {
    /// Counts `line` in and returns its masks; its word keys are appended to `words`.
    pub(crate) fn add(&mut self, line: &str, words: &mut Vec<u64>) -> Shape {
        let start = words.len();
        let shape = mask(line, |word| {
            if words.len() - start < WORDS {
                words.push(word);
            }
        });
        self.count_line(shape);
        count(&mut self.templates, shape.template);
        count(&mut self.skeletons, shape.skeleton);
        for &word in words.get(start..).unwrap_or_default() {
            count(&mut self.words, word);
        }
        shape
    }

    /// Like [`Census::add`] in bounded memory: once the maps are full, unknown keys are not counted.
    pub(crate) fn add_bounded(&mut self, line: &str, words: &mut Vec<u64>) -> Shape {
        if self.templates.len() + self.skeletons.len() + self.words.len() < BOUND {
            return self.add(line, words);
        }
        let shape = mask(line, |word| {
            if words.len() < WORDS {
                words.push(word);
            }
        });
        self.count_line(shape);
        let known = [(&mut self.templates, shape.template), (&mut self.skeletons, shape.skeleton)];
        for (map, key) in known {
            map.entry(key).and_modify(|seen| *seen = seen.saturating_add(1));
        }
        for word in words.iter() {
            self.words.entry(*word).and_modify(|seen| *seen = seen.saturating_add(1));
        }
        shape
    }

    fn count_line(&mut self, shape: Shape) {
        self.lines = self.lines.saturating_add(1);
        if let Some(seen) = self.makes.get_mut(usize::from(shape.make)) {
            *seen = seen.saturating_add(1);
        }
    }

    /// How many lines share the template.
    pub(crate) fn alike(&self, shape: Shape) -> u32 {
        self.templates.get(&shape.template).copied().unwrap_or(0)
    }

    /// How unlike the other lines a line with these masks and words is, 0 being ordinary; and how many of its words no
    /// other line has.
    pub(crate) fn novelty(&self, shape: Shape, words: &[u64]) -> (u32, u8) {
        let mut novel = 0;
        let mut new = 0_u8;
        let mut counted = 4_u32;
        for (index, word) in words.iter().enumerate() {
            let seen = self.words.get(word).copied().unwrap_or(0);
            new += u8::from(seen <= 1);
            novel += match seen {
                0 | 1 => 16,
                2 => 10,
                3 | 4 => 4,
                _ => 0,
            };
            counted = counted.max(u32::try_from(index + 1).unwrap_or(u32::MAX));
        }
        // Novelty against length: a long row of new names is less odd than a short sentence of them.
        let density = novel * 4 / (counted * 16).isqrt().max(1);
        let skeletons = self.skeletons.get(&shape.skeleton).copied().unwrap_or(0);
        let odd = if skeletons <= 2 && self.lines >= 24 {
            24
        } else if skeletons <= self.lines / 256 {
            12
        } else {
            0
        };
        // A sentence in a table is of another make than hundreds of rows, however common its words are.
        let makes = self.makes.get(usize::from(shape.make)).copied().unwrap_or(0);
        let foreign = if self.lines >= 24 && makes <= 4.max(self.lines / 128) { 24 } else { 0 };
        (density + odd + foreign, new)
    }
}

fn count(map: &mut KeyMap<u32>, key: u64) {
    let seen = map.entry(key).or_insert(0);
    *seen = seen.saturating_add(1);
}

/// A key of the blanks and the word that `line` opens with.
pub(crate) fn opening(line: &str) -> u64 {
    let text = line.trim_ascii_start();
    let word = text.split([' ', '\t']).next().unwrap_or_default();
    Hash::START.mix((line.len() - text.len()) as u64).bytes(word.as_bytes()).0
}

/// A key of the template of `line` and the digits that its numbers have before their decimal points.
pub(crate) fn sizes(line: &str, shape: Shape) -> u64 {
    let bytes = line.as_bytes();
    let mut key = Hash(shape.template);
    let mut index = 0;
    while let Some(&byte) = bytes.get(index) {
        if !is_run(byte) {
            index += 1;
            continue;
        }
        let start = index;
        while bytes.get(index).is_some_and(|&byte| is_run(byte)) {
            index += 1;
        }
        let run = bytes.get(start..index).unwrap_or_default();
        let point = start.checked_sub(1).and_then(|before| bytes.get(before)) == Some(&b'.');
        if !point && run.iter().all(u8::is_ascii_digit) {
            key = key.mix(run.len() as u64);
        }
    }
    key.0
}

/// The hash of `line` with its values masked.
pub(crate) fn template(line: &str) -> u64 {
    mask(line, |_| {}).template
}

#[derive(Clone, Copy)]
struct Hash(u64);

impl Hash {
    const START: Self = Self(0x9e37_79b9_7f4a_7c15);

    fn mix(self, value: u64) -> Self {
        let mixed = (self.0 ^ value).wrapping_mul(0xff51_afd7_ed55_8ccd);
        Self(mixed ^ (mixed >> 29))
    }

    fn bytes(mut self, bytes: &[u8]) -> Self {
        let mut chunks = bytes.chunks_exact(8);
        for chunk in chunks.by_ref() {
            self = self.mix(<[u8; 8]>::try_from(chunk).map_or(0, u64::from_be_bytes));
        }
        let rest = chunks.remainder();
        self.mix(rest.iter().fold(rest.len() as u64, |all, &byte| (all << 8) | u64::from(byte)))
    }
}

const NUMBER: u64 = 0x0100;
const SPACE: u64 = 0x0101;
const WORD: u64 = 0x0102;

fn is_run(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte >= 0x80
}

/// Masks `line`, handing the key of each word to `word`.
fn mask(line: &str, mut word: impl FnMut(u64)) -> Shape {
    let bytes = line.as_bytes();
    let mut template = Hash::START;
    let mut skeleton = Hash::START;
    let mut last = 0;
    let mut index = 0;
    // Whether the word before the blank holds a slash: a number after it may be a status.
    let (mut slash, mut after_slash) = (false, false);
    let (mut blanks, mut columns) = (false, false);
    while let Some(&byte) = bytes.get(index) {
        let start = index;
        if is_run(byte) {
            while bytes.get(index).is_some_and(|&byte| is_run(byte)) {
                index += 1;
            }
            let run = bytes.get(start..index).unwrap_or_default();
            let before = bytes.get(start.wrapping_sub(1));
            let status = before == Some(&b'=') || (before == Some(&b' ') && after_slash);
            template = mask_run(run, before, status, template, &mut word);
            if last != WORD {
                skeleton = skeleton.mix(WORD);
            }
            last = WORD;
        } else if byte == b' ' || byte == b'\t' {
            while matches!(bytes.get(index), Some(b' ' | b'\t')) {
                index += 1;
            }
            template = template.mix(SPACE);
            blanks |= start > 0;
            columns |= start > 0 && (index - start > 1 || byte == b'\t');
            (after_slash, slash) = (slash, false);
            // Blanks between words are part of the words; leading ones are layout.
            if start == 0 {
                skeleton = skeleton.mix(SPACE);
            }
        } else {
            while bytes.get(index) == Some(&byte) {
                index += 1;
            }
            slash |= byte == b'/';
            template = template.mix(u64::from(byte));
            skeleton = skeleton.mix(u64::from(byte));
            last = u64::from(byte);
        }
    }
    // A line with blanks, or in another script, is odd among lines without.
    let kind = u64::from(blanks) + 2 * u64::from(!line.is_ascii());
    let make = u8::from(blanks) + 2 * u8::from(!line.is_ascii()) + 4 * u8::from(columns);
    Shape { template: template.0, skeleton: skeleton.mix(kind).0, make }
}

/// Adds a run of letters and digits to the template, values masked.
fn mask_run(
    run: &[u8],
    before: Option<&u8>,
    status: bool,
    mut template: Hash,
    word: &mut impl FnMut(u64),
) -> Hash {
    let digits = run.iter().filter(|byte| byte.is_ascii_digit()).count();
    if digits == run.len() {
        // A status of the 400s or 500s is not just another number.
        let alarming = status && matches!(run, [b'4' | b'5', _, _]);
        return template.mix(if alarming {
            NUMBER + u64::from(run.first().copied().unwrap_or(0))
        } else {
            NUMBER
        });
    }
    if is_identifier(run, digits) {
        return template.mix(NUMBER);
    }
    // Words of a sentence stand after a blank, a quote or a bracket; pieces of paths and names do not.
    let spoken = digits == 0
        && before.is_none_or(|byte| {
            matches!(byte, b' ' | b'\t' | b'"' | b'\'' | b'(' | b'[' | b'<' | b'`')
        });
    if digits == 0 {
        if spoken && run.len() >= 3 {
            word(word_key(run));
        }
        return template.bytes(run);
    }
    for part in run.chunk_by(|a, b| a.is_ascii_digit() == b.is_ascii_digit()) {
        if part.first().is_some_and(u8::is_ascii_digit) {
            // Four digits and a unit are another magnitude.
            let large = part.len() >= 4 && run.len() > part.len() && run.starts_with(part);
            template = template.mix(if large { NUMBER + 0x10 } else { NUMBER });
        } else {
            template = template.bytes(part);
        }
    }
    template
}

fn word_key(word: &[u8]) -> u64 {
    let mut lower = [0_u8; 24];
    let length = word.len().min(lower.len());
    for (to, from) in lower.iter_mut().zip(word) {
        *to = from.to_ascii_lowercase();
    }
    Hash::START.bytes(lower.get(..length).unwrap_or_default()).0
}

/// Hexadecimal or base64 that names something: digits mixed into letters, or a long run of hexadecimal.
fn is_identifier(run: &[u8], digits: usize) -> bool {
    if run.len() < 6 || (digits == 0 && run.len() < 12) {
        return false;
    }
    let hex = run.iter().all(u8::is_ascii_hexdigit);
    if hex && (digits > 0 || run.len() >= 12) {
        return true;
    }
    if run.len() < 12 || run.iter().any(|byte| !byte.is_ascii()) {
        return false;
    }
    let turns =
        run.windows(2).filter(|pair| matches!(pair, [a, b] if kind(*a) != kind(*b))).count();
    turns * 4 >= run.len()
}

fn kind(byte: u8) -> u8 {
    match byte {
        b'0'..=b'9' => 0,
        b'a'..=b'z' => 1,
        _ => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::{Census, template};

    #[test]
    fn values_are_masked_and_words_are_not() {
        let same = |a, b| assert_eq!(template(a), template(b), "{a} | {b}");
        same("worker 3 took 41ms", "worker 17 took 9ms");
        same("req=4164d8399f767c45 ok", "req=b0c11fdecb91ce37 ok");
        same("a  b", "a b");
        let other = |a, b| assert_ne!(template(a), template(b), "{a} | {b}");
        other("worker 3 started", "worker 3 stopped");
        other("GET / status=200", "GET / status=503");
        other("took 41ms", "took 41000ms");
    }

    #[test]
    fn a_sentence_among_rows_is_the_most_novel_line() {
        let mut census = Census::default();
        let mut lines: Vec<String> = (0..400)
            .map(|n| {
                format!(
                    "{}-tool/oldstable,now {n}.1 amd64 [installed]",
                    "abcdefgh".repeat(1 + n % 3)
                )
            })
            .collect();
        lines.insert(123, "The second disk turned itself off at noon".to_owned());
        let mut words = Vec::new();
        let shapes: Vec<_> = lines
            .iter()
            .map(|line| {
                let start = words.len();
                let shape = census.add(line, &mut words);
                (shape, start..words.len())
            })
            .collect();
        let novelty: Vec<_> = shapes
            .iter()
            .map(|(shape, range)| census.novelty(*shape, &words[range.clone()]).0)
            .collect();
        let top = novelty.iter().enumerate().max_by_key(|(_, novelty)| **novelty).unwrap();
        assert_eq!(top.0, 123);
    }
}
