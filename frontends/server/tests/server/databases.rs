//! Databases in a store with a catalog, and in one that gets its catalog while it is served.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use hikv::{EngineKind, Options, Store};
use server::Config;

use crate::common::{TestServer, Value, array, bulk, int, ok};

fn server_on(engine: EngineKind) -> TestServer {
    TestServer::of(&Options::new().engine(engine), Config { threads: 2, ..Config::default() })
}

fn queued() -> Value {
    Value::Simple("QUEUED".into())
}

fn id_of(store: &Store, name: &str) -> u32 {
    store.trees().unwrap().into_iter().find(|tree| tree.name == name).map(|tree| tree.id).unwrap()
}

fn assert_sound(store: &Store) {
    while hikv::FrontEnd::of(store).stats_now().unwrap().dead_tree_count > 0 {
        thread::yield_now();
    }
    assert_eq!(store.verify(|_| {}).unwrap().damage, []);
}

/// Keys whose stored names change with the first tree.
#[test]
fn first_tree_can_be_created_while_serving() {
    for &engine in EngineKind::ALL {
        let server = server_on(engine);
        let marked: Vec<Vec<u8>> = (0..0x22).map(|byte| vec![0xFF, byte, b'k']).collect();
        let mut client = server.client();
        for key in &marked {
            assert_eq!(client.call(&[&b"SET"[..], key, b"0"]), ok());
        }
        client.converse([("SELECT 3", ok()), ("SET k 3", ok()), ("SELECT 0", ok())]);
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut client = server.client();
                while !is_over.load(Ordering::Relaxed) {
                    for key in &marked {
                        let count = client.call(&[&b"INCR"[..], key]);
                        assert!(matches!(count, Value::Integer(1..)), "{count:?} of {key:x?}");
                    }
                }
            });
            let tree = server.store.tree("t").unwrap();
            tree.put("k", "of the tree").unwrap();
            assert_eq!(tree.get("k").unwrap().as_deref(), Some(&b"of the tree"[..]));
            is_over.store(true, Ordering::Relaxed);
        });
        for key in &marked {
            let Value::Bulk(count) = client.call(&[&b"GET"[..], key]) else { panic!("{key:x?} is gone") };
            assert_eq!(server.store.get(key).unwrap().as_deref(), Some(&count[..]), "{engine}: {key:x?}");
        }
        client.converse([("SELECT 3", ok()), ("GET k", bulk("3"))]);
        assert_sound(&server.store);
        let server = server.restarted();
        server.client().converse([("DBSIZE", int(marked.len() as i64)), ("SELECT 3", ok()), ("GET k", bulk("3"))]);
    }
}

#[test]
fn emptied_database_gets_another_tree() {
    for &engine in EngineKind::ALL {
        let server = server_on(engine);
        let mut client = server.client();
        client.converse([("SET k 0", ok()), ("SELECT 3", ok()), ("SET k 3", ok()), ("SELECT 5", ok())]);
        client.converse([("SET k 5", ok()), ("SELECT 3", ok()), ("FLUSHDB", ok()), ("GET k", Value::Null)]);
        let handle = server.store.existing_tree("hikv:3").unwrap().unwrap();
        let first = id_of(&server.store, "hikv:3");
        assert!(first >= 16 && handle.is_empty().unwrap(), "{engine}: {first}");
        client.converse([("SET k again", ok()), ("SELECT 0", ok()), ("GET k", bulk("0")), ("MULTI", ok())]);
        assert_eq!(handle.get("k").unwrap().as_deref(), Some(&b"again"[..]));
        // One batch empties two databases and puts keys in both.
        client.converse([("SET k lost", queued()), ("FLUSHDB", queued()), ("SET a 0", queued())]);
        client.converse([("SELECT 3", queued()), ("GET k", queued()), ("FLUSHDB", queued()), ("GET k", queued())]);
        client.converse([("SET b 3", queued()), ("SWAPDB 3 5", queued()), ("KEYS *", queued())]);
        let replies = [ok(), ok(), ok(), ok(), bulk("again"), ok(), Value::Null, ok(), ok(), array([bulk("k")])];
        client.converse([("EXEC", array(replies)), ("GET k", bulk("5")), ("GET b", Value::Null), ("SELECT 5", ok())]);
        client.converse([("GET b", bulk("3")), ("SELECT 0", ok()), ("GET k", Value::Null), ("GET a", bulk("0"))]);
        assert_eq!(handle.get("k").unwrap().as_deref(), Some(&b"5"[..]), "a handle goes on with its name");
        assert!(id_of(&server.store, "hikv:5") > first);
        // The library empties a database of the server.
        handle.clear().unwrap();
        client.converse([("SELECT 3", ok()), ("GET k", Value::Null), ("SET k new", ok())]);
        assert_eq!(handle.get("k").unwrap().as_deref(), Some(&b"new"[..]));
        client.converse([("FLUSHALL", ok()), ("GET k", Value::Null), ("SELECT 0", ok()), ("GET a", Value::Null)]);
        client.converse([("SET k last", ok()), ("SELECT 5", ok()), ("GET b", Value::Null)]);
        let ids: BTreeSet<u32> = server.store.trees().unwrap().iter().map(|tree| tree.id).collect();
        assert_eq!(ids.len(), 3, "{engine}: {ids:?}");
        drop(handle);
        assert_sound(&server.store);
        let server = server.restarted();
        server.client().converse([("GET k", bulk("last")), ("SELECT 3", ok()), ("GET k", Value::Null)]);
    }
}

/// The store's own tree cannot get another id. Other trees stay, and so does what a snapshot shows.
#[test]
fn flush_works_with_snapshots() {
    for &engine in EngineKind::ALL {
        for has_trees in [false, true] {
            let server = server_on(engine);
            if !server.store.features().snapshots {
                continue;
            }
            let tree = has_trees.then(|| server.store.tree("own").unwrap());
            tree.iter().for_each(|tree| tree.put("k", "own").unwrap());
            for flush in ["FLUSHDB", "FLUSHALL"] {
                let mut client = server.client();
                client.converse([("SET k 0", ok()), ("SET j 0", ok()), ("SELECT 3", ok()), ("SET k 3", ok())]);
                let snapshot = server.store.snapshot().unwrap();
                client.converse([(flush, ok()), ("GET k", Value::Null), ("SELECT 0", ok()), (flush, ok())]);
                client.converse([("GET k", Value::Null), ("SET k after", ok())]);
                assert_eq!(snapshot.get("k").unwrap().as_deref(), Some(&b"0"[..]), "{engine}: {flush}");
                assert_eq!(snapshot.get("j").unwrap().as_deref(), Some(&b"0"[..]), "{engine}: {flush}");
                drop(snapshot);
            }
            tree.iter().for_each(|tree| assert_eq!(tree.get("k").unwrap().as_deref(), Some(&b"own"[..])));
            assert_sound(&server.store);
        }
    }
}

/// A store of many databases without a catalog is emptied in one step, and the mapping of databases with it.
#[test]
fn empty_store_needs_no_catalog() {
    let server = TestServer::start();
    let mut client = server.client();
    client.converse([("SELECT 3", ok()), ("SET k 3", ok()), ("SWAPDB 0 3", ok()), ("FLUSHALL", ok())]);
    client.converse([("SET k v", ok()), ("SELECT 0", ok()), ("FLUSHDB", ok()), ("FLUSHALL", ok()), ("SET k 0", ok())]);
    assert!(!hikv::FrontEnd::of(&server.store).has_catalog());
    assert_eq!(server.store.get("k").unwrap().as_deref(), Some(&b"0"[..]));
}
