//! Arbitrary text, arbitrary edits, every validator: no panic, and what plan and refusal say is true.
//!
//! An input reads as text, so that a mutation stays one: four bytes of choices, then search and replacement of
//! each edit, ended by the unit separator, then the file, which may hold any byte. A search begins with a
//! byte that says how it is meant, and may be cut from the file and damaged, or else it would rarely be there.
#![no_main]

use std::path::Path;

use fuzzy_edit::{
    Edit, EditError, ErrorKind, Level, Options, Plan, Validate, Verdict, plan, validate,
};
use libfuzzer_sys::fuzz_target;

const PATHS: [&str; 9] =
    ["f.txt", "f.py", "f.json", "f.jsonc", "f.jsonl", "f.toml", "f.yaml", "tsconfig.json", "f.pyi"];
/// Ends a search and a replacement.
const SEPARATOR: u8 = 0x1f;

struct Input<'d> {
    path: &'static Path,
    options: Options,
    edits: Vec<Edit>,
    original: &'d [u8],
}

/// Reads an input; nothing if it is too short.
fn read(data: &[u8]) -> Option<Input<'_>> {
    let (&[path, validator, similarity, count], rest) = data.split_first_chunk()?;
    let count = usize::from(count % 16);
    let fields: Vec<&[u8]> = rest.splitn(2 * count + 1, |&byte| byte == SEPARATOR).collect();
    let (original, fields) = fields.split_last()?;
    let (pairs, _) = fields.as_chunks::<2>();
    let edits = pairs.iter().map(|[search, replace]| edit(search, replace, original)).collect();
    let similarity = (similarity > 0).then(|| f32::from(similarity) / 255.0);
    let validator = if validator % 4 == 1 { Validate::Off } else { Validate::Auto };
    Some(Input {
        path: Path::new(PATHS[usize::from(path) % PATHS.len()]),
        options: Options::default().min_similarity(similarity).validate(validator),
        edits,
        original,
    })
}

fn edit(search: &[u8], replace: &[u8], original: &[u8]) -> Edit {
    let mut bytes = search.iter();
    let mut next = || bytes.next().copied().map_or(0, usize::from);
    let how = next();
    let number = if how & 2 == 0 { 0 } else { next() };
    let block = if how & 4 == 0 { String::new() } else { block(original, next(), next(), next()) };
    let search = String::from_utf8_lossy(bytes.as_slice()).into_owned() + &block;
    let mut edit = Edit::new(search, String::from_utf8_lossy(replace));
    match how & 3 {
        1 => edit.replace_all = true,
        2 => edit.expected_count = Some(number),
        3 => edit.at_line = Some(number),
        _ => {}
    }
    edit
}

/// Lines of the file, off in the way that a level forgives.
fn block(original: &[u8], from: usize, count: usize, damage: usize) -> String {
    let text = String::from_utf8_lossy(original);
    let lines = text.split('\n').enumerate().skip(from).take(count % 8);
    let lines: Vec<String> = lines
        .map(|(number, line)| match damage % 8 {
            1 => format!("{line}\t "),
            2 => format!("  {line}"),
            3 => line.trim().to_owned(),
            4 => line.replace(['\u{201c}', '\u{201d}'], "\"").replace(['\u{a0}', '\t'], " "),
            5 => line.split_whitespace().collect::<Vec<_>>().join("  "),
            6 => format!("{line}\n"),
            7 => format!("{}\t{line}", number + 1),
            _ => line.to_owned(),
        })
        .collect();
    lines.join("\n")
}

/// Applies a unified diff, every context and removed line checked.
fn patch(original: &str, diff: &str) -> String {
    let old: Vec<&str> = original.split_inclusive('\n').collect();
    let mut rows = diff.split_inclusive('\n').skip(2).peekable();
    let (mut out, mut at) = (String::new(), 0);
    while let Some(header) = rows.next() {
        let numbers: Vec<usize> = header
            .split(|c: char| !c.is_ascii_digit())
            .filter_map(|number| number.parse().ok())
            .collect();
        let &[from, mut removed, _, mut added] = numbers.as_slice() else { panic!("{header}") };
        let start = if removed == 0 { from } else { from - 1 };
        out.extend(old[at..start].iter().copied());
        at = start;
        while removed + added > 0 {
            let row = rows.next().expect("a hunk as long as it says");
            let (sign, mut body) = row.split_at(1);
            if rows.next_if(|next| next.starts_with('\\')).is_some() {
                body = &body[..body.len() - 1];
            }
            if sign != "+" {
                assert_eq!(old[at], body, "{diff}");
                (at, removed) = (at + 1, removed - 1);
            }
            if sign != "-" {
                out.push_str(body);
                added -= 1;
            }
        }
    }
    out.extend(old[at..].iter().copied());
    out
}

/// What a plan says about itself.
fn check_plan(input: &Input<'_>, planned: &Plan) {
    let (original, text) = (input.original, planned.text.as_slice());
    assert_eq!(planned.changed, text != original);
    assert_eq!(planned.applied.len(), input.edits.len());
    let before = std::str::from_utf8(original).expect("only UTF-8 is edited");
    let after = std::str::from_utf8(text).expect("UTF-8 stays UTF-8");
    assert!(!before.starts_with('\u{feff}') || after.starts_with('\u{feff}'));
    let mut replaced = 0;
    for done in &planned.applied {
        assert!(!done.matches.is_empty() && done.matches.len() == done.lines.len());
        assert!(done.lines.iter().all(|span| 1 <= span.first && span.first <= span.last));
        assert!(done.level <= Level::LineNumbers || input.options.min_similarity.is_some());
        replaced += done.matches.len();
    }
    assert_eq!(planned.stats.replacements, replaced);
    let (mut rebuilt, mut at) = (String::new(), 0);
    for splice in &planned.splices {
        rebuilt.push_str(&before[at..splice.range.start]);
        rebuilt.push_str(&splice.text);
        at = splice.range.end;
    }
    rebuilt.push_str(&before[at..]);
    assert!(rebuilt == after, "the splices are not the change");
    assert_eq!(planned.diff.is_empty(), !planned.changed);
    assert!(planned.diff_truncated || patch(before, &planned.diff) == after, "{}", planned.diff);
}

/// A search that is in the text once, byte for byte, is replaced there and nowhere else.
fn check_exact(input: &Input<'_>, planned: &Plan) {
    let ([edit], Ok(before)) = (input.edits.as_slice(), std::str::from_utf8(input.original)) else {
        return;
    };
    // Line endings and indentation have rules of their own.
    let plain = |text: &str| !text.contains(['\r', '\u{feff}']);
    let literal = plain(before) && plain(&edit.search) && plain(&edit.replace);
    if !literal || edit.search.starts_with([' ', '\t']) || !before.contains(&edit.search) {
        return;
    }
    let after = planned.text.as_slice();
    assert_eq!(planned.applied[0].level, Level::Exact);
    if edit.at_line.is_none() {
        assert_eq!(before.replace(&edit.search, &edit.replace).as_bytes(), after);
    }
}

/// The facts of a refusal are those of the request.
fn check_refusal(input: &Input<'_>, error: &EditError) {
    assert!(!error.to_string().is_empty());
    let detail = &*error.detail;
    assert!(error.edit_index.is_none_or(|index| index < input.edits.len().max(1)));
    assert!(detail.candidates.len() <= 20);
    assert!(detail.scopes.is_empty() || detail.scopes.len() == detail.candidates.len());
    assert!(detail.candidates.iter().all(|span| 1 <= span.first && span.first <= span.last));
    assert_eq!(error.kind == ErrorKind::SyntaxInvalid, detail.syntax.is_some());
    if let Some(closest) = &detail.closest {
        assert!((0.0..=1.0).contains(&closest.similarity) && closest.lines.first >= 1);
    }
}

/// A valid text does not become an invalid one, and only an invalid one is refused for its syntax.
fn check_verdict(input: &Input<'_>, outcome: &Result<Plan, EditError>, unchecked: &Plan) {
    let verdict = |text| validate(input.path, text);
    // In YAML only edited lines are searched for tabs that indent.
    let tabs = unchecked.text.contains(&b'\t') && input.path.ends_with("f.yaml");
    match outcome {
        Ok(planned) if !tabs && verdict(input.original) == Verdict::Valid => {
            assert!(!matches!(verdict(&planned.text), Verdict::Invalid(_)));
        }
        Err(error) if error.kind == ErrorKind::SyntaxInvalid => {
            assert!(matches!(verdict(&unchecked.text), Verdict::Invalid(_)), "{error}");
        }
        _ => {}
    }
}

fuzz_target!(|data: &[u8]| {
    let Some(input) = read(data) else { return };
    let _verdict = validate(input.path, input.original);
    let run =
        |text: &[u8], edits: &[Edit], options: &Options| plan(text, input.path, edits, options);
    let outcome = run(input.original, &input.edits, &input.options);
    match &outcome {
        Ok(planned) => {
            check_plan(&input, planned);
            check_exact(&input, planned);
        }
        Err(error) => check_refusal(&input, error),
    }
    let off = input.options.clone().validate(Validate::Off);
    let Ok(unchecked) = run(input.original, &input.edits, &off) else {
        assert!(outcome.is_err_and(|error| error.kind != ErrorKind::SyntaxInvalid));
        return;
    };
    if input.options.validate == Validate::Auto {
        check_verdict(&input, &outcome, &unchecked);
    }
    // All edits in one call are the edits one after the other.
    let mut text = input.original.to_vec();
    for edit in &input.edits {
        let step = run(&text, std::slice::from_ref(edit), &off);
        text = step.expect("an edit of a plan is a plan").text;
    }
    assert!(text == unchecked.text, "in one call it is something else");
    if let [edit] = input.edits.as_slice() {
        let mut same = edit.clone();
        same.replace.clone_from(&same.search);
        let kept = run(input.original, &[same], &off);
        assert!(kept.is_ok_and(|kept| !kept.changed), "a text in its own place is a change");
    }
});
