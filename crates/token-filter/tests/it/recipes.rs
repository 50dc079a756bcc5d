//! What a recipe can do, what it cannot, and what is said of a broken one.

use std::error::Error as _;

use token_filter::{Compacted, Meta, Policy, Recipes, Recovery, Stage, Stream, compact};

use crate::compact::lines;

fn policy(own: &str) -> Policy {
    let own = Recipes::parse(own).unwrap();
    Policy::default()
        .with_recipes(Recipes::builtin().and(&own).unwrap())
        .with_recovery(Recovery::ReadOutput { output_id: "o1".into() })
}

fn run(command: &str, own: &str, raw: &str) -> Compacted {
    let policy = policy(own);
    let meta = Meta::new(command, Some(0));
    let whole = compact(&meta, raw.as_bytes(), &policy);
    let mut stream = Stream::new(&policy);
    raw.as_bytes().chunks(777).for_each(|piece| stream.push(piece));
    assert_eq!(stream.finish(&meta), whole);
    whole
}

/// Data that nothing folds on its own, in an order of its own.
fn rows(count: u32) -> String {
    lines(count, |n| format!("moved {} to {}", n * 7_919 % 10_007, n * 31 % 977))
}

fn refused(text: &str, expected: &str) {
    let error = Recipes::parse(text).unwrap_err();
    assert_eq!(error.to_string(), expected);
}

const GROUP: &str = r#"
[[recipe]]
name = "mover"
commands = ["mover run"]
content = '^mover \d'
[[recipe.line]]
class = "group"
pattern = '^moved \d+ to \d+$'
"#;

#[test]
fn a_group_folds_like_chatter_for_its_command_or_its_content() {
    let raw = rows(200);
    let folded = run("cd x && ./mover --fast run", GROUP, &raw);
    assert_eq!(
        folded.text,
        "moved 0 to 0\nmoved 7919 to 31\n\
         [… 197 similar lines omitted, 3-199: read_output(output_id=\"o1\", offset=2, limit=197)]\n\
         moved 4782 to 307\n"
    );
    assert_eq!(folded.omitted.len(), 1);
    assert_eq!(folded.omitted[0].stage, Stage::Recipe);
    assert!(folded.stats.stages.iter().any(|saving| saving.stage == Stage::Recipe));
    assert!(run("make", GROUP, &format!("mover 2.1\n{raw}")).text.lines().count() < 8);
    assert!(!run("mover stop", GROUP, &raw).truncated);
    assert!(!run("mover run", "", &raw).truncated);
}

#[test]
fn a_dropped_line_is_counted_and_can_be_had_back() {
    let own = GROUP.replace("group", "drop");
    let raw = format!("start\n{}end\n", rows(200));
    assert_eq!(
        run("mover run", &own, &raw).text,
        "start\n\
         [… 200 lines omitted, 2-201: read_output(output_id=\"o1\", offset=1, limit=200)]\n\
         end\n"
    );
}

#[test]
fn kept_lines_are_not_folded_and_wanted_ones_are_shown_first() {
    let raw =
        lines(200, |n| format!("[info] step {} of the long way", n / 100 * 100 + n * 37 % 100));
    let own = "[[recipe]]\nname='way'\n[[recipe.line]]\nclass='keep'\npattern='step 1\\d\\d of'";
    let omitted = |own: &str| -> Vec<u64> {
        run("./walk", own, &raw).omitted.iter().flat_map(|part| part.raw_lines.clone()).collect()
    };
    let kept = |line: &u64| *line >= 100;
    assert!(!omitted(own).is_empty() && !omitted(own).iter().any(kept));
    assert!(omitted("").iter().any(kept));
    // Among thousands of rows of one form nothing but the recipe speaks for this one.
    let raw = rows(6_000);
    let line = raw.lines().nth(3_000).unwrap();
    let own =
        format!("[[recipe]]\nname='sum'\n[[recipe.line]]\nclass='summary'\nstarts=['{line}']");
    let is_shown = |own: &str| {
        !run("./m", own, &raw).omitted.iter().any(|part| part.raw_lines.contains(&3_000))
    };
    assert!(is_shown(&own) && !is_shown(""));
}

#[test]
fn own_recipes_come_first_and_replace_those_of_their_name() {
    let own =
        "[[recipe]]\nname='package-tools'\n[[recipe.line]]\nclass='keep'\nstarts=['Compiling ']";
    let raw = lines(100, |n| format!("   Compiling unit{n} v1.0.{n}"));
    assert!(!run("cargo build", own, &raw).truncated);
    assert!(run("cargo build", "", &raw).truncated);
    let both = Recipes::builtin().and(&Recipes::parse(own).unwrap()).unwrap();
    assert_eq!(both.names().next(), Some("package-tools"));
    assert_eq!(both.names().filter(|name| *name == "package-tools").count(), 1);
    assert_eq!(both.names().count(), Recipes::builtin().names().count());
    assert_ne!(both, Recipes::builtin());
}

#[test]
fn a_failing_command_is_folded_only_above_the_budget() {
    let raw = rows(200);
    let meta = Meta::new("mover run", Some(1));
    assert!(!compact(&meta, raw.as_bytes(), &policy(GROUP)).truncated);
}

#[test]
fn a_broken_recipe_is_refused_with_its_place() {
    refused(
        "[[recipe]]\nname = \"a\"\nlines = 1\n",
        "line 3: unknown field `lines`, expected one of `name`, `commands`, `content`, `line`, `case`",
    );
    refused(
        "[[recipe]]\nname = a\n",
        "line 2: string values must be quoted, expected literal string",
    );
    refused("[[recipe]]\nname='a'\nline=[]\n", "recipe \"a\": it has no line");
    refused(
        "[[recipe]]\nname='a'\n[[recipe.line]]\nclass='drop'\n",
        "recipe \"a\": a line has neither starts nor pattern",
    );
    refused(
        "[[recipe]]\nname='a'\n[[recipe.line]]\nclass='drop'\nstarts=['']\n",
        "recipe \"a\": a prefix has less than two characters or opens with a blank",
    );
    refused(
        "[[recipe]]\nname='a'\n[[recipe.line]]\nclass='group'\nstarts=['ab']\n\
         [[recipe.case]]\nline='ab: failed'\nclass='group'\n",
        "recipe \"a\": the line \"ab: failed\" is of class none, not group",
    );
    let pattern = |pattern: &str| {
        format!("[[recipe]]\nname='a'\n[[recipe.line]]\nclass='group'\npattern='{pattern}'\n")
    };
    refused(&pattern("(a"), "recipe \"a\": pattern \"(a\" cannot be used");
    let error = Recipes::parse(&pattern(r"(\w{50}){50}")).unwrap_err();
    assert!(error.source().unwrap().to_string().contains("size limit"), "{error:?}");
}

#[test]
fn recipes_are_bounded() {
    refused(&"#".repeat(256 * 1024 + 1), "more than 262144 bytes of recipes");
    let one = |n: u32| {
        let starts = lines(200, |k| format!("'a{n}b{k}',")).replace('\n', "");
        format!("[[recipe]]\nname='r{n}'\n[[recipe.line]]\nclass='group'\nstarts=[{starts}]\n")
    };
    refused(&lines(257, |n| format!("[[recipe]]\nname='r{n}'\nline=[]")), "more than 256 recipes");
    refused(&lines(21, one), "more than 4096 prefixes and patterns");
    let many = Recipes::parse(&lines(20, one)).unwrap();
    let other = Recipes::parse(&lines(20, |n| one(n + 100))).unwrap();
    assert_eq!(many.and(&other).unwrap_err().to_string(), "more than 4096 prefixes and patterns");
}

#[test]
fn the_default_is_the_built_in_set() {
    assert_eq!(Policy::default().recipes, Recipes::builtin());
    assert_eq!(Recipes::none().names().count(), 0);
}
