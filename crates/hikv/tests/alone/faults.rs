//! The background, not writers, takes the page faults of fresh pages.

use std::fs;

use hikv::{EngineKind, Options, Store};

use crate::alone;

const VALUE_BYTES: usize = 16 << 10;
/// Puts between two turns of the background: too few to use all pages that it has prepared.
const PUTS_PER_TURN: usize = 24;
const PUT_COUNT: usize = 50 * PUTS_PER_TURN;

/// Returns the page faults of the calling thread so far, as the kernel counts them.
fn faults() -> u64 {
    let books = fs::read_to_string("/proc/thread-self/stat").unwrap();
    let (_, behind_name) = books.rsplit_once(')').expect("a name in brackets");
    behind_name.split_whitespace().nth(7).expect("fields behind the name").parse().unwrap()
}

/// Returns the page faults per put of a large value in the caller's thread, with or without a background.
fn faults_per_put(engine: EngineKind, has_background: bool) -> f64 {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    // Without huge pages each page of 4 KiB costs one fault.
    let options =
        Options::new().engine(engine).ordered(false).background(false).tuning(|tuning| tuning.huge_pages(false));
    let store = options.open(dir.path()).unwrap();
    let background = |store: &Store| while has_background && store.background().step().unwrap().is_more {};
    let mut faulted = 0;
    for number in 0..PUT_COUNT {
        if number % PUTS_PER_TURN == 0 {
            background(&store);
        }
        let before = faults();
        store.put(number.to_be_bytes(), [7; VALUE_BYTES]).unwrap();
        faulted += faults() - before;
    }
    faulted as f64 / PUT_COUNT as f64
}

#[test]
fn steady_writer_finds_prepared_pages() {
    let _turn = alone();
    for &engine in EngineKind::ALL {
        let (alone, ahead) = (faults_per_put(engine, false), faults_per_put(engine, true));
        assert!(alone > 4.0, "{engine}: a put by itself has {alone} faults: nothing is measured");
        // The writer takes the faults of a new store's first pages.
        assert!(ahead < alone / 10.0, "{engine}: {ahead} faults a put, and {alone} without a background");
    }
}
