//! A real browser without a window, driven over the [DevTools protocol] through two pipes.
//!
//! It opens files alone: every name it could ask the network for is unknown to it. What it asks for is recorded.
//!
//! [DevTools protocol]: https://chromedevtools.github.io/devtools-protocol/

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::Missing;

use crate::harness::PATIENCE;

/// Names the browser: Chromium, or its headless shell.
const VARIABLE: &str = "AGENT_WORKSPACE_TEST_BROWSER";

/// The browser that the machine offers to the tests.
pub(crate) fn installed() -> Result<PathBuf, Missing> {
    match std::env::var_os(VARIABLE).map(PathBuf::from) {
        Some(place) if place.is_file() => Ok(place),
        Some(place) => Err(Missing(format!("{}, which {VARIABLE} names", place.display()))),
        None => Err(Missing(format!("{VARIABLE}, a Chromium; .ci/setup installs one"))),
    }
}

/// A started browser with one page.
pub(crate) struct Browser {
    child: Child,
    input: ChildStdin,
    output: Receiver<Value>,
    session: Value,
    id: u64,
    /// Every event of the page so far.
    events: Vec<Value>,
    _profile: TempDir,
}

impl Browser {
    pub(crate) fn start(program: &Path) -> Self {
        let profile = TempDir::with_prefix("browser-").unwrap();
        // The protocol is spoken on descriptors 3 and 4, which a shell makes of the two that a child is given.
        let mut child = Command::new("/bin/sh")
            .args(["-c", r#"exec "$@" 3<&0 4>&1 </dev/null >/dev/null 2>&1"#, "sh"])
            .arg(program)
            .args(["--headless", "--no-sandbox", "--remote-debugging-pipe", "--disable-gpu"])
            .args(["--no-first-run", "--disable-background-networking", "--disable-dev-shm-usage"])
            .args(["--disable-sync", "--disable-component-update", "--hide-scrollbars"])
            .arg("--host-resolver-rules=MAP * ~NOTFOUND")
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = child.stdin.take().unwrap();
        let stdout = child.stdout.take().unwrap();
        let (messages, output) = channel();
        std::thread::spawn(move || {
            for message in BufReader::new(stdout).split(0) {
                let message = serde_json::from_slice(&message.unwrap()).unwrap();
                if messages.send(message).is_err() {
                    break;
                }
            }
        });
        let (session, events) = (Value::Null, Vec::new());
        let mut browser = Self { child, input, output, session, id: 0, events, _profile: profile };
        let page = browser.ask("Target.createTarget", json!({"url": "about:blank"}));
        let attach = json!({"targetId": page["targetId"], "flatten": true});
        browser.session = browser.ask("Target.attachToTarget", attach)["sessionId"].clone();
        for domain in ["Page", "Runtime", "Network", "Log"] {
            browser.ask(&format!("{domain}.enable"), json!({}));
        }
        browser
    }

    fn next(&self) -> Value {
        self.output.recv_timeout(PATIENCE).expect("the browser says nothing")
    }

    /// One command; its result.
    pub(crate) fn ask(&mut self, method: &str, params: Value) -> Value {
        self.id += 1;
        let mut message = json!({"id": self.id, "method": method, "params": params});
        if !self.session.is_null() {
            message["sessionId"] = self.session.clone();
        }
        self.input.write_all(format!("{message}\0").as_bytes()).unwrap();
        loop {
            let mut message = self.next();
            if message["id"] == self.id {
                assert!(message.get("error").is_none(), "{method}: {message}");
                return message["result"].take();
            }
            self.events.push(message);
        }
    }

    /// Goes to a place and waits until all of it is there.
    pub(crate) fn open(&mut self, url: &str) {
        self.events.clear();
        let gone = self.ask("Page.navigate", json!({"url": url}));
        assert!(gone.get("errorText").is_none(), "{url}: {gone}");
        while !self.events.iter().any(|event| event["method"] == "Page.loadEventFired") {
            let event = self.next();
            self.events.push(event);
        }
    }

    /// A window of this size, with the colours of day or night.
    pub(crate) fn show(&mut self, width: u32, height: u32, is_dark: bool) {
        let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600});
        self.ask("Emulation.setDeviceMetricsOverride", size);
        let scheme = if is_dark { "dark" } else { "light" };
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        self.ask("Emulation.setEmulatedMedia", json!({"features": features}));
    }

    /// What an expression gives in the page; a promise is waited for.
    pub(crate) fn evaluate(&mut self, expression: &str) -> Value {
        let params = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let mut answer = self.ask("Runtime.evaluate", params);
        assert!(answer.get("exceptionDetails").is_none(), "{expression}: {answer}");
        answer["result"]["value"].take()
    }

    /// The whole page as a PNG in base64.
    pub(crate) fn picture(&mut self) -> String {
        let params = json!({"format": "png", "captureBeyondViewport": true});
        self.ask("Page.captureScreenshot", params)["data"].as_str().unwrap().to_owned()
    }

    /// What the page asked for since it was opened, itself included.
    pub(crate) fn requests(&self) -> Vec<&str> {
        let sent = self.events.iter().filter(|it| it["method"] == "Network.requestWillBeSent");
        sent.map(|event| event["params"]["request"]["url"].as_str().unwrap()).collect()
    }

    /// What the browser complained of since then: errors of scripts, and what the page's policy forbade.
    pub(crate) fn complaints(&self) -> Vec<&Value> {
        let said = ["Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled"];
        self.events
            .iter()
            .filter(|event| said.iter().any(|method| event["method"] == *method))
            .map(|event| &event["params"])
            .collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // It ends by itself, so that none of its processes writes into the profile that goes next; one that does not
        // is killed. The pipe ends with the browser.
        let close = json!({"id": self.id + 1, "method": "Browser.close"});
        if self.input.write_all(format!("{close}\0").as_bytes()).is_ok() {
            while self.output.recv_timeout(PATIENCE).is_ok() {}
        }
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
