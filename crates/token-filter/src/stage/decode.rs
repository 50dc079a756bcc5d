//! Bytes or text: whether an output is binary, what kind, and which of its lines are readable all the same.
//!
//! Not lossless for binary lines, which are described instead; text passes through, invalid UTF-8 as U+FFFD.

use std::borrow::Cow;

/// Bytes looked at to judge the whole.
const SAMPLE: usize = 64 * 1024;

/// Whether `output` is no text: many control or invalid bytes at its start.
pub(crate) fn is_binary(output: &[u8]) -> bool {
    let sample = output.get(..SAMPLE.min(output.len())).unwrap_or_default();
    let control = sample.iter().filter(|&&byte| is_unprintable(byte)).count();
    // Reading for validity alone is several times as fast as finding every invalid byte.
    let invalid: usize = match std::str::from_utf8(sample) {
        Ok(_) => 0,
        Err(_) => sample.utf8_chunks().map(|chunk| chunk.invalid().len()).sum(),
    };
    (control + invalid) * 8 > sample.len()
}

/// The text of `bytes`, borrowed where it is valid.
pub(crate) fn text(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => String::from_utf8_lossy(bytes),
    }
}

/// The text of `bytes` if they are valid and hold nothing that a terminal obeys but line ends.
pub(crate) fn plain(bytes: &[u8]) -> Option<&str> {
    let obeyed = |byte: u8| (byte < 0x20 && byte != b'\t' && byte != b'\n') || byte == 0x7f;
    if any(bytes, obeyed) { None } else { std::str::from_utf8(bytes).ok() }
}

/// Whether `test` holds for a byte. No early end inside a chunk, so that many bytes are looked at in one go.
pub(crate) fn any(bytes: &[u8], test: impl Fn(u8) -> bool) -> bool {
    bytes.chunks(64).any(|chunk| chunk.iter().fold(false, |any, &byte| any | test(byte)))
}

/// Whether a line of a binary output reads as text: printable, and long enough not to be chance.
pub(crate) fn is_readable(line: &[u8]) -> bool {
    let letters = |text: &str| {
        text.chars().filter(|char| char.is_alphabetic()).count() * 2 > text.chars().count()
    };
    line.len() >= 12
        && !line.iter().any(|&byte| is_unprintable(byte))
        && std::str::from_utf8(line).is_ok_and(letters)
}

/// Control bytes that no terminal output holds.
fn is_unprintable(byte: u8) -> bool {
    matches!(byte, 0..=6 | 0x0e..=0x1a | 0x1c..=0x1f | 0x7f)
}

/// Names the format by its first bytes.
pub(crate) fn nature(output: &[u8]) -> &'static str {
    const KNOWN: &[(&[u8], &str)] = &[
        (b"\x7fELF", "ELF"),
        (b"\x89PNG", "PNG image"),
        (b"\xff\xd8\xff", "JPEG image"),
        (b"GIF8", "GIF image"),
        (b"%PDF", "PDF"),
        (b"PK\x03\x04", "zip archive"),
        (b"\x1f\x8b", "gzip data"),
        (b"\xfd7zXZ", "xz data"),
        (b"\x28\xb5\x2f\xfd", "zstd data"),
        (b"BZh", "bzip2 data"),
        (b"SQLite format 3", "SQLite database"),
        (b"\0asm", "WebAssembly"),
        (b"RIFF", "RIFF media"),
        (b"\xff\xfe", "UTF-16 text"),
        (b"\xfe\xff", "UTF-16 text"),
    ];
    KNOWN
        .iter()
        .find(|(magic, _)| output.starts_with(magic))
        .map_or("unknown format", |&(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::{is_binary, is_readable};

    #[test]
    fn text_in_any_encoding_is_text() {
        assert!(!is_binary(b""));
        assert!(!is_binary("naïve – „Zitat“ ✓\n".as_bytes()));
        assert!(!is_binary(
            b"caf\xe9 au lait, na\xefve, d\xe9j\xe0 vu et bien d'autres mots encore\n"
        ));
        assert!(!is_binary(b"\x1b[32mok\x1b[0m\r\n"));
        assert!(is_binary(&[0, 159, 146, 150, 255, 10, 3, 4]));
    }

    #[test]
    fn sentences_are_readable_and_noise_is_not() {
        assert!(is_readable(b"disk full while writing"));
        assert!(is_readable("диск переполнен".as_bytes()));
        assert!(!is_readable(b"k\x03\x04"));
        assert!(!is_readable(b"}{|#$%^&*(1234"));
    }
}
