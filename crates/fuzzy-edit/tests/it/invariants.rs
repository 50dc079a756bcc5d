//! What holds for every text and every edit.

use fuzzy_edit::{Edit, ErrorKind, Level, Options, Validate, plan};
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
    fn exact_is_prefix_replacement_suffix(
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
    fn there_and_back(head in "[a-z \n]{0,20}", tail in "[a-z \n]{0,20}") {
        let file = format!("{head}OLD\nTEXT{tail}");
        let there = plan_text(&file, &[Edit::new("OLD\nTEXT", "NEW")]).unwrap();
        let back = plan_text(text(&there), &[Edit::new("NEW", "OLD\nTEXT")]).unwrap();
        prop_assert_eq!(text(&back), file);
    }

    #[test]
    fn bytes_outside_the_match_stay(file in file(), edit in edit()) {
        check_outside(&file, &edit)?;
    }

    #[test]
    fn bytes_outside_a_likely_match_stay((file, edit) in edit_of_file()) {
        check_outside(&file, &edit)?;
    }

    #[test]
    fn damaged_search_is_found_or_ambiguous((file, edit) in edit_of_file()) {
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
    fn unchanged_lines_are_the_files((file, edit) in edit_of_file()) {
        // A search replaced by itself changes nothing, at any level.
        let same = Edit::new(&edit.search, &edit.search);
        if let Ok(plan) = plan_text(&file, &[same]) {
            prop_assert_eq!(text(&plan), file);
            prop_assert!(!plan.changed);
        }
    }

    #[test]
    fn a_looser_bound_never_changes_a_hit((file, edit) in edit_of_file()) {
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
    fn edits_in_one_call_are_edits_in_turn((file, first) in edit_of_file(), second in edit()) {
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
    fn replace_all_replaces_what_it_reports(file in "[ab\n]{0,40}", search in "[ab\n]{1,3}", new in "[ab\n]{0,3}") {
        prop_assume!(file.contains(&search));
        let plan = plan_text(&file, &[Edit::new(&search, &new).replace_all()]).unwrap();
        prop_assert_eq!(plan.stats.replacements, file.matches(&search).count());
        prop_assert_eq!(text(&plan), file.replace(&search, &new));
    }

    #[test]
    fn indentation_commutes_with_the_edit(
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
    fn arbitrary_bytes_never_panic(
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
}

#[cfg(feature = "serde")]
#[test]
fn serde_round_trip() {
    let edit: Edit = serde_json::from_str(r#"{"old": "a", "new": "b"}"#).unwrap();
    assert_eq!(edit, Edit::new("a", "b"));
    let plan = plan_text("x\n  a\n", std::slice::from_ref(&edit)).unwrap();
    let json = serde_json::to_string(&plan).unwrap();
    assert_eq!(serde_json::from_str::<fuzzy_edit::Plan>(&json).unwrap(), plan);
    let error = plan_text("aa\n", &[edit]).unwrap_err();
    let mut json = serde_json::to_value(&error).unwrap();
    assert_eq!(json["kind"], "ambiguous");
    assert_eq!(serde_json::from_value::<fuzzy_edit::EditError>(json.clone()).unwrap(), error);
    // Written before scopes were told.
    json["detail"].as_object_mut().unwrap().remove("scopes").unwrap();
    assert_eq!(serde_json::from_value::<fuzzy_edit::EditError>(json).unwrap(), error);
    assert_eq!(serde_json::to_value(Level::TrailingWs).unwrap(), "trailing_ws");
}
