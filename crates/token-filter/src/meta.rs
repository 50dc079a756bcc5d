//! What is known about a command beside its output, and what the caller wants of the answer.
//!
//! Both are plain values: nothing here is executed, looked up or logged.

#[cfg(feature = "recipes")]
use crate::recipes::Recipes;

/// The command whose output is compacted.
///
/// A hint and no more: the text decides, so a wrong command costs savings, never content.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Meta<'a> {
    /// The command line as it was given to a shell.
    pub command: &'a str,
    /// Its exit status; `None` when there is none (still running, ended by a signal, unknown).
    pub exit_code: Option<i32>,
}

impl<'a> Meta<'a> {
    /// Describes `command` and its exit status.
    ///
    /// # Security
    ///
    /// `command` is read as text alone: it is never run, expanded or copied into the answer.
    pub fn new(command: &'a str, exit_code: Option<i32>) -> Self {
        Self { command, exit_code }
    }

    /// Whether the command is known to have failed; then nothing is folded below the budget.
    pub(crate) fn failed(&self) -> bool {
        self.exit_code.is_some_and(|code| code != 0)
    }
}

/// What the answer may cost and how its gaps can be filled.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Policy {
    /// Most tokens of the answer, as [`estimate_tokens`](crate::estimate_tokens) counts them; values
    /// below [`Policy::MIN_BUDGET`] count as that.
    pub budget_tokens: u64,
    /// The way back from a marker to the lines it stands for.
    pub recovery: Recovery,
    /// What the lines of tools mean. Not part of the serialized form: recipes travel as their TOML.
    #[cfg(feature = "recipes")]
    #[cfg_attr(feature = "serde", serde(skip))]
    pub recipes: Recipes,
}

impl Policy {
    /// Budget of [`Policy::default`].
    pub const DEFAULT_BUDGET: u64 = 8_000;
    /// Least budget: below it markers would crowd out the text.
    pub const MIN_BUDGET: u64 = 400;

    /// Sets the budget, in tokens.
    #[must_use]
    pub fn with_budget_tokens(mut self, tokens: u64) -> Self {
        self.budget_tokens = tokens;
        self
    }

    /// Sets the way back.
    #[must_use]
    pub fn with_recovery(mut self, recovery: Recovery) -> Self {
        self.recovery = recovery;
        self
    }

    /// Sets the recipes, the built-in ones included: [`Recipes::and`] joins them with others.
    ///
    /// # Security
    ///
    /// Recipes decide what is folded; see [`Recipes::parse`] for what they cannot do, and whose to trust.
    #[cfg(feature = "recipes")]
    #[must_use]
    pub fn with_recipes(mut self, recipes: Recipes) -> Self {
        self.recipes = recipes;
        self
    }

    pub(crate) fn budget(&self) -> u64 {
        self.budget_tokens.max(Self::MIN_BUDGET)
    }
}

impl Default for Policy {
    /// 8,000 tokens, no way back, the built-in recipes.
    fn default() -> Self {
        Self {
            budget_tokens: Self::DEFAULT_BUDGET,
            recovery: Recovery::None,
            #[cfg(feature = "recipes")]
            recipes: Recipes::builtin(),
        }
    }
}

/// How a reader of the answer gets at omitted lines.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Recovery {
    /// The raw output is stored; markers carry the exact call `read_output(output_id="ID", …)`.
    ReadOutput {
        /// Name of the stored output, written into every marker as it is.
        output_id: String,
    },
    /// The raw output is gone; markers say "N lines not shown" and promise nothing.
    #[default]
    None,
}
