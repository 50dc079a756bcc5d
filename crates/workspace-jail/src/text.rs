//! What counts as text, told from the first bytes.

use std::fs::File;

use crate::error::{Fault, Step};
use crate::read::fill_at;

/// Bytes at the start of a file that are looked at.
const SNIFFED: usize = 8 * 1024;

/// The byte-order mark that some editors put before UTF-8 text.
pub(crate) const MARK: &[u8] = b"\xef\xbb\xbf";

/// Refuses a file that is not UTF-8 text by its first bytes.
pub(crate) fn sniff_file(file: &File) -> Step<()> {
    let mut head = [0; SNIFFED];
    let filled = fill_at(file, &mut head, 0)?;
    sniff(&head[..filled])
}

/// Refuses what is not UTF-8 text by its first bytes.
///
/// The byte-order marks come first: nearly every UTF-16 text has NUL bytes, and "not UTF-8" is what its
/// reader can act on.
pub(crate) fn sniff(start: &[u8]) -> Step<()> {
    let start = &start[..start.len().min(SNIFFED)];
    let marks: [&[u8]; 3] = [b"\xff\xfe", b"\xfe\xff", b"\0\0\xfe\xff"];
    if marks.iter().any(|mark| start.starts_with(mark)) {
        return Err(Fault::NotUtf8);
    }
    if start.contains(&0) {
        return Err(Fault::Binary);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(start: &[u8], expected: &str) {
        assert_eq!(format!("{:?}", sniff(start)), expected, "{start:?}");
    }

    #[test]
    fn marks_and_nul_bytes_are_told_apart() {
        check(b"", "Ok(())");
        check(b"\xef\xbb\xbftext", "Ok(())");
        check(b"caf\xe9", "Ok(())");
        check(b"a\0b", "Err(Binary)");
        check(b"\xff\xfea\0", "Err(NotUtf8)");
        check(b"\xfe\xff\0a", "Err(NotUtf8)");
        check(b"\xff\xfe\0\0a\0\0\0", "Err(NotUtf8)");
        check(b"\0\0\xfe\xff\0\0\0a", "Err(NotUtf8)");
        check(&[vec![b'a'; SNIFFED], vec![0]].concat(), "Ok(())");
    }
}
