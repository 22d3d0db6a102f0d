//! Transactions: the view of a body, conflicts, and errors.

mod disguised;
mod durable;
mod expiry;
mod histories;
mod trees;
mod workloads;

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use hikv::{Decision, EngineKind, Error, Options, Store, Transact, WriteBatch};
use tempfile::TempDir;

/// A store of each engine, in memory and on a journal.
fn stores() -> impl Iterator<Item = (TempDir, Store)> {
    let kinds = EngineKind::ALL.iter().filter(|kind| kind.name() != "toy");
    kinds.flat_map(|&engine| {
        let places = [tempfile::tempdir_in("/dev/shm"), tempfile::tempdir_in(".")];
        places.map(|dir| {
            let dir = dir.unwrap();
            let store = Options::new().engine(engine).open(dir.path()).unwrap();
            (dir, store)
        })
    })
}

fn has_order(store: &Store) -> bool {
    store.ordered().is_ok()
}

fn ok<R>(result: R) -> Result<R, Error> {
    Ok(result)
}

#[test]
fn body_sees_its_own_writes() {
    for (_dir, store) in stores() {
        store.multi_put([("a", "1"), ("b", "2"), ("c", "3")]).unwrap();
        let seen = store.transact(|tx| {
            tx.put("a", "one")?;
            tx.delete("b")?;
            tx.put_ttl("d", "4", Duration::from_secs(60))?;
            assert_eq!(tx.take("c")?.as_deref(), Some(&b"3"[..]));
            assert!(!tx.update("b", |_| Decision::Delete)?);
            assert!(tx.update("a", |value| Decision::Put([value.unwrap(), b"!"].concat().into()))?);
            assert!(tx.contains("a")? && !tx.contains("b")? && !tx.contains("c")? && !tx.contains("e")?);
            assert!(tx.expires_at("d")?.is_some_and(|expiry| !expiry.is_never()));
            assert_eq!(tx.get_untracked("b")?, None);
            assert_eq!(store.get("a")?.as_deref(), Some(&b"1"[..]), "nothing is written yet");
            ok([tx.get("a")?, tx.get("b")?, tx.get("c")?, tx.get("d")?])
        });
        let values = [Some(&b"one!"[..]), None, None, Some(b"4")];
        assert_eq!(seen.unwrap().each_ref().map(Option::as_deref), values);
        let found = store.multi_get(["a", "b", "c", "d"]).unwrap();
        assert_eq!(found.iter().map(Option::as_deref).collect::<Vec<_>>(), values);
        assert!(!store.get_item("d").unwrap().unwrap().expiry.is_never());
    }
}

#[test]
fn failed_body_changes_nothing() {
    for (_dir, store) in stores() {
        store.put("key", "before").unwrap();
        let failed = store.transact(|tx| {
            tx.put("key", "after")?;
            Err::<(), _>(Error::Overflow { number: 1, by: 2 })
        });
        assert!(matches!(failed, Err(Error::Overflow { .. })));
        store
            .transact(|tx| {
                tx.put("kept", "1")?;
                let part = tx.savepoint(|| {
                    tx.put("key", "undone")?;
                    tx.put("kept", "undone")?;
                    Err::<(), Error>(Error::NoOrder)
                });
                assert!(part.is_err());
                tx.savepoint(|| tx.put("also kept", "2"))
            })
            .unwrap();
        let found = store.multi_get(["key", "kept", "also kept"]).unwrap();
        assert_eq!(found.iter().map(Option::as_deref).collect::<Vec<_>>(), [&b"before"[..], b"1", b"2"].map(Some));
    }
}

#[test]
fn conflicts_are_found() {
    let change_count = AtomicU32::new(0);
    let change = |store: &Store, key| {
        let value = format!("changed {}", change_count.fetch_add(1, Ordering::Relaxed));
        store.put(key, value).unwrap();
    };
    for (_dir, store) in stores() {
        let setup = || store.multi_put([("read", "1"), ("other", "2")]).unwrap();
        let run = |read: &dyn Fn(&hikv::Transaction<'_>), between: &dyn Fn(), writes: bool| {
            setup();
            store.delete("absent").unwrap();
            let tx = store.begin().unwrap();
            read(&tx);
            between();
            if writes {
                tx.put("written", "x").unwrap();
            }
            tx.commit()
        };
        for writes in [false, true] {
            let two = |tx: &hikv::Transaction<'_>| {
                tx.get("read").unwrap();
                tx.get("other").unwrap();
            };
            let absent = |tx: &hikv::Transaction<'_>| {
                assert!(!tx.contains("absent").unwrap());
                tx.get("other").unwrap();
            };
            assert!(run(&two, &|| {}, writes).is_ok());
            assert!(run(&absent, &|| {}, writes).is_ok());
            assert!(run(&two, &|| change(&store, "unrelated"), writes).is_ok());
            assert!(matches!(run(&two, &|| change(&store, "read"), writes), Err(Error::Conflict)));
            // A transaction that only reads may be at the moment of its last read.
            let last_changed = run(&two, &|| change(&store, "other"), writes);
            assert!(matches!(last_changed, Err(Error::Conflict)) || !writes && last_changed.is_ok());
            assert!(matches!(run(&two, &|| _ = store.delete("read").unwrap(), writes), Err(Error::Conflict)));
            assert!(matches!(run(&absent, &|| change(&store, "absent"), writes), Err(Error::Conflict)));
            let untracked = |tx: &hikv::Transaction<'_>| _ = tx.get_untracked("read").unwrap();
            assert!(run(&untracked, &|| change(&store, "read"), writes).is_ok());
        }
        let tx = store.begin().unwrap();
        tx.get("read").unwrap();
        tx.check().unwrap();
        change(&store, "read");
        assert!(matches!(tx.check(), Err(Error::Conflict)));
        assert!(matches!(tx.get("read"), Err(Error::Conflict)));
        assert!(matches!(tx.commit(), Err(Error::Conflict)), "a conflict is not forgotten");
    }
}

/// A change of a transaction, or a look at it.
type Change<'a> = &'a dyn Fn(&hikv::Transaction<'_>) -> Result<(), Error>;

/// Waits until places that were found before may have been reused.
fn age() {
    let start = epoch::Start::now();
    while start.is_recent() {
        epoch::advance();
    }
}

/// Values of all lengths: in place, kept until the commit, and hashed at the read.
#[test]
fn old_attempts_compare_versions() {
    for (_dir, store) in stores() {
        for len_bytes in [3, 300, 100_000] {
            let value = vec![b'v'; len_bytes];
            let begin = || {
                store.multi_put([("read", &value), ("other", &value)]).unwrap();
                let tx = store.begin().unwrap();
                assert!(tx.get("read").unwrap().is_some() && tx.get("other").unwrap().is_some());
                assert!(!tx.contains("absent").unwrap());
                age();
                tx
            };
            let tx = begin();
            tx.check().unwrap();
            assert_eq!(tx.get("read").unwrap().as_deref(), Some(&value[..]), "a second look");
            tx.put("read", "new").unwrap();
            tx.commit().unwrap();
            assert_eq!(store.get("read").unwrap().as_deref(), Some(&b"new"[..]));
            begin().commit().unwrap();
            for changed in ["read", "other", "absent"] {
                let changes: [Change<'_>; 3] =
                    [&|tx| tx.put("written", "x"), &|tx| tx.check(), &|tx| tx.get(changed).map(drop)];
                for (number, change) in changes.into_iter().enumerate() {
                    let tx = begin();
                    let mut other = value.clone();
                    other[1] = b'w';
                    store.put(changed, &other).unwrap();
                    age();
                    assert_eq!(change(&tx).is_ok(), number == 0, "{changed}: {number}");
                    assert!(matches!(tx.commit(), Err(Error::Conflict)), "{changed}: {number}");
                    store.delete("absent").unwrap();
                }
            }
        }
    }
}

#[test]
fn conflicting_ranges_are_found() {
    for (_dir, store) in stores().filter(|(_, store)| has_order(store)) {
        store.multi_put([("k2", "2"), ("k4", "4"), ("k6", "6")]).unwrap();
        let run = |read: &dyn Fn(&hikv::Transaction<'_>), between: &dyn Fn()| {
            let tx = store.begin().unwrap();
            read(&tx);
            between();
            tx.put("written", "x").unwrap();
            tx.commit()
        };
        let is_conflict = |result| matches!(result, Err(Error::Conflict));
        let whole = |tx: &hikv::Transaction<'_>| assert_eq!(tx.prefix("k").unwrap().count(), 3);
        let first = |tx: &hikv::Transaction<'_>| _ = tx.prefix("k").unwrap().next().unwrap().unwrap();
        let last = |tx: &hikv::Transaction<'_>| _ = tx.prefix("k").unwrap().next_back().unwrap().unwrap();
        let empty = |tx: &hikv::Transaction<'_>| assert_eq!(tx.range("k3".."k4").unwrap().count(), 0);
        let put = |key: &'static str| {
            let store = store.clone();
            move || store.put(key, "new").unwrap()
        };
        let undone = |key: &str, value: Option<&str>| match value {
            Some(value) => store.put(key, value).unwrap(),
            None => _ = store.delete(key).unwrap(),
        };
        assert!(run(&whole, &|| {}).is_ok());
        for key in ["k1", "k3", "k4", "k7"] {
            assert!(is_conflict(run(&whole, &put(key))), "{key}");
            undone(key, (key == "k4").then_some("4"));
        }
        assert!(is_conflict(run(&whole, &|| _ = store.delete("k6").unwrap())));
        undone("k6", Some("6"));
        assert!(run(&whole, &put("l")).is_ok());
        // Items that were not reached are not read.
        assert!(is_conflict(run(&first, &put("k1"))));
        undone("k1", None);
        assert!(run(&first, &put("k3")).is_ok());
        undone("k3", None);
        assert!(is_conflict(run(&empty, &put("k33"))), "an empty range was read");
        undone("k33", None);
        assert!(run(&last, &put("k5")).is_ok());
        undone("k5", None);
        assert!(is_conflict(run(&last, &put("k7"))));
    }
}

#[test]
fn ranges_have_own_writes_from_both_ends() {
    for (_dir, store) in stores().filter(|(_, store)| has_order(store)) {
        store.multi_put([("k2", "2"), ("k4", "4"), ("k6", "6")]).unwrap();
        let keys = store.transact(|tx| {
            tx.multi_changes(&["k1", "k4", "k7"], &["k2", "k5"])?;
            let forward = tx.prefix("k")?.map(|item| item.map(|(key, _)| key)).collect::<Result<Vec<_>, _>>()?;
            let mut backward =
                tx.prefix("k")?.rev().map(|item| item.map(|(key, _)| key)).collect::<Result<Vec<_>, _>>()?;
            backward.reverse();
            assert_eq!(forward, backward);
            let mut both = tx.prefix("k")?;
            let mut met = Vec::new();
            for turn in 0.. {
                let next = if turn % 2 == 0 { both.next() } else { both.next_back() };
                let Some(item) = next.transpose()? else { break };
                met.push(item.0);
            }
            assert!(both.next().is_none() && both.next_back().is_none());
            met.sort();
            assert_eq!(forward, met);
            assert_eq!(tx.range("k4"..="k4")?.next().unwrap()?.1, b"own");
            assert_eq!((tx.first()?.unwrap().0, tx.last()?.unwrap().0), (b"k1".to_vec(), b"k7".to_vec()));
            // A range sees writes that come while it is read.
            let mut range = tx.range("k6".."k9")?;
            assert_eq!(range.next().unwrap()?.0, b"k6");
            tx.put("k65", "own")?;
            tx.delete("k7")?;
            assert_eq!(range.next().unwrap()?.0, b"k65");
            assert!(range.next().is_none());
            ok(forward)
        });
        assert_eq!(keys.unwrap(), ["k1", "k4", "k6", "k7"].map(|key| key.as_bytes().to_vec()));
        assert_eq!(store.ordered().unwrap().count(..="z").unwrap(), 4);
    }
}

/// Puts and deletes of several keys.
trait MultiChanges {
    fn multi_changes(&self, puts: &[&str], deletes: &[&str]) -> Result<(), Error>;
}

impl MultiChanges for hikv::Transaction<'_> {
    fn multi_changes(&self, puts: &[&str], deletes: &[&str]) -> Result<(), Error> {
        puts.iter().try_for_each(|key| self.put(key, "own"))?;
        deletes.iter().try_for_each(|key| self.delete(key))
    }
}

#[test]
fn body_writes_only_through_its_transaction() {
    let (_dir, store) = stores().next().unwrap();
    let other_dir = tempfile::tempdir().unwrap();
    let other = Store::open(other_dir.path()).unwrap();
    let tree = store.tree("tree").unwrap();
    for options in [Transact::new(), Transact::new().exclusive_first()] {
        store
            .transact_with(options, |tx| {
                assert!(matches!(store.put("past", "x"), Err(Error::InsideTransaction)));
                assert!(matches!(store.write(WriteBatch::new().delete("past")), Err(Error::InsideTransaction)));
                assert!(matches!(store.clear(), Err(Error::InsideTransaction)));
                assert!(matches!(other.put("past", "x"), Err(Error::InsideTransaction)));
                assert!(matches!(store.put_from("past", 1, &b"x"[..]), Err(Error::InsideTransaction)));
                assert!(matches!(store.transact(|_| ok(())), Err(Error::InsideTransaction)));
                assert!(matches!(store.tree("past").map(drop), Err(Error::InsideTransaction)));
                assert!(matches!(store.drop_tree("tree"), Err(Error::InsideTransaction)));
                assert!(matches!(tree.clear(), Err(Error::InsideTransaction)));
                assert!(store.existing_tree("tree")?.is_some());
                tx.put("through", "x")
            })
            .unwrap();
    }
    assert!(store.put("through", "y").is_ok() && other.put("past", "x").is_ok());
    let mut inside = None;
    store
        .update("through", |_| {
            inside = Some(store.transact(|_| ok(())));
            Decision::Keep
        })
        .unwrap();
    assert!(matches!(inside, Some(Err(Error::InsideCallback))), "{inside:?}");
}

#[test]
fn read_only_stores_take_read_transactions() {
    for (dir, store) in stores() {
        let engine = store.engine_kind();
        store.put("key", "1").unwrap();
        store.close().unwrap();
        let store = Options::new().engine(engine).read_only(true).open(dir.path()).unwrap();
        let seen = store.transact(|tx| ok((tx.get("key")?, tx.contains("absent")?, tx.contains("also absent")?)));
        assert_eq!(seen.unwrap(), (Some("1".as_bytes().into()), false, false));
        assert!(store.transact(|tx| tx.put("key", "2")).is_err());
        assert_eq!(store.get("key").unwrap().as_deref(), Some(&b"1"[..]));
    }
}

#[test]
fn attempts_are_limited() {
    for (_dir, store) in stores() {
        let increments = |options: Transact| {
            store.transact_with(options, |tx| {
                tx.get("key")?;
                // An exclusive attempt would wait for this writer, who waits for it.
                if !tx.is_exclusive() {
                    thread::scope(|scope| scope.spawn(|| store.increment("key", 1)).join().unwrap())?;
                }
                tx.put("done", tx.attempt_number().to_string())
            })
        };
        let contended = increments(Transact::new().exclusive(false).attempts(3));
        assert!(matches!(contended, Err(Error::Contended { attempts: 3 })));
        assert_eq!(store.get("done").unwrap(), None);
        increments(Transact::new()).unwrap();
        let done = store.get("done").unwrap().unwrap();
        assert!((2..=9).contains(&str::from_utf8(&done).unwrap().parse::<u32>().unwrap()), "{done:?}");
        increments(Transact::new().exclusive_first()).unwrap();
        assert_eq!(store.get("done").unwrap().unwrap(), "1");
    }
}

/// A slow body over many keys, beside writers of all of them.
#[test]
fn long_bodies_commit() {
    for (_dir, store) in stores() {
        let (is_over, started) = (AtomicBool::new(false), Barrier::new(4));
        let keys: Vec<_> = (0..100).map(|number| format!("key {number}")).collect();
        store.multi_put(keys.iter().map(|key| (key, "0"))).unwrap();
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    started.wait();
                    for key in keys.iter().cycle().take_while(|_| !is_over.load(Ordering::Relaxed)) {
                        store.increment(key, 1).unwrap();
                    }
                });
            }
            started.wait();
            let sum = store.transact(|tx| {
                let deadline = Instant::now() + Duration::from_millis(5);
                let mut sum = 0;
                for key in &keys {
                    sum += str::from_utf8(&tx.get(key)?.unwrap()).unwrap().parse::<u64>().unwrap();
                }
                while Instant::now() < deadline {}
                tx.put("sum", sum.to_string())?;
                ok(sum)
            });
            is_over.store(true, Ordering::Relaxed);
            assert_eq!(store.get("sum").unwrap().unwrap(), sum.unwrap().to_string().as_str());
        });
    }
}
