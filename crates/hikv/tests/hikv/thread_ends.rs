//! Stores that are used and closed by destructors of thread-local values.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use hikv::{Clock, EngineKind, Options, PutOptions, Store};
use tempfile::tempdir;

/// Uses and closes its store when its thread ends, after the destructors of all thread-local values of the store.
struct AtEnd {
    store: Option<Store>,
    clock: Clock,
    is_done: mpsc::Sender<bool>,
}

impl Drop for AtEnd {
    fn drop(&mut self) {
        let store = self.store.take().unwrap();
        // A panic in a thread's destructor would abort the process.
        let done = catch_unwind(AssertUnwindSafe(|| {
            use_points(&store);
            store.put_with("short", "value", PutOptions::new().ttl(Duration::from_secs(1))).unwrap();
            self.clock.advance(Duration::from_secs(2));
            store.put("short", "again").unwrap();
            assert_eq!(store.get("reported").unwrap().as_deref(), Some(&b"short"[..]));
            store.on_expired(None).unwrap();
            store.close().unwrap();
        }));
        self.is_done.send(done.is_ok()).unwrap();
    }
}

thread_local! {
    static AT_END: RefCell<Option<AtEnd>> = const { RefCell::new(None) };
}

fn use_points(store: &Store) {
    store.put("key", "value").unwrap();
    assert_eq!(store.get("key").unwrap().as_deref(), Some(&b"value"[..]));
    assert!(store.delete("key").unwrap());
}

#[test]
fn destructors_of_threads_may_use_stores() {
    for engine in EngineKind::ALL.iter().filter(|engine| engine.name() != "toy") {
        let (dir, clock) = (tempdir().unwrap(), Clock::manual(1_000_000));
        let options = Options::new().engine(*engine).clock(clock.clone()).background(false);
        let store = options.open(dir.path()).unwrap();
        let reporting = store.clone();
        store.on_expired(Some(Arc::new(move |key| reporting.put("reported", key).unwrap()))).unwrap();
        let (is_done, done) = mpsc::channel();
        let ending = thread::spawn(move || {
            // The first thread-local value is destroyed last.
            let at_end = AtEnd { store: Some(store.clone()), clock: clock.clone(), is_done };
            AT_END.with_borrow_mut(|slot| *slot = Some(at_end));
            use_points(&store);
            store.put_with("long", "value", PutOptions::new().ttl(Duration::from_secs(1))).unwrap();
            clock.advance(Duration::from_secs(2));
            store.put("long", "again").unwrap();
        });
        ending.join().unwrap();
        assert!(done.recv().unwrap(), "{engine}");
    }
}
