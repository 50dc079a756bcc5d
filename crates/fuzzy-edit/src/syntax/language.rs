//! Which language a file name stands for.

use std::path::Path;

use super::Language;

/// The language by the last extension, letter case ignored.
pub(super) fn by_name(path: &Path) -> Option<Language> {
    let ending = path.extension()?.to_str()?.to_ascii_lowercase();
    Some(match ending.as_str() {
        "py" | "pyi" => Language::Python,
        "json" if has_comments(path) => Language::Jsonc,
        "json" | "ipynb" => Language::Json,
        "jsonc" => Language::Jsonc,
        "jsonl" | "ndjson" => Language::Jsonl,
        "toml" => Language::Toml,
        "yaml" | "yml" => Language::Yaml,
        _ => return None,
    })
}

/// Names and places whose readers take JSON with comments and trailing commas.
fn has_comments(path: &Path) -> bool {
    let lower = |part: &std::ffi::OsStr| part.to_string_lossy().to_ascii_lowercase();
    let name = path.file_name().map(lower).unwrap_or_default();
    let folder = path.parent().and_then(Path::file_name).map(lower).unwrap_or_default();
    name.starts_with("tsconfig")
        || name.starts_with("jsconfig")
        || name == "devcontainer.json"
        || name == ".devcontainer.json"
        || folder == ".vscode"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_extension_decides() {
        let by = |path: &str| by_name(Path::new(path));
        assert_eq!(by("a.PY"), Some(Language::Python));
        assert_eq!(by("a.py.bak"), None);
        assert_eq!(by(".py"), None);
        assert_eq!(by("tsconfig.build.json"), Some(Language::Jsonc));
        assert_eq!(by("x/.vscode/launch.json"), Some(Language::Jsonc));
        assert_eq!(by("package.json"), Some(Language::Json));
        assert_eq!(by("a.json5"), None);
    }
}
