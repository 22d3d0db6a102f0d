//! What a place holds; and every interleaving of writers, a reader and who syncs, with the reorderings that the memory model
//! allows, and the twins that must be caught.

mod interleavings;

use super::*;

#[test]
fn a_word_is_found_with_any_marks_and_never_earlier_than_it_was_published() {
    let published: Published = Published::new();
    let words: Vec<u64> = (1..100_000).map(|i| i * 16).collect();
    for (&word, position) in words.iter().zip(1..) {
        published.note(word, position);
        assert_eq!(published.position(word | 1 << POSITION_OFFSET_BITS), position);
    }
    assert!(words.iter().zip(1..).all(|(&word, position)| published.position(word) >= position));
    let same = words.iter().zip(1..).filter(|&(&word, position)| published.position(word) == position);
    assert_eq!(same.count(), 1 << PLACE_COUNT_LOG2, "every place is used");
}
