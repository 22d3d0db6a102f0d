//! Stores of every engine: their features, missing features, and conversions.

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use heap::layout::ENGINE_AREA;
use hikv::{
    Clock, Decision, Durability, EngineKind, Error, Expiry, Features, OpenError, Options, PutOptions, Store, WriteBatch,
};
use tempfile::tempdir;

fn options(engine: EngineKind) -> Options {
    Options::new().engine(engine).background(false).durability(Durability::Buffered)
}

fn offers(engine: EngineKind) -> Features {
    options(engine).open(tempdir().unwrap().path()).unwrap().features()
}

#[test]
fn store_opens_only_with_its_engine() {
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
            .contains("there is no engine 'nothing'; the engines of this build are hikv")
    );
}

/// Returns the cell in this column of the row of `docs/engines.md` that begins with `name`.
fn reported(page: &str, name: &str, column: usize) -> String {
    let row = page.lines().find(|line| line.starts_with(&format!("| {name} |"))).expect("the page has a row for it");
    row.split('|').nth(column + 2).expect("the page has a column for it").trim().to_owned()
}

#[test]
fn page_matches_engine_descriptions() {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/engines.md")).unwrap();
    for (column, &engine) in EngineKind::ALL.iter().filter(|kind| kind.name() != "toy").enumerate() {
        let features = offers(engine);
        assert_eq!(reported(&page, "", column), engine.name());
        for (name, has) in features.named().into_iter().filter(|(name, _)| *name != "order") {
            assert_eq!(reported(&page, name, column) == "yes", has, "{engine}: {name}");
        }
        assert_eq!(reported(&page, "order", column), format!("{:?}", features.order).to_lowercase(), "{engine}");
    }
}

#[test]
fn unsupported_operation_changes_nothing() {
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
            (features.expiry, store.put_with("c", "2", PutOptions::new().ttl(Duration::from_secs(1_000)))),
            (features.conditional, store.insert_if_absent("d", "3").map(drop)),
        ];
        for (has, done) in lacking {
            let is_refused = matches!(done, Err(Error::Unsupported { engine: name, .. }) if name == engine.name());
            assert!(if has { done.is_ok() } else { is_refused }, "{engine}: {done:?}");
        }
        assert_eq!(store.get("a").unwrap().is_some(), features.batch, "{engine}");
    }
}

/// Options that the engine does not use are refused, whether the engine is named or the store's own.
#[test]
fn options_unused_by_engine_are_refused() {
    let dir = tempdir().unwrap();
    let cached = [EngineKind::HiKv, EngineKind::RewoHash];
    let threads = Options::new().read_cache_bytes(1 << 16).tuning(|tuning| tuning.read_cache_threads(1));
    let cases: [(Options, &[EngineKind], _); 4] = [
        (Options::new().read_cache_bytes(1 << 16), &cached, "read cache"),
        (threads, &[EngineKind::RewoHash], "threads for a read cache"),
        (Options::new().tuning(|tuning| tuning.pre_evict(true)), &[EngineKind::RewoHash], "pre-eviction"),
        (Options::new().tuning(|tuning| tuning.tree_order(7)), &[EngineKind::Ink], "order of a tree"),
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
                let is_default = engine == EngineKind::default();
                assert!(!is_default || is_refused(wanted.open(&path)) && !path.exists(), "nor if none is named");
                options(engine).open(&path).unwrap().close().unwrap();
                assert!(is_refused(wanted.open(&path)));
            }
            options(engine).open(&path).unwrap();
        }
    }
    for (bytes, threads, what) in [(0, 1, "of 0 bytes"), (1 << 16, 17, "the limit is 16")] {
        let refused = Options::new()
            .read_cache_bytes(bytes)
            .tuning(|tuning| tuning.read_cache_threads(threads))
            .open(dir.path().join("none"));
        assert!(matches!(refused, Err(OpenError::Option { what: said }) if said.contains(what)), "{threads}");
    }
}

#[test]
fn tree_keeps_its_order() {
    let dir = tempdir().unwrap();
    let ink = || options(EngineKind::Ink);
    let node_count = |store: &Store| {
        let figures = store.stats().figures;
        figures.iter().find(|figure| figure.name == "ink_nodes").expect("a tree counts its nodes").value
    };
    let refused = ink().tuning(|tuning| tuning.tree_order(8)).open(dir.path().join("8"));
    assert!(matches!(refused.map(drop), Err(OpenError::Option { what }) if what.contains("order 8")));
    let (narrow, wide) = (dir.path().join("7"), dir.path().join("63"));
    let store = ink().tuning(|tuning| tuning.tree_order(7)).open(&narrow).unwrap();
    (0..60u32).for_each(|number| store.put(number.to_be_bytes(), "value").unwrap());
    assert!(node_count(&store) > 8.0);
    store.close().unwrap();
    assert!(node_count(&ink().tuning(|tuning| tuning.tree_order(255)).open(&narrow).unwrap()) > 8.0);
    let store = ink().open(&wide).unwrap();
    (0..60u32).for_each(|number| store.put(number.to_be_bytes(), "value").unwrap());
    assert_eq!(node_count(&store), 1.0);
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
        // An engine without expiring keys refuses a store that has some.
        let expires = store.features().expiry;
        if expires {
            store.put_with("passing", "soon", PutOptions::new().ttl(Duration::from_secs(10_000))).unwrap();
        }
        store.close().unwrap();
        for &into in EngineKind::ALL.iter().filter(|into| !expires || offers(**into).expiry) {
            let made = dir.path().join(format!("{from}-{into}"));
            assert_eq!(hikv::convert(&path, &made, into, |_| {}).unwrap().items, 300 + u64::from(expires));
            let store = Store::open(&made).unwrap();
            assert_eq!((store.engine_kind(), store.len().unwrap()), (into, 300 + u64::from(expires)));
            for number in 0..300u32 {
                let value = store.get(number.to_be_bytes()).unwrap();
                assert_eq!(value, Some(format!("value {number}").into_bytes().into()), "{from} to {into}");
            }
            assert_eq!(matches!(store.ttl("passing").unwrap(), Some(hikv::Ttl::Left(_))), expires, "{from} to {into}");
            assert!(store.verify(|_| {}).unwrap().damage.is_empty());
        }
    }
}

/// An engine without snapshots is backed up while its store is open for reading only.
#[test]
fn backup_is_of_same_engine() {
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
fn numbered_walks_show_each_key_once() {
    let dir = tempdir().unwrap();
    for &engine in EngineKind::ALL {
        let path = dir.path().join(engine.name());
        let store = options(engine).open(&path).unwrap();
        for number in 0..500u32 {
            store.put(number.to_be_bytes(), "value").unwrap();
        }
        let (mut at, mut shown, mut numbers) = (0, Vec::new(), Vec::new());
        loop {
            at = store.cursors().walk(at, |key, _| shown.push(key.to_vec())).unwrap();
            if at == 0 {
                break;
            }
            numbers.push(at);
        }
        shown.sort();
        assert!(shown.iter().eq((0..500u32).map(|number| number.to_be_bytes()).collect::<Vec<_>>().iter()), "{engine}");
        assert!(
            !numbers.is_empty() && numbers.iter().all(|&number| store.cursors().walk(number, |_, _| ()).is_ok()),
            "{engine}"
        );
        let anywhere = store.cursors().random(7).unwrap();
        assert!(store.cursors().walk(anywhere, |_, _| ()).is_ok(), "{engine}");
        let made_up = store.cursors().walk(12_345, |_, _| ());
        let is_numbered = store.features().numbered_walk;
        assert!(if is_numbered {
            made_up.is_ok()
        } else {
            matches!(made_up, Err(Error::CursorForgotten { number: 12_345 }))
        });
    }
}

#[test]
fn repair_without_salvage_is_refused() {
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

/// Nothing reaps here, so the write that removes an expired key reports it.
#[test]
fn write_reports_expired_key_it_removes() {
    let dir = tempdir().unwrap();
    for &engine in EngineKind::ALL {
        let clock = Clock::manual(1000);
        let store = options(engine).clock(clock.clone()).open(dir.path().join(engine.name())).unwrap();
        if !store.features().expiry {
            continue;
        }
        let reported = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&reported);
        let note = move |key: &[u8]| noted.lock().unwrap().push(String::from_utf8(key.to_vec()).unwrap());
        store.on_expired(Some(Arc::new(note))).unwrap();
        let keys = ["put", "deleted", "swapped", "in a batch", "left alone"];
        keys.iter().for_each(|key| store.put_with(key, "v", PutOptions::new().ttl(Duration::from_secs(1))).unwrap());
        clock.advance(Duration::from_secs(1));
        store.put("put", "w").unwrap();
        assert!(!store.delete("deleted").unwrap());
        assert!(store.compare_and_swap("swapped", None, Some(b"w")).unwrap());
        let mut batch = WriteBatch::new();
        batch.expect_absent("in a batch").put("in a batch", "w").delete("nothing");
        store.write(&batch).unwrap();
        keys.iter().for_each(|key| assert_eq!(store.contains(key).unwrap(), !["deleted", "left alone"].contains(key)));
        assert_eq!(*reported.lock().unwrap(), keys[..4], "{engine}");
    }
}

/// For each kind of write, and for the reaper: the reported value is the expired one, not its replacement.
#[test]
fn expired_items_are_reported_with_their_values() {
    const LIFE: Duration = Duration::from_secs(1);
    let dir = tempdir().unwrap();
    for &engine in EngineKind::ALL {
        let clock = Clock::manual(1000);
        let options = options(engine).clock(clock.clone()).background(false);
        let store = options.open(dir.path().join(engine.name())).unwrap();
        if !store.features().expiry {
            continue;
        }
        let reported = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&reported);
        let note = move |key: &[u8], value: &[u8], expiry: Expiry| {
            noted.lock().unwrap().push((key.to_vec(), value.to_vec(), expiry));
        };
        store.on_expired_item(Arc::new(note)).unwrap();
        let long = vec![7; 5_000];
        let keys =
            ["put", "deleted", "swapped", "in a batch", "also in a batch", "one of many", "two of many", "reaped"];
        let old = |number: usize| if number.is_multiple_of(2) { b"old".to_vec() } else { long.clone() };
        keys.iter()
            .enumerate()
            .for_each(|(number, key)| store.put_with(key, old(number), PutOptions::new().ttl(LIFE)).unwrap());
        let expiry = store.get_item("put").unwrap().unwrap().expiry;
        clock.advance(LIFE);
        store.put("put", "new").unwrap();
        assert!(!store.delete("deleted").unwrap());
        assert!(store.compare_and_swap("swapped", None, Some(b"new")).unwrap());
        let mut batch = WriteBatch::new();
        batch.put("in a batch", "new").delete("also in a batch");
        store.write(&batch).unwrap();
        store.multi_put([("one of many", "new"), ("two of many", "new")]).unwrap();
        while reported.lock().unwrap().len() < keys.len() && store.background().step().unwrap().is_more {}
        let mut reported = std::mem::take(&mut *reported.lock().unwrap());
        reported.sort();
        let mut expected: Vec<_> =
            keys.iter().enumerate().map(|(number, key)| (key.as_bytes().to_vec(), old(number), expiry)).collect();
        expected.sort();
        assert!(reported == expected, "{engine}: {} of {} items, or other values", reported.len(), expected.len());
        store.on_expired(None).unwrap();
    }
}

/// The clock moves between two reads of it. Either the deleter finds the key, or the callback reports it as expired.
#[test]
fn key_is_deleted_or_expired_not_both() {
    type Delete = fn(&Store, &str) -> bool;
    let deletes: [Delete; 2] =
        [|store, key| store.delete(key).unwrap(), |store, key| store.update(key, |_| Decision::Delete).unwrap()];
    let engines = EngineKind::ALL.iter().map(|&engine| (engine, tempdir().unwrap()));
    for (engine, dir) in engines {
        let options = options(engine).clock(Clock::ticking(1_000_000)).durability(Durability::Buffered);
        let store = options.open(dir.path()).unwrap();
        if !store.features().expiry {
            continue;
        }
        let reported = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&reported);
        store.on_expired(Some(Arc::new(move |_| _ = count.fetch_add(1, Ordering::Relaxed)))).unwrap();
        for (delete, left_ms) in (0..24).flat_map(|left_ms| deletes.map(|delete| (delete, left_ms))) {
            store.put_with("key", "value", PutOptions::new().ttl(Duration::from_millis(left_ms))).unwrap();
            reported.store(0, Ordering::Relaxed);
            let was_there = delete(&store, "key");
            assert_eq!(u32::from(was_there) + reported.load(Ordering::Relaxed), 1, "{engine}, {left_ms} ms after");
        }
    }
}

/// The store's worker sleeps forever; the deletes wake it.
#[test]
fn tree_shrinks_in_background() {
    let dir = tempdir().unwrap();
    let options = Options::new().engine(EngineKind::Ink).durability(Durability::Buffered);
    let store = options.open(dir.path()).unwrap();
    let wait_until = |what: &str, is_so: &dyn Fn() -> bool| {
        let deadline = Instant::now() + Duration::from_secs(50);
        while !is_so() {
            assert!(Instant::now() < deadline, "{what} in 50 seconds");
            thread::yield_now();
        }
    };
    (0..3000u32).for_each(|i| store.put(i.to_be_bytes(), "value").unwrap());
    wait_until("not all sleep", &|| store.stats().awake_worker_count == 0);
    (100..3000u32).for_each(|i| assert!(store.delete(i.to_be_bytes()).unwrap()));
    wait_until("nothing was merged", &|| store.stats().figure("ink_merged").unwrap() > 30.0);
    assert_eq!(store.len().unwrap(), 100);
}

/// The header of a leaf, without which InK cannot count its keys.
#[test]
fn uncountable_damage_is_reported() {
    let dir = tempdir().unwrap();
    let store = options(EngineKind::Ink).durability(Durability::Process).open(dir.path()).unwrap();
    (0..1000u32).for_each(|i| store.put(i.to_be_bytes(), "value").unwrap());
    let path = hikv::FrontEnd::of(&store).region_path();
    store.close().unwrap();
    let mut bytes = fs::read(&path).unwrap();
    let named = |bytes: &[u8], at: usize| {
        usize::try_from(u64::from_le_bytes(*bytes[at..].first_chunk().unwrap()) & ((1 << 48) - 1)).unwrap()
    };
    let root = named(&bytes, ENGINE_AREA.0 as usize);
    let leaf = named(&bytes, root + 8);
    bytes[leaf] ^= 1;
    fs::write(&path, bytes).unwrap();
    let store = Store::open_read_only(dir.path()).unwrap();
    let mut reported = Vec::new();
    let damage = store.verify(|at| reported.push(at.items)).unwrap().damage;
    assert!(damage.iter().any(|found| found.offset == leaf as u64), "{damage:?}");
    assert_eq!(reported[0], 0, "what there is to check is told before the first item");
}
