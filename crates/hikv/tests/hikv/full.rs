//! A full region: the operations that still work, and the advice in the errors.

use hikv::{Durability, EngineKind, Error, Options, Store, WriteBatch};
use tempfile::{TempDir, tempdir};

/// Several sizes, so that the remaining space holds no batch record.
const VALUE_LENS_BYTES: [usize; 5] = [30_000, 4_000, 250, 20, 1];

fn full_store(engine: EngineKind) -> (TempDir, Store) {
    let dir = tempdir().unwrap();
    let options = Options::new().engine(engine).region_bytes_max(16 << 20).durability(Durability::Buffered);
    let store = options.open(dir.path()).unwrap();
    (0..10).for_each(|number| store.put(format!("4000:{number}"), vec![1; 4_000]).unwrap());
    for len_bytes in VALUE_LENS_BYTES {
        let refused = |number: &u32| store.put(format!("{len_bytes}:{number}"), vec![1; len_bytes]).is_err();
        (0..).find(refused).expect("a region has an end");
    }
    (dir, store)
}

fn deletes(keys: &[&str]) -> WriteBatch {
    let mut batch = WriteBatch::new();
    keys.iter().for_each(|key| _ = batch.delete(key));
    batch
}

fn version(store: &Store, key: &str) -> hikv::Version {
    store.get_item(key).unwrap().expect("it is there").version
}

#[test]
fn batch_of_one_delete_needs_no_space() {
    for &engine in EngineKind::ALL.iter().filter(|kind| kind.name() != "toy") {
        let (_dir, store) = full_store(engine);
        if matches!(engine, EngineKind::HiKv | EngineKind::RewoHash) {
            let refused = store.write(&deletes(&["30000:0", "4000:0"]));
            assert!(refused.is_err_and(|error| error.is_full()), "{engine}");
        }
        let before = store.len().unwrap();
        store.write(&deletes(&["nothing", "nothing"])).unwrap();
        store.write(&deletes(&["4000:1", "4000:1"])).unwrap_or_else(|error| panic!("{engine}: {error}"));
        assert_eq!((store.get("4000:1").unwrap(), store.len().unwrap()), (None, before - 1), "{engine}");
    }
}

#[test]
fn batch_of_one_delete_checks_conditions() {
    for &engine in EngineKind::ALL.iter().filter(|kind| kind.name() != "toy") {
        let (_dir, store) = full_store(engine);
        let (one, other) = (version(&store, "4000:2"), version(&store, "4000:3"));
        let mut batch = deletes(&["4000:2"]);
        batch.expect_version("4000:2", one).expect_version("4000:2", other);
        assert!(matches!(store.write(&batch), Err(Error::ConditionFailed { condition: 1 })), "{engine}");
        let mut batch = deletes(&["4000:2"]);
        batch.expect_absent("4000:2");
        assert!(matches!(store.write(&batch), Err(Error::ConditionFailed { condition: 0 })), "{engine}");
        let mut batch = deletes(&["4000:2"]);
        batch.expect_version("4000:2", one);
        store.write(&batch).unwrap_or_else(|error| panic!("{engine}: {error}"));
        assert!(matches!(store.write(&batch), Err(Error::ConditionFailed { condition: 0 })), "{engine}");
        let mut batch = deletes(&["4000:2"]);
        batch.expect_absent("4000:2");
        store.write(&batch).unwrap();
        assert_eq!(store.get("4000:2").unwrap(), None, "{engine}");
    }
}

#[test]
fn error_says_how_to_gain_space() {
    for &engine in EngineKind::ALL {
        let (_dir, store) = full_store(engine);
        let error = store.put("another", vec![1; 30_000]).unwrap_err().to_string();
        let advice = "; delete single keys, or raise the limit (`Options::region_bytes_max`)";
        assert!(error.ends_with(advice), "{engine}: {error}");
    }
}
