//! A tree on a crash medium. Scripts' keys are shorter than the tree's: padded with zeros, the length last, they keep
//! their order.

use std::ops::{Bound, ControlFlow};

use heap::HeapError;
use pmem_sim::{Model, Sim, SimDram};
use rivals::{Sizes, Tree, TreeError};
use testkit::{Direction, Failure, Operations, Subject, Visit};

use crate::subject::{padded, unpadded};

/// So few entries that some keys fill a leaf.
pub(crate) const SIZES: Sizes = Sizes { leaf_entry_count: 4, region_bytes: 1 << 20 };

/// Keys and values.
type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

/// A tree that is tested.
pub(crate) struct Tested<T>(pub(crate) T);

pub(crate) fn fresh<T: Tree<Sim, SimDram>>() -> Tested<T> {
    Tested(T::format(Sim::new(SIZES.region_bytes, Model::Line), SimDram, &SIZES).expect("there is space"))
}

fn failure(error: TreeError) -> Failure {
    match error {
        TreeError::Heap(HeapError::Unformatted) => Failure::Unfinished,
        TreeError::Heap(error) if error.is_full() => Failure::Full,
        other => Failure::Other(other.to_string()),
    }
}

impl<T: Tree<Sim, SimDram>> Tested<T> {
    /// Returns all keys and values that a scan shows.
    fn scanned(&self) -> Result<Pairs, Failure> {
        let mut shown = Vec::new();
        let scanned = self.0.scan(&[0; 16], &mut |key, value| {
            shown.push((unpadded(key).to_vec(), value.to_vec()));
            ControlFlow::Continue(())
        });
        scanned.map(|()| shown).map_err(failure)
    }
}

impl<T: Tree<Sim, SimDram>> Operations for Tested<T> {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Failure> {
        let mut value = None;
        self.0.get(&padded(key), |found| value = Some(found.to_vec())).map_err(failure)?;
        Ok(value)
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        self.0.put(&padded(key), value).map_err(failure)
    }

    fn delete(&self, key: &[u8]) -> Result<bool, Failure> {
        self.0.delete(&padded(key)).map_err(failure)
    }

    /// The trees scan forward. A backward scan is a forward one of everything, reversed.
    fn scan(&self, from: Bound<&[u8]>, direction: Direction, each: &mut Visit<'_>) -> Result<bool, Failure> {
        if direction == Direction::Forward {
            let (first, excluded) = match from {
                Bound::Unbounded => ([0; 16], None),
                Bound::Included(key) => (padded(key), None),
                Bound::Excluded(key) => (padded(key), Some(padded(key))),
            };
            let shown = self.0.scan(&first, &mut |key, value| match excluded {
                Some(excluded) if excluded == *key => ControlFlow::Continue(()),
                _ => each(unpadded(key), value),
            });
            return shown.map(|()| true).map_err(failure);
        }
        let is_in = |key: &[u8]| match from {
            Bound::Unbounded => true,
            Bound::Included(from) => key <= from,
            Bound::Excluded(from) => key < from,
        };
        for (key, value) in self.scanned()?.iter().rev().filter(|(key, _)| is_in(key)) {
            if each(key, value).is_break() {
                break;
            }
        }
        Ok(true)
    }

    /// The trees cannot be cleared atomically.
    fn clear(&self) -> Result<(), Failure> {
        Err(Failure::Full)
    }

    fn len(&self) -> Result<u64, Failure> {
        self.0.len().map_err(failure)
    }

    fn for_each(&self, each: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Failure> {
        self.scanned()?.iter().for_each(|(key, value)| each(key, value));
        Ok(())
    }
}

impl<T: Tree<Sim, SimDram> + Send + Sync + 'static> Subject for Tested<T> {
    type Medium = Sim;

    fn format(medium: Sim) -> Result<Tested<T>, Failure> {
        T::format(medium, SimDram, &SIZES).map(Tested).map_err(failure)
    }

    fn open(medium: Sim) -> Result<Tested<T>, Failure> {
        T::open(medium, SimDram).map(Tested).map_err(failure)
    }
}
