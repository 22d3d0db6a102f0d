//! The clean image, which an orderly close writes for the next opening
//! (`docs/decisions/0003-record-no-allocations.md`): free space, counts, and the order of the keys, if the store had
//! it.
//!
//! | step | a crash after it leaves |
//! |---|---|
//! | 1 close: queues, limbo and lanes emptied | the store; the sweep finds free space |
//! | 2 an extent reserved, written, flushed; ordered | the same, and an extent that the sweep frees |
//! | 3 the region names it; committed | the store and its image |
//! | 4 the first change: the region names none; ordered | the store as it was closed |
//! | 5 the extent is freed | the same |
//! | 6 the change | the store, without an image |
//!
//! # Invariants
//! - While an image is named, nothing was changed since the image was written: free space, counts and positions are
//!   valid.
//! - An image is used completely or not at all, and only if it has the number, generation and mark of the region.
//!   Otherwise the sweep and the build compute its contents, as after a crash.
//!
//! # Lock order
//! the order's build -> known image -> allocator.

pub mod layout;
pub(super) mod read;
pub(super) mod write;

use std::sync::atomic::{AtomicBool, Ordering};

use index::Position;
use parking_lot::Mutex;
use pmem::{Medium, Offset};

/// The state of the region's image.
#[derive(Debug, Default)]
pub(super) struct CleanImage {
    /// The region names an image, which must be invalidated before the first change.
    is_named: AtomicBool,
    /// Changes together with `is_named`, which is read without the lock.
    known: Mutex<Known>,
}

/// The usable contents of the named image.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Known {
    /// None: there is no image, or it was damaged.
    #[default]
    Nothing,
    /// Free space and counts.
    Space,
    /// Also the keys' order.
    Order(Keys),
}

/// The place of the positions in the region.
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

    /// Returns true if the store was not changed since it was closed, or is not closed yet.
    #[inline(always)]
    pub(super) fn is_named(&self) -> bool {
        self.is_named.load(Ordering::Acquire)
    }

    /// Returns all items in the order of their keys, if the image holds it. A later change of them sees the caller's
    /// earlier stores.
    pub(super) fn sorted<M: Medium>(&self, medium: &M) -> Option<Vec<Position>> {
        let known = self.known.lock();
        let Known::Order(keys) = *known else { return None };
        read::positions(medium, keys)
    }

    /// Returns the damage to the image that the region names, if there is any.
    pub(super) fn damage<M: Medium>(&self, medium: &M) -> Option<&'static str> {
        let known = self.known.lock();
        match *known {
            Known::Nothing if self.is_named() => {
                Some("the clean image is damaged, or belongs to another store; it is not used")
            }
            Known::Order(keys) if read::positions(medium, keys).is_none() => {
                Some("the keys' order in the clean image is damaged; it is not used")
            }
            _ => None,
        }
    }

    /// Records that the positions turned out not to be in order.
    pub(super) fn mark_unordered(&self) {
        let mut known = self.known.lock();
        if let Known::Order(_) = *known {
            *known = Known::Space;
        }
    }
}
