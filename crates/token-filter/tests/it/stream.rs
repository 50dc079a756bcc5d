//! Beyond the window: bounded, exact to the line, telling lines kept.

use token_filter::{Compacted, Meta, Policy, Recovery, Stage, Stream};

fn run(lines: impl Iterator<Item = String>) -> Compacted {
    let policy = Policy::default().with_recovery(Recovery::ReadOutput { output_id: "o1".into() });
    let mut stream = Stream::new(&policy);
    let mut buffer = String::new();
    for line in lines {
        buffer.push_str(&line);
        if buffer.len() > 60_000 {
            stream.push(buffer.as_bytes());
            buffer.clear();
        }
    }
    stream.push(buffer.as_bytes());
    stream.finish(&Meta::new("./soak", Some(0)))
}

#[test]
fn a_planted_line_in_the_gap_is_shown_with_exact_numbers() {
    const COUNT: u64 = 300_000;
    let odd = "The operator unplugged the second disk while the copy was running\n";
    let answer = run((0..COUNT).map(|n| {
        if n == 150_123 {
            odd.to_owned()
        } else {
            format!("2026-03-04 09:00:00 worker {n}: batch done in {}ms\n", n % 97)
        }
    }));
    assert_eq!(answer.stats.raw_lines, COUNT);
    assert!(answer.text.contains(odd), "{}", answer.text);
    assert!(answer.text.contains("offset=150124, "), "{}", answer.text);
    assert!(answer.omitted.iter().any(|part| part.stage == Stage::Spill));
    assert!(answer.stats.out_tokens <= 8_000);
    assert!(answer.text.contains("worker 0:") && answer.text.contains("worker 299999:"));
}

#[test]
fn one_endless_line_is_cut_in_the_middle() {
    let answer = run((0..2_000_000_u64).map(|n| format!("{n},")));
    assert_eq!(answer.stats.raw_lines, 1);
    assert!(answer.text.starts_with("0,1,2,") && answer.text.ends_with("1999999,"));
    assert!(
        answer
            .text
            .contains("bytes omitted of line 1: read_output(output_id=\"o1\", offset=0, limit=1)")
    );
    assert!(answer.truncated);
}

#[test]
fn short_lines_are_bounded_by_their_number() {
    // Within the window by its bytes, and beyond it by its lines.
    let mut text = "y\n".repeat(1_000_000);
    text.push_str("the last line\n");
    let mut stream = Stream::new(&Policy::default());
    for piece in text.as_bytes().chunks(65_536) {
        stream.push(piece);
    }
    let compacted = stream.finish(&Meta::new("yes", Some(0)));
    assert!(compacted.text.ends_with("the last line\n"), "{}", compacted.text);
    assert_eq!(compacted.stats.raw_lines, 1_000_001);
    assert!(compacted.truncated);
}

#[test]
fn beyond_the_window_too_the_pieces_decide_nothing() {
    let line = |n: u32| format!("2026-03-04 09:00:00 worker {n}: batch {} done\n", n * 31 % 977);
    let text = (0..80_000).map(line).collect::<Vec<_>>().concat();
    let answers = [1_000, 65_536, text.len()].map(|size| {
        let mut stream = Stream::new(&Policy::default());
        text.as_bytes().chunks(size).for_each(|piece| stream.push(piece));
        stream.finish(&Meta::new("./soak", Some(0)))
    });
    assert!(answers[0].omitted.iter().any(|part| part.stage == Stage::Spill));
    assert_eq!(answers[0], answers[1]);
    assert_eq!(answers[1], answers[2]);
}
