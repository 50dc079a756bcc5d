//! Files through the jail, beside the same files through plain paths.
#![expect(
    clippy::disallowed_methods,
    reason = "the baseline is the plain call that the jail replaces"
)]

use divan::Bencher;
use tempfile::TempDir;
use workspace_jail::{FindOptions, Jail, Options, PageRequest};

fn main() {
    divan::main();
}

fn place() -> (TempDir, Jail) {
    let place = TempDir::new().expect("a scratch directory");
    for directory in 0..50 {
        let directory = place.path().join(format!("d{directory}"));
        std::fs::create_dir(&directory).expect("a directory");
        for file in 0..100 {
            std::fs::write(directory.join(format!("f{file}.txt")), "one\ntwo\nthree\n")
                .expect("a file");
        }
    }
    let jail = Jail::open(place.path(), Options::new()).expect("a jail");
    (place, jail)
}

#[divan::bench]
fn baseline_read(bencher: Bencher<'_, '_>) {
    let (place, _) = place();
    let path = place.path().join("d7/f7.txt");
    bencher.bench(|| std::fs::read(&path).expect("a file"));
}

#[divan::bench]
fn read_page(bencher: Bencher<'_, '_>) {
    let (_place, jail) = place();
    bencher.bench(|| jail.read_page("d7/f7.txt", &PageRequest::new(0, 100)).expect("a page"));
}

#[divan::bench]
fn baseline_walk(bencher: Bencher<'_, '_>) {
    let (place, _) = place();
    bencher.bench(|| ignore::walk_count(place.path()));
}

#[divan::bench]
fn find(bencher: Bencher<'_, '_>) {
    let (_place, jail) = place();
    bencher.bench(|| jail.find("*7.txt", &[], FindOptions::default()).expect("matches").total);
}

#[divan::bench]
fn baseline_write(bencher: Bencher<'_, '_>) {
    let (place, _) = place();
    let path = place.path().join("plain.txt");
    bencher.bench(|| {
        let temporary = place.path().join("plain.tmp");
        std::fs::write(&temporary, "content\n").expect("a file");
        std::fs::File::open(&temporary).and_then(|file| file.sync_all()).expect("a synced file");
        std::fs::rename(&temporary, &path).expect("a renamed file");
    });
}

#[divan::bench]
fn replace(bencher: Bencher<'_, '_>) {
    let (_place, jail) = place();
    bencher.bench(|| jail.replace("new.txt", b"content\n", None).expect("a write"));
}

mod ignore {
    //! What a walk must at least do: read every directory once.

    pub(super) fn walk_count(path: &std::path::Path) -> usize {
        std::fs::read_dir(path)
            .expect("a directory")
            .map(|entry| entry.expect("an entry"))
            .map(|entry| if entry.path().is_dir() { walk_count(&entry.path()) } else { 1 })
            .sum()
    }
}
