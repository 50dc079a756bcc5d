//! Recipes: what the lines of a tool mean, said in TOML instead of code.
//!
//! A recipe names a tool by its command or by a line it prints, and gives classes to lines: `summary` and `keep` lines are
//! shown first when not all can be, `group` lines fold as more of the same, `drop` lines are left out with their count. Built-in and own
//! recipes are one format, one parser and one matcher.
//!
//! Invariants: a class never hides a salient row ([`is_salient`]); every row left out stands behind a marker; patterns are compiled when recipes
//! are parsed, run in linear time, and only on outputs that their recipe is for. Non-goals: replacing text, running
//! commands, deciding whose recipes to trust.

use std::sync::{Arc, LazyLock};

use regex::{Regex, RegexBuilder};

use crate::error::RecipeError;
use crate::mark::Mark;
use crate::meta::Meta;
use crate::row::{Kind, Row};
use crate::salience::{Severity, severity};
use crate::stage::window::Traits;

mod command;
mod document;

use document::{Class, Expected, FORMS, RECIPES};

/// Memory that one compiled pattern may take, in bytes.
const PATTERN_SIZE: usize = 256 * 1024;
/// Longest row that patterns are run on, in bytes; longer ones have no class.
const LONGEST: usize = 4 * 1024;
/// Rows of a template that make it common.
const COMMON: u32 = 4;

static BUILTIN: LazyLock<Set> = LazyLock::new(|| {
    // A test holds that the built-in text parses.
    Set::parse(include_str!("recipes/builtin.toml")).unwrap_or_default()
});

/// A set of recipes, ready to use; cheap to clone. The built-in ones are compiled when the first output asks for them.
///
/// ```
/// use token_filter::{Meta, Policy, Recipes, compact};
///
/// let own = Recipes::parse(
///     r#"
///     [[recipe]]
///     name = "acme-sync"
///     commands = ["acme sync"]
///
///     [[recipe.line]]
///     class = "group"
///     pattern = '^synced \S+$'
///
///     [[recipe.line]]
///     class = "summary"
///     starts = ["total: "]
///
///     [[recipe.case]]
///     line = "synced photos/1.jpg"
///     class = "group"
///     "#,
/// )?;
/// let policy = Policy::default().with_recipes(Recipes::builtin().and(&own)?);
/// let raw: String = (0..300).map(|n| format!("synced photos/{n}.jpg\n")).collect();
/// let answer = compact(&Meta::new("acme sync", Some(0)), raw.as_bytes(), &policy);
/// assert_eq!(answer.text.lines().count(), 4);
/// # Ok::<(), token_filter::RecipeError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Recipes {
    source: Source,
}

/// Where a set is kept.
#[derive(Debug, Clone)]
enum Source {
    /// For the whole program, once.
    Builtin,
    /// By those who have a copy.
    Own(Arc<Set>),
}

impl Recipes {
    /// No recipes: lines fold only where their own form proves them chatter.
    pub fn none() -> Self {
        Self::own(Set::default())
    }

    /// The recipes that come with the library; part of [`Policy::default`](crate::Policy).
    pub fn builtin() -> Self {
        Self { source: Source::Builtin }
    }

    /// Parses recipes. `docs/filter.md` describes the format.
    ///
    /// # Errors
    ///
    /// [`RecipeError::Syntax`] for text that is no TOML of this format, [`RecipeError::Invalid`] for a recipe that cannot be
    /// meant, [`RecipeError::Pattern`] for a pattern that does not compile, [`RecipeError::Case`] for an example line whose
    /// class is another one, [`RecipeError::TooLarge`] beyond 256 KiB, 256 recipes, 4,096 prefixes and patterns, or 256
    /// entries of a list.
    ///
    /// # Security
    ///
    /// Recipes decide what a reader does not see, so their author must be trusted with that: a program must not use the recipes
    /// that it finds in a project before its operator has approved them, by a hash of the very text given here. What holds for
    /// a hostile recipe too: it cannot hide a salient line, cannot leave out a line without its marker, cannot
    /// add text, cannot run anything, and cannot make compaction slower than linear.
    pub fn parse(text: &str) -> Result<Self, RecipeError> {
        Set::parse(text).map(Self::own)
    }

    /// Joins two sets; recipes of `own` come first and replace those of the same name.
    ///
    /// # Errors
    ///
    /// [`RecipeError::TooLarge`] if both together are beyond the limits of one.
    pub fn and(&self, own: &Self) -> Result<Self, RecipeError> {
        let own = &own.set().recipes;
        let replaced = |name: &str| own.iter().any(|recipe| recipe.is_called(name));
        let rest = self.set().recipes.iter().filter(|recipe| !replaced(&recipe.source.name));
        Set::new(own.iter().chain(rest).cloned().collect()).map(Self::own)
    }

    /// The names of the recipes, in the order in which they are asked.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.set().recipes.iter().map(|recipe| recipe.source.name.as_str())
    }

    fn own(set: Set) -> Self {
        Self { source: Source::Own(Arc::new(set)) }
    }

    fn set(&self) -> &Set {
        match &self.source {
            Source::Builtin => &BUILTIN,
            Source::Own(set) => set,
        }
    }

    /// The name of the recipe that made `mark`.
    pub(crate) fn name(&self, mark: Mark) -> Option<&str> {
        let (Mark::Summary(form) | Mark::Keep(form) | Mark::Group(form) | Mark::Drop(form)) = mark
        else {
            return None;
        };
        let set = self.set();
        let form = set.forms.get(usize::from(form))?;
        Some(set.recipes.get(form.recipe)?.source.name.as_str())
    }

    /// Gives every row its mark.
    pub(crate) fn classify(&self, meta: &Meta<'_>, rows: &[Row<'_>], traits: &mut [Traits]) {
        let set = self.set();
        let active: Vec<bool> =
            set.recipes.iter().map(|recipe| recipe.is_for(meta, rows)).collect();
        let is_active = |form: &&Form| {
            active.get(form.recipe).copied().unwrap_or(false) && form.pattern.is_some()
        };
        let patterns: Vec<&Form> = set.forms.iter().filter(is_active).collect();
        for (row, it) in rows.iter().zip(traits) {
            if row.kind != Kind::Text || row.cut || it.marker || it.blank {
                continue;
            }
            let Some(form) = set.form(&row.text, &active, &patterns) else { continue };
            it.mark = match form.class {
                Class::Summary => Mark::Summary(form.number),
                Class::Keep => Mark::Keep(form.number),
                Class::Group | Class::Drop if is_salient(&row.text, it) => Mark::None,
                Class::Group => Mark::Group(form.number),
                Class::Drop => Mark::Drop(form.number),
            };
        }
    }
}

impl Default for Recipes {
    /// The built-in ones.
    fn default() -> Self {
        Self::builtin()
    }
}

impl PartialEq for Recipes {
    fn eq(&self, other: &Self) -> bool {
        let (own, others) = (self.set(), other.set());
        let (recipes, other_recipes) = (own.recipes.iter(), others.recipes.iter());
        std::ptr::eq(own, others)
            || recipes.map(|it| &it.source).eq(other_recipes.map(|it| &it.source))
    }
}

impl Eq for Recipes {}

/// Whether no recipe may hide a row: it is alarming, or it is rare and reads like a statement.
///
/// A rare row that reads like one more of its kind has a name and perhaps a version, a size or a file that no other
/// row has; a sentence has more words of its own.
fn is_salient(text: &str, it: &Traits) -> bool {
    if it.severity >= Severity::Warning {
        return true;
    }
    if it.alike >= COMMON {
        return false;
    }
    let has = |marks: &[u8]| text.bytes().any(|b| b.is_ascii_digit() || marks.contains(&b));
    let named = match it.new_words {
        0 => true,
        1 => has(b"/.:_=-["),
        2 => has(b"/."),
        _ => false,
    };
    !named || text.split_ascii_whitespace().nth(9).is_some()
}

/// One recipe, compiled.
#[derive(Debug)]
struct Recipe {
    source: document::Recipe,
    /// Programs with their subcommands.
    commands: Vec<Vec<String>>,
    content: Option<Regex>,
    patterns: Vec<Option<Regex>>,
}

impl Recipe {
    fn new(source: document::Recipe) -> Result<Self, RecipeError> {
        let compile = |pattern: &String| {
            RegexBuilder::new(pattern)
                .size_limit(PATTERN_SIZE)
                .dfa_size_limit(PATTERN_SIZE)
                .nest_limit(32)
                .build()
                .map_err(|error| RecipeError::Pattern {
                    recipe: source.name.clone(),
                    pattern: pattern.clone(),
                    source: Box::new(error),
                })
        };
        let words = |command: &String| command.split_whitespace().map(str::to_owned).collect();
        let recipe = Self {
            commands: source.commands.iter().map(words).collect(),
            content: source.content.as_ref().map(compile).transpose()?,
            patterns: source
                .line
                .iter()
                .map(|line| line.pattern.as_ref().map(compile).transpose())
                .collect::<Result<_, _>>()?,
            source,
        };
        recipe.try_cases()?;
        Ok(recipe)
    }

    fn is_called(&self, name: &str) -> bool {
        self.source.name == name
    }

    /// Whether the recipe is for this output: by its command or by one of its rows.
    fn is_for(&self, meta: &Meta<'_>, rows: &[Row<'_>]) -> bool {
        let always = self.commands.is_empty() && self.content.is_none();
        always
            || self.commands.iter().any(|wanted| command::runs(meta.command, wanted))
            || self.content.as_ref().is_some_and(|pattern| {
                rows.iter().any(|row| row.text.len() <= LONGEST && pattern.is_match(&row.text))
            })
    }

    /// Holds the example lines to the classes written beside them.
    fn try_cases(&self) -> Result<(), RecipeError> {
        for case in &self.source.case {
            let found = self.class(&case.line);
            if found != case.class {
                return Err(RecipeError::Case {
                    recipe: self.source.name.clone(),
                    line: case.line.clone(),
                    expected: case.class.name(),
                    found: found.name(),
                });
            }
        }
        Ok(())
    }

    /// The class of a line on its own: as in an output where it is common.
    fn class(&self, line: &str) -> Expected {
        let text = line.trim_start();
        let fits = |(rule, pattern): &(&document::Line, &Option<Regex>)| {
            rule.starts.iter().any(|start| text.starts_with(start))
                || pattern.as_ref().is_some_and(|pattern| pattern.is_match(line))
        };
        let rule = self.source.line.iter().zip(&self.patterns).find(fits).map(|(rule, _)| rule);
        match rule.map(|rule| rule.class) {
            Some(Class::Summary) => Expected::Summary,
            Some(Class::Keep) => Expected::Keep,
            Some(Class::Group | Class::Drop) if severity(line) >= Severity::Warning => {
                Expected::None
            }
            Some(Class::Group) => Expected::Group,
            Some(Class::Drop) => Expected::Drop,
            None => Expected::None,
        }
    }
}

/// A prefix or a pattern, in the order in which they are asked.
#[derive(Debug)]
struct Form {
    number: u16,
    recipe: usize,
    class: Class,
    start: String,
    pattern: Option<Regex>,
}

/// Recipes with an index of their prefixes.
#[derive(Debug, Default)]
struct Set {
    recipes: Vec<Arc<Recipe>>,
    forms: Vec<Form>,
    /// The forms with a prefix, for every first byte of one.
    starts: Vec<Vec<usize>>,
}

impl Set {
    fn parse(text: &str) -> Result<Self, RecipeError> {
        let document = document::read(text)?;
        let recipes = document.recipe.into_iter().map(|it| Recipe::new(it).map(Arc::new));
        Self::new(recipes.collect::<Result<_, _>>()?)
    }

    fn new(recipes: Vec<Arc<Recipe>>) -> Result<Self, RecipeError> {
        if recipes.len() > RECIPES {
            return Err(RecipeError::TooLarge { what: "recipes", limit: RECIPES });
        }
        let mut forms = Vec::new();
        let mut starts = vec![Vec::new(); 256];
        for (number, recipe) in recipes.iter().enumerate() {
            for (line, pattern) in recipe.source.line.iter().zip(&recipe.patterns) {
                let prefixes = line.starts.iter().map(|start| (start.clone(), None));
                let pattern = pattern.iter().map(|it| (String::new(), Some(it.clone())));
                for (start, pattern) in prefixes.chain(pattern) {
                    let place = forms.len();
                    if place >= FORMS {
                        let what = "prefixes and patterns";
                        return Err(RecipeError::TooLarge { what, limit: FORMS });
                    }
                    let first = start.bytes().next().map(usize::from);
                    if let Some(list) = first.and_then(|byte| starts.get_mut(byte)) {
                        list.push(place);
                    }
                    let number16 = u16::try_from(place).unwrap_or(u16::MAX);
                    let class = line.class;
                    forms.push(Form { number: number16, recipe: number, class, start, pattern });
                }
            }
        }
        Ok(Self { recipes, forms, starts })
    }

    /// The first form of the active recipes that `line` has.
    fn form(&self, line: &str, active: &[bool], patterns: &[&Form]) -> Option<&Form> {
        let text = line.trim_start();
        let first = text.bytes().next().map_or(0, usize::from);
        let places = self.starts.get(first).map(Vec::as_slice).unwrap_or_default();
        let by_start = places.iter().filter_map(|&place| self.forms.get(place)).find(|form| {
            active.get(form.recipe).copied().unwrap_or(false) && text.starts_with(&form.start)
        });
        if line.len() > LONGEST {
            return by_start;
        }
        let before = |form: &&&Form| by_start.is_none_or(|start| form.number < start.number);
        let is_match = |form: &&&Form| form.pattern.as_ref().is_some_and(|it| it.is_match(line));
        let by_pattern = patterns.iter().take_while(before).find(is_match);
        by_pattern.and_then(|form| self.forms.get(usize::from(form.number))).or(by_start)
    }
}

#[cfg(test)]
mod tests {
    use super::{Recipes, is_salient};
    use crate::compact::survey;
    use crate::row::Row;

    #[test]
    fn the_built_in_recipes_parse() {
        let parsed = Recipes::parse(include_str!("recipes/builtin.toml"));
        assert!(parsed.is_ok(), "{:?}", parsed.err());
        assert!(Recipes::builtin().names().count() >= 8);
    }

    #[test]
    fn a_rare_sentence_is_salient_and_one_more_name_is_not() {
        let mut lines: Vec<String> = ["serde", "toml", "regex", "memchr", "insta"]
            .iter()
            .flat_map(|name| [format!("Compiling {name} v1.0"), format!("> Task :{name}:jar")])
            .collect();
        lines.push("water was seen dripping onto rack 17".into());
        lines.push("disk is full".into());
        lines.push("Compiling serde v1.0 not done".into());
        let rows: Vec<Row<'_>> =
            (0..).zip(&lines).map(|(n, line)| Row::new(n..n + 1, line.as_str().into())).collect();
        let traits = survey(&rows);
        let salient: Vec<bool> =
            lines.iter().zip(&traits).map(|(line, it)| is_salient(line, it)).collect();
        assert_eq!(salient, [[false; 10].as_slice(), &[true; 3]].concat());
    }
}
