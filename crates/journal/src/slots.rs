//! Which part of the log file holds what.

use std::collections::VecDeque;

/// A segment to which nothing is written any more.
#[derive(Clone, Debug)]
pub(crate) struct Sealed {
    pub(crate) slot: u64,
    pub(crate) ordinal: u64,
    /// The number of its first frame.
    pub(crate) first: u64,
    /// Where its last frame ends.
    pub(crate) end_bytes: u64,
    /// The position up to which it has entries: the first for what an earlier process wrote.
    pub(crate) end: u64,
}

/// A segment whose header is durable, and to which nothing is written yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ready {
    pub(crate) slot: u64,
    pub(crate) ordinal: u64,
    pub(crate) tag: u64,
}

/// The slots of the log file: each has room for a segment.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    /// How many the file has.
    pub(crate) count: u64,
    /// Those that may be overwritten: the base has what they held, and is durable. The first is used first: so the newest
    /// segments stay longest, and damage to the header of one that replay needs leaves a gap, not an older end.
    pub(crate) free: Vec<u64>,
    /// The segment that is written next, if its header is there already.
    pub(crate) ready: Option<Ready>,
    /// Ordinal and first number of the segment that is written.
    pub(crate) begun: (u64, u64),
    /// What the base may lack, oldest first.
    pub(crate) sealed: VecDeque<Sealed>,
    /// The position up to which entries are durable in the base; 0 while it lacks some of what an earlier process wrote.
    pub(crate) recycled: u64,
    /// The segment that is written is filled so far that there should soon be room behind it.
    pub(crate) is_space_wanted: bool,
    /// A writer waits for a free one.
    pub(crate) is_one_wanted: bool,
    /// The file could not be made longer. So it stays.
    pub(crate) is_disk_full: bool,
}

impl Slots {
    /// Ordinal and first number of the oldest segment that replay needs: of `unsealed` where no segment is sealed.
    pub(crate) fn oldest(&self, unsealed: (u64, u64)) -> (u64, u64) {
        self.sealed.front().map_or(unsealed, |sealed| (sealed.ordinal, sealed.first))
    }

    /// How many segments there are beside the one that is written.
    pub(crate) fn spare_count(&self) -> usize {
        usize::from(self.ready.is_some()) + self.free.len()
    }

    /// Whether there is any.
    pub(crate) fn has_spare(&self) -> bool {
        self.spare_count() > 0
    }

    /// The next segment is in this slot, and its header durable.
    pub(crate) fn make_ready(&mut self, ready: Ready) {
        self.free.retain(|&slot| slot != ready.slot);
        self.ready = Some(ready);
    }

    /// The file has one more.
    pub(crate) fn add(&mut self) {
        self.free.push(self.count);
        self.count += 1;
    }

    /// The next one that is used is the first of the free ones: also in place of one that was ready, whose ordinal is not used.
    pub(crate) fn use_first(&mut self) {
        if let Some(ready) = self.ready.take() {
            self.free.push(ready.slot);
            self.begun.0 = ready.ordinal;
        }
        self.free.sort_unstable();
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
