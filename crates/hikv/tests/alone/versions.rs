//! Values with colliding checksums, in the place of the value that was read: their versions, and transactions.

use hikv::{Durability, EngineKind, Error, Options, Store, WriteBatch};
use testkit::forged;

use crate::alone;

const KEY: &str = "key";

/// The number of times that the read value must return to its old place; the forged one is there equally often on
/// average.
const RETURN_COUNT: usize = 12;

/// More writes than any engine needs for that.
const WRITE_COUNT_MAX: usize = 600_000;
/// The writes after which another place is watched.
const WRITES_PER_PLACE: usize = 20_000;

/// Returns true if a write succeeds on condition of the version.
fn is_met(store: &Store, version: hikv::Version) -> bool {
    let mut batch = WriteBatch::new();
    batch.expect_version(KEY, version).put("mine", "1");
    match store.write(&batch) {
        Ok(()) => true,
        Err(Error::ConditionFailed { condition: 0 }) => false,
        Err(error) => panic!("{error}"),
    }
}

/// Writes the read value and the forged one in random turns, until the read value was often in its old place.
fn is_distinguished(kind: EngineKind, value: &[u8]) {
    let dir = tempfile::tempdir().unwrap();
    let store =
        Options::new().engine(kind).background(false).durability(Durability::Buffered).open(dir.path()).unwrap();
    store.put(KEY, value).unwrap();
    let version = || store.get_item(KEY).unwrap().expect("it was put").version;
    let (mut seen, other, mut rng) = (version(), forged(value), fastrand::Rng::with_seed(7));
    let mut return_count = 0;
    for number in 0..WRITE_COUNT_MAX {
        // The allocator may never come back to a place.
        if number % WRITES_PER_PLACE == 0 {
            store.put(KEY, value).unwrap();
            seen = version();
        }
        let is_seen = rng.bool();
        store.put(KEY, if is_seen { value } else { &other }).unwrap();
        let is_same = version() == seen;
        assert!(is_seen || !is_same, "{}: the version of another value", kind.name());
        assert_eq!(is_met(&store, seen), is_same, "{}", kind.name());
        return_count += usize::from(is_same);
        if return_count == RETURN_COUNT {
            return;
        }
    }
    // A stamp never returns, and neither does a value that is stored in its slot and is its own version.
    assert!(kind == EngineKind::Ink, "{}: the place was used again {return_count} times alone", kind.name());
}

#[test]
fn forged_value_has_another_version() {
    let _alone = alone();
    for &kind in EngineKind::ALL.iter().filter(|kind| kind.name() != "toy") {
        is_distinguished(kind, &[7; 100]);
    }
}

/// The number of times that the forged value must replace the read one in its place.
const REUSE_COUNT: usize = 6;

/// The memory of a read cache: transactions read copies from it.
const CACHE_BYTES: u64 = 1 << 20;

fn place(store: &Store) -> u64 {
    store.get_item(KEY).unwrap().expect("it was put").version.words()[0]
}

/// Commits transactions that have read a value whose place then gets a value with the same checksum.
fn reuse_is_a_conflict(kind: EngineKind, value: &[u8], cache_bytes: u64) {
    let dir = tempfile::tempdir().unwrap();
    let options = Options::new().engine(kind).background(false).durability(Durability::Buffered);
    let store = options.read_cache_bytes(cache_bytes).open(dir.path()).unwrap();
    store.put("other", value).unwrap();
    let (other, mut reuse_count, mut write_count) = (forged(value), 0, 0);
    while reuse_count < REUSE_COUNT {
        store.put(KEY, value).unwrap();
        // With a cache, the first read copies the value.
        let seen = place(&store);
        let [reading, writing] = [false, true].map(|writes| {
            let tx = store.begin().unwrap();
            assert!(tx.get(KEY).unwrap().is_some() && tx.get("other").unwrap().is_some());
            if writes {
                tx.put("mine", "1").unwrap();
            }
            tx
        });
        // The allocator may never come back to a place.
        let is_reused = (0..WRITES_PER_PLACE).any(|_| {
            store.put(KEY, &other).unwrap();
            write_count += 1;
            place(&store) == seen
        });
        assert!(matches!(reading.commit(), Err(Error::Conflict)), "{}: the reads were at no moment", kind.name());
        assert!(matches!(writing.commit(), Err(Error::Conflict)), "{}: a lost update", kind.name());
        reuse_count += usize::from(is_reused);
        assert!(write_count < WRITE_COUNT_MAX, "{}: a place was used again {reuse_count} times alone", kind.name());
    }
}

#[test]
fn forged_value_in_place_is_a_conflict() {
    let _alone = alone();
    for kind in [EngineKind::HiKv, EngineKind::RewoHash, EngineKind::Pmekv] {
        reuse_is_a_conflict(kind, &[7; 100], 0);
    }
    for kind in [EngineKind::HiKv, EngineKind::RewoHash] {
        reuse_is_a_conflict(kind, &[7; 100], CACHE_BYTES);
    }
}
