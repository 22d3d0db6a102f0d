//! The memory of the reads and changes in a tree, which a thread keeps for its next transactions.

use std::cell::Cell;
use std::ops::{Deref, DerefMut};

use super::part::Changes;
use super::points::Points;
use super::reads::RangeRead;

/// Trees for which a thread keeps memory.
const SPARE_COUNT: usize = 4;
/// The most memory for points, and for the list of ranges, that a thread keeps for each of them.
const LIST_BYTES_MAX: usize = 1 << 16;

thread_local! {
    static SPARE: [Cell<Option<Box<Memory>>>; SPARE_COUNT] = const { [const { Cell::new(None) }; SPARE_COUNT] };
}

/// The reads and changes in one tree.
#[derive(Debug, Default)]
pub(super) struct Memory {
    pub(super) points: Points,
    pub(super) ranges: Vec<RangeRead>,
    pub(super) changes: Changes,
}

impl Memory {
    fn ranges_bytes(&self) -> usize {
        self.ranges.capacity() * size_of::<RangeRead>()
    }

    fn is_small(&self) -> bool {
        self.points.memory_bytes() <= LIST_BYTES_MAX && self.ranges_bytes() <= LIST_BYTES_MAX
    }
}

/// Memory that is empty at first. When it is dropped, the thread keeps it.
#[derive(Debug)]
pub(super) struct Kept(Option<Box<Memory>>);

impl Kept {
    pub(super) fn new() -> Kept {
        // A thread that ends keeps nothing.
        let spare = SPARE.try_with(|spare| spare.iter().find_map(Cell::take)).ok().flatten();
        Kept(Some(spare.unwrap_or_default()))
    }
}

impl Deref for Kept {
    type Target = Memory;

    #[inline]
    fn deref(&self) -> &Memory {
        self.0.as_deref().expect("it is there until it is dropped")
    }
}

impl DerefMut for Kept {
    #[inline]
    fn deref_mut(&mut self) -> &mut Memory {
        self.0.as_deref_mut().expect("it is there until it is dropped")
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let mut memory = self.0.take().filter(|memory| memory.is_small());
        if let Some(memory) = &mut memory {
            memory.points.clear();
            memory.ranges.clear();
            memory.changes.clear();
        }
        let _ = SPARE.try_with(|spare| {
            for place in spare {
                if memory.is_none() {
                    break;
                }
                memory = place.replace(memory.take());
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ordered::Bounds;

    #[test]
    fn memory_is_used_again_and_is_empty() {
        let points_of = |kept: &Kept| &raw const kept.points;
        let [mut one, two] = [Kept::new(), Kept::new()];
        one.points.note_absent(b"key").unwrap();
        let mut places = [points_of(&one), points_of(&two)];
        drop((one, two));
        let again: Vec<_> = (0..SPARE_COUNT + 1).map(|_| Kept::new()).collect();
        let mut again_places = [points_of(&again[0]), points_of(&again[1])];
        places.sort();
        again_places.sort();
        assert_eq!(places, again_places);
        assert!(again.iter().all(|kept| kept.points.iter().len() == 0));
        drop(again);
        assert!(SPARE.with(|spare| spare.iter().all(|place| place.take().is_some())));
    }

    #[test]
    fn much_memory_is_freed() {
        let mut large = Kept::new();
        large.points.note_absent(&[7; LIST_BYTES_MAX]).unwrap();
        drop(large);
        assert!(Kept::new().points.memory_bytes() <= LIST_BYTES_MAX);
        let mut large = Kept::new();
        large.ranges.resize_with(LIST_BYTES_MAX / size_of::<RangeRead>() + 1, || RangeRead::new(Bounds::ALL));
        drop(large);
        assert!(Kept::new().ranges_bytes() <= LIST_BYTES_MAX);
    }
}
