//! In what the places stand that a refusal names.

use std::path::Path;
use std::time::{Duration, Instant};

use fuzzy_edit::{Edit, EditError, ErrorKind, Limits, Options, plan};
use proptest::prelude::*;

/// Every name with a grammar, and whether that is in this build.
const GRAMMARS: [(&str, bool); 6] = [
    ("a.py", cfg!(feature = "python")),
    ("a.json", cfg!(feature = "json")),
    ("a.jsonc", cfg!(feature = "json")),
    ("a.jsonl", cfg!(feature = "json")),
    ("a.toml", cfg!(feature = "toml")),
    ("a.yaml", cfg!(feature = "yaml")),
];

/// The refusal to choose among several places.
#[track_caller]
fn refusal(path: &str, file: &str, search: &str, options: &Options) -> EditError {
    let edit = Edit::new(search, "other");
    let error = plan(file.as_bytes(), Path::new(path), &[edit], options).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Ambiguous, "{path}");
    error
}

/// Checks the scope of every place; `-` is none. No place at all is one without a tree.
#[track_caller]
fn check(path: &str, file: &str, search: &str, expected: &[&str]) {
    let detail = refusal(path, file, search, &Options::default()).detail;
    let told = detail.scopes.iter().map(|scope| scope.as_deref().unwrap_or("-"));
    assert_eq!(told.collect::<Vec<_>>(), expected, "{path}");
    assert!(expected.is_empty() || expected.len() == detail.candidates.len());
}

#[test]
fn without_a_grammar_there_are_none() {
    check("a.txt", "class A:\n  x\n  x\n", "x", &[]);
    for (path, built) in GRAMMARS {
        check(path, "1\n1\n", "1", if built { &["-", "-"] } else { &[] });
    }
}

#[test]
fn nor_in_a_text_above_the_limit() {
    let options = Options::default().limits(Limits::default().validated_bytes(3));
    for (path, _) in GRAMMARS {
        assert_eq!(refusal(path, "1\n1\n", "1", &options).detail.scopes, []);
        check(path, &"1\n".repeat(1_500_000), "1", &[]);
    }
}

#[cfg(feature = "python")]
#[test]
fn python() {
    let file = "\
class Greeter:
    def greet(self):
        return 1

async def greet():
    return 1
return 1
";
    check("a.py", file, "return 1", &["class Greeter > def greet", "def greet", "-"]);
    check("a.py", file, "def greet", &["class Greeter > def greet", "def greet"]);
    // Blanks before the text, line endings and a byte-order mark do not matter.
    let dos = format!("\u{feff}{}", file.replace('\n', "\r\n"));
    check("a.pyi", &dos, "    return  1", &["class Greeter > def greet", "def greet", "-"]);
    let decorated = "\
class Größe:
    @property
    def höhe(self): ...
    @property
    def tiefe(self):
        def 深(x): return 0, 0
";
    check("a.py", decorated, "@property", &["class Größe > def höhe", "class Größe > def tiefe"]);
    check("a.py", decorated, "0", &["class Größe > def tiefe > def 深"; 2]);
    let broken = "class A:\n    def m(self):\n        x = 1\n\ny = = )\n\ndef n():\n    x = 1\n";
    check("a.py", broken, "x = 1", &["class A > def m", "def n"]);
    let long = format!("def {}():\n    x\n    x\n", "n".repeat(100));
    let cut = format!("def {}…", "n".repeat(60));
    check("a.py", &long, "    x\n", &[&cut, &cut]);
}

#[cfg(feature = "json")]
#[test]
fn json() {
    let file = r#"{
  "dependencies": {"serde": {"version": "1"}, "a.b": {"version": "1"}},
  "größen": [[0, {"version": "1"}], []]
}"#;
    let scopes =
        ["dependencies.serde.version", r#"dependencies."a.b".version"#, "größen[0][1].version"];
    check("package.json", file, r#""version": "1""#, &scopes);
    check("package.json", file, r#""1""#, &scopes);
    let commented = "// c\n[ // c\n  1, /* c */ {\"a\": 5,},\n  {\"a\": 5}\n]\n";
    check("a.jsonc", commented, "5", &["[1].a", "[2].a"]);
    let broken = "{\"a\": {\"x\": 5}, \"b\": ], \"c\": {\"x\": 5}}";
    check("a.json", broken, "5", &["a.x", "c.x"]);
    check("a.jsonl", "{\"a\": 5}\n{\"b\": [5]}\n", "5", &["a", "b[0]"]);
    check("a.json", "{\"\": 5, \"a\nb\": 5}", "5", &["\"\"", "\"a b\""]);
}

#[cfg(feature = "toml")]
#[test]
fn toml() {
    let file = "\
name = 'x'
[package]
name = 'x'
authors = [ # c
  'a', {name = 'x'}]
[[bin]]
name = 'x'
[[test]]
name = 'x'
[[bin]]
# c
deps.\"größe.x\" = {name = 'x'}
";
    let scopes = [
        "name",
        "[package] name",
        "[package] authors[1].name",
        "[[bin]][0] name",
        "[[test]][0] name",
        "[[bin]][1] deps.\"größe.x\".name",
    ];
    check("Cargo.toml", file, "name = 'x'", &scopes);
    check("Cargo.toml", file, "# c", &["[package] authors", "[[bin]][1]"]);
    check("a.toml", "[a]\n[a]\n", "[a]", &["[a]"; 2]);
    let broken = "[a]\nx = 5\nz =\n[ b . c ]\nx = 5\n";
    check("a.toml", broken, "5", &["[a] x", "[b . c] x"]);
    // A fault may have taken in the header of the next table.
    for (fault, told) in [("z = =", "-"), ("z = [1,", "-"), ("z = '", "-"), ("z = {", "[b . c] x")]
    {
        check("a.toml", &broken.replace("z =", fault), "x = 5", &["[a] x", told]);
    }
}

#[cfg(feature = "yaml")]
#[test]
fn yaml() {
    let file = "\
jobs:
  build:
    steps:
      - uses: a
      # c
      - name: b
      - run: |
          make
        env: {run: make, \"größe\": [[x, make]]}
  test:
    steps: [{run: make}, run: make]
";
    let scopes = [
        "jobs.build.steps[2].run",
        "jobs.build.steps[2].env.run",
        "jobs.build.steps[2].env.größe[0][1]",
        "jobs.test.steps[0].run",
        "jobs.test.steps[1].run",
    ];
    check("ci.yml", file, "make", &scopes);
    check("ci.yml", &file.replace('\n', "\r\n"), "make", &scopes);
    let nested = "- - a\n  - - x\n    - b\n- - x\n";
    check("a.yaml", nested, "x", &["[0][1][0]", "[1][0]"]);
    let stream = "metadata:\n  name: x\n---\nmetadata:\n  name: x\n";
    let documents = ["document 1: metadata.name", "document 2: metadata.name"];
    check("a.yaml", stream, "name: x", &documents);
    check("a.yaml", "a:\n  x: 5\nb: [1\nc:\n  x: 5\n", "x: 5", &["a.x", "c.x"]);
    check("a.yaml", "? [a,\n  b]\n: 5\n&k c: 5\n", "5", &["[a,   b]", "&k c"]);
}

/// What a grammar cannot bear gets no scope; the process has to survive each of these.
#[test]
fn hostile_nesting_is_not_looked_at() {
    for mark in ["- ", "? ", ": - "] {
        let deep = format!("{}a\nx: 1\nx: 1\n", mark.repeat(300));
        check("a.yaml", &deep, "x: 1", &[]);
    }
    check("a.yaml", &format!("{}x: 1\nx: 1\n", "a: 1\n".repeat(40_000)), "x: 1", &[]);
    let strings = |depth: usize| format!("{}f'{{x}} {{x}}'\n", " ".repeat(depth));
    let blocks: String = (0..600).map(|i| format!("{}if a:\n", " ".repeat(i))).collect();
    check("a.py", &(blocks + &strings(600)), "{x}", &[]);
    let tabs: String = (0..60).map(|i| format!("{}if a:\n", "\t".repeat(i))).collect();
    check("a.py", &format!("{tabs}{}x, x\n", "\t".repeat(60)), "x", &[]);
    let carried: String = (0..600)
        .map(|i| format!("{}\\\n{}if a:\n", " ".repeat(i / 2), " ".repeat(i - i / 2)))
        .collect();
    check("a.py", &(carried + &strings(1)), "{x}", &[]);
}

/// Deep and broken texts are answered within a bound that only a wrong order of growth exceeds.
#[test]
fn hostile_texts_are_answered() {
    const SIZE: usize = 100_000;
    let mut texts = vec!["5, ".repeat(SIZE / 3), format!("[{}]", "5, ".repeat(SIZE / 3))];
    for open in ["[", "{\"a\":", "a = [", "- [", "(\n", "\"'", "a: {"] {
        texts.push(format!("{} 5 5", open.repeat(SIZE / open.len())));
    }
    for start in ["", "a = ", "a: "] {
        texts.push(format!("{start}{}5, 5{}", "[".repeat(SIZE / 2), "]".repeat(SIZE / 2)));
    }
    for (path, _) in GRAMMARS {
        for text in &texts {
            let start = Instant::now();
            let error = refusal(path, text, "5", &Options::default());
            let took = start.elapsed();
            assert!(took < Duration::from_mins(1), "{path} took {took:?}");
            assert!(error.to_string().len() < 20_000);
        }
    }
}

#[cfg(feature = "json")]
#[test]
fn what_is_told_is_bounded() {
    let nest = |depth: usize| format!("{}[5, 5]{}", "{\"a\": ".repeat(depth), "}".repeat(depth));
    let inner = format!("… a{}", ".a".repeat(14));
    check("a.json", &nest(20), "5", &[&format!("{inner}[0]"), &format!("{inner}[1]")]);
    check("a.json", &nest(2_000), "5", &["-", "-"]);
    let wide = |before: usize| format!("[{}5, 5]", "0, ".repeat(before));
    check("a.json", &wide(9_000), "5", &["[9000]", "[9001]"]);
    check("a.json", &wide(11_000), "5", &["[…]", "[…]"]);
}

/// Sound and broken pieces of all four languages.
fn text() -> impl Strategy<Value = String> {
    let sound = prop::sample::select(vec![
        "\nclass É:\n    x\n",
        "\n@d\ndef f(x):\n  x\n",
        "\n- k: [x, {k: x}]\n  l: x\n",
        "\n---\nk:\n  - x\n",
        "\n[[t]]\nk = \"x\"\nl = [\"x\"]\n",
        "\n{\"k\": [1, \"x\"], \"l\": {\"m\": \"x\"}}\n",
    ]);
    let broken = prop::sample::select(vec![
        "class É",
        "def f",
        "(x)",
        ":",
        ":\n",
        "\n",
        "\n    ",
        "\r\n",
        "\t",
        "- ",
        "? ",
        "[",
        "]",
        "[[",
        "{",
        "}",
        "\"",
        "'",
        "\"\"\"",
        "f'",
        "k = ",
        "k: ",
        ", ",
        "#",
        "//",
        "|\n",
        "&a ",
        "\\",
        "\0",
        "@d\n",
        "\u{1f468}",
    ]);
    let piece = prop_oneof![
        4 => sound.prop_map(str::to_owned),
        3 => broken.prop_map(str::to_owned),
        1 => any::<String>(),
    ];
    prop::collection::vec(piece, 1..20).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_text_is_answered(text in text(), blank in "[ \n]{0,3}", path in 0..GRAMMARS.len()) {
        let (path, built) = GRAMMARS[path];
        let file = format!("{text}x\n");
        let edit = Edit::new(format!("{blank}x"), "y").expected_count(99);
        let error = plan(file.as_bytes(), Path::new(path), &[edit], &Options::default()).unwrap_err();
        if error.kind == ErrorKind::CountMismatch {
            let (scopes, places) = (&error.detail.scopes, error.detail.candidates.len());
            prop_assert_eq!(scopes.len(), if built { places } else { 0 });
            let named = scopes.iter().flatten();
            prop_assert!(named.clone().all(|scope| !scope.is_empty() && !scope.contains(char::is_control)));
            prop_assert_eq!(error.to_string().lines().count() > 1, named.count() > 0);
        }
    }
}
