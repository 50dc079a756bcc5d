//! The file tools of a server, as thin as they can be: what the case files call.

use serde::Deserialize;
use workspace_jail::{
    EntryKind, Error, Escaped, FindOptions, GrepOptions, Intent, Jail, PageRequest,
};

/// Largest content of a write, largest answer of a read.
const MAX_WRITE: u64 = 5 * 1024 * 1024;
const MAX_EDIT: u64 = 10 * MAX_WRITE;

/// A tool's arguments, all tools in one.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Args {
    pub(crate) filepath: String,
    filepath_repeat: Option<(String, usize)>,
    filepath_suffix: String,
    pub(crate) content: String,
    content_repeat: Option<(String, usize)>,
    pub(crate) create_only: Option<bool>,
    path: Option<String>,
    pub(crate) pattern: String,
    pattern_repeat: Option<(String, usize)>,
    pub(crate) exclude_patterns: Vec<String>,
    pub(crate) glob: Option<String>,
    pub(crate) edits: Vec<Edit>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Edit {
    pub(crate) old: String,
    pub(crate) new: String,
}

/// What a tool says.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    pub(crate) text: String,
    pub(crate) error_kind: Option<&'static str>,
    pub(crate) truncated: bool,
    pub(crate) entries: Vec<String>,
}

impl Args {
    pub(crate) fn map(mut self, fill: &dyn Fn(&str) -> String) -> Self {
        for text in [&mut self.filepath, &mut self.content, &mut self.pattern] {
            *text = fill(text);
        }
        for text in &mut self.exclude_patterns {
            *text = fill(text);
        }
        if let Some((text, times)) = &self.filepath_repeat {
            self.filepath = text.repeat(*times) + &self.filepath_suffix;
        }
        if let Some((text, times)) = &self.content_repeat {
            self.content = text.repeat(*times);
        }
        if let Some((text, times)) = &self.pattern_repeat {
            self.pattern = text.repeat(*times);
        }
        self
    }

    pub(crate) fn path(&self) -> &str {
        self.path.as_deref().unwrap_or(".")
    }
}

/// Calls a tool. `None`: not a tool of files.
pub(crate) fn call(jail: &Jail, tool: &str, args: &Args) -> Option<Answer> {
    let result = match tool {
        "read_file" => read_file(jail, args),
        "write_file" => write_file(jail, args),
        "list_directory" => list_directory(jail, args),
        "search_workspace" => search_workspace(jail, args),
        "search_content" => search_content(jail, args),
        "search_and_replace" => search_and_replace(jail, args),
        _ => return None,
    };
    Some(result.unwrap_or_else(|error| Answer {
        text: error.to_string(),
        error_kind: Some(match error.kind() {
            "invalid_pattern" => "invalid_args",
            kind => kind,
        }),
        ..Answer::default()
    }))
}

fn text(text: String) -> Answer {
    Answer { text, ..Answer::default() }
}

fn read_file(jail: &Jail, args: &Args) -> Result<Answer, Error> {
    let page = jail.read_page(&args.filepath, &PageRequest::default())?;
    Ok(text(page.text().into_owned()))
}

fn write_file(jail: &Jail, args: &Args) -> Result<Answer, Error> {
    let (path, bytes) = (&args.filepath, args.content.as_bytes());
    let create_only = args.create_only.unwrap_or(true);
    let intent = if create_only { Intent::Create } else { Intent::Replace };
    jail.check_write(path, intent, bytes.len() as u64, MAX_WRITE)?;
    let written = match intent {
        Intent::Create => jail.create(path, bytes)?,
        _ => jail.replace(path, bytes, None)?,
    };
    Ok(text(format!("Successfully wrote {} bytes to {path}", written.bytes)))
}

fn list_directory(jail: &Jail, args: &Args) -> Result<Answer, Error> {
    let listing = jail.list(args.path(), 0, 1000)?;
    let entries: Vec<String> =
        listing.entries.iter().map(|entry| entry.shown().to_string()).collect();
    let lines: Vec<String> = listing
        .entries
        .iter()
        .map(|entry| {
            let kind = match entry.kind {
                EntryKind::Directory => 'D',
                EntryKind::Link => 'L',
                _ => 'F',
            };
            format!("[{kind}] {}", entry.shown())
        })
        .collect();
    Ok(Answer { text: lines.join("\n"), entries, ..Answer::default() })
}

fn search_workspace(jail: &Jail, args: &Args) -> Result<Answer, Error> {
    let excludes: Vec<&str> = args.exclude_patterns.iter().map(String::as_str).collect();
    let found = jail.find(&args.pattern, &excludes, FindOptions::default())?;
    let entries: Vec<String> =
        found.paths.iter().map(|path| Escaped::new(path).to_string()).collect();
    let truncated = found.total > entries.len() as u64;
    Ok(Answer { text: entries.join("\n"), entries, truncated, ..Answer::default() })
}

fn search_content(jail: &Jail, args: &Args) -> Result<Answer, Error> {
    let mut options = GrepOptions::default();
    options.glob.clone_from(&args.glob);
    let found = jail.grep(&args.pattern, args.path(), &options)?;
    let mut lines = Vec::new();
    for file in &found.files {
        for line in &file.lines {
            lines.push(format!("{}:{}:{}", Escaped::new(&file.path), line.number, line.text));
        }
    }
    let truncated = found.total > lines.len() as u64;
    Ok(Answer { text: lines.join("\n"), truncated, ..Answer::default() })
}

fn search_and_replace(jail: &Jail, args: &Args) -> Result<Answer, Error> {
    let path = &args.filepath;
    let before = jail.read_text(path, MAX_EDIT)?;
    let mut after = before.text;
    for edit in &args.edits {
        after = after.replacen(&edit.old, &edit.new, 1);
    }
    jail.replace(path, after.as_bytes(), Some(before.sha256))?;
    Ok(text(format!("Successfully applied {} edits to '{path}'", args.edits.len())))
}
