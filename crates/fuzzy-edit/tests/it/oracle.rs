//! The verdicts against those of other readers: `ast`, `json` and `tomllib` of Python, and `yaml` beside it.
//!
//! What they take must be taken here, or a good edit is refused. What they refuse and we take is told with
//! its reason: mostly a grammar that is newer than the Python that is asked.
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "the files of a Python are read where they are, and Python is asked about them; disagreements are told"
)]

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use fuzzy_edit::{SyntaxIssue, Verdict, validate};
use serde::Deserialize;
use serde_json::{Value, json};
use testkit::{Missing, require};

/// Valid for the other reader and not for us: the language, a part of our message, and why that is right.
const REFUSED: &[(&str, &str, &str)] = &[
    ("toml", "number too large", "an integer beyond 64 bits, which TOML leaves to the reader"),
    ("toml", "number too small", "an integer beyond 64 bits, which TOML leaves to the reader"),
];

/// Refused by the other reader and valid for us: the language, a case or a part of the message, and why.
const TAKEN: &[(&str, &str, &str)] = &[
    (
        "python",
        "E-0174",
        "type parameters, which Python has since 3.12 (PEP 695), their defaults since 3.13",
    ),
    ("python", "E-0175", "the type statement, which Python has since 3.12 (PEP 695)"),
    ("python", "E-0176", "quotes inside an f-string, which Python has since 3.12 (PEP 701)"),
    ("python", "E-0177", "except*, which Python has since 3.11 (PEP 654)"),
    ("python", "E-0178", "a star in an index, which Python has since 3.11 (PEP 646)"),
    ("python", "E-0179", "except without parentheses, which Python has since 3.14 (PEP 758)"),
    ("toml", "E-0221", "TOML 1.1, which tomllib does not read: the edit is made with a warning"),
    ("yaml", "found duplicate anchor", "an anchor may be set again, and then means the new node"),
];

/// Which Python is asked.
fn python() -> PathBuf {
    std::env::var_os("AGENT_WORKSPACE_TEST_PYTHON").map_or_else(|| "python3".into(), PathBuf::from)
}

/// What Python says of one text.
#[derive(Debug, Deserialize)]
struct Told {
    name: String,
    path: Option<PathBuf>,
    language: String,
    error: Option<String>,
    unknown: bool,
}

/// The modules that Python lacks, and what it says.
type Answers = (Vec<String>, Vec<Told>);

/// Asks Python about `texts`, and about its own files if `installed`.
fn ask(texts: &[Value], installed: bool) -> Result<Answers, Missing> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/oracle.py");
    let mut command = Command::new(python());
    command.arg(script).args(installed.then_some("installed"));
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().map_err(|error| Missing(format!("python3: {error}")))?;
    let given = serde_json::to_vec(texts).unwrap();
    child.stdin.take().unwrap().write_all(&given).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "the oracle ended with {}", output.status);
    let out = String::from_utf8(output.stdout).unwrap();
    let mut lines = out.lines();
    let about: Value = serde_json::from_str(lines.next().unwrap()).unwrap();
    let missing = serde_json::from_value(about["missing"].clone()).unwrap();
    println!("Python {}, without {}", about["version"], about["missing"]);
    Ok((missing, lines.map(|line| serde_json::from_str(line).unwrap()).collect()))
}

fn ours(language: &str, text: &[u8]) -> Verdict {
    let name = match language {
        "python" => "a.py",
        "jsonl" => "a.jsonl",
        "toml" => "a.toml",
        "yaml" => "a.yaml",
        _ => "a.json",
    };
    validate(Path::new(name), text)
}

fn reason(
    table: &[(&str, &str, &'static str)],
    language: &str,
    message: &str,
) -> Option<&'static str> {
    let known = table.iter().find(|(of, part, _)| *of == language && message.contains(part));
    known.map(|(_, _, reason)| *reason)
}

/// The outcome of a comparison.
#[derive(Debug, Default)]
struct Compared {
    /// How many texts of each language both have judged.
    judged: BTreeMap<String, usize>,
    /// Valid for the other reader, refused by us, without a reason.
    refused: Vec<String>,
    /// Valid for us, refused by the other reader, without a reason.
    taken: Vec<String>,
    /// Disagreements with a reason.
    explained: BTreeMap<&'static str, usize>,
}

impl Compared {
    fn add(&mut self, told: &Told, verdict: &Verdict) {
        let language = told.language.as_str();
        if told.unknown || matches!(verdict, Verdict::NotValidated { .. }) {
            return;
        }
        *self.judged.entry(told.language.clone()).or_default() += 1;
        let (list, reason, what) = match (verdict, &told.error) {
            (Verdict::Invalid(issue), None) => {
                let SyntaxIssue { message, line, .. } = issue;
                let what = format!("{} {language} line {line}: {message}", told.name);
                (&mut self.refused, reason(REFUSED, language, message), what)
            }
            (Verdict::Valid, Some(error)) => {
                let what = format!("{} {language}: {error}", told.name);
                (&mut self.taken, reason(TAKEN, language, &what), what)
            }
            _ => return,
        };
        match reason {
            Some(reason) => *self.explained.entry(reason).or_default() += 1,
            None => list.push(what),
        }
    }

    /// Fails if a valid text is refused; tells everything else.
    #[track_caller]
    fn report(&self, least: &[(&str, bool, usize)]) {
        println!("judged {:?}", self.judged);
        println!("explained {:#?}", self.explained);
        println!("taken although refused there: {:#?}", self.taken);
        assert!(self.refused.is_empty(), "valid, and refused here: {:#?}", self.refused);
        // Files that came with some Python are its business; of the cases each has its reason above.
        let case = self.taken.iter().find(|what| what.starts_with("E-"));
        assert_eq!(case, None, "a case is refused there, and no reason is known");
        for &(language, built, least) in least {
            let judged = self.judged.get(language).copied().unwrap_or_default();
            assert!(!built || judged >= least, "only {judged} texts of {language} were compared");
        }
    }
}

/// The texts of the edit cases, before and after, by the language that the file name says.
fn case_texts() -> Vec<Value> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut texts = Vec::new();
    for case in testkit::cases::<Value>(&dir) {
        let body = &case.body;
        let path = body["path"].as_str().unwrap().to_lowercase();
        let language = match path.rsplit('.').next().unwrap() {
            "py" | "pyi" => "python",
            // With comments it is another language, of which Python knows nothing.
            "json" if path.contains("tsconfig") || path.contains(".vscode") => continue,
            "json" | "ipynb" => "json",
            "jsonl" | "ndjson" => "jsonl",
            "toml" => "toml",
            "yaml" | "yml" => "yaml",
            _ => continue,
        };
        for (when, text) in [("before", &body["file"]), ("after", &body["expect"]["after"])] {
            if let Some(text) = text.as_str() {
                let name = format!("{} {when}", body["id"].as_str().unwrap());
                let text = text.strip_prefix('\u{feff}').unwrap_or(text);
                texts.push(json!({"name": name, "language": language, "text": text}));
            }
        }
    }
    texts
}

/// The answers about the cases and about the files that came with Python, asked once for all tests.
fn answers() -> Result<&'static Answers, Missing> {
    static ANSWERS: OnceLock<Result<Answers, Missing>> = OnceLock::new();
    ANSWERS.get_or_init(|| ask(&case_texts(), true)).as_ref().map_err(Clone::clone)
}

/// Compares the texts of a few languages; `module` is what Python needs for them.
#[track_caller]
fn check(test: &str, module: Option<&str>, least: &[(&str, bool, usize)]) {
    let needed = answers().and_then(|(missing, told)| match module {
        Some(module) if missing.iter().any(|one| one == module) => {
            Err(Missing(format!("the Python module {module}")))
        }
        _ => Ok(told),
    });
    let Some(told) = require(test, needed) else {
        return;
    };
    let texts: BTreeMap<String, String> = case_texts()
        .iter()
        .map(|text| {
            let field = |name: &str| text[name].as_str().unwrap().to_owned();
            (field("name"), field("text"))
        })
        .collect();
    let mut compared = Compared::default();
    for one in
        told.iter().filter(|one| least.iter().any(|(language, ..)| *language == one.language))
    {
        let verdict = match &one.path {
            Some(path) => ours(&one.language, &std::fs::read(path).unwrap()),
            None => ours(&one.language, texts[&one.name].as_bytes()),
        };
        compared.add(one, &verdict);
    }
    compared.report(least);
}

#[test]
fn what_cpython_compiles_is_valid_python() {
    let built = cfg!(feature = "python");
    check("what_cpython_compiles_is_valid_python", None, &[("python", built, 500)]);
}

#[test]
fn what_cpython_loads_is_valid_json() {
    let built = cfg!(feature = "json");
    let least = [("json", built, 20), ("jsonl", built, 4)];
    check("what_cpython_loads_is_valid_json", None, &least);
}

#[test]
fn what_tomllib_loads_is_valid_toml() {
    let least = [("toml", cfg!(feature = "toml"), 20)];
    check("what_tomllib_loads_is_valid_toml", Some("tomllib"), &least);
}

#[test]
fn what_pyyaml_composes_is_valid_yaml() {
    let least = [("yaml", cfg!(feature = "yaml"), 20)];
    check("what_pyyaml_composes_is_valid_yaml", Some("yaml"), &least);
}
