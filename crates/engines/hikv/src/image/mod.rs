//! The clean image: what an orderly close knew, for the next opening (`docs/decisions/0003-record-no-allocations.md`): free space,
//! counts, and the order of the keys, if it was there.
//!
//! | step | a crash after it leaves |
//! |---|---|
//! | 1 close: queues and limbo emptied, lanes emptied | the store; the sweep finds free space |
//! | 2 an extent reserved, written, flushed; ordered | the same, and an extent that the sweep frees |
//! | 3 the region names it; committed | the store and its image |
//! | 4 the first change: the region names none; ordered | the store as it was closed |
//! | 5 the extent is freed | the same |
//! | 6 the change | the store, without an image |
//!
//! # Invariants
//! - While an image is named nothing was changed since it was written: free space, counts and positions are as it says.
//! - An image is trusted whole or not at all, and only if it has the number, generation and mark of the region. Otherwise
//!   the sweep and the build find out, as after a crash.
//!
//! # Lock order
//! the order's build -> known image -> allocator.

pub mod layout;
mod read;
mod write;

use std::sync::atomic::{AtomicBool, Ordering};

use index::Position;
use parking_lot::Mutex;
use pmem::{Medium, Offset};

pub(super) use read::Found;

/// What is known of the region's image.
#[derive(Debug, Default)]
pub(super) struct CleanImage {
    /// The region names one, which must be given up before the first change.
    is_named: AtomicBool,
    /// Changes with `is_named`, which is read without the lock.
    known: Mutex<Known>,
}

/// What the named image is good for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Known {
    /// Nothing: there is none, or it was not whole.
    #[default]
    Nothing,
    /// Free space and counts.
    Space,
    /// The keys' order as well.
    Order(Keys),
}

/// Where the positions lie in the region.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Keys {
    start: Offset,
    count: u64,
    checksum: u32,
}

impl CleanImage {
    fn new(is_named: bool, known: Known) -> CleanImage {
        CleanImage { is_named: is_named.into(), known: Mutex::new(known) }
    }

    /// True if the store was not changed since it was closed, or not yet.
    #[inline(always)]
    pub(super) fn is_named(&self) -> bool {
        self.is_named.load(Ordering::Acquire)
    }

    /// All items in the order of their keys, if the image knows. What changes them from now on sees whatever the caller
    /// stored before.
    pub(super) fn sorted<M: Medium>(&self, medium: &M) -> Option<Vec<Position>> {
        let known = self.known.lock();
        let Known::Order(keys) = *known else { return None };
        read::positions(medium, keys)
    }

    /// What is wrong with the image that the region names, if anything is.
    pub(super) fn damage<M: Medium>(&self, medium: &M) -> Option<&'static str> {
        let known = self.known.lock();
        match *known {
            Known::Nothing if self.is_named() => {
                Some("the clean image is not whole, or not of this store: it is not used")
            }
            Known::Order(keys) if read::positions(medium, keys).is_none() => {
                Some("the keys' order in the clean image is not whole: it is not used")
            }
            _ => None,
        }
    }

    /// The order turned out to be none.
    pub(super) fn distrust_order(&self) {
        let mut known = self.known.lock();
        if let Known::Order(_) = *known {
            *known = Known::Space;
        }
    }
}
