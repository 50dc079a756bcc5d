//! A way to an engine that can be cut while something passes.

use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use testkit::Fixture;

/// What commands print so that it is seen on its way; not a word of their own text, which engines tell too.
pub(super) const PRINT_MARK: &str = "echo so-$((40 + 2))";
const MARK: &[u8] = b"so-42";

/// A socket that leads to the engine's until it is cut: then every connection through it ends, and none begins.
pub(super) struct Way {
    pub(super) socket: PathBuf,
    /// Says that a piece with the mark was handed to the server.
    passed: Receiver<()>,
    open: Arc<Mutex<Option<Vec<UnixStream>>>>,
}

impl Way {
    pub(super) fn new(fixture: &Fixture, engine: &str) -> Self {
        let socket = fixture.base().join("way.sock");
        let listener = UnixListener::bind(&socket).unwrap();
        let open = Arc::new(Mutex::new(Some(Vec::new())));
        let engine = PathBuf::from(engine.strip_prefix("unix://").unwrap());
        let shared = Arc::clone(&open);
        let (sender, passed) = channel();
        std::thread::spawn(move || {
            for here in listener.incoming() {
                let here = here.unwrap();
                let mut open = shared.lock().unwrap();
                let Some(streams) = open.as_mut() else { continue };
                let there = UnixStream::connect(&engine).unwrap();
                for stream in [&here, &there] {
                    streams.push(stream.try_clone().unwrap());
                }
                let (back, forth) = (there.try_clone().unwrap(), here.try_clone().unwrap());
                let sender = sender.clone();
                std::thread::spawn(move || carry(here, there, |_| {}));
                std::thread::spawn(move || {
                    carry(back, forth, |piece| {
                        if piece.windows(MARK.len()).any(|part| part == MARK) {
                            sender.send(()).ok();
                        }
                    });
                });
            }
        });
        Self { socket, passed, open }
    }

    /// Cuts it when the mark has come through.
    pub(super) fn cut_behind_mark(&self) {
        self.passed.recv_timeout(Duration::from_secs(30)).expect("the mark does not come");
        for stream in self.open.lock().unwrap().take().into_iter().flatten() {
            drop(stream.shutdown(Shutdown::Both));
        }
    }

    pub(super) fn mend(&self) {
        *self.open.lock().unwrap() = Some(Vec::new());
    }
}

fn carry(mut from: UnixStream, mut to: UnixStream, passed: impl Fn(&[u8])) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        if to.write_all(&buffer[..read]).is_err() {
            break;
        }
        passed(&buffer[..read]);
    }
    drop(to.shutdown(Shutdown::Write));
}
