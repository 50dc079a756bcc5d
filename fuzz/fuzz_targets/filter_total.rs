//! Any bytes as output, and any text as recipes: an answer, never longer than the raw text, every line accounted for
//! once, the same whole and in pieces, and the same again from itself.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use token_filter::{LineFate, Meta, Policy, Recipes, Recovery, Stream, compact_explained};

#[derive(Debug, Arbitrary)]
struct Input {
    raw: Vec<u8>,
    command: String,
    exit_code: Option<i32>,
    budget: u16,
    recoverable: bool,
    piece: u8,
    recipes: Own,
}

/// Recipes of any text, and such as parse.
#[derive(Debug, Arbitrary)]
enum Own {
    None,
    Text(String),
    Line { drop: bool, starts: String, pattern: String },
}

impl Own {
    fn text(&self) -> Option<String> {
        match self {
            Self::None => None,
            Self::Text(text) => Some(text.clone()),
            Self::Line { drop, starts, pattern } => Some(format!(
                "[[recipe]]\nname = \"own\"\n[[recipe.line]]\nclass = \"{}\"\nstarts = [{starts:?}]\npattern = {pattern:?}\n",
                if *drop { "drop" } else { "group" },
            )),
        }
    }
}

fuzz_target!(|input: Input| {
    let mut policy = Policy::default().with_budget_tokens(u64::from(input.budget));
    if input.recoverable {
        policy = policy.with_recovery(Recovery::ReadOutput { output_id: "0123456789ab".into() });
    }
    if let Some(Ok(own)) = input.recipes.text().map(|text| Recipes::parse(&text)) {
        policy = policy.with_recipes(Recipes::builtin().and(&own).expect("two small sets"));
    }
    let meta = Meta::new(&input.command, input.exit_code);
    let (whole, explanation) = compact_explained(&meta, &input.raw, &policy);
    assert!(whole.stats.out_tokens <= whole.stats.raw_tokens);
    let mut next = 0;
    let mut missing = 0;
    for it in &explanation.taken {
        assert!(it.raw_lines.start >= next && it.raw_lines.start < it.raw_lines.end);
        next = it.raw_lines.end;
        if matches!(it.fate, LineFate::Missing(_)) {
            missing += it.raw_lines.end - it.raw_lines.start;
        }
    }
    assert!(next <= whole.stats.raw_lines);
    let lines = whole.omitted.iter().map(|it| it.raw_lines.end - it.raw_lines.start);
    assert_eq!(missing, lines.sum::<u64>());
    let mut stream = Stream::new(&policy);
    for piece in input.raw.chunks(usize::from(input.piece).max(1)) {
        stream.push(piece);
    }
    assert_eq!(stream.finish(&meta), whole);
});
