//! Stores of every engine: what a store says of itself, what is lacking, and how one becomes another.

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hikv::{Clock, Decision, Durability, EngineKind, Error, OpenError, Options, Store, WriteBatch};
use tempfile::tempdir;

fn options(engine: EngineKind) -> Options {
    Options::new().engine(engine).background(false)
}

#[test]
fn a_store_is_its_engines_and_refuses_the_others() {
    let dir = tempdir().unwrap();
    for &engine in EngineKind::ALL {
        let path = dir.path().join(engine.name());
        let store = options(engine).open(&path).unwrap();
        store.put("key", "value").unwrap();
        store.close().unwrap();
        let store = Store::open(&path).unwrap();
        assert_eq!((store.engine_kind(), store.stats().engine), (engine, engine.name()));
        assert_eq!(store.get("key").unwrap().as_deref(), Some(&b"value"[..]));
        store.close().unwrap();
        for &other in EngineKind::ALL.iter().filter(|&&other| other != engine) {
            let error = options(other).open(&path).unwrap_err().to_string();
            assert!(error.contains(&format!("belongs to engine {engine}, not to {other}")), "{error}");
        }
    }
    assert!(
        "nothing"
            .parse::<EngineKind>()
            .unwrap_err()
            .to_string()
            .contains("there is no engine 'nothing'; there is hikv")
    );
}

/// The row of `docs/engines.md` that begins with `name`: what stands in the column of each engine.
fn told(page: &str, name: &str, column: usize) -> String {
    let row = page.lines().find(|line| line.starts_with(&format!("| {name} |"))).expect("the page has a row for it");
    row.split('|').nth(column + 2).expect("the page has a column for it").trim().to_owned()
}

#[test]
fn the_page_says_what_engines_say_of_themselves() {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/engines.md")).unwrap();
    let dir = tempdir().unwrap();
    for (column, &engine) in EngineKind::ALL.iter().filter(|kind| kind.name() != "toy").enumerate() {
        let features = options(engine).open(dir.path().join(engine.name())).unwrap().features();
        assert_eq!(told(&page, "", column), engine.name());
        for (name, has) in features.named().into_iter().filter(|(name, _)| *name != "order") {
            assert_eq!(told(&page, name, column) == "yes", has, "{engine}: {name}");
        }
        assert_eq!(told(&page, "order", column), format!("{:?}", features.order).to_lowercase(), "{engine}");
    }
}

#[test]
fn what_an_engine_lacks_is_said_and_changes_nothing() {
    let dir = tempdir().unwrap();
    for &engine in EngineKind::ALL {
        let store = options(engine).open(dir.path().join(engine.name())).unwrap();
        let features = store.features();
        let mut batch = WriteBatch::new();
        batch.put("a", "1").delete("b");
        let lacking = [
            (features.batch, store.write(&batch)),
            (features.snapshots, store.snapshot().map(drop)),
            (features.compaction, store.compact(|_| {}).map(drop)),
            (features.expiry, store.put_with_ttl("c", "2", Duration::from_secs(1_000))),
            (features.conditional, store.insert_if_absent("d", "3").map(drop)),
        ];
        for (has, done) in lacking {
            let is_refused = matches!(done, Err(Error::Unsupported { engine: name, .. }) if name == engine.name());
            assert!(if has { done.is_ok() } else { is_refused }, "{engine}: {done:?}");
        }
        assert_eq!(store.get("a").unwrap().is_some(), features.batch, "{engine}");
    }
}

/// What an engine has no use for is not taken in silence, whether the engine is named or the store's own.
#[test]
fn options_that_an_engine_has_no_use_for_are_refused() {
    let dir = tempdir().unwrap();
    let cached = [EngineKind::HiKv, EngineKind::RewoHash];
    let cases: [(Options, &[EngineKind], _); 2] = [
        (Options::new().read_cache_bytes(1 << 16), &cached, "read cache"),
        (Options::new().pre_evict(true), &[EngineKind::RewoHash], "pre-eviction"),
    ];
    for &engine in EngineKind::ALL {
        for (wanted, engines, what) in &cases {
            let (path, has_it) = (dir.path().join(format!("{engine} {what}")), engines.contains(&engine));
            let is_refused = |opened: Result<Store, OpenError>| match opened.map(drop) {
                Err(OpenError::Option { what: said }) => said == format!("engine {engine} has no {what}"),
                opened => panic!("{engine}: {opened:?}"),
            };
            let named = || wanted.clone().engine(engine).open(&path);
            if has_it {
                named().unwrap().close().unwrap();
                wanted.open(&path).unwrap();
            } else {
                assert!(is_refused(named()) && !path.exists(), "{engine}: what is refused makes nothing");
                options(engine).open(&path).unwrap().close().unwrap();
                assert!(is_refused(wanted.open(&path)));
            }
            options(engine).open(&path).unwrap();
        }
    }
}

#[test]
fn every_engines_store_becomes_every_others() {
    let dir = tempdir().unwrap();
    for &from in EngineKind::ALL {
        let path = dir.path().join(from.name());
        let store = options(from).open(&path).unwrap();
        for number in 0..300u32 {
            store.put(number.to_be_bytes(), format!("value {number}")).unwrap();
        }
        // An engine without keys that expire takes no store that has some.
        let expires = from.name() != "toy";
        if expires {
            store.put_with_ttl("passing", "soon", Duration::from_secs(10_000)).unwrap();
        }
        store.close().unwrap();
        for &into in EngineKind::ALL.iter().filter(|into| !expires || into.name() != "toy") {
            let made = dir.path().join(format!("{from}-{into}"));
            assert_eq!(Store::convert(&path, &made, into, |_| {}).unwrap().items, 300 + u64::from(expires));
            let store = Store::open(&made).unwrap();
            assert_eq!((store.engine_kind(), store.len().unwrap()), (into, 300 + u64::from(expires)));
            for number in 0..300u32 {
                let value = store.get(number.to_be_bytes()).unwrap();
                assert_eq!(value, Some(format!("value {number}").into_bytes()), "{from} to {into}");
            }
            assert_eq!(matches!(store.ttl("passing").unwrap(), Some(hikv::Ttl::Left(_))), expires, "{from} to {into}");
            assert!(store.verify(|_| {}).unwrap().damage.is_empty());
        }
    }
}

/// An engine without snapshots is backed up while it is read alone.
#[test]
fn a_backup_is_of_the_same_engine() {
    let dir = tempdir().unwrap();
    for &engine in EngineKind::ALL {
        let (path, out) = (dir.path().join(engine.name()), dir.path().join(format!("{engine}-backup")));
        let store = options(engine).open(&path).unwrap();
        store.put("key", "value").unwrap();
        let live = store.backup(dir.path().join(format!("{engine}-live")), |_| {});
        assert_eq!(live.is_ok(), store.features().snapshots, "{engine}: {live:?}");
        store.close().unwrap();
        Store::open_read_only(&path).unwrap().backup(&out, |_| {}).unwrap();
        let copy = Store::open_read_only(&out).unwrap();
        assert_eq!((copy.engine_kind(), copy.get("key").unwrap().as_deref()), (engine, Some(&b"value"[..])));
    }
}

#[test]
fn walks_by_number_show_every_key_once_and_forget_no_number_of_theirs_at_once() {
    let dir = tempdir().unwrap();
    for &engine in EngineKind::ALL {
        let path = dir.path().join(engine.name());
        let store = options(engine).open(&path).unwrap();
        for number in 0..900u32 {
            store.put(number.to_be_bytes(), "value").unwrap();
        }
        let (mut at, mut shown, mut numbers) = (0, Vec::new(), Vec::new());
        loop {
            at = store.walk(at, |key, _| shown.push(key.to_vec())).unwrap();
            if at == 0 {
                break;
            }
            numbers.push(at);
        }
        shown.sort();
        assert!(shown.iter().eq((0..900u32).map(|number| number.to_be_bytes()).collect::<Vec<_>>().iter()), "{engine}");
        assert!(numbers.iter().all(|&number| store.walk(number, |_, _| ()).is_ok()), "{engine}");
        let anywhere = store.walk_somewhere(7).unwrap();
        assert!(store.walk(anywhere, |_, _| ()).is_ok(), "{engine}");
        let made_up = store.walk(12_345, |_, _| ());
        let is_numbered = store.features().numbered_walk;
        assert!(if is_numbered {
            made_up.is_ok()
        } else {
            matches!(made_up, Err(Error::CursorForgotten { number: 12_345 }))
        });
    }
}

#[test]
fn a_store_without_salvage_is_not_repaired_and_says_so() {
    let dir = tempdir().unwrap();
    for &engine in EngineKind::ALL {
        let (path, into) = (dir.path().join(engine.name()), dir.path().join(format!("{engine}-repaired")));
        let store = options(engine).open(&path).unwrap();
        store.put("key", "value").unwrap();
        let has_salvage = store.features().salvage;
        store.close().unwrap();
        match hikv::repair::repair(&path, &into, |_| ControlFlow::Continue(())) {
            Ok(report) => assert!(has_salvage && report.items == 1, "{engine}"),
            Err(error) => {
                assert!(!has_salvage && !into.exists(), "{engine}: {error}");
                assert!(error.to_string().contains(&format!("engine {engine} has no repair")), "{error}");
            }
        }
    }
}

/// Nothing reaps here, so each key that has expired is told of by the write that takes it away.
#[test]
fn a_write_that_takes_an_expired_key_away_tells_of_it() {
    let dir = tempdir().unwrap();
    for &engine in EngineKind::ALL {
        let clock = Clock::manual(1000);
        let store = options(engine).clock(clock.clone()).open(dir.path().join(engine.name())).unwrap();
        if !store.features().expiry {
            continue;
        }
        let told = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&told);
        let note = move |key: &[u8]| noted.lock().unwrap().push(String::from_utf8(key.to_vec()).unwrap());
        store.on_expired(Some(Arc::new(note))).unwrap();
        let keys = ["put", "deleted", "swapped", "in a batch", "left alone"];
        keys.iter().for_each(|key| store.put_with_ttl(key, "v", Duration::from_secs(1)).unwrap());
        clock.advance(Duration::from_secs(1));
        store.put("put", "w").unwrap();
        assert!(!store.delete("deleted").unwrap());
        assert!(store.compare_and_swap("swapped", None, Some(b"w")).unwrap());
        let mut batch = WriteBatch::new();
        batch.expect_absent("in a batch").put("in a batch", "w").delete("nothing");
        store.write(&batch).unwrap();
        keys.iter().for_each(|key| assert_eq!(store.contains(key).unwrap(), !["deleted", "left alone"].contains(key)));
        assert_eq!(*told.lock().unwrap(), keys[..4], "{engine}");
    }
}

/// Whichever looks at the clock a key's time comes between: to the deleter the key was there, or the hook is told that it had
/// expired.
#[test]
fn a_key_is_deleted_or_has_expired_and_not_both() {
    type Delete = fn(&Store, &str) -> bool;
    let deletes: [Delete; 2] =
        [|store, key| store.delete(key).unwrap(), |store, key| store.update(key, |_| Decision::Delete).unwrap()];
    let engines = EngineKind::ALL.iter().map(|&engine| (engine, tempdir().unwrap()));
    for (engine, dir) in engines {
        let options = options(engine).clock(Clock::restless(1_000_000)).durability(Durability::Buffered);
        let store = options.open(dir.path()).unwrap();
        if !store.features().expiry {
            continue;
        }
        let told = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&told);
        store.on_expired(Some(Arc::new(move |_| _ = count.fetch_add(1, Ordering::Relaxed)))).unwrap();
        for (delete, left_ms) in (0..24).flat_map(|left_ms| deletes.map(|delete| (delete, left_ms))) {
            store.put_with_ttl("key", "value", Duration::from_millis(left_ms)).unwrap();
            told.store(0, Ordering::Relaxed);
            let was_there = delete(&store, "key");
            assert_eq!(u32::from(was_there) + told.load(Ordering::Relaxed), 1, "{engine}, {left_ms} ms after");
        }
    }
}
