//! The use of each part of the log file.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::{Condvar, Mutex, MutexGuard};

/// A segment that is not written to any more.
#[derive(Clone, Debug)]
pub(crate) struct Sealed {
    pub(crate) slot: u64,
    pub(crate) ordinal: u64,
    /// The number of its first frame.
    pub(crate) first: u64,
    /// The end of its last frame.
    pub(crate) end_bytes: u64,
    /// The position up to which it has entries: the first position for an earlier process' segment.
    pub(crate) end: u64,
}

/// A segment whose header is durable, and that is not written to yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ready {
    pub(crate) slot: u64,
    pub(crate) ordinal: u64,
    pub(crate) tag: u64,
}

/// The slots of the log file: each has space for one segment.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    /// Number of slots in the file.
    pub(crate) count: u64,
    /// The slots that may be overwritten: their entries are durable in the base. The first is used first: so the
    /// newest segments stay longest, and damage to the header of a segment that replay needs leaves a gap, not an
    /// older end.
    pub(crate) free: Vec<u64>,
    /// The segment that is written next, if its header already exists.
    pub(crate) ready: Option<Ready>,
    /// Ordinal and first number of the segment that is being written.
    pub(crate) begun: (u64, u64),
    /// The segments with entries that the base may lack, oldest first.
    pub(crate) sealed: VecDeque<Sealed>,
    /// Free slots whose segments the newest durable header still counts, with their ordinals: after a crash they are
    /// replayed, so they must be intact or have another header.
    pub(crate) counted: Vec<(u64, u64)>,
    /// The position up to which entries are durable in the base; 0 while it lacks entries of an earlier process.
    pub(crate) recycled: u64,
    /// Set when the present segment is so full that space behind it will soon be needed.
    pub(crate) is_space_wanted: bool,
    /// Set when a writer waits for a free segment.
    pub(crate) is_one_wanted: bool,
    /// Set when pages have to become clean, so that their memory can be freed.
    pub(crate) is_memory_wanted: bool,
    /// Set when the file could not be made longer; it is not tried again.
    pub(crate) is_disk_full: bool,
}

impl Slots {
    /// Returns the ordinal and first number of the oldest segment that replay needs, or `unsealed` if no segment is
    /// sealed.
    pub(crate) fn oldest(&self, unsealed: (u64, u64)) -> (u64, u64) {
        self.sealed.front().map_or(unsealed, |sealed| (sealed.ordinal, sealed.first))
    }

    /// Returns the slots of earlier segments that are replayed after a crash.
    pub(crate) fn replayed(&self) -> Vec<u64> {
        let counted = self.counted.iter().map(|&(slot, _)| slot);
        self.sealed.iter().map(|sealed| sealed.slot).chain(counted).collect()
    }

    /// Returns the number of segments that can be written after the present one.
    pub(crate) fn spare_count(&self) -> usize {
        usize::from(self.ready.is_some()) + self.free.len()
    }

    /// Returns true if there is any.
    pub(crate) fn has_spare(&self) -> bool {
        self.spare_count() > 0
    }

    /// Makes `ready` the next segment; its header is durable, and counts segments from the ordinal `oldest` on.
    pub(crate) fn make_ready(&mut self, ready: Ready, oldest: u64) {
        self.free.retain(|&slot| slot != ready.slot);
        self.counted.retain(|&(slot, ordinal)| slot != ready.slot && ordinal >= oldest);
        self.ready = Some(ready);
    }

    /// Adds a slot to the file.
    pub(crate) fn add(&mut self) {
        self.free.push(self.count);
        self.count += 1;
    }

    /// Makes the first free slot the next one to be used, also instead of a ready one, whose ordinal is then not
    /// used.
    pub(crate) fn use_first(&mut self) {
        if let Some(ready) = self.ready.take() {
            self.free.push(ready.slot);
            self.begun.0 = ready.ordinal;
        }
        self.free.sort_unstable();
    }

    /// Reduces the number of slots in the file.
    pub(crate) fn cut(&mut self, count: u64) {
        self.count = count;
        self.free.retain(|&slot| slot < count);
    }

    /// Frees the `count` oldest sealed segments, which the base now contains.
    pub(crate) fn recycle(&mut self, count: usize) {
        for sealed in self.sealed.drain(..count) {
            self.recycled = self.recycled.max(sealed.end);
            self.free.push(sealed.slot);
            self.counted.push((sealed.slot, sealed.ordinal));
        }
        self.is_one_wanted = false;
    }
}

/// The slots, shared by the writer, the checkpoint and the thread that works ahead.
#[derive(Debug)]
pub(crate) struct SlotTable {
    slots: Mutex<Slots>,
    /// True if a segment is free; changes together with `slots`.
    has_spare: AtomicBool,
    /// The position up to which entries may be appended now (`pace`).
    limit: AtomicU64,
    /// Signals that a segment was sealed or freed, or that it is time to stop.
    changed: Condvar,
}

impl SlotTable {
    pub(crate) fn new(slots: Slots) -> SlotTable {
        SlotTable {
            has_spare: slots.has_spare().into(),
            slots: slots.into(),
            limit: u64::MAX.into(),
            changed: Condvar::new(),
        }
    }

    /// Locks the slots, for a caller that leaves as many free as there are.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock()
    }

    /// Changes the free slots.
    pub(crate) fn change<R>(&self, change: impl FnOnce(&mut Slots) -> R) -> R {
        let mut slots = self.slots.lock();
        let changed = change(&mut slots);
        self.has_spare.store(slots.has_spare(), Ordering::Relaxed);
        changed
    }

    /// Returns true if a segment is free.
    #[inline]
    pub(crate) fn has_spare(&self) -> bool {
        self.has_spare.load(Ordering::Relaxed)
    }

    /// Returns the position up to which entries may be appended now.
    #[inline]
    pub(crate) fn limit(&self) -> u64 {
        self.limit.load(Ordering::Relaxed)
    }

    /// Sets that position, and signals the change.
    pub(crate) fn set_limit(&self, position: u64) {
        self.limit.store(position, Ordering::Relaxed);
        self.wake();
    }

    /// Waits until another thread signals a change.
    pub(crate) fn wait(&self, slots: &mut MutexGuard<'_, Slots>) {
        self.changed.wait(slots);
    }

    /// Signals a change that was made under the lock.
    pub(crate) fn notify(&self) {
        self.changed.notify_all();
    }

    /// Signals a change that was made without the lock.
    pub(crate) fn wake(&self) {
        drop(self.slots.lock());
        self.notify();
    }
}
