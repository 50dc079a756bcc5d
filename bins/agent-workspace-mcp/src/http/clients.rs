//! Who may call: one key, or the operator's table of keys and workspaces.
//!
//! A key file holds either the key alone, in one line, or a table:
//!
//! ```toml
//! [[client]]
//! name = "alice"
//! key_sha256 = "…64 hex digits of the key's SHA-256…"   # or: key = "…"
//! workspace = "/srv/alice"
//! ```
//!
//! Keys are held as digests and compared in constant time. Two keys for one workspace, or for one inside another,
//! are refused: clients would meet there. So are one key or one name for two clients: which of them calls could not
//! be told.

use std::fmt;
use std::path::{Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::File;
use serde::Deserialize;
use subtle::ConstantTimeEq as _;
use workspace_jail::Sha256;

/// A key file is longer than this for no operator: 1 MiB.
const MOST: u64 = 1024 * 1024;

/// A bearer key, as its digest.
#[derive(Clone)]
pub struct Key(Sha256);

impl Key {
    /// The key `text`.
    pub fn new(text: &str) -> Self {
        Self(Sha256::of(text.as_bytes()))
    }

    /// The key that an operator wrote, blanks around it aside.
    ///
    /// # Errors
    ///
    /// What is wrong with it: nobody can send it in a header.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let text = text.trim();
        if text.is_empty() {
            return Err("has no key");
        }
        if !text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic()) {
            return Err(
                "has a key that no header carries: letters, digits, signs and blanks of ASCII make one",
            );
        }
        Ok(Self::new(text))
    }

    /// Whether `shown` is this key, in a time that does not depend on where the two differ.
    pub fn is(&self, shown: &str) -> bool {
        let shown = Sha256::of(shown.as_bytes());
        self.0.as_bytes().ct_eq(shown.as_bytes()).into()
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key")
    }
}

/// One client: what it is called in the log, how it shows who it is, where it works.
#[derive(Debug, Clone)]
pub struct Client {
    /// Its name in the audit log.
    pub name: String,
    /// Its key.
    pub key: Key,
    /// Its workspace; `None` for the operator's `WORKSPACE`.
    pub workspace: Option<PathBuf>,
}

/// Why a key file cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientsError {
    /// The file cannot be read.
    #[error("{} cannot be read", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file is neither a key nor a table of keys.
    #[error("{} is neither one key in one line nor a table of [[client]] with name, key or key_sha256, workspace", .path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What the parser said.
        source: Box<toml::de::Error>,
    },
    /// One row of the table cannot be used.
    #[error("client '{name}': {problem}")]
    Row {
        /// The row's name.
        name: String,
        /// What is wrong.
        problem: &'static str,
    },
    /// The file names nobody.
    #[error("{} holds no key", .path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    #[serde(default)]
    client: Vec<Row>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    name: String,
    key: Option<String>,
    key_sha256: Option<String>,
    workspace: PathBuf,
}

/// Reads the operator's key file.
///
/// # Errors
///
/// As [`ClientsError`] says. No key is quoted in an error.
///
/// # Security
///
/// `path` is the operator's. A file that others can read is used, and said on the log.
pub fn read(path: &Path) -> Result<Vec<Client>, ClientsError> {
    let unreadable = |source| ClientsError::Unreadable { path: path.to_owned(), source };
    let text = read_file(path).map_err(unreadable)?;
    let clients = parse(path, &text)?;
    if clients.is_empty() {
        return Err(ClientsError::Empty { path: path.to_owned() });
    }
    Ok(clients)
}

fn read_file(path: &Path) -> std::io::Result<String> {
    use std::io::Read as _;
    use std::os::unix::fs::PermissionsExt as _;

    // The operator's path is followed as it is: a secret mounted into a container is a link to a link.
    let file = File::open_ambient(path, ambient_authority())?.into_std();
    let meta = file.metadata()?;
    if meta.permissions().mode() & 0o004 != 0 {
        tracing::warn!(path = %path.display(), "every user of this machine can read the key file");
    }
    let mut text = String::new();
    file.take(MOST).read_to_string(&mut text)?;
    Ok(text)
}

fn parse(path: &Path, text: &str) -> Result<Vec<Client>, ClientsError> {
    let text = text.trim();
    if !text.is_empty() && !text.contains('\n') && !text.starts_with("[[") && !text.starts_with('#')
    {
        let name = "default".to_owned();
        let key = match Key::parse(text) {
            Ok(key) => key,
            Err(problem) => return Err(ClientsError::Row { name, problem }),
        };
        return Ok(vec![Client { name, key, workspace: None }]);
    }
    let table: Table = toml::from_str(text).map_err(|source| ClientsError::Malformed {
        path: path.to_owned(),
        source: Box::new(without_input(source)),
    })?;
    let clients: Vec<Client> = table.client.into_iter().map(client).collect::<Result<_, _>>()?;
    for (at, one) in clients.iter().enumerate() {
        let mut others = clients.iter().skip(at + 1);
        let bad = |problem| ClientsError::Row { name: one.name.clone(), problem };
        if others.clone().any(|other| other.name == one.name) {
            return Err(bad("is named twice"));
        }
        if others.any(|other| other.key.0 == one.key.0) {
            return Err(bad("has the key of another client, too"));
        }
    }
    Ok(clients)
}

/// The parser quotes the line it fell over, and that line may hold a key.
fn without_input(mut error: toml::de::Error) -> toml::de::Error {
    error.set_input(None);
    error
}

fn client(row: Row) -> Result<Client, ClientsError> {
    let Row { name, key, key_sha256, workspace } = row;
    let bad = |problem| ClientsError::Row { name: name.clone(), problem };
    if name.trim().is_empty() {
        return Err(bad("has no name"));
    }
    let key = match (key, key_sha256) {
        (Some(_), Some(_)) => return Err(bad("has both key and key_sha256")),
        (key, None) => Key::parse(&key.unwrap_or_default()).map_err(bad)?,
        (None, Some(digest)) => {
            Key(digest.trim().parse().map_err(|_| bad("key_sha256 is not 64 hex digits"))?)
        }
    };
    if !workspace.is_absolute() {
        return Err(bad("its workspace must be an absolute path"));
    }
    Ok(Client { key, workspace: Some(workspace), name })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> Result<Vec<(String, Option<PathBuf>)>, String> {
        parse(Path::new("keys"), text)
            .map(|clients| clients.into_iter().map(|it| (it.name, it.workspace)).collect())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn one_line_is_the_key_of_the_workspace() {
        assert_eq!(check("s3cret=+/\n"), Ok(vec![("default".to_owned(), None)]));
        let clients = parse(Path::new("keys"), " s3cret=+/\n").unwrap();
        assert!(clients[0].key.is("s3cret=+/"));
        assert!(!clients[0].key.is("s3cret=+") && !clients[0].key.is(""));
    }

    #[test]
    fn a_table_gives_each_client_its_workspace() {
        let digest = Sha256::of(b"two");
        let text = format!(
            "[[client]]\nname='a'\nkey='one'\nworkspace='/srv/a'\n[[client]]\nname='b'\nkey_sha256='{digest}'\nworkspace='/srv/b'\n"
        );
        let clients = parse(Path::new("keys"), &text).unwrap();
        assert!(clients[0].key.is("one") && clients[1].key.is("two"));
        assert_eq!(clients[1].workspace.as_deref(), Some(Path::new("/srv/b")));
    }

    #[test]
    fn clients_that_could_not_be_told_apart_are_refused() {
        let row = |name: &str, key: &str| {
            format!("[[client]]\nname='{name}'\n{key}\nworkspace='/srv/{name}'\n")
        };
        let both = |one: String, other: String| check(&(one + &other)).unwrap_err();
        let same_name = both(row("a", "key='one'"), row("a", "key='two'"));
        assert_eq!(same_name, "client 'a': is named twice");
        let digest = format!("key_sha256='{}'", Sha256::of(b"one"));
        let same_key = both(row("a", "key='one'"), row("b", &digest));
        assert_eq!(same_key, "client 'a': has the key of another client, too");
        assert_eq!(both(row(" ", "key='one'"), String::new()), "client ' ': has no name");
    }

    #[test]
    fn a_bad_table_is_refused_without_quoting_a_key() {
        let row = |rest: &str| check(&format!("[[client]]\nname='a'\n{rest}\n"));
        assert!(row("workspace='/a'").unwrap_err().contains("has no key"));
        assert!(row("key='x'\nworkspace='a'").unwrap_err().contains("absolute"));
        assert!(row("key='x'\nkey_sha256='y'\nworkspace='/a'").unwrap_err().contains("both"));
        assert!(row("key_sha256='zz'\nworkspace='/a'").unwrap_err().contains("64 hex"));
        for key in ["kl\u{fc}", "a\\nb", "a\\u0007b"] {
            let refused = row(&format!("key=\"{key}\"\nworkspace='/a'")).unwrap_err();
            assert!(refused.contains("no header carries"), "{refused}");
        }
        assert!(row("key=' '\nworkspace='/a'").unwrap_err().contains("has no key"));
        assert!(check("\u{feff}key").unwrap_err().contains("no header carries"));
        assert_eq!(check("# no key yet"), Ok(Vec::new()));
        let error = parse(Path::new("keys"), "[[client]]\nname='a'\nkey='SECRET\n").unwrap_err();
        assert!(!crate::shell::with_source(&error).contains("SECRET"), "{error:?}");
        assert!(!format!("{error:?}").contains("SECRET"));
    }
}
