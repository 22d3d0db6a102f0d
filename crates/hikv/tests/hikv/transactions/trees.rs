//! Transactions over named trees.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use hikv::{Error, FrontEnd, Store, Transact, Tree, WriteBatch};

use super::{has_order, ok, stores};

/// Many times the number of yields in which a thread that does not wait ends.
const YIELD_COUNT: usize = 1_000;

#[test]
fn transaction_covers_several_trees() {
    for (_dir, store) in stores() {
        let (todo, done) = (store.tree("todo").unwrap(), store.tree("done").unwrap());
        todo.put("job", "1").unwrap();
        store.put("job", "of the store").unwrap();
        let moves = |between: &dyn Fn()| {
            let tx = store.begin().unwrap();
            let job = tx.tree(&todo).unwrap().take("job").unwrap();
            tx.tree(&done).unwrap().put("job", job.unwrap()).unwrap();
            assert_eq!(tx.tree(&done).unwrap().get("job").unwrap().as_deref(), Some(&b"1"[..]));
            assert_eq!(tx.get("job").unwrap().as_deref(), Some(&b"of the store"[..]));
            between();
            tx.commit()
        };
        assert!(matches!(moves(&|| store.put("job", "changed").unwrap()), Err(Error::Conflict)));
        store.put("job", "of the store").unwrap();
        assert!(matches!(moves(&|| todo.put("job", "2").unwrap()), Err(Error::Conflict)));
        todo.put("job", "1").unwrap();
        assert!(moves(&|| todo.put("other", "2").unwrap()).is_ok());
        assert_eq!(done.get("job").unwrap().as_deref(), Some(&b"1"[..]));
        assert_eq!((todo.get("job").unwrap(), store.get("job").unwrap().is_some()), (None, true));
        let undone = store.transact(|tx| {
            tx.put("job", "kept")?;
            tx.savepoint(|| {
                tx.tree(&todo)?.put("job", "undone")?;
                tx.put("job", "undone")?;
                Err::<(), _>(Error::NoOrder)
            })
            .unwrap_err();
            ok(tx.tree(&todo)?.get("job")?)
        });
        assert_eq!(undone.unwrap(), None);
        assert_eq!(store.get("job").unwrap().as_deref(), Some(&b"kept"[..]));
        let other_dir = tempfile::tempdir().unwrap();
        let other = Store::open(other_dir.path()).unwrap();
        let foreign = other.tree("todo").unwrap();
        assert!(matches!(store.begin().unwrap().tree(&foreign), Err(Error::NoSuchTree { .. })));
    }
}

/// A tree that is cleared, swapped or dropped is another tree for a transaction, even if the keys read were absent.
#[test]
fn changed_trees_are_conflicts() {
    for (_dir, store) in stores() {
        let has_order = has_order(&store);
        let (tree, other) = (store.tree("tree").unwrap(), store.tree("other").unwrap());
        let runs = |by_range: bool, writes: bool, between: &dyn Fn()| {
            let tx = store.begin().unwrap();
            let read = tx.tree(&tree).unwrap();
            match by_range {
                true => assert_eq!(read.prefix("absent").unwrap().count(), 0),
                false => assert!(!read.contains("absent").unwrap() && !read.contains("also absent").unwrap()),
            }
            between();
            if writes {
                tx.put("written", "x").unwrap();
            }
            tx.commit()
        };
        for (by_range, writes) in [(false, false), (false, true), (true, false), (true, true)] {
            if by_range && !has_order {
                continue;
            }
            assert!(runs(by_range, writes, &|| other.clear().unwrap()).is_ok());
            assert!(matches!(runs(by_range, writes, &|| tree.clear().unwrap()), Err(Error::Conflict)));
            let swap = || store.swap_trees("tree", "other").unwrap();
            assert!(matches!(runs(by_range, writes, &swap), Err(Error::Conflict)));
        }
        let dropped = runs(false, true, &|| store.drop_tree("tree").unwrap());
        assert!(matches!(dropped, Err(Error::NoSuchTree { .. })), "{dropped:?}");
    }
}

/// The server's first database has the keys of the store itself, and is the same tree for a transaction.
#[test]
fn first_database_is_the_stores_own_tree() {
    for (_dir, store) in stores() {
        store.tree("first").unwrap();
        FrontEnd::of(&store).create_database(0).unwrap();
        let database = store.existing_tree("hikv:0").unwrap().unwrap();
        let (is_begun, is_written) = (AtomicBool::new(false), AtomicBool::new(false));
        thread::scope(|scope| {
            scope.spawn(|| {
                while !is_begun.load(Ordering::SeqCst) {
                    thread::yield_now();
                }
                database.put("other", "2").unwrap();
                is_written.store(true, Ordering::SeqCst);
            });
            let seen = store.transact_with(Transact::new().exclusive_first(), |tx| {
                tx.put("key", "1")?;
                is_begun.store(true, Ordering::SeqCst);
                (0..YIELD_COUNT).for_each(|_| thread::yield_now());
                assert!(!is_written.load(Ordering::SeqCst), "a writer is not shut out");
                ok(tx.tree(&database)?.get("key")?)
            });
            assert_eq!(seen.unwrap().as_deref(), Some(&b"1"[..]));
        });
        assert_eq!(store.get("other").unwrap().as_deref(), Some(&b"2"[..]));
    }
}

/// A front end that writes stored keys may change any tree, so each closed gate shuts it out.
#[test]
fn writers_of_stored_keys_are_shut_out() {
    type Write = fn(&Store, &[u8]);
    let writes: [Write; 4] = [
        |stored, key| stored.put(key, "written").unwrap(),
        |stored, key| FrontEnd::of(stored).multi_put_each(&[(key, "written")], |_, put| put.unwrap()),
        |stored, key| stored.write(WriteBatch::new().put(key, "written")).unwrap(),
        |stored, key| stored.put_from(key, 7, &b"written"[..]).unwrap(),
    ];
    for (_dir, store) in stores() {
        let tree = store.tree("tree").unwrap();
        FrontEnd::of(&store).create_database(3).unwrap();
        let database = store.existing_tree("hikv:3").unwrap().unwrap();
        let stored = FrontEnd::of(&store).store_of_stored_keys();
        assert!(matches!(stored.transact(|tx| tx.put("key", "1")), Err(Error::Unsupported { .. })));
        let trees: [(&Tree, &[u8]); 3] =
            [(&tree, &[0xFF, 0x11, 0, 16, 7]), (&database, &[0xFF, 3, 7]), (&store, b"key")];
        for (tree, _) in trees {
            let (is_begun, is_written) = (AtomicBool::new(false), AtomicBool::new(false));
            thread::scope(|scope| {
                for ((_, key), write) in trees.iter().flat_map(|tree| writes.iter().map(move |write| (tree, write))) {
                    let (stored, is_begun, is_written) = (&stored, &is_begun, &is_written);
                    scope.spawn(move || {
                        while !is_begun.load(Ordering::SeqCst) {
                            thread::yield_now();
                        }
                        write(stored, key);
                        is_written.store(true, Ordering::SeqCst);
                    });
                }
                let transacted = store.transact_with(Transact::new().exclusive_first(), |tx| {
                    tx.tree(tree)?.put("other", "1")?;
                    is_begun.store(true, Ordering::SeqCst);
                    (0..YIELD_COUNT).for_each(|_| thread::yield_now());
                    assert!(!is_written.load(Ordering::SeqCst), "a writer is not shut out");
                    Ok::<_, Error>(())
                });
                transacted.unwrap();
            });
            assert!(trees.iter().all(|(_, key)| stored.get(key).unwrap().as_deref() == Some(&b"written"[..])));
        }
    }
}
