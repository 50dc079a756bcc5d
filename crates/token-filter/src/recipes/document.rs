//! Recipes as they are written: the TOML, its limits, and its check before anything is made of it.

use serde::Deserialize;

use crate::error::RecipeError;

/// Bytes of one text of recipes.
pub(super) const TEXT: usize = 256 * 1024;
/// Recipes of a set.
pub(super) const RECIPES: usize = 256;
/// Prefixes and patterns of a set.
pub(super) const FORMS: usize = 4_096;
/// Entries of any list inside a recipe.
const LIST: usize = 256;
/// Bytes of a name, a prefix, a command or a pattern.
const STRING: usize = 512;
/// Bytes of an example line.
const LINE: usize = 2_048;
/// Least bytes of a prefix: shorter ones would say too little.
const PREFIX: usize = 2;

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Document {
    #[serde(default)]
    pub(super) recipe: Vec<Recipe>,
}

/// One `[[recipe]]`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Recipe {
    pub(super) name: String,
    #[serde(default)]
    pub(super) commands: Vec<String>,
    pub(super) content: Option<String>,
    pub(super) line: Vec<Line>,
    #[serde(default)]
    pub(super) case: Vec<Case>,
}

/// One `[[recipe.line]]`: a class and what lines of it look like.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Line {
    pub(super) class: Class,
    #[serde(default)]
    pub(super) starts: Vec<String>,
    pub(super) pattern: Option<String>,
}

/// One `[[recipe.case]]`: a line and the class it must get.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Case {
    pub(super) line: String,
    pub(super) class: Expected,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Class {
    Summary,
    Keep,
    Group,
    Drop,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Expected {
    Summary,
    Keep,
    Group,
    Drop,
    None,
}

impl Expected {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Summary => "summary",
            Self::Keep => "keep",
            Self::Group => "group",
            Self::Drop => "drop",
            Self::None => "none",
        }
    }
}

/// Reads `text` and holds it to the limits.
pub(super) fn read(text: &str) -> Result<Document, RecipeError> {
    if text.len() > TEXT {
        return Err(RecipeError::TooLarge { what: "bytes of recipes", limit: TEXT });
    }
    let document: Document = toml::from_str(text).map_err(|error| {
        let start = error.span().map_or(0, |span| span.start).min(text.len());
        let before = text.as_bytes().get(..start).unwrap_or_default();
        RecipeError::Syntax {
            line: memchr::memchr_iter(b'\n', before).count() + 1,
            message: error.message().to_owned(),
        }
    })?;
    if document.recipe.len() > RECIPES {
        return Err(RecipeError::TooLarge { what: "recipes", limit: RECIPES });
    }
    document.recipe.iter().try_for_each(check)?;
    Ok(document)
}

fn check(recipe: &Recipe) -> Result<(), RecipeError> {
    let invalid = |problem| {
        let name = &recipe.name;
        let shown = name.get(..name.floor_char_boundary(STRING)).unwrap_or_default();
        Err(RecipeError::Invalid { recipe: shown.to_owned(), problem })
    };
    let starts = || recipe.line.iter().flat_map(|line| &line.starts);
    let lists = [recipe.commands.len(), recipe.line.len(), recipe.case.len(), starts().count()];
    if lists.iter().any(|&length| length > LIST) {
        return Err(RecipeError::TooLarge { what: "entries of a list in a recipe", limit: LIST });
    }
    let patterns = recipe.line.iter().filter_map(|line| line.pattern.as_ref());
    let mut strings = starts().chain(&recipe.commands).chain(patterns).chain(&recipe.content);
    if recipe.name.len() > STRING || strings.any(|string| string.len() > STRING) {
        return invalid("a name, command, prefix or pattern has more than 512 bytes");
    }
    if recipe.case.iter().any(|case| case.line.len() > LINE || case.line.contains('\n')) {
        return invalid("a case is longer than 2,048 bytes or no single line");
    }
    if recipe.name.trim().is_empty() || recipe.name.contains(char::is_control) {
        return invalid("its name is blank or holds control characters");
    }
    if recipe.line.is_empty() {
        return invalid("it has no line");
    }
    if recipe.commands.iter().any(|command| command.trim().is_empty()) {
        return invalid("a command is blank");
    }
    if recipe.line.iter().any(|line| line.starts.is_empty() && line.pattern.is_none()) {
        return invalid("a line has neither starts nor pattern");
    }
    if starts().any(|start| start.trim().len() < PREFIX || start.starts_with([' ', '\t'])) {
        return invalid("a prefix has less than two characters or opens with a blank");
    }
    Ok(())
}
