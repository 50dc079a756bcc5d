//! Languages that code can be written in: one row each.

use std::ffi::OsStr;

/// A language, and what runs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Language {
    /// Its name.
    pub name: &'static str,
    /// Other names that models are known to send.
    pub aliases: &'static [&'static str],
    /// The file that holds the code.
    pub file: &'static str,
    /// The program without which there is nothing to run.
    pub program: &'static str,
    /// Arguments with which the program succeeds at once where it is one that can run the language; none where every
    /// program of that name can.
    pub trial: &'static str,
    /// The shell line that runs the file.
    pub line: &'static str,
    /// What the line makes beside the file, if it makes something.
    pub product: Option<&'static str>,
    /// What would bring the program.
    pub brought_by: &'static str,
}

impl Language {
    /// The file of the code and the line that runs it, for the call that has `number` in its place: the table's own
    /// for the first, others for those beside it, so that no call runs another's code.
    #[must_use]
    pub fn names(&self, number: usize) -> (String, String) {
        let (file, line) = (self.file.to_owned(), self.line.to_owned());
        if number <= 1 {
            return (file, line);
        }
        let stem = self.stem();
        let numbered = format!("{stem}_{number}");
        (file.replace(stem, &numbered), line.replace(stem, &numbered))
    }

    /// The shell line that succeeds where the language can be run.
    #[must_use]
    pub fn look(&self) -> String {
        let Self { program, trial, .. } = self;
        let found = format!("command -v {program} >/dev/null");
        if trial.is_empty() { found } else { format!("{found} && {program} {trial} 2>/dev/null") }
    }

    fn stem(&self) -> &'static str {
        self.file.split('.').next().unwrap_or(self.file)
    }

    /// Whether a file of that name is the code of a call, or what its line makes beside it.
    fn owns(&self, name: &str) -> bool {
        let stem = self.stem();
        let ending = name.strip_prefix(stem).map(|rest| match rest.strip_prefix('_') {
            Some(rest) if rest.starts_with(|first: char| first.is_ascii_digit()) => {
                rest.trim_start_matches(|digit: char| digit.is_ascii_digit())
            }
            _ => rest,
        });
        ending.is_some_and(|ending| {
            self.file.strip_prefix(stem) == Some(ending)
                || (self.product.is_some() && ending.is_empty())
        })
    }
}

/// All languages, in the order in which they are told.
pub const LANGUAGES: &[Language] = &[
    Language {
        name: "python",
        aliases: &["python3", "py"],
        file: "snippet.py",
        program: "python3",
        trial: "",
        line: "python3 snippet.py",
        product: None,
        brought_by: "the package python3",
    },
    Language {
        name: "bash",
        aliases: &["shell"],
        file: "snippet.sh",
        program: "bash",
        trial: "",
        line: "bash snippet.sh",
        product: None,
        brought_by: "the package bash",
    },
    Language {
        name: "sh",
        aliases: &["posix", "dash"],
        file: "snippet.sh",
        program: "sh",
        trial: "",
        line: "sh snippet.sh",
        product: None,
        brought_by: "an image with a shell",
    },
    Language {
        name: "javascript",
        aliases: &["js", "node", "nodejs"],
        file: "snippet.js",
        program: "node",
        trial: "",
        line: "node snippet.js",
        product: None,
        brought_by: "the package nodejs",
    },
    Language {
        name: "typescript",
        aliases: &["ts"],
        file: "snippet.ts",
        program: "node",
        trial: "--experimental-strip-types -e ''",
        line: "node --experimental-strip-types --no-warnings snippet.ts",
        product: None,
        brought_by: "Node.js 22.6 or newer",
    },
    Language {
        name: "ruby",
        aliases: &["rb"],
        file: "snippet.rb",
        program: "ruby",
        trial: "",
        line: "ruby snippet.rb",
        product: None,
        brought_by: "the package ruby",
    },
    Language {
        name: "perl",
        aliases: &["pl"],
        file: "snippet.pl",
        program: "perl",
        trial: "",
        line: "perl snippet.pl",
        product: None,
        brought_by: "the package perl",
    },
    Language {
        name: "php",
        aliases: &[],
        file: "snippet.php",
        program: "php",
        trial: "",
        line: "php snippet.php",
        product: None,
        brought_by: "the package php-cli",
    },
    Language {
        name: "go",
        aliases: &["golang"],
        file: "snippet.go",
        program: "go",
        trial: "",
        line: "go run snippet.go",
        product: None,
        brought_by: "the package golang-go",
    },
    Language {
        name: "rust",
        aliases: &["rs"],
        file: "snippet.rs",
        program: "rustc",
        trial: "",
        line: "rustc --edition 2024 -o snippet snippet.rs && ./snippet",
        product: Some("snippet"),
        brought_by: "the Rust toolchain, as rustup installs it",
    },
    Language {
        name: "c",
        aliases: &[],
        file: "snippet.c",
        program: "cc",
        trial: "",
        line: "cc -o snippet snippet.c && ./snippet",
        product: Some("snippet"),
        brought_by: "the package gcc",
    },
    Language {
        name: "java",
        aliases: &[],
        file: "Snippet.java",
        program: "java",
        trial: "",
        line: "java Snippet.java",
        product: None,
        brought_by: "the package default-jdk-headless",
    },
];

/// The language of that name, letter case aside.
pub fn find(name: &str) -> Option<&'static Language> {
    let name = name.trim().to_lowercase();
    LANGUAGES
        .iter()
        .find(|language| language.name == name || language.aliases.contains(&name.as_str()))
}

/// Whether a file beside the code is the code's own, of whatever language.
pub fn is_snippet(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| LANGUAGES.iter().any(|language| language.owns(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_is_taken_twice() {
        let mut names: Vec<_> = LANGUAGES
            .iter()
            .flat_map(|language| {
                [language.name].into_iter().chain(language.aliases.iter().copied())
            })
            .collect();
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
        assert_eq!(find(" JS ").map(|language| language.name), Some("javascript"));
        assert!(find("cobol").is_none());
        assert!(LANGUAGES.iter().all(|language| language.line.contains(language.file)));
    }

    #[test]
    fn calls_beside_each_other_have_files_of_their_own() {
        let names = |name: &str, number| find(name).unwrap().names(number);
        assert_eq!(names("python", 1), ("snippet.py".into(), "python3 snippet.py".into()));
        assert_eq!(names("java", 2), ("Snippet_2.java".into(), "java Snippet_2.java".into()));
        assert_eq!(names("c", 12).1, "cc -o snippet_12 snippet_12.c && ./snippet_12");
        for own in ["snippet.py", "snippet_2.py", "snippet", "snippet_31", "Snippet_2.java"] {
            assert!(is_snippet(OsStr::new(own)), "{own}");
        }
        for other in ["snippet_.py", "snippet_a.py", "snippet.txt", "snippets.py", "Snippet", "a"] {
            assert!(!is_snippet(OsStr::new(other)), "{other}");
        }
    }
}
