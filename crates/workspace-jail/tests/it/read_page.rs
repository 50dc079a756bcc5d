//! Pages of lines: which, how many, what follows, and what is refused.

use std::io::{BufWriter, Write as _};
use std::os::unix::fs::FileExt as _;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use testkit::Fixture;
use workspace_jail::{Error, Page, PageRequest, Sha256};

use crate::open;

fn page(content: &[u8], request: &PageRequest) -> Result<Page, Error> {
    let fixture = Fixture::new("");
    fixture.write("f", content);
    open(&fixture).read_page("f", request)
}

/// `text | first+lines of total, next`
fn check(content: &str, offset: i64, limit: u64, expected: &str) {
    let page = page(content.as_bytes(), &PageRequest::new(offset, limit)).unwrap();
    let number = |number: Option<u64>| number.map_or("?".to_owned(), |number| number.to_string());
    let next = page.next_offset.map_or("end".to_owned(), |next| next.to_string());
    let (first, total) = (number(page.first_line), number(page.total_lines));
    let shown = format!("{:?} {first}+{} of {total}, {next}", page.text(), page.lines);
    assert_eq!(shown, expected, "{content:?} {offset} {limit}");
    assert_eq!(page.sha256, Some(Sha256::of(content.as_bytes())));
}

#[test]
fn a_page_is_the_lines_asked_for_and_nothing_else() {
    let four = "a\nb\nc\nd";
    check(four, 0, 100, r#""a\nb\nc\nd" 0+4 of 4, end"#);
    check(four, 0, 2, r#""a\nb\n" 0+2 of 4, 2"#);
    check(four, 2, 2, r#""c\nd" 2+2 of 4, end"#);
    check("a\nb\n", 0, 2, r#""a\nb\n" 0+2 of 2, end"#);
    check("a\nb\n", 1, 1, r#""b\n" 1+1 of 2, end"#);
    check("", 0, 100, r#""" 0+0 of 0, end"#);
    check("a\n", 5, 100, r#""" 5+0 of 1, end"#);
    check("a\nb\n", 0, 0, r#""" 0+0 of 2, 0"#);
}

#[test]
fn a_negative_offset_counts_from_the_end() {
    let four = "a\nb\nc\nd";
    check(four, -1, 100, r#""d" 3+1 of 4, end"#);
    check(four, -3, 2, r#""b\nc\n" 1+2 of 4, 3"#);
    check("a\nb\n", -1, 1, r#""b\n" 1+1 of 2, end"#);
    check("a\nb\n", -9, 1, r#""a\n" 0+1 of 2, 1"#);
    check("", -1, 1, r#""" 0+0 of 0, end"#);
    check(four, i64::MIN, 100, r#""a\nb\nc\nd" 0+4 of 4, end"#);
}

#[test]
fn only_a_line_feed_ends_a_line() {
    let text = "a\r\nb\rc\u{c}d\u{85}e\u{2028}f\n";
    check(text, 0, 1, r#""a\r\n" 0+1 of 2, 1"#);
    check(text, 1, 1, r#""b\rc\u{c}d\u{85}e\u{2028}f\n" 1+1 of 2, end"#);
}

#[test]
fn a_page_over_the_limit_is_refused_and_others_are_not() {
    let five = PageRequest::default().max_bytes(5);
    let error = page(b"12345678", &five).unwrap_err();
    assert!(matches!(error, Error::TooLarge { size: 8, max: 5, .. }), "{error:?}");
    assert_eq!(page(b"12345678", &five.max_bytes(8)).unwrap().bytes, b"12345678");
    let second = PageRequest::new(1, 1).max_bytes(5);
    assert_eq!(page(b"12345678\nab\n12345678\n", &second).unwrap().bytes, b"ab\n");
    let last = PageRequest::new(-1, 1).max_bytes(5);
    let error = page(b"ab\n12345678\n", &last).unwrap_err();
    assert!(matches!(error, Error::TooLarge { size: 9, max: 5, .. }), "{error:?}");
}

#[test]
fn what_is_not_utf8_text_is_told_apart() {
    let kind = |content: &[u8]| page(content, &PageRequest::default()).unwrap_err().kind();
    assert_eq!(kind(&[0, 1, 2]), "binary_file");
    assert_eq!(kind(b"\xff\xfea\0b\0"), "not_utf8");
    let latin = page(b"caf\xe9\n", &PageRequest::default()).unwrap();
    assert_eq!(
        (latin.text().as_ref(), latin.bytes.as_slice()),
        ("caf\u{fffd}\n", &b"caf\xe9\n"[..])
    );
}

#[test]
fn a_file_over_the_counted_size_is_paged_without_a_total() {
    let line = "x".repeat(1023);
    let lines: u64 = 66 * 1024;
    let fixture = Fixture::new("");
    write_lines(&fixture, (0..lines).map(|_| line.clone()).chain(["last".to_owned()]));
    let jail = open(&fixture);
    let read = |offset, limit| jail.read_page("f", &PageRequest::new(offset, limit)).unwrap();

    let first = read(0, 2);
    assert_eq!((first.lines, first.total_lines, first.next_offset), (2, None, Some(2)));
    assert_eq!(first.sha256, None);
    let last = read(-2, 5);
    assert_eq!((last.lines, last.first_line, last.next_offset), (2, None, None));
    assert!(last.text().ends_with("x\nlast\n"));
    assert_eq!(read(-9, 4).next_offset, Some(-5));
    // Near enough to the end to count the rest.
    let near = read(4096, 1);
    assert_eq!((near.total_lines, near.next_offset), (Some(lines + 1), Some(4097)));
    assert_eq!(read(i64::try_from(lines).unwrap(), 9).text(), "last\n");
}

#[test]
fn a_large_file_is_known_once_it_was_read_and_as_long_as_it_is_the_same() {
    const LINES: u64 = 200_000;
    // Some of 3 MiB, so that whole blocks have no end of a line.
    let line = |number: u64| match number {
        LINES => "last".to_owned(),
        _ if number % 50_000 == 7 => "y".repeat(3 << 20),
        _ => "x".repeat(usize::try_from(number * 37 % 701).unwrap()),
    };
    let fixture = Fixture::new("");
    write_lines(&fixture, (0..=LINES).map(line));
    let jail = open(&fixture);
    let read = |offset: u64, limit| {
        let request = PageRequest::new(i64::try_from(offset).unwrap(), limit).max_bytes(64 << 20);
        jail.read_page("f", &request).unwrap()
    };
    assert_eq!(read(0, 1).total_lines, None);
    // A file that was just written may change again within the same tick, so it is not kept at once.
    let deadline = Instant::now() + Duration::from_mins(1);
    while read(0, 1).total_lines.is_none() {
        assert!(Instant::now() < deadline, "the file is never known");
        assert_eq!(read(LINES, 5).text(), "last\n");
    }
    let spread = (0..400).map(|place| place * 499);
    for first in spread.chain([6, 7, 8, 50_006, 50_007, 50_008, LINES - 1, LINES]) {
        let page = read(first, 3);
        let expected: String = (first..=LINES).take(3).map(|number| line(number) + "\n").collect();
        assert!(page.text() == expected, "line {first}");
        assert_eq!((page.first_line, page.total_lines), (Some(first), Some(LINES + 1)));
    }
    let back = jail.read_page("f", &PageRequest::new(-2, 1)).unwrap();
    assert_eq!((back.first_line, back.total_lines), (Some(LINES - 1), Some(LINES + 1)));
    assert_eq!(read(LINES + 1, 9).lines, 0);

    // The same size, and one end of a line less.
    let file = std::fs::OpenOptions::new().write(true).open(fixture.root().join("f")).unwrap();
    file.write_all_at(b"z", 0).unwrap();
    assert!(read(100_000, 1).text() == line(100_001) + "\n");
}

/// Writes a file of these lines, without having them all in memory.
fn write_lines(fixture: &Fixture, lines: impl Iterator<Item = String>) {
    let file = std::fs::File::create(fixture.root().join("f")).unwrap();
    let mut file = BufWriter::new(file);
    for line in lines {
        writeln!(file, "{line}").unwrap();
    }
    file.flush().unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Pages of any size, one after the other, are the file; so are the last lines.
    #[test]
    fn pages_are_the_file(lines in prop::collection::vec("[ab\r]{0,3}", 0..12), limit in 1_u64..5, ends: bool) {
        let content = lines.join("\n") + if ends { "\n" } else { "" };
        let fixture = Fixture::new("");
        fixture.write("f", content.as_bytes());
        let jail = open(&fixture);
        let expected: Vec<&str> = content.split_inclusive('\n').collect();
        let (mut offset, mut all) = (Some(0), String::new());
        while let Some(at) = offset {
            let page = jail.read_page("f", &PageRequest::new(at, limit)).unwrap();
            prop_assert_eq!(page.total_lines, Some(expected.len() as u64));
            prop_assert!(page.lines > 0 || page.next_offset.is_none());
            all.push_str(&page.text());
            offset = page.next_offset;
        }
        prop_assert_eq!(&all, &content);
        for back in 1..=expected.len() {
            let page = jail.read_page("f", &PageRequest::new(-i64::try_from(back).unwrap(), 100)).unwrap();
            prop_assert_eq!(page.text(), expected[expected.len() - back..].concat());
            prop_assert_eq!(page.first_line, Some((expected.len() - back) as u64));
        }
    }
}
