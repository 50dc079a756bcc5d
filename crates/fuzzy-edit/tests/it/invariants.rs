//! What holds for every text and every edit; each test names the invariant by its number.
//!
//! 1 exact is literal, 2 bytes outside stay, 3 there and back, 4 a damaged search lands, 5 kept lines and line
//! endings, 6 indentation commutes, 7 replace all, 8 a refusal leaves no trace, 9 total on any bytes, 10 noise
//! never makes a match stricter, 11 verdicts, 12 the diff applies, 13 in one call as in turn, 14 serde.

use fuzzy_edit::{Edit, ErrorKind, Level, Options, Validate, Verdict, plan};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use crate::support::{patch, plan_text, text};

/// Lines that collide often: few words, blanks of every kind at every end.
fn line() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        Just("a"),
        Just("b"),
        Just("fn x() {"),
        Just("}"),
        Just("é"),
        Just("\u{201c}q\u{201d}"),
        Just("'s"),
        Just("x = 1"),
        Just("\u{1f468}\u{200d}\u{1f469}"),
        Just("..."),
        Just("1 | a"),
    ];
    let blank = prop_oneof![Just(""), Just(" "), Just("  "), Just("    "), Just("\t")];
    (blank.clone(), prop::collection::vec(word, 0..3), blank)
        .prop_map(|(lead, words, trail)| format!("{lead}{}{trail}", words.join(" ")))
}

fn file() -> impl Strategy<Value = String> {
    let end = prop_oneof![
        Just(vec!["\n"]),
        Just(vec!["\r\n"]),
        Just(vec!["\r"]),
        Just(vec!["\n", "\r\n", "\r\n"]),
        Just(vec!["\r\n", "\n"]),
    ];
    (prop::collection::vec(line(), 0..12), end, any::<bool>(), any::<bool>()).prop_map(
        |(lines, ends, last, mark)| {
            let mut out = if mark { "\u{feff}".to_owned() } else { String::new() };
            for (i, line) in lines.iter().enumerate() {
                out.push_str(line);
                if last || i + 1 < lines.len() {
                    out.push_str(ends[i % ends.len()]);
                }
            }
            out
        },
    )
}

fn edit() -> impl Strategy<Value = Edit> {
    let texts = |range| prop::collection::vec(line(), range).prop_map(|lines| lines.join("\n"));
    (texts(1..4), texts(0..4), any::<bool>(), any::<bool>()).prop_map(|(old, new, newline, all)| {
        let end = if newline { "\n" } else { "" };
        let edit = Edit::new(format!("{old}{end}"), format!("{new}{end}"));
        if all { edit.replace_all() } else { edit }
    })
}

/// An edit of lines that are in the file, damaged or not.
fn edit_of_file() -> impl Strategy<Value = (String, Edit)> {
    (file(), any::<prop::sample::Index>(), 1_usize..4, edit(), 0..5).prop_map(
        |(file, at, count, other, damage)| {
            let plain =
                file.trim_start_matches('\u{feff}').replace("\r\n", "\n").replace('\r', "\n");
            let lines: Vec<&str> = plain.lines().collect();
            if lines.is_empty() {
                return (file, other);
            }
            let from = at.index(lines.len());
            let block: Vec<String> = lines[from..lines.len().min(from + count)]
                .iter()
                .map(|line| match damage {
                    0 => (*line).to_owned(),
                    1 => format!("{line}  "),
                    2 => format!("  {line}"),
                    3 => line.trim().to_owned(),
                    _ => line.replace(['\u{201c}', '\u{201d}'], "\"").replace('\t', "    "),
                })
                .collect();
            let mut edit = other;
            edit.search = block.join("\n");
            (file, edit)
        },
    )
}

/// A file of lines that are each there once, indented, with an alignment and typographic quotes in each.
fn distinct(count: usize, end: &str) -> (Vec<String>, String) {
    let lines: Vec<String> = (0..count)
        .map(|n| format!("{}name{n}  = \u{201c}v{n}\u{201d} end", "    ".repeat(1 + n % 2)))
        .collect();
    let file = lines.iter().map(|line| format!("{line}{end}")).collect();
    (lines, file)
}

/// How the lines of a search can be off, and the level that forgives it.
type Damage = (Level, fn(&str) -> String);

/// Mildest first.
const DAMAGES: [Damage; 7] = [
    (Level::Exact, |line| line.to_owned()),
    (Level::TrailingWs, |line| format!("{line} \t")),
    (Level::Indent, |line| format!("   {line}")),
    (Level::Indent, |line| line.replace("    ", "\t")),
    (Level::Trim, |line| format!("{}{}", if line.contains('3') { "" } else { " " }, line.trim())),
    (Level::Unicode, |line| line.replace(['\u{201c}', '\u{201d}'], "\"")),
    (Level::InnerWs, |line| line.replace("  = ", " = ")),
];

fn unvalidated(max: Level) -> Options {
    Options::default().validate(Validate::Off).max_level(max)
}

fn check_outside(file: &str, edit: &Edit) -> Result<(), TestCaseError> {
    let Ok(plan) = plan_text(file, std::slice::from_ref(edit)) else {
        return Ok(());
    };
    let after = text(&plan);
    let matches = &plan.applied[0].matches;
    let (first, last) = (&matches[0], &matches[matches.len() - 1]);
    prop_assert!(after.starts_with(&file[..first.start]));
    let rest = &file[last.end..];
    let rest = if edit.replace.is_empty() && plan.applied[0].level > Level::Exact {
        rest.strip_prefix("\r\n").or(rest.strip_prefix(['\n', '\r'])).unwrap_or(rest)
    } else {
        rest
    };
    prop_assert!(after.ends_with(rest), "{after:?} {rest:?}");
    prop_assert_eq!(file.starts_with('\u{feff}'), after.starts_with('\u{feff}'));
    prop_assert_eq!(plan.changed, after != file);
    prop_assert!(!plan.diff_truncated);
    prop_assert_eq!(&patch(file, &plan.diff), after);
    // The splices say the same as the text.
    let mut rebuilt = file.to_owned();
    for splice in plan.splices.iter().rev() {
        rebuilt.replace_range(splice.range.clone(), &splice.text);
    }
    prop_assert_eq!(rebuilt, after);
    // No new kind of line ending.
    let cr = |text: &str| text.replace("\r\n", "").contains('\r');
    let lf = |text: &str| text.replace("\r\n", "").contains('\n');
    let any_end = file.contains(['\r', '\n']);
    prop_assert!(!any_end || !cr(after) || cr(file), "{after:?}");
    prop_assert!(!any_end || !lf(after) || lf(file), "{after:?}");
    prop_assert!(!any_end || !after.contains("\r\n") || file.contains("\r\n"), "{after:?}");
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn i01_exact_is_prefix_replacement_suffix(
        head in "[a-z \n]{0,20}", inner in "[a-z \n]{0,8}", tail in "[a-z \n]{0,20}", new in "[a-z \n]{0,20}",
    ) {
        let search = format!("{inner}\u{1f511}{inner}");
        let file = format!("{head}{search}{tail}");
        let in_indent = search.starts_with(' ')
            && head.ends_with(' ')
            && head.rsplit('\n').next().is_some_and(|rest| rest.trim().is_empty());
        prop_assume!(!in_indent);
        for end in ["\n", "\r\n"] {
            let plan = plan_text(&file.replace('\n', end), &[Edit::new(&search, &new)]).unwrap();
            prop_assert_eq!(plan.applied[0].level, Level::Exact);
            let has_end = file.contains('\n');
            let end = if has_end { end } else { "\n" };
            prop_assert_eq!(text(&plan), format!("{head}{new}{tail}").replace('\n', end));
        }
    }

    #[test]
    fn i03_there_and_back(head in "[a-z \n]{0,20}", tail in "[a-z \n]{0,20}") {
        let file = format!("{head}OLD\nTEXT{tail}");
        let there = plan_text(&file, &[Edit::new("OLD\nTEXT", "NEW")]).unwrap();
        let back = plan_text(text(&there), &[Edit::new("NEW", "OLD\nTEXT")]).unwrap();
        prop_assert_eq!(text(&back), file);
    }

    #[test]
    fn i02_i12_bytes_outside_the_match_stay(file in file(), edit in edit()) {
        check_outside(&file, &edit)?;
    }

    #[test]
    fn i02_i12_bytes_outside_a_likely_match_stay((file, edit) in edit_of_file()) {
        check_outside(&file, &edit)?;
    }

    #[test]
    fn i04_damaged_search_is_found_or_ambiguous((file, edit) in edit_of_file()) {
        let lines = file.trim_start_matches('\u{feff}');
        prop_assume!(!edit.search.trim().is_empty() && !lines.is_empty());
        match plan_text(&file, &[edit]) {
            Ok(_) => {}
            Err(error) => prop_assert!(
                matches!(error.kind, ErrorKind::Ambiguous | ErrorKind::Elided),
                "{error:?}"
            ),
        }
    }

    #[test]
    fn i05_unchanged_lines_are_the_files((file, edit) in edit_of_file()) {
        // A search replaced by itself changes nothing, at any level.
        let same = Edit::new(&edit.search, &edit.search);
        if let Ok(plan) = plan_text(&file, &[same]) {
            prop_assert_eq!(text(&plan), file);
            prop_assert!(!plan.changed);
        }
    }

    #[test]
    fn i10_a_looser_bound_never_changes_a_hit((file, edit) in edit_of_file()) {
        let levels = [
            Level::Exact, Level::TrailingWs, Level::Indent, Level::Trim, Level::Unicode,
            Level::InnerWs, Level::BlankLines, Level::LineNumbers,
        ];
        let mut first = None;
        for level in levels {
            let found = plan(file.as_bytes(), "f.txt".as_ref(), std::slice::from_ref(&edit), &unvalidated(level));
            let found = found.ok().map(|plan| (plan.applied[0].level, plan.text));
            if let Some(before) = &first {
                prop_assert_eq!(Some(before), found.as_ref());
            }
            prop_assert!(found.as_ref().is_none_or(|(used, _)| *used <= level));
            first = first.or(found);
        }
    }

    #[test]
    fn i13_edits_in_one_call_are_edits_in_turn((file, first) in edit_of_file(), second in edit()) {
        let together = plan_text(&file, &[first.clone(), second.clone()]);
        let Ok(one) = plan_text(&file, &[first]) else {
            prop_assert_eq!(together.unwrap_err().edit_index, Some(0));
            return Ok(());
        };
        match (plan_text(text(&one), &[second]), together) {
            (Ok(two), Ok(both)) => {
                prop_assert_eq!(text(&two), text(&both));
                prop_assert_eq!(&patch(&file, &both.diff), text(&both));
            }
            (Err(alone), Err(both)) => {
                prop_assert_eq!(both.edit_index, Some(1));
                prop_assert!(alone.kind == both.kind || both.kind == ErrorKind::Overlap);
            }
            (alone, both) => prop_assert!(false, "{:?} {:?}", alone, both),
        }
    }

    #[test]
    fn i07_replace_all_replaces_what_it_reports(file in "[ab\n]{0,40}", search in "[ab\n]{1,3}", new in "[ab\n]{0,3}") {
        prop_assume!(file.contains(&search));
        let plan = plan_text(&file, &[Edit::new(&search, &new).replace_all()]).unwrap();
        prop_assert_eq!(plan.stats.replacements, file.matches(&search).count());
        prop_assert_eq!(text(&plan), file.replace(&search, &new));
    }

    #[test]
    fn i06_indentation_commutes_with_the_edit(
        depths in prop::collection::vec(0_usize..3, 2..5),
        new in prop::collection::vec(0_usize..4, 1..5),
        from in 0_usize..3,
    ) {
        // Steps of four blanks, like code: never deeper by more than one.
        let ladder = |depths: &[usize], name: &str| -> Vec<(usize, String)> {
            let mut last = 0;
            depths.iter().enumerate().map(|(i, depth)| {
                last = (*depth).min(if i == 0 { 0 } else { last + 1 });
                (last, format!("{name}{i}"))
            }).collect()
        };
        let render = |lines: &[(usize, String)], base: usize, unit: &str| -> String {
            lines.iter().map(|(depth, word)| format!("{}{word}\n", unit.repeat(base + depth))).collect()
        };
        let (old, new) = (ladder(&depths, "old"), ladder(&new, "new"));
        let around = |body: &str, unit: &str| format!("top:\n{unit}x\n{body}{unit}{unit}y\nend\n");
        for unit in ["    ", "\t", "  "] {
            let file = around(&render(&old, from, unit), unit);
            let expected = around(&render(&new, from, unit), unit);
            for base in 0..3 {
                for given in ["    ", unit] {
                    let edit = Edit::new(render(&old, base, given), render(&new, base, given));
                    match plan_text(&file, &[edit]) {
                        // Exact text is literal, in whatever step it is written.
                        Ok(plan) if plan.applied[0].level == Level::Exact && given != unit => {}
                        Ok(plan) => prop_assert_eq!(text(&plan), &expected, "{:?} at {}", given, base),
                        Err(error) => prop_assert!(false, "{:?}", error),
                    }
                }
            }
        }
    }

    #[test]
    fn i09_arbitrary_bytes_never_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..200), old in any::<String>(), new in any::<String>(),
        path in prop_oneof![Just("a.py"), Just("a.json"), Just("a.toml"), Just("a.yaml"), Just("a.jsonl"), Just("a.txt")],
    ) {
        let options = Options::default().min_similarity(Some(0.5));
        for text in [bytes.clone(), old.clone().into_bytes(), format!("{new}\n{old}\r\n{new}").into_bytes()] {
            if let Err(error) = plan(&text, path.as_ref(), &[Edit::new(&old, &new)], &options) {
                prop_assert!(!error.to_string().is_empty());
            }
        }
    }

    #[test]
    fn i04_damage_is_forgiven_at_its_level_and_changes_no_kept_line(
        from in 0_usize..8, count in 2_usize..5, at in any::<prop::sample::Index>(), end in prop_oneof![Just("\n"), Just("\r\n")],
    ) {
        let (lines, file) = distinct(12, end);
        let block = &lines[from..from + count];
        let changed = at.index(count);
        let edit = |damage: fn(&str) -> String, end: &str| {
            let search: Vec<String> = block.iter().map(|line| damage(line)).collect();
            let mut replace = search.clone();
            replace[changed] = replace[changed].replace("end", "stop");
            Edit::new(search.join(end), replace.join(end))
        };
        let after = file.replace(&lines[from + changed], &lines[from + changed].replace("end", "stop"));
        for (level, damage) in DAMAGES {
            for given in ["\n", "\r\n"] {
                let plan = plan_text(&file, &[edit(damage, given)]).unwrap();
                // One line that is off by its depth alone is off in a consistent way.
                let found = plan.applied[0].level;
                prop_assert!(found == level || (level == Level::Trim && found == Level::Indent), "{level:?} {found:?}");
                let kept = |text: &str| -> Vec<String> {
                    let all = text.split_inclusive('\n').enumerate();
                    all.filter(|(n, _)| *n != from + changed).map(|(_, line)| line.to_owned()).collect()
                };
                prop_assert_eq!(kept(text(&plan)), kept(&after));
                // The changed line is the undamaged one as well, but for blanks that the edit put at its end.
                let line = text(&plan).lines().nth(from + changed).unwrap().trim_end().to_owned();
                prop_assert_eq!(&line, after.lines().nth(from + changed).unwrap().trim_end());
            }
        }
    }

    #[test]
    fn i05_new_lines_keep_the_files_endings(
        from in 0_usize..8, new in 0_usize..4, damage in 0_usize..DAMAGES.len(), last in any::<bool>(),
        end in prop_oneof![Just("\n"), Just("\r\n"), Just("\r")],
    ) {
        let (lines, whole) = distinct(9, end);
        let file = if last { whole.as_str() } else { whole.strip_suffix(end).unwrap() };
        let search: Vec<String> = lines[from..from + 2].iter().map(|line| DAMAGES[damage].1(line)).collect();
        let mut replace = search.clone();
        for n in 0..new {
            replace.insert(1, format!("{}new{n}", " ".repeat(4)));
        }
        let plan = plan_text(file, &[Edit::new(search.join("\n"), replace.join("\n"))]).unwrap();
        let after = text(&plan);
        prop_assert_eq!(after.matches(end).count(), file.matches(end).count() + new);
        prop_assert_eq!(after.ends_with(end), last);
        let other = |text: &str| text.replace(end, "").contains(['\r', '\n']);
        prop_assert!(!other(after));
        let kept: Vec<&str> = after.split(end).filter(|line| !line.contains("new")).collect();
        let before: Vec<&str> = file.split(end).collect();
        prop_assert_eq!(kept, before);
    }

    #[test]
    fn i08_a_refusal_leaves_no_trace((file, first) in edit_of_file(), second in edit()) {
        let edits = [first.clone(), second, Edit::new("\u{1f511} not there", "x")];
        let alone = plan_text(&file, std::slice::from_ref(&first));
        let before = file.clone();
        let refused = plan_text(&file, &edits).unwrap_err();
        prop_assert!(refused.edit_index.is_some_and(|index| index < edits.len()));
        prop_assert_eq!(&file, &before);
        // Nothing is remembered from one call to the next.
        prop_assert_eq!(plan_text(&file, &[first]), alone);
        prop_assert_eq!(plan_text(&file, &edits).unwrap_err(), refused);
    }

    #[test]
    fn i10_noise_never_makes_a_match_stricter(
        from in 0_usize..8, count in 2_usize..5, first in 0_usize..DAMAGES.len(), second in 0_usize..DAMAGES.len(),
    ) {
        let (lines, file) = distinct(12, "\n");
        let search: Vec<String> = lines[from..from + count].iter().map(|line| DAMAGES[first].1(line)).collect();
        let noisy: Vec<String> = search.iter().map(|line| DAMAGES[second].1(line)).collect();
        let level = |lines: &[String]| {
            let plan = plan_text(&file, &[Edit::new(lines.join("\n"), "new")]);
            plan.ok().map(|plan| plan.applied[0].level)
        };
        let before = level(&search).unwrap();
        // Noise that puts an indentation right is none.
        let mends = (first, second) == (3, 2) || first == 4 || (first == 2 && second == 4);
        prop_assert!(mends || level(&noisy).is_none_or(|after| after >= before));
    }

    #[test]
    fn i11_what_stays_is_never_refused_and_what_breaks_always(
        text in any::<String>(), path in prop::sample::select(vec!["a.py", "a.json", "a.jsonc", "a.jsonl", "a.toml", "a.yaml"]),
    ) {
        // Any text at all, not valid as a rule, with a line that may be edited.
        let file = format!("{text}\n# key\n");
        let same = plan(file.as_bytes(), path.as_ref(), &[Edit::new("# key", "# key")], &Options::default());
        prop_assert!(same.is_ok_and(|same| !same.changed));
        for (path, valid) in [
            ("a.py", "x = 1\n"), ("a.json", "[1]\n"), ("a.jsonc", "[1,] // x\n"), ("a.jsonl", "[1]\n\n2\n"),
            ("a.toml", "x = 1\n"), ("a.yaml", "x: 1\n"),
        ] {
            if fuzzy_edit::validate(path.as_ref(), valid.as_bytes()) != Verdict::Valid {
                // The parser was left out of this build; syntax.rs holds that each other one says yes.
                continue;
            }
            let edits = [Edit::new("1", text.clone())];
            let unchecked = plan(valid.as_bytes(), path.as_ref(), &edits, &unvalidated(Level::Exact));
            let Ok(unchecked) = unchecked else { continue };
            let verdict = fuzzy_edit::validate(path.as_ref(), &unchecked.text);
            let checked = plan(valid.as_bytes(), path.as_ref(), &edits, &Options::default());
            match (verdict, checked) {
                (Verdict::Invalid(_), checked) => {
                    prop_assert_eq!(checked.unwrap_err().kind, ErrorKind::SyntaxInvalid);
                }
                (_, checked) => prop_assert_eq!(checked.unwrap().text, unchecked.text),
            }
        }
    }

    #[cfg(feature = "json")]
    #[test]
    fn i11_lines_of_json_are_valid_if_each_is(lines in prop::collection::vec(
        prop::sample::select(vec!["", " ", "1", "{\"a\": [1]}", "[1,", "{'a': 1}", "nul", "\"x\""]), 0..8,
    )) {
        let valid = |path: &str, text: &str| matches!(fuzzy_edit::validate(path.as_ref(), text.as_bytes()), Verdict::Valid);
        let each = lines.iter().all(|line| line.trim().is_empty() || valid("a.json", line));
        prop_assert_eq!(valid("a.jsonl", &lines.join("\n")), each);
        prop_assert_eq!(valid("a.jsonl", &lines.join("\r\n")), each);
    }

    #[test]
    fn i13_many_edits_in_one_call_are_edits_in_turn(
        picks in prop::collection::vec((0_usize..30, 0_usize..4, 0_usize..30), 8..24), mark in any::<bool>(),
    ) {
        // So many that they are made together, some of text that another edit changes or puts in.
        let line = |n: usize| format!("    word{n:02} of line{n:02};\n");
        let mut file = if mark { "\u{feff}".to_owned() } else { String::new() };
        file.extend((0..30).map(line));
        let edits: Vec<Edit> = picks.iter().map(|&(n, kind, other)| match kind {
            0 => Edit::new(format!("word{n:02}"), format!("name{n:02}")),
            1 => Edit::new(line(n), format!("{}    more;\n", line(n))),
            2 => Edit::new(format!("line{n:02}"), format!("line{other:02}")),
            _ => Edit::new(format!("line{n:02};\n    word{:02} of", n + 1), "joined"),
        }).collect();
        let together = plan_text(&file, &edits);
        let mut in_turn = file.clone();
        let mut applied = Vec::new();
        for (index, edit) in edits.iter().enumerate() {
            match plan_text(&in_turn, std::slice::from_ref(edit)) {
                Ok(mut one) => {
                    applied.append(&mut one.applied);
                    in_turn = text(&one).to_owned();
                }
                Err(alone) => {
                    let together = together.unwrap_err();
                    prop_assert_eq!(together.edit_index, Some(index));
                    prop_assert!(alone.kind == together.kind || together.kind == ErrorKind::Overlap);
                    return Ok(());
                }
            }
        }
        let together = together.unwrap();
        prop_assert_eq!(text(&together), &in_turn);
        prop_assert_eq!(&together.applied, &applied);
        prop_assert_eq!(&patch(&file, &together.diff), &in_turn);
        let chunks: Vec<u8> = together.chunks(file.as_bytes()).flatten().copied().collect();
        prop_assert_eq!(chunks, together.text);
    }

    #[cfg(feature = "serde")]
    #[test]
    fn i14_serde_round_trip((file, first) in edit_of_file(), second in edit()) {
        for edit in [&first, &second] {
            let json = serde_json::to_string(edit).unwrap();
            prop_assert_eq!(&serde_json::from_str::<Edit>(&json).unwrap(), edit);
        }
        match plan_text(&file, &[first, second]) {
            Ok(plan) => {
                let json = serde_json::to_string(&plan).unwrap();
                prop_assert_eq!(serde_json::from_str::<fuzzy_edit::Plan>(&json).unwrap(), plan);
            }
            Err(error) => {
                let json = serde_json::to_string(&error).unwrap();
                prop_assert_eq!(serde_json::from_str::<fuzzy_edit::EditError>(&json).unwrap(), error);
            }
        }
    }
}

#[cfg(feature = "serde")]
#[test]
fn the_names_on_the_wire() {
    let edit: Edit = serde_json::from_str(r#"{"old": "a", "new": "b"}"#).unwrap();
    assert_eq!(edit, Edit::new("a", "b"));
    let error = plan_text("aa\n", &[edit]).unwrap_err();
    let mut json = serde_json::to_value(&error).unwrap();
    assert_eq!(json["kind"], "ambiguous");
    // Written before scopes were told.
    json["detail"].as_object_mut().unwrap().remove("scopes").unwrap();
    assert_eq!(serde_json::from_value::<fuzzy_edit::EditError>(json).unwrap(), error);
    assert_eq!(serde_json::to_value(Level::TrailingWs).unwrap(), "trailing_ws");
}
