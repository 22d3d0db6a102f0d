//! Callbacks that take their time: what is kept, and which threads they hold up.

use std::path::Path;
use std::sync::mpsc;
use std::thread;

use hikv::{Durability, Options};

use crate::alone;

/// More than waits for readers who take no time.
const BOUND_BYTES: u64 = 64 << 20;

#[test]
fn a_slow_callback_holds_writers_up_and_stops_nobody() {
    let _alone = alone();
    let memory = Path::new("/dev/shm");
    let dir = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap();
    let store = Options::new().durability(Durability::Process).open(dir.path()).unwrap();
    store.put("read", "value").unwrap();
    let (began, has_begun) = mpsc::channel();
    let (end, may_end) = mpsc::channel::<()>();
    thread::scope(|scope| {
        let store = &store;
        scope.spawn(move || {
            let read = |_: &[u8]| {
                began.send(()).unwrap();
                // Until the other end is gone.
                let _ = may_end.recv();
            };
            store.get_with("read", read).unwrap().unwrap();
        });
        has_begun.recv().unwrap();
        let value = vec![1; 1 << 20];
        let is_held_up = |_| {
            store.put("key", &value).unwrap();
            store.stats().held_up_count > 0
        };
        assert!((0..100).any(is_held_up), "100 MiB of garbage hold nobody up");
        let stats = store.stats();
        assert!(stats.garbage_bytes > BOUND_BYTES && stats.oldest_pin_ms > 0, "{stats:?}");
        // What it deletes stays as long; it does not wait for that.
        store.clear().unwrap();
        assert!(store.is_empty().unwrap());
        drop(end);
    });
    let is_free = |_| {
        store.put("key", "value").unwrap();
        store.stats().garbage_bytes < BOUND_BYTES / 2
    };
    assert!((0..1_000_000).any(is_free), "{:?}", store.stats());
}
