//! `stats --html` in a real browser: a record of real calls, hostile ones among them, as a person sees it.
//!
//! Under `AGENT_WORKSPACE_TEST_PICTURES=DIRECTORY` what the browser showed is kept there, to be looked at.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use testkit::{Fixture, require};

use crate::browser::{self, Browser};
use crate::harness::{BINARY, Binary};

/// What the page shows now, as one object.
const LOOK: &str = include_str!("stats_page/look.js");

/// Arguments that would run, load or break out if they became markup.
const HOSTILE: [&str; 6] = [
    "<script>window.ran='script'</script>",
    "\"><img src=x onerror=\"window.ran='image'\">",
    "' onmouseover='window.ran=1' autofocus onfocus='window.ran=1",
    "</pre></details></style></title><svg onload=window.ran='svg'>",
    "<iframe src='https://outside.invalid/'></iframe><base href='https://outside.invalid/'>",
    "<style>*{display:none}</style><meta http-equiv=refresh content='0;url=https://outside.invalid/'>",
];

/// How many calls [`work`] makes.
const CALLS: usize = 11 + HOSTILE.len() * 3;

/// A session as a model has it: files, edits, commands, mistakes, attempts to leave, and the hostile ones.
fn work(fixture: &Fixture) {
    let mut server = Binary::connected(fixture);
    let mut id = 0;
    let mut call = |tool: &str, arguments: Value| {
        id += 1;
        server.call(id, tool, arguments)["result"]["isError"] == true
    };
    let source = "def area(w, h):\n    return w + h\n\n\ndef main():\n    print(area(2, 3))\n";
    assert!(!call("write_file", json!({"filepath": "shape.py", "content": source})));
    assert!(!call("read_file", json!({"filepath": "shape.py"})));
    let edit = json!({"old": "def area(w, h):\n    return w + h\n", "new": "def area(w, h):\n    return w * h\n"});
    assert!(!call("search_and_replace", json!({"filepath": "shape.py", "edits": [edit]})));
    let absent = json!([{"old": "not there", "new": "x"}]);
    assert!(call("search_and_replace", json!({"filepath": "shape.py", "edits": absent})));
    assert!(!call("run_bash", json!({"command": "seq 1 6000"})));
    assert!(!call(
        "run_bash",
        json!({"command": "for n in 1 2 3 4 5 6; do echo step $n; sleep 0.1; done; exit 3"})
    ));
    assert!(!call("search_content", json!({"pattern": "area"})));
    assert!(!call("list_directory", json!({"path": "."})));
    assert!(call("read_file", json!({"filepath": "../outside/secret.txt"})));
    assert!(call("write_file", json!({"filepath": ".git/hooks/post-commit", "content": "x"})));
    assert!(!call("run_bash", json!({"command": "export API_TOKEN=abcdef123456; sleep 1"})));
    for hostile in HOSTILE {
        call("write_file", json!({"filepath": "h.txt", "content": hostile, "create_only": false}));
        let edits = json!([{"old": hostile, "new": format!("{hostile}{hostile}")}]);
        call("search_and_replace", json!({"filepath": "h.txt", "edits": edits}));
        call("read_file", json!({"filepath": hostile}));
    }
}

/// The page about a record, as a file.
fn page(fixture: &Fixture) -> PathBuf {
    let written = Command::new(BINARY)
        .args(["stats", "--html"])
        .env("AUDIT_DIR", fixture.base().join("state"))
        .output()
        .unwrap();
    assert!(written.status.success(), "{}", String::from_utf8_lossy(&written.stderr));
    let place = fixture.base().join("stats.html");
    std::fs::write(&place, written.stdout).unwrap();
    place
}

fn url(place: &Path) -> String {
    format!("file://{}", place.display())
}

/// Nothing ran, nothing was loaded, all can be read and lies inside the page.
fn check(seen: &Value, calls: usize) {
    assert_eq!(seen["title"], "What the agents did here");
    assert_eq!(seen["ran"], Value::Null);
    for none in ["active", "handlers", "beyond", "outside", "faint"] {
        assert_eq!(seen[none], json!([]), "{none}: {seen:#}");
    }
    assert_eq!(seen["overflow"], 0, "{seen:#}");
    assert_eq!(seen["bars"], calls, "{seen:#}");
    assert_eq!(seen["calls"], calls, "{seen:#}");
    assert!(seen["texts"].as_u64() > Some(20), "{seen:#}");
}

/// How many colours a picture has, counted by the browser itself.
fn colours(browser: &mut Browser, png: &str) -> u64 {
    browser.open("about:blank");
    let count = format!(
        "(async () => {{
            const image = new Image();
            image.src = 'data:image/png;base64,{png}';
            await image.decode();
            const canvas = new OffscreenCanvas(image.width, image.height).getContext('2d');
            canvas.drawImage(image, 0, 0);
            const pixels = canvas.getImageData(0, 0, image.width, image.height).data;
            return new Set(new Uint32Array(pixels.buffer)).size;
        }})()"
    );
    browser.evaluate(&count).as_u64().unwrap()
}

/// Keeps the picture where a person asked for it.
fn keep(name: &str, png: &str) {
    use base64::Engine as _;
    if let Some(place) = std::env::var_os("AGENT_WORKSPACE_TEST_PICTURES") {
        let png = base64::engine::general_purpose::STANDARD.decode(png).unwrap();
        std::fs::write(Path::new(&place).join(format!("{name}.png")), png).unwrap();
    }
}

#[test]
fn a_browser_shows_the_page_and_runs_nothing_of_it() {
    let Some(program) = require("stats_page", browser::installed()) else { return };
    let fixture = Fixture::new("//- a\n");
    work(&fixture);
    let page = url(&page(&fixture));
    let mut browser = Browser::start(&program);
    for (name, width, is_dark) in [
        ("wide-light", 1280, false),
        ("wide-dark", 1280, true),
        ("narrow-light", 390, false),
        ("narrow-dark", 390, true),
    ] {
        browser.show(width, 900, is_dark);
        browser.open(&page);
        let seen = browser.evaluate(LOOK);
        check(&seen, CALLS);
        assert_eq!(seen["open"], 0, "changes are folded: {seen:#}");
        let picture = browser.picture();
        // A person unfolds them all, and points at what has a handler if anything has one.
        let unfold = "for (const it of document.querySelectorAll('details')) it.open = true;\
            for (const it of document.querySelectorAll('*'))\
              for (const kind of ['mouseover', 'focus', 'load', 'error']) it.dispatchEvent(new Event(kind))";
        browser.evaluate(unfold);
        let unfolded = browser.evaluate(LOOK);
        check(&unfolded, CALLS);
        assert!(unfolded["texts"].as_u64() > seen["texts"].as_u64(), "{unfolded:#}");
        assert_eq!(browser.requests(), [page.as_str()]);
        assert_eq!(browser.complaints(), Vec::<&Value>::new());
        keep(name, &picture);
        let of_all = browser.picture();
        keep(&format!("{name}-unfolded"), &of_all);
        assert_ne!(picture, of_all, "{name}: unfolding shows nothing");
        assert!(colours(&mut browser, &picture) > 8, "{name} is blank");
    }
}

#[test]
fn a_bar_of_the_timeline_leads_to_its_change() {
    let Some(program) = require("stats_page", browser::installed()) else { return };
    let fixture = Fixture::new("//- a\n");
    work(&fixture);
    let page = url(&page(&fixture));
    let mut browser = Browser::start(&program);
    browser.show(1280, 900, false);
    browser.open(&page);
    let open = "[...document.querySelectorAll('details.call[open]')].map((it) => it.querySelector('.tool').textContent)";
    assert_eq!(browser.evaluate(open), json!([]));
    browser.evaluate("document.querySelector('.track a[title^=search_and_replace]').click()");
    assert_eq!(browser.evaluate(open), json!(["search_and_replace"]));
    let change = "[...document.querySelectorAll('details.call[open] :is(del, ins, pre > span)')].map((it) => it.textContent)";
    let expected = json!([" def area(w, h):", "-    return w + h", "+    return w * h"]);
    assert_eq!(browser.evaluate(change), expected);
    let paint = |element: &str| {
        format!(
            "getComputedStyle(document.querySelector('details[open] {element}')).backgroundColor"
        )
    };
    let [gone, come] = ["del", "ins"].map(|element| browser.evaluate(&paint(element)));
    assert_ne!(gone, come);
    // What was tried and refused is listed, and leads to its call too.
    let refused = "[...document.querySelectorAll('.list a')].filter((it) => it.textContent.includes('outside_workspace')).length";
    assert_eq!(browser.evaluate(refused), 1);
    assert_eq!(browser.requests(), [page.as_str()]);
}

#[test]
fn an_empty_record_is_a_page_too() {
    let Some(program) = require("stats_page", browser::installed()) else { return };
    let fixture = Fixture::new("//- a\n");
    std::fs::create_dir(fixture.base().join("state")).unwrap();
    let page = url(&page(&fixture));
    let mut browser = Browser::start(&program);
    browser.show(390, 900, true);
    browser.open(&page);
    let text = browser.evaluate("document.body.innerText");
    assert!(text.as_str().unwrap().contains("No calls yet."), "{text}");
    assert_eq!(browser.evaluate(LOOK)["overflow"], 0);
}
