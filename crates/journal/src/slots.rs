//! Which part of the log file holds what.

use std::cmp::Reverse;
use std::collections::VecDeque;

/// A segment to which nothing is written any more. All of it is durable.
#[derive(Clone, Debug)]
pub(crate) struct Sealed {
    pub(crate) slot: u64,
    pub(crate) ordinal: u64,
    /// Where its last frame ends.
    pub(crate) end_bytes: u64,
    /// The position up to which it has entries: the first for what an earlier process wrote.
    pub(crate) end: u64,
}

/// The slots of the log file: each has room for a segment.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    /// How many the file has.
    pub(crate) count: u64,
    /// Those that may be overwritten: the base has what they held, and is durable.
    pub(crate) free: Vec<u64>,
    /// What the base may lack, oldest first.
    pub(crate) sealed: VecDeque<Sealed>,
    /// The position up to which entries are durable in the base; 0 while it lacks some of what an earlier process wrote.
    pub(crate) recycled: u64,
    /// A writer waits for a free one.
    pub(crate) is_one_wanted: bool,
    /// The file could not be made longer. So it stays.
    pub(crate) is_disk_full: bool,
}

impl Slots {
    /// The oldest segment that replay needs, if the next one is `next`.
    pub(crate) fn oldest(&self, next: u64) -> u64 {
        self.sealed.front().map_or(next, |sealed| sealed.ordinal)
    }

    /// The file has one more.
    pub(crate) fn add(&mut self) {
        // The others first: what a log has is used before it gets longer.
        self.free.insert(0, self.count);
        self.count += 1;
    }

    /// The next one that is used is the first of the free ones.
    pub(crate) fn use_first(&mut self) {
        self.free.sort_unstable_by_key(|&slot| Reverse(slot));
    }

    /// The file has only so many any more.
    pub(crate) fn cut(&mut self, count: u64) {
        self.count = count;
        self.free.retain(|&slot| slot < count);
    }

    /// The base has taken in the `count` oldest sealed segments.
    pub(crate) fn recycle(&mut self, count: usize) {
        for sealed in self.sealed.drain(..count) {
            self.recycled = self.recycled.max(sealed.end);
            self.free.push(sealed.slot);
        }
        self.is_one_wanted = false;
    }
}
