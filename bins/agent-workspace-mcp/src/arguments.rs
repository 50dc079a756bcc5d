//! Arguments as models really send them, made into the typed value a tool wants.
//!
//! Models fill optional arguments with `null`, `""` or `0`, quote numbers, send lists as JSON text and
//! use the names of other servers' tools. All of that has one meaning, so it is accepted; everything else
//! is refused with a sentence that says what is valid. Nothing is guessed: a value that cannot be read
//! as its kind is an error.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::reply::Failure;
use crate::schema::{Argument, Kind, Presence};

/// Reads `given` as the arguments of `table`, then as `T`.
///
/// # Errors
///
/// [`ErrorKind::InvalidArgs`](crate::reply::ErrorKind::InvalidArgs) for an unknown name (all of them, with the valid
/// ones), a missing required argument, a name given twice with different values, or a value that is not of its kind.
pub fn decode<T: DeserializeOwned>(
    table: &[Argument],
    given: Map<String, Value>,
) -> Result<T, Failure> {
    let straight = straighten(table, given, "")?;
    serde_json::from_value(Value::Object(straight))
        .map_err(|error| Failure::invalid_args(format!("unusable arguments: {error}")))
}

fn straighten(
    table: &[Argument],
    given: Map<String, Value>,
    place: &str,
) -> Result<Map<String, Value>, Failure> {
    let mut straight = Map::new();
    let mut unknown = Vec::new();
    for (name, value) in given {
        let Some(argument) = table.iter().find(|argument| argument.answers_to(&name)) else {
            unknown.push(format!("'{place}{name}'"));
            continue;
        };
        let Some(value) = read(argument, value, place)? else { continue };
        match straight.get(argument.name) {
            Some(other) if *other != value => {
                return Err(Failure::invalid_args(format!(
                    "argument '{place}{}' is given twice with different values; send it once",
                    argument.name
                )));
            }
            _ => straight.insert(argument.name.to_owned(), value),
        };
    }
    if !unknown.is_empty() {
        let valid: Vec<_> = table.iter().map(|argument| argument.name).collect();
        return Err(Failure::invalid_args(format!(
            "unknown argument{} {}; valid arguments: {}",
            if unknown.len() == 1 { "" } else { "s" },
            unknown.join(", "),
            valid.join(", ")
        )));
    }
    let missing = table.iter().find(|argument| {
        argument.presence == Presence::Required && !straight.contains_key(argument.name)
    });
    match missing {
        Some(argument) => Err(Failure::invalid_args(format!(
            "missing required argument '{place}{}' ({}): {}",
            argument.name,
            expected(argument.kind),
            argument.description
        ))),
        None => Ok(straight),
    }
}

/// The value as its kind, `None` where it means "not given".
fn read(argument: &Argument, value: Value, place: &str) -> Result<Option<Value>, Failure> {
    if value.is_null() || (argument.presence == Presence::Optional && is_neutral(&value)) {
        return Ok(None);
    }
    let refuse = |value: &Value| {
        Failure::invalid_args(format!(
            "argument '{place}{}' must be {}, got {}",
            argument.name,
            expected(argument.kind),
            describe(value)
        ))
    };
    let value = match (argument.kind, value) {
        (Kind::Text, Value::String(text)) => Value::String(text),
        (Kind::Choice(names), Value::String(text)) => {
            match names.iter().find(|name| name.eq_ignore_ascii_case(&text)) {
                Some(name) => (*name).into(),
                None => return Err(refuse(&text.into())),
            }
        }
        (Kind::Integer, value) => match integer(&value) {
            Some(0) if argument.presence == Presence::Optional => return Ok(None),
            Some(number) => number.into(),
            None => return Err(refuse(&value)),
        },
        (Kind::Number, value) => match number(&value) {
            Some(0.0) if argument.presence == Presence::Optional => return Ok(None),
            Some(number) => number.into(),
            None => return Err(refuse(&value)),
        },
        (Kind::Boolean, value) => boolean(&value).ok_or_else(|| refuse(&value))?.into(),
        (Kind::Texts, value) => list(value, &refuse, |item| match item {
            Value::String(_) => Ok(item),
            other => Err(refuse(&other)),
        })?,
        (Kind::Objects(fields), value) => {
            let mut index = 0;
            list(value, &refuse, |item| {
                let place = format!("{place}{}[{index}].", argument.name);
                index += 1;
                match item {
                    Value::Object(object) => Ok(straighten(fields, object, &place)?.into()),
                    other => Err(refuse(&other)),
                }
            })?
        }
        (Kind::Text | Kind::Choice(_), value) => return Err(refuse(&value)),
    };
    Ok(Some(value))
}

fn is_neutral(value: &Value) -> bool {
    match value {
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Number(number) => number.as_f64() == Some(0.0),
        _ => false,
    }
}

fn integer(value: &Value) -> Option<i64> {
    match value {
        Value::Number(number) => number.as_i64().or_else(|| number.as_f64().and_then(whole)),
        Value::String(text) => {
            let text = text.trim();
            text.parse().ok().or_else(|| text.parse().ok().and_then(whole))
        }
        _ => None,
    }
}

/// A float that is a whole number, as `5.0` is. One beyond the integers is the nearest of them: it stands for
/// "as many as there are".
fn whole(number: f64) -> Option<i64> {
    #[expect(clippy::cast_possible_truncation, reason = "the cast takes the nearest integer")]
    let nearest = number as i64;
    (number.fract() == 0.0).then_some(nearest)
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok().filter(|number: &f64| number.is_finite()),
        _ => None,
    }
}

fn boolean(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(given) => Some(*given),
        Value::String(text) if text.eq_ignore_ascii_case("true") => Some(true),
        Value::String(text) if text.eq_ignore_ascii_case("false") => Some(false),
        _ => None,
    }
}

/// A list, JSON text of a list, or a single item standing for a list of one.
fn list(
    value: Value,
    refuse: &dyn Fn(&Value) -> Failure,
    mut item: impl FnMut(Value) -> Result<Value, Failure>,
) -> Result<Value, Failure> {
    let items = match value {
        Value::Array(items) => items,
        Value::Object(object) => vec![Value::Object(object)],
        Value::String(text) => match serde_json::from_str(&text) {
            Ok(Value::Array(items)) => items,
            Ok(Value::Object(object)) => vec![Value::Object(object)],
            _ => vec![Value::String(text)],
        },
        other => return Err(refuse(&other)),
    };
    Ok(Value::Array(items.into_iter().map(&mut item).collect::<Result<_, _>>()?))
}

fn expected(kind: Kind) -> String {
    match kind {
        Kind::Text => "a string".into(),
        Kind::Choice(names) => format!("one of {}", names.join(", ")),
        Kind::Integer => "an integer".into(),
        Kind::Number => "a number".into(),
        Kind::Boolean => "true or false".into(),
        Kind::Texts => "a list of strings".into(),
        Kind::Objects(_) => "a list of objects".into(),
    }
}

fn describe(value: &Value) -> String {
    const SHOWN: usize = 60;
    let text = value.to_string();
    let cut: String = text.chars().take(SHOWN).collect();
    let dots = if cut.len() < text.len() { "…" } else { "" };
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    format!("{kind} {cut}{dots}")
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;
    use crate::schema::FILE_ALIASES;

    const FIELDS: &[Argument] = &[
        Argument::required("old", Kind::Text, "text").answered_by_tool().also(&["search"]),
        Argument::optional("at_line", Kind::Integer, "line"),
    ];
    const TABLE: &[Argument] = &[
        Argument::required("filepath", Kind::Text, "a file").also(FILE_ALIASES),
        Argument::optional("limit", Kind::Integer, "lines"),
        Argument::optional("ratio", Kind::Number, "share"),
        Argument::optional("deep", Kind::Boolean, "all"),
        Argument::optional("mode", Kind::Choice(&["auto", "off"]), "how"),
        Argument::optional("names", Kind::Texts, "names"),
        Argument::optional("edits", Kind::Objects(FIELDS), "edits"),
    ];

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(default)]
    struct Typed {
        filepath: String,
        limit: i64,
        ratio: f64,
        deep: bool,
        names: Vec<String>,
        edits: Vec<Field>,
    }

    #[derive(Debug, Deserialize, PartialEq)]
    struct Field {
        old: Option<String>,
        at_line: Option<i64>,
    }

    impl Default for Typed {
        fn default() -> Self {
            Self {
                filepath: "f".into(),
                limit: 100,
                ratio: 0.5,
                deep: true,
                names: vec!["d".into()],
                edits: Vec::new(),
            }
        }
    }

    fn check(given: Value, expected: Result<Typed, &str>) {
        let Value::Object(given) = given else { unreachable!("the test sends an object") };
        let got = decode::<Typed>(TABLE, given).map_err(|failure| failure.to_string());
        assert_eq!(got, expected.map_err(str::to_owned));
    }

    #[test]
    fn neutral_values_mean_not_given() {
        check(json!({"filepath": "f", "limit": 0, "ratio": 0, "names": []}), Ok(Typed::default()));
        check(json!({"filepath": "f", "limit": null, "deep": null}), Ok(Typed::default()));
        check(json!({"filepath": "f", "limit": "", "deep": "", "names": ""}), Ok(Typed::default()));
        check(json!({"filepath": "f", "limit": "0"}), Ok(Typed::default()));
    }

    #[test]
    fn bent_values_are_straightened() {
        let want = Typed {
            limit: 5,
            ratio: 0.25,
            deep: false,
            names: vec!["a".into(), "b".into()],
            edits: vec![Field { old: Some(String::new()), at_line: Some(3) }],
            ..Typed::default()
        };
        let given = json!({
            "path": "f", "limit": "5", "ratio": "0.25", "deep": "False", "names": "[\"a\",\"b\"]",
            "edits": "[{\"search\": \"\", \"at_line\": \"3\"}]",
        });
        check(given, Ok(want));
        check(json!({"file": "f", "limit": 7.0}), Ok(Typed { limit: 7, ..Typed::default() }));
        let most = |limit: Value| {
            let typed = Typed { limit: i64::MAX, ..Typed::default() };
            check(json!({"filepath": "f", "limit": limit}), Ok(typed));
        };
        most(json!(1e30));
        most(json!(u64::MAX));
        most(json!("123456789012345678901234567890"));
        check(json!({"file": "f", "limit": "7.0"}), Ok(Typed { limit: 7, ..Typed::default() }));
        check(
            json!({"filepath": "f", "names": "*.py"}),
            Ok(Typed { names: vec!["*.py".into()], ..Typed::default() }),
        );
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        check(json!({}), Err("missing required argument 'filepath' (a string): a file"));
        check(json!({"filepath": 5}), Err("argument 'filepath' must be a string, got number 5"));
        check(
            json!({"filepath": "f", "limit": "five"}),
            Err("argument 'limit' must be an integer, got string \"five\""),
        );
        for (limit, shown) in [(json!("inf"), "string \"inf\""), (json!(1.5), "number 1.5")] {
            let expected = format!("argument 'limit' must be an integer, got {shown}");
            check(json!({"filepath": "f", "limit": limit}), Err(&expected));
        }
        check(
            json!({"filepath": "f", "mode": "on"}),
            Err("argument 'mode' must be one of auto, off, got string \"on\""),
        );
        check(
            json!({"filepath": "f", "bogus": 1, "other": 2}),
            Err(
                "unknown arguments 'bogus', 'other'; valid arguments: filepath, limit, ratio, deep, \
                 mode, names, edits",
            ),
        );
        check(
            json!({"filepath": "f", "edits": [{"old": "x", "wrong": 1}]}),
            Err("unknown argument 'edits[0].wrong'; valid arguments: old, at_line"),
        );
        check(
            json!({"filepath": "f", "path": "g"}),
            Err("argument 'filepath' is given twice with different values; send it once"),
        );
    }
}
