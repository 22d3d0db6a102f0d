//! A move is not a change: a snapshot sees the copy as it saw the original, and keeps neither.

use hikv::{Options, Store};

use crate::compaction::{assert_sound, free_most, place};

const ITEM_COUNT: u64 = 20_000;
const VALUE_BYTES: usize = 700;

fn key(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

fn put(store: &Store, number: u64, fill: u8) {
    store.put(key(number), [fill; VALUE_BYTES]).unwrap();
}

#[test]
fn snapshot_sees_moved_and_replaced_items() {
    let dir = place();
    let store = Options::new().tuning(|tuning| tuning.compact_above(None)).open(dir.path()).unwrap();
    (0..ITEM_COUNT).for_each(|number| put(&store, number, 1));
    (0..ITEM_COUNT).filter(|number| number % 4 > 0).for_each(|number| _ = store.delete(key(number)).unwrap());
    let snapshot = store.snapshot().unwrap();
    (0..ITEM_COUNT).step_by(8).for_each(|number| put(&store, number, 2));
    let kept_count = store.stats().kept_count;
    free_most(&store);
    let compacted = store.compact(|_| {}).unwrap();
    assert!(compacted.moved_items > ITEM_COUNT / 16, "{compacted:?}");
    assert_eq!((store.stats().kept_count, kept_count), (ITEM_COUNT / 8, ITEM_COUNT / 8));
    for number in 0..ITEM_COUNT {
        let then = number.is_multiple_of(4).then(|| vec![1; VALUE_BYTES]);
        assert_eq!(snapshot.get(key(number)).unwrap().map(Vec::from), then, "key {number}");
        let now = then.map(|_| vec![if number.is_multiple_of(8) { 2 } else { 1 }; VALUE_BYTES]);
        assert_eq!(store.get(key(number)).unwrap().map(Vec::from), now, "key {number}");
    }
    drop(snapshot);
    assert_eq!(store.stats().kept_count, 0);
    assert_sound(&store);
}
