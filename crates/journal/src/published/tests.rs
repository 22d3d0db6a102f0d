//! Tests of a place's content, and of every interleaving of writers, a reader and the syncing thread, with the
//! reorderings that the memory model allows. Broken variants must be caught.

mod interleavings;

use super::*;

#[test]
fn key_is_found_no_earlier_than_published() {
    let published: Published = Published::new();
    let keys: Vec<u64> = (1..100_000).map(|i| i * 16).collect();
    for (&key, position) in keys.iter().zip(1..) {
        published.note(key, position);
        assert_eq!(published.position(key), position);
    }
    assert!(keys.iter().zip(1..).all(|(&key, position)| published.position(key) >= position));
    let same = keys.iter().zip(1..).filter(|&(&key, position)| published.position(key) == position);
    assert_eq!(same.count(), 1 << PLACE_COUNT_LOG2, "every place is used");
}
