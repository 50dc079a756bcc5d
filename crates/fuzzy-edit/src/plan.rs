//! The one verb: edits and bytes in, a plan or a refusal out.

use std::path::Path;

use crate::diff;
use crate::edit::{Edit, Level, Options, Validate};
use crate::error::{EditError, ErrorKind};
use crate::outcome::{Plan, Splice, Stats};
use crate::syntax;
use crate::text::{View, cut};

mod state;
mod step;
mod together;

use state::State;
use step::Step;

/// Places named in a report.
const NAMED: usize = 20;

/// Plans `edits` on `original`, in order, all or nothing.
///
/// Edit n sees the text after edit n-1; only the final text is validated. `path` is a name that decides
/// the parser, nothing is opened.
///
/// ```
/// use fuzzy_edit::{Edit, Level, Options, plan};
/// use std::path::Path;
///
/// let file = b"class A:\n    def f(self):\n        return 1\n";
/// let edit = Edit::new("def f(self):\n    return 1", "def f(self):\n    return 2");
/// let plan = plan(file, Path::new("a.py"), &[edit], &Options::default())?;
/// assert_eq!(plan.text, b"class A:\n    def f(self):\n        return 2\n");
/// assert_eq!(plan.applied[0].level, Level::Indent);
/// # Ok::<(), fuzzy_edit::EditError>(())
/// ```
///
/// # Errors
///
/// See [`ErrorKind`]; the first edit at fault decides, and the syntax of the whole comes last.
///
/// # Security
///
/// Total on arbitrary bytes: no panic, time linear in text and search, memory bounded by
/// [`crate::Limits`]. `path` is only read as a name.
pub fn plan(
    original: &[u8],
    path: &Path,
    edits: &[Edit],
    options: &Options,
) -> Result<Plan, EditError> {
    if edits.is_empty() {
        return Err(EditError::invalid_edit(None, "no edits were given"));
    }
    let whole = decode(original, options)?;
    let original = View::new(whole);
    let mut state = State::new(whole, &original);
    let mut applied = Vec::with_capacity(edits.len());
    let mut warnings = Vec::new();
    let mut next = 0;
    // Many edits are made together as long as that gets anywhere.
    let mut together = edits.len() >= together::FEWEST;
    while next < edits.len() {
        if together {
            let rest = edits.get(next..).unwrap_or_default();
            let mut run = state.look(|view| together::run(view, next, rest, path, options));
            together = run.applied.len() >= together::FEWEST;
            next += run.applied.len();
            applied.append(&mut run.applied);
            warnings.append(&mut run.warnings);
            state.apply(run.patches);
        }
        let Some(edit) = edits.get(next) else {
            break;
        };
        let step = Step { index: next, edit, path, options };
        let (patches, done) = state
            .look(|view| step.run(view, &mut warnings))
            .map_err(|error| state.meets_earlier(error, edit, options))?;
        state.apply(patches.into_iter().map(|patch| (next, patch)));
        applied.push(done);
        next += 1;
    }
    let (pieces, splices) = state.splices();
    let changed = is_changed(whole, &splices, &mut state);
    if changed && options.validate == Validate::Auto {
        let limit = options.limits.validated_bytes;
        // The new text is put together only for a parser that will see it.
        warnings.extend(syntax::judge(path, whole, || state.text(), &pieces, limit)?);
    }
    let (diff, diff_truncated) = if changed {
        diff::unified(path, whole, &original, &splices, options)
    } else {
        (String::new(), false)
    };
    let exact = applied.iter().filter(|done| done.level == Level::Exact).count();
    let counts = Stats {
        exact,
        fuzzy: applied.len() - exact,
        replacements: applied.iter().map(|done| done.matches.len()).sum(),
    };
    let text = if options.keep_text { state.into_text().into_bytes() } else { Vec::new() };
    Ok(Plan { text, changed, applied, splices, warnings, diff, diff_truncated, stats: counts })
}

/// Whether the texts differ; outside the splices they do not.
fn is_changed(whole: &str, splices: &[Splice], state: &mut State<'_>) -> bool {
    let differs = |splice: &Splice| cut(whole, splice.range.clone()) != splice.text;
    // What one edit took away another may have put back beside it.
    let grown = |splice: &Splice| (splice.text.len(), splice.range.len());
    let (added, removed) = splices.iter().map(grown).fold((0, 0), |(a, r), (b, s)| (a + b, r + s));
    splices.iter().any(differs) && (splices.len() == 1 || added != removed || whole != state.text())
}

/// The file as text.
fn decode<'a>(original: &'a [u8], options: &Options) -> Result<&'a str, EditError> {
    let limit = options.limits.file_bytes.min(u32::MAX as usize);
    if original.len() > limit {
        return Err(too_large(None, format!("the file has more than {limit} bytes")));
    }
    if original.starts_with(&[0xff, 0xfe]) || original.starts_with(&[0xfe, 0xff]) {
        let error = EditError::new(ErrorKind::NotUtf8, None);
        return Err(error.because("it begins with a UTF-16 byte-order mark"));
    }
    std::str::from_utf8(original).map_err(|error| {
        let at = error.valid_up_to();
        EditError::new(ErrorKind::NotUtf8, None).because(format!("invalid byte at offset {at}"))
    })
}

fn too_large(index: Option<usize>, reason: String) -> EditError {
    EditError::new(ErrorKind::TooLarge, index).because(reason)
}
