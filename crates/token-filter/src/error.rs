//! Why recipes were refused. Compaction itself cannot fail.

/// What is wrong with recipes, by what their author can do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecipeError {
    /// The text is no TOML, or holds a table, key or value that recipes do not have.
    #[error("line {line}: {message}")]
    Syntax {
        /// Line of the text, from 1.
        line: usize,
        /// What the parser says.
        message: String,
    },
    /// A recipe says something that cannot be meant.
    #[error("recipe {recipe:?}: {problem}")]
    Invalid {
        /// Its name.
        recipe: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A pattern does not compile, or is too large to run fast.
    #[error("recipe {recipe:?}: pattern {pattern:?} cannot be used")]
    Pattern {
        /// Name of the recipe.
        recipe: String,
        /// The pattern.
        pattern: String,
        /// What the pattern engine says.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A recipe does not give one of its own example lines the class it says.
    #[error("recipe {recipe:?}: the line {line:?} is of class {found}, not {expected}")]
    Case {
        /// Name of the recipe.
        recipe: String,
        /// The example line.
        line: String,
        /// The class written beside it.
        expected: &'static str,
        /// The class it has.
        found: &'static str,
    },
    /// There is more of something than the limit allows.
    #[error("more than {limit} {what}")]
    TooLarge {
        /// What there is too much of.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
}
