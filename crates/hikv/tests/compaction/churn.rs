//! Deletes and re-inserts of changing sizes, ten times as much as is live, while what is live stays as much.

use hikv::{Options, Store};
use testkit::Stamped;

use crate::{allocated_bytes, assert_sound, place, wait_until};

/// What is live throughout: some tens of thousands of items.
const LIVE_BYTES: u64 = 48 << 20;
/// Each item's own bytes, beside key and value.
const HEADER_BYTES: u64 = 16;
const CHURNED_TIMES: u64 = 10;

/// Keys in the order of their puts: the oldest are not the first to go.
struct Churn<'a> {
    store: &'a Store,
    random: u64,
    next_key: u64,
    /// Keys that are there, with what they were put with, and the bytes that count.
    live: Vec<(u64, u64, u64)>,
    live_bytes: u64,
}

impl Churn<'_> {
    fn new(store: &Store) -> Churn<'_> {
        Churn { store, random: 7, next_key: 0, live: Vec::new(), live_bytes: 0 }
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 33) % bound
    }

    /// Sizes drift: in each tenth of the time other ones are frequent, so that room of one size is not simply used again.
    fn value_bytes(&mut self, phase: u64) -> u64 {
        let around = 16 + phase * 331 % 1_800;
        if self.below(4) == 0 { 16 + self.below(1_985) } else { (around + self.below(200)).min(2_000) }
    }

    fn put(&mut self, phase: u64) {
        let (key, value_bytes) = (self.next_key, self.value_bytes(phase));
        self.next_key += 1;
        let value = Stamped { key, put: phase }.value(value_bytes as usize);
        self.store.put(key.to_be_bytes(), &value).unwrap();
        let bytes = HEADER_BYTES + 8 + value.len() as u64;
        self.live.push((key, phase, bytes));
        self.live_bytes += bytes;
    }

    fn delete(&mut self) {
        let at = self.below(self.live.len() as u64) as usize;
        let (key, _, bytes) = self.live.swap_remove(at);
        assert!(self.store.delete(key.to_be_bytes()).unwrap());
        self.live_bytes -= bytes;
    }

    fn run(&mut self) {
        for phase in 0..=CHURNED_TIMES {
            let mut put_bytes = 0;
            while put_bytes < LIVE_BYTES {
                while self.live_bytes > LIVE_BYTES {
                    self.delete();
                }
                let before = self.live_bytes;
                self.put(phase);
                put_bytes += self.live_bytes - before;
            }
        }
    }

    fn assert_all_there(&self) {
        assert_eq!(self.store.len().unwrap(), self.live.len() as u64);
        for &(key, put, bytes) in &self.live {
            let value = self.store.get(key.to_be_bytes()).unwrap().expect("the key is there");
            assert_eq!(value.len() as u64 + HEADER_BYTES + 8, bytes);
            assert_eq!(Stamped::read(&value), Some(Stamped { key, put }));
        }
    }

    /// Space taken, over keys, values and items' headers.
    fn ratio(&self) -> f64 {
        allocated_bytes(self.store) as f64 / self.live_bytes as f64
    }
}

const RATIO_MAX: f64 = 1.3;

#[test]
fn by_request_the_file_takes_little_more_than_what_is_live() {
    let place = place();
    let store = Options::new().compact_above(None).open(place.path()).unwrap();
    let mut churn = Churn::new(&store);
    churn.run();
    let before = churn.ratio();
    assert!(before > RATIO_MAX, "{before} without compaction: nothing is shown");
    let (mut shown, mut given_back_bytes) = (0, 0);
    let compacted = store.compact(|at| {
        assert!(at.given_back_bytes >= given_back_bytes);
        (shown, given_back_bytes) = (shown + 1, at.given_back_bytes);
    });
    let compacted = compacted.unwrap();
    assert!(churn.ratio() <= RATIO_MAX, "{before} before, {} after {compacted:?}", churn.ratio());
    assert!(shown > 0 && compacted.moved_items > 0 && compacted.damaged.is_empty(), "{compacted:?}");
    assert_eq!(compacted.taken_bytes_after, allocated_bytes(&store));
    churn.assert_all_there();
    assert_sound(&store);
    reopened_and_used(churn.live.len() as u64, &place, store);
}

/// What was given back is found again by opening, and used.
fn reopened_and_used(item_count: u64, place: &tempfile::TempDir, store: Store) {
    store.close().unwrap();
    let store = Options::new().compact_above(None).open(place.path()).unwrap();
    assert_eq!(store.len().unwrap(), item_count);
    let region_bytes = store.stats().region_bytes;
    let free_bytes = store.stats().free_bytes;
    for number in 0..free_bytes / 2_000 / 2 {
        store.put(format!("new {number}"), [7; 1_950]).unwrap();
    }
    assert!(store.stats().region_bytes <= region_bytes + (8 << 20), "free space was not used again");
    assert_sound(&store);
}

#[test]
fn in_the_background_the_file_takes_little_more_than_what_is_live() {
    let place = place();
    let store = Options::new().open(place.path()).unwrap();
    let mut churn = Churn::new(&store);
    churn.run();
    wait_until("space given back", || churn.ratio() <= RATIO_MAX);
    churn.assert_all_there();
    assert_sound(&store);
    let stats = store.stats();
    assert!(stats.moved_count > 0 && stats.given_back_bytes > 0, "{stats:?}");
}

#[test]
fn where_nothing_can_be_gained_nothing_is_done() {
    let place = place();
    let store = Options::new().open(place.path()).unwrap();
    for number in 0..50_000u64 {
        store.put(number.to_be_bytes(), [7; 500]).unwrap();
    }
    store.compact(|_| {}).unwrap();
    let compacted = store.compact(|_| {}).unwrap();
    assert_eq!((compacted.moved_items, compacted.given_back_bytes), (0, 0), "{compacted:?}");
}
