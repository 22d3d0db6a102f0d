//! A write that panics: the store still answers reads, refuses writes, and opens again as after a crash.

use std::io::{self, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use hikv::{Decision, Durability, EngineKind, Error, Options, Store, WriteBatch};

fn open(path: &Path, kind: EngineKind) -> Store {
    Options::new().engine(kind).durability(Durability::Buffered).open(path).expect("it opens")
}

/// The source of a value that panics while the engine reads it.
struct Panics;

impl Read for Panics {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        panic!("the source panics within the engine's write")
    }
}

fn is_half_way<R>(done: Result<R, Error>) -> bool {
    matches!(done, Err(Error::HalfWay))
}

#[test]
fn write_that_panics_ends_all_writes() {
    for &kind in EngineKind::ALL {
        let dir = tempfile::tempdir().expect("a directory");
        let store = open(dir.path(), kind);
        store.put("before", "1").expect("it is written");
        let panicked = catch_unwind(AssertUnwindSafe(|| store.put_from("k", 100, Panics)));
        assert!(panicked.is_err(), "{kind}");
        assert!(is_half_way(store.put("k", "v")) && is_half_way(store.delete("before")), "{kind}");
        assert!(is_half_way(store.update("before", |_| Decision::Delete)) && is_half_way(store.clear()), "{kind}");
        let mut batch = WriteBatch::new();
        batch.put("k", "v");
        assert!(is_half_way(store.write(&batch)), "{kind}");
        assert!(is_half_way(store.health()) && is_half_way(store.background().step()), "{kind}");
        let other = store.clone();
        let read = std::thread::spawn(move || other.get("before")).join().expect("the reader ends");
        assert_eq!(read.expect("it is read").as_deref(), Some(&b"1"[..]), "{kind}");
        store.close().expect("it is closed");

        let store = open(dir.path(), kind);
        assert_eq!(store.get("before").expect("it is read").as_deref(), Some(&b"1"[..]), "{kind}");
        assert_eq!(store.get("k").expect("it is read"), None, "{kind}");
        store.put("k", "v").expect("it is written");
        assert_eq!(store.len().expect("keys are counted"), 2, "{kind}");
        assert!(store.health().is_ok(), "{kind}");
    }
}

/// The engine has finished its step while the panic passes.
#[test]
fn decision_that_panics_ends_no_writes() {
    for &kind in EngineKind::ALL {
        let dir = tempfile::tempdir().expect("a directory");
        let store = open(dir.path(), kind);
        if !store.features().conditional {
            continue;
        }
        store.put("k", "1").expect("it is written");
        let decide = |_: Option<&[u8]>| -> Decision<'static> { panic!("the decision panics") };
        assert!(catch_unwind(AssertUnwindSafe(|| store.update("k", decide))).is_err(), "{kind}");
        assert_eq!(store.increment("k", 1).expect("it is written"), 2, "{kind}");
        assert!(store.health().is_ok(), "{kind}");
    }
}
