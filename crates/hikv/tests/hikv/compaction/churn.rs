//! Deletes and re-inserts items of changing sizes, ten times the live amount, which stays constant.

use hikv::{Options, Store};
use testkit::Stamped;

use crate::compaction::{allocated_bytes, assert_sound, compact_until, place, wait_until};

/// Keys that stay, with values of 1,000 bytes on average: about 64 MiB.
const KEY_COUNT: u64 = 64_000;
const CHURNED_TIMES: u64 = 10;
/// Keys that are deleted together and put again with other values.
const GROUP_COUNT: u64 = 640;
/// Bytes of an item in addition to key and value.
const HEADER_BYTES: u64 = 16;

/// A key's present value: the number of its put, and its length.
#[derive(Clone, Copy, Default)]
struct Present {
    put: u64,
    value_bytes: u64,
}

struct Churn<'a> {
    store: &'a Store,
    random: u64,
    present: Vec<Present>,
}

impl Churn<'_> {
    fn new(store: &Store) -> Churn<'_> {
        Churn { store, random: 7, present: vec![Present::default(); KEY_COUNT as usize] }
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 33) % bound
    }

    /// Returns a length from 20 to 2,000 bytes. Each round favours other lengths, small and large, so that space is
    /// not simply reused by items of the same length.
    fn filler_bytes(&mut self, round: u64) -> usize {
        let (any, near) = (self.below(1_960), (round * 311 % 900) + self.below(100));
        let drawn = if self.below(3) == 0 { any } else { [near, 1_959 - near][self.below(2) as usize] };
        drawn as usize
    }

    fn put(&mut self, key: u64, round: u64) {
        let value = Stamped { key, put: round }.value(self.filler_bytes(round));
        assert!((20..=2_000).contains(&value.len()), "{} bytes", value.len());
        self.store.put(key.to_be_bytes(), &value).unwrap();
        self.present[key as usize] = Present { put: round, value_bytes: value.len() as u64 };
    }

    /// Puts all keys, then deletes and re-inserts as many as there are, ten times, in random groups.
    fn run(&mut self) {
        (0..KEY_COUNT).for_each(|key| self.put(key, 0));
        for round in 1..=CHURNED_TIMES {
            for _ in 0..KEY_COUNT / GROUP_COUNT {
                let mut keys: Vec<u64> = (0..GROUP_COUNT).map(|_| self.below(KEY_COUNT)).collect();
                keys.sort_unstable();
                keys.dedup();
                keys.iter().for_each(|key| assert!(self.store.delete(key.to_be_bytes()).unwrap()));
                keys.iter().for_each(|&key| self.put(key, round));
            }
        }
    }

    fn assert_all_there(&self) {
        assert_eq!(self.store.len().unwrap(), KEY_COUNT);
        for (key, &Present { put, value_bytes }) in (0..).zip(&self.present) {
            let value = self.store.get(u64::to_be_bytes(key)).unwrap().expect("the key is there");
            assert_eq!((value.len() as u64, Stamped::read(&value)), (value_bytes, Some(Stamped { key, put })));
        }
    }

    /// Returns the occupied space divided by the bytes of keys, values and item headers.
    fn ratio(&self) -> f64 {
        let values: u64 = self.present.iter().map(|present| present.value_bytes).sum();
        allocated_bytes(self.store) as f64 / (values + KEY_COUNT * (8 + HEADER_BYTES)) as f64
    }
}

const RATIO_MAX: f64 = 1.3;

#[test]
fn compaction_on_request_frees_dead_space() {
    let place = place();
    let store = Options::new().background(false).open(place.path()).unwrap();
    let mut churn = Churn::new(&store);
    churn.run();
    let before = churn.ratio();
    assert!(before > RATIO_MAX, "{before} without compaction: nothing is shown");
    let (mut shown, mut freed_bytes) = (0, 0);
    let compacted = store.compact(|at| {
        assert!(at.freed_bytes >= freed_bytes);
        (shown, freed_bytes) = (shown + 1, at.freed_bytes);
    });
    let compacted = compacted.unwrap();
    assert!(shown > 0 && compacted.moved_items > 0 && compacted.damaged.is_empty(), "{compacted:?}");
    assert_eq!(compacted.taken_bytes_after, allocated_bytes(&store));
    if churn.ratio() > RATIO_MAX {
        compact_until(&store, || churn.ratio() <= RATIO_MAX);
    }
    churn.assert_all_there();
    assert_sound(&store);
    reopened_and_used(&place, store);
}

/// Opening finds the returned space, and writers use it.
fn reopened_and_used(place: &tempfile::TempDir, store: Store) {
    store.close().unwrap();
    let store = Options::new().tuning(|tuning| tuning.compact_above(None)).open(place.path()).unwrap();
    assert_eq!(store.len().unwrap(), KEY_COUNT);
    let region_bytes = store.stats().region_bytes;
    let free_bytes = store.stats().free_bytes;
    for number in 0..free_bytes / 2_000 / 2 {
        store.put(format!("new {number}"), [7; 1_950]).unwrap();
    }
    assert!(store.stats().region_bytes <= region_bytes + (8 << 20), "free space was not used again");
    assert_sound(&store);
}

#[test]
fn background_compaction_bounds_file_size() {
    let place = place();
    let store = Options::new().open(place.path()).unwrap();
    let mut churn = Churn::new(&store);
    churn.run();
    wait_until("space given back", || churn.ratio() <= RATIO_MAX);
    churn.assert_all_there();
    assert_sound(&store);
    let stats = store.stats();
    assert!(stats.moved_count > 0 && stats.freed_bytes > 0, "{stats:?}");
}

#[test]
fn compaction_without_gain_does_nothing() {
    let place = place();
    // A background that still prepared free space for writers would create space to return.
    let store = Options::new().background(false).open(place.path()).unwrap();
    for number in 0..50_000u64 {
        store.put(number.to_be_bytes(), [7; 500]).unwrap();
    }
    compact_until(&store, || store.stats().garbage_count == 0);
    let compacted = store.compact(|_| {}).unwrap();
    assert_eq!((compacted.moved_items, compacted.freed_bytes), (0, 0), "{compacted:?}");
}
