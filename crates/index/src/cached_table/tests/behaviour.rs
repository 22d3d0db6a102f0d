//! Compares the table with a map, in one thread: the table finds the map's values, and the memory stays within its
//! bound.

use std::collections::BTreeMap;

use heap::HeapError;

use crate::cached_table::{CacheStats, CachedTable, LIMIT_BYTES_MIN, Lookup, LookupKey, NewCopy, Write};
use pmem_sim::SimDram;

const NEVER: u64 = u64::MAX;

fn signature(key: &[u8]) -> u64 {
    key.iter().fold(0x9E37_79B9_7F4A_7C15, |hash: u64, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0xD6E8_FEB8_6659_FD93).rotate_left(29)
    })
}

fn lookup_key(key: &[u8]) -> LookupKey<'_> {
    LookupKey { bytes: key, signature: signature(key) }
}

fn copy(value: &[u8]) -> NewCopy<'_> {
    NewCopy { value, version: [value.len() as u64, 7], expiry_ms: NEVER }
}

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// A store that is a map, with a cached table.
struct Store {
    cache: CachedTable,
    map: Map,
}

impl Store {
    fn new(limit_bytes: u64) -> Store {
        Store { cache: CachedTable::new(limit_bytes, SimDram).unwrap(), map: Map::new() }
    }

    fn put(&mut self, key: &[u8], value: &[u8]) {
        let write = self.cache.begin(lookup_key(key));
        self.map.insert(key.to_vec(), value.to_vec());
        write.put(&copy(value));
    }

    fn delete(&mut self, key: &[u8]) {
        let write = self.cache.begin(lookup_key(key));
        match self.map.remove(key) {
            Some(_) => write.removed(),
            None => write.unchanged(),
        }
    }

    /// Reads a key, compares the result with the map, and returns true if the table answered without the map.
    fn is_cached(&self, key: &[u8]) -> bool {
        let held = self.map.get(key);
        let lookup = self.cache.lookup(lookup_key(key), || 0, |copied| (copied.value.to_vec(), copied.version));
        match lookup {
            Lookup::Hit((value, version)) => {
                assert_eq!((Some(&value), version), (held, [value.len() as u64, 7]), "{key:?}");
                true
            }
            Lookup::Absent => {
                assert_eq!(held, None, "{key:?}");
                true
            }
            Lookup::Miss(permit) => {
                if let (Some(permit), Some(value)) = (permit, held) {
                    self.cache.admit(permit, lookup_key(key), &copy(value));
                }
                false
            }
        }
    }

    fn stats(&self) -> CacheStats {
        self.cache.stats()
    }
}

fn key(i: u64) -> Vec<u8> {
    let mut key = format!("key {i}").into_bytes();
    key.resize(if i.is_multiple_of(3) { 16 } else { key.len() }, b'.');
    key
}

#[test]
fn finds_items_of_any_length() {
    let mut random = fastrand::Rng::with_seed(3);
    for limit_bytes in [LIMIT_BYTES_MIN, 1 << 20, 16 << 20] {
        let mut store = Store::new(limit_bytes);
        for round in 0..60_000 {
            let key = key(random.u64(..2000));
            let len = if random.u8(..20) == 0 { random.usize(..5000) } else { random.usize(..40) };
            match random.u8(..10) {
                0..3 => store.put(&key, &vec![round as u8; len]),
                3 => store.delete(&key),
                _ => _ = store.is_cached(&key),
            }
        }
        let stats = store.stats();
        assert!(stats.hit_count > 1000 && stats.dram_bytes <= limit_bytes, "{stats:?}");
        assert!(stats.live_bytes <= limit_bytes, "{stats:?}");
        assert_eq!(stats.evicted_count > 0, limit_bytes < 16 << 20, "{stats:?}");
    }
}

/// If the table has space for all copies, no search needs the store, whatever is inserted and removed: copies are
/// moved together where others were removed.
#[test]
fn table_with_space_for_all_answers_all() {
    let mut store = Store::new(4 << 20);
    for i in 0..60_000 {
        store.put(&key(i), &[i as u8; 15]);
        store.delete(&key(i.saturating_sub(2000)));
    }
    let missed = (0..70_000).filter(|&i| !store.is_cached(&key(i))).count();
    let stats = store.stats();
    assert!(missed < 100 && stats.evicted_count < 100, "{missed} {stats:?}");
    assert!(stats.absent_count > 60_000, "{stats:?}");
}

/// A write hides by the tag alone. A key with the same signature is never absent to readers because of that, and its
/// copy comes back.
#[test]
fn copy_with_equal_signature_is_refetched() {
    let cache = CachedTable::new(LIMIT_BYTES_MIN, SimDram).unwrap();
    let [one, other] = [b"one key", b"another"].map(|bytes| LookupKey { bytes, signature: 77 });
    let looked = |key| cache.lookup(key, || 0, |copy| copy.value.to_vec());
    for key in [one, other] {
        cache.begin(key).put(&copy(key.bytes));
        assert!(matches!(looked(key), Lookup::Hit(value) if value == key.bytes));
    }
    let ends: [fn(Write<'_, '_>); 4] =
        [|write| write.put(&copy(b"new")), |write| write.removed(), |write| write.unchanged(), |write| drop(write)];
    for end in ends {
        cache.begin(other).put(&copy(b"other"));
        let write = cache.begin(one);
        assert!(matches!(looked(other), Lookup::Miss(None)), "nothing is sure while a write is pending");
        end(write);
        let Lookup::Miss(Some(permit)) = looked(other) else { panic!("the store has the key") };
        cache.admit(permit, other, &copy(b"other"));
        assert!(matches!(looked(other), Lookup::Hit(value) if value == b"other"));
    }
}

#[test]
fn read_copy_stays_during_eviction() {
    let mut store = Store::new(1 << 20);
    (0..100).for_each(|i| store.put(&key(i), &[1; 100]));
    for i in 100..50_000 {
        store.put(&key(i), &[2; 100]);
        store.is_cached(&key(i % 100));
    }
    let kept = (0..100).filter(|&i| store.is_cached(&key(i))).count();
    assert!(kept > 90, "{kept}");
}

#[test]
fn evicted_key_is_not_absent() {
    let mut store = Store::new(LIMIT_BYTES_MIN);
    (0..5000).for_each(|i| store.put(&key(i), &[3; 20]));
    assert!(store.stats().evicted_count > 0);
    (0..5000).for_each(|i| _ = store.is_cached(&key(i)));
}

/// In the table of a store that had items before, a miss does not prove an absence.
#[test]
fn misses_are_unsure_until_filled() {
    let mut store = Store::new(1 << 20);
    store.map.insert(key(1), vec![1]);
    store.cache.is_unfilled();
    assert!(!store.is_cached(&key(2)));
    assert!(!store.is_cached(&key(1)) && store.is_cached(&key(1)));
    store.cache.is_filled();
    assert!(store.is_cached(&key(2)));
}

#[test]
fn refused_copy_makes_bucket_incomplete() {
    let mut store = Store::new(1 << 20);
    store.put(&key(1), &[1; 5000]);
    assert!(!store.is_cached(&key(1)));
    assert_eq!(store.stats().absent_count, 0);
}

#[test]
fn expired_copy_is_left_to_store() {
    let cache = CachedTable::new(LIMIT_BYTES_MIN, SimDram).unwrap();
    cache.begin(lookup_key(b"k")).put(&NewCopy { value: b"v", version: [1, 2], expiry_ms: 50 });
    let at = |now_ms| cache.lookup(lookup_key(b"k"), || now_ms, |copied| (copied.value.to_vec(), copied.expiry_ms));
    assert!(matches!(at(49), Lookup::Hit((value, 50)) if value == b"v"));
    assert!(matches!(at(50), Lookup::Miss(None)));
}

/// A permit is void once a write of the bucket began, or while one is pending.
#[test]
fn ticket_ends_with_next_write() {
    let cache = CachedTable::new(LIMIT_BYTES_MIN, SimDram).unwrap();
    cache.is_unfilled();
    let lookup = || cache.lookup(lookup_key(b"k"), || 0, |copied| copied.value.to_vec());
    let Lookup::Miss(Some(early)) = lookup() else { panic!("there is no permit") };
    let write = cache.begin(lookup_key(b"k"));
    cache.admit(early, lookup_key(b"k"), &copy(b"old"));
    assert!(matches!(lookup(), Lookup::Miss(None)));
    write.put(&copy(b"new"));
    cache.admit(early, lookup_key(b"k"), &copy(b"old"));
    assert!(matches!(lookup(), Lookup::Hit(value) if value == b"new"));
    drop(cache.begin(lookup_key(b"k")));
    assert!(matches!(lookup(), Lookup::Miss(Some(_))));
}

/// After two overlapping writes, neither determines the key's copy: only the store knows which was the last.
#[test]
fn writes_that_overlap_leave_nothing() {
    let cache = CachedTable::new(LIMIT_BYTES_MIN, SimDram).unwrap();
    let lookup = || cache.lookup(lookup_key(b"k"), || 0, |copied| copied.value.to_vec());
    let (first, second) = (cache.begin(lookup_key(b"k")), cache.begin(lookup_key(b"k")));
    second.put(&copy(b"2"));
    assert!(matches!(lookup(), Lookup::Miss(None)));
    first.put(&copy(b"1"));
    assert!(matches!(lookup(), Lookup::Miss(Some(_))));
    let clear = cache.begin_clear();
    let write = cache.begin(lookup_key(b"k"));
    clear.cleared();
    write.put(&copy(b"3"));
    assert!(matches!(lookup(), Lookup::Miss(Some(_))));
}

#[test]
fn clear_leaves_complete_buckets() {
    let mut store = Store::new(1 << 20);
    (0..1000).for_each(|i| store.put(&key(i), &[1; 9]));
    let clear = store.cache.begin_clear();
    store.map.clear();
    clear.cleared();
    assert!((0..1000).all(|i| store.is_cached(&key(i))));
    assert_eq!(store.stats().live_bytes, 0);
}

#[test]
fn too_little_memory_is_an_error() {
    assert!(matches!(CachedTable::new(1 << 60, SimDram), Err(HeapError::NoDram { .. })));
}
