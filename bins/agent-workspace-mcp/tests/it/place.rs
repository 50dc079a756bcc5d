//! A disposable sandbox behind the real binary, native or in a container, so that one test can hold both to one answer.

use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use testkit::{Fixture, Missing, require};

use crate::harness::{Answer, Binary, variable};

/// What the sandbox is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Backend {
    Native,
    /// An image with nothing but a small shell.
    Small,
    /// One with a distribution's usual programs.
    Usual,
    /// One with interpreters.
    Languages,
}

/// An open sandbox and the server that holds it.
pub(crate) struct Place {
    pub(crate) fixture: Fixture,
    pub(crate) server: Binary,
    pub(crate) id: String,
    requests: u64,
    /// Held while there is a container.
    _turn: Option<MutexGuard<'static, ()>>,
}

/// One test at a time has containers: an engine that is asked by all at once answers none of them in time.
static TURN: Mutex<()> = Mutex::new(());

/// The address of the test engine.
pub(crate) fn engine() -> Result<String, Missing> {
    variable("AGENT_WORKSPACE_TEST_ENGINE")
}

impl Place {
    /// Starts a server, with these arguments, and opens a sandbox in it.
    pub(crate) fn open(test: &str, backend: Backend, arguments: &[&str]) -> Option<Self> {
        let engine = match backend {
            Backend::Native => String::new(),
            _ => require(test, engine())?,
        };
        let image = match backend {
            Backend::Native => None,
            Backend::Small => Some(require(test, variable("AGENT_WORKSPACE_TEST_IMAGE"))?),
            Backend::Usual => Some(require(test, variable("AGENT_WORKSPACE_TEST_BASE_IMAGE"))?),
            Backend::Languages => {
                Some(require(test, variable("AGENT_WORKSPACE_TEST_LANGUAGES_IMAGE"))?)
            }
        };
        let turn = image.is_some().then(|| TURN.lock().unwrap_or_else(PoisonError::into_inner));
        let fixture = Fixture::new("//- secret.txt\nSECRET-OF-THE-WORKSPACE\n");
        let temporary = fixture.base().join("tmp");
        std::fs::create_dir(&temporary).unwrap();
        let variables = [("DOCKER_HOST", engine.as_str()), ("TMPDIR", temporary.to_str().unwrap())];
        let mut server = Binary::start(&fixture, arguments, &variables);
        server.hello("2025-11-25");
        let mut place = Self { fixture, server, id: String::new(), requests: 0, _turn: turn };
        place.id = place.another(image.as_deref());
        Some(place)
    }

    /// Opens one more sandbox; its id.
    pub(crate) fn another(&mut self, image: Option<&str>) -> String {
        let answer = self.raw("initialize_sandbox", json!({"image": image}));
        let facts = &answer["_meta"]["agent-workspace/result"];
        let backend = if image.is_some() { "container" } else { "native" };
        assert_eq!(facts["backend"], backend, "{answer}");
        facts["sandbox_id"].as_str().unwrap().to_owned()
    }

    /// A call as it is; its result.
    pub(crate) fn raw(&mut self, tool: &str, arguments: Value) -> Value {
        self.requests += 1;
        self.server.call(self.requests, tool, arguments)["result"].take()
    }

    /// A call in the sandbox; its one block of text.
    pub(crate) fn call(&mut self, tool: &str, mut arguments: Value) -> Answer {
        if arguments.get("sandbox_id").is_none() {
            arguments["sandbox_id"] = json!(self.id);
        }
        let mut result = self.raw(tool, arguments);
        assert_eq!(result["content"].as_array().map(Vec::len), Some(1), "{result}");
        Answer {
            text: result["content"][0]["text"].as_str().unwrap().to_owned(),
            is_error: result["isError"] == true,
            facts: result["_meta"]["agent-workspace/result"].take(),
        }
    }

    /// Runs code there.
    pub(crate) fn code(&mut self, language: &str, code: &str) -> Answer {
        self.call("execute_code", json!({"language": language, "code": code, "timeout": 30}))
    }

    /// A call that must succeed; its text.
    pub(crate) fn ok(&mut self, tool: &str, arguments: Value) -> String {
        let answer = self.call(tool, arguments);
        assert!(!answer.is_error, "{answer:?}");
        answer.text
    }

    /// A call that must be refused with `kind`; its text.
    pub(crate) fn refused(&mut self, tool: &str, arguments: Value, kind: &str) -> String {
        let shown = arguments.to_string();
        let answer = self.call(tool, arguments);
        assert!(answer.is_error, "{tool} {shown}: {answer:?}");
        assert_eq!(answer.facts["error_kind"], kind, "{tool} {shown}: {answer:?}");
        assert!(!answer.text.contains("root:"), "{tool} {shown}: {answer:?}");
        answer.text
    }

    /// Directories of native places and fetched files.
    pub(crate) fn directories(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.fixture.base().join("tmp")).unwrap().flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        names.filter(|name| name.starts_with("agent-disposable-")).collect()
    }
}
