//! The interface between front ends and engines that keep keys in order.

use std::ops::{Bound, ControlFlow};

use crate::{Damage, Engine, Error, Moment, ScanCursor};

/// The state of an ordered index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OrderState {
    /// No caller has requested order yet: writes do no work for it.
    Off,
    /// The index is being built.
    Building,
    /// Scans run.
    Ready,
}

impl OrderState {
    /// Returns the name in stats: `off`, `building` or `ready`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            OrderState::Off => "off",
            OrderState::Building => "building",
            OrderState::Ready => "ready",
        }
    }
}

/// The statistics of an ordered index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OrderStats {
    /// The state.
    pub state: OrderState,
    /// Finished steps of the last build: two for each key, or one if a clean image had the keys in order.
    pub done: u64,
    /// Steps of the last build; an estimate at first.
    pub total: u64,
    /// Changes that wait in queues.
    pub queued_count: u64,
    /// Changes that wait for the end of the build.
    pub delta_count: u64,
    /// Changes applied to the ordered index since the store was opened.
    pub applied_count: u64,
    /// Applied changes that replaced an item by another.
    pub updated_count: u64,
    /// DRAM of the tree.
    pub dram_bytes: u64,
}

impl OrderStats {
    /// Returns the statistics of an engine whose index is ordered: it never builds an index or queues changes.
    #[must_use]
    pub fn native(dram_bytes: u64) -> OrderStats {
        OrderStats {
            state: OrderState::Ready,
            done: 0,
            total: 0,
            queued_count: 0,
            delta_count: 0,
            applied_count: 0,
            updated_count: 0,
            dram_bytes,
        }
    }
}

/// The queue lengths of an ordered index; cheap to read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct QueueStats {
    /// Changes that wait in queues.
    pub queued_count: u64,
    /// As [`OrderStats::applied_count`].
    pub applied_count: u64,
    /// As [`OrderStats::updated_count`].
    pub updated_count: u64,
}

/// The behaviour of a scan that comes before the index is built.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Early {
    /// The scan waits, and helps with the build.
    #[default]
    Wait,
    /// The scan fails with [`Error::NotOrderedYet`].
    Refuse,
}

/// Receives a key and its value, and returns whether to continue.
pub type Visit<'a> = dyn FnMut(&[u8], &[u8]) -> ControlFlow<()> + 'a;

/// The operations of an engine that keeps keys in order (HiKV paper, section 3.2).
pub trait OrderedEngine: Engine {
    /// Starts building the ordered index in the background, unless it exists. Returns once the error that lost an
    /// earlier index. An engine whose index is ordered has nothing to build.
    fn request_order(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Returns once a scan would see every write that was acknowledged before this call.
    ///
    /// # Errors
    /// [`Error::NotOrderedYet`] if the index is not built yet and the caller will not wait, or cannot wait because it
    /// is inside another operation's callback.
    fn catch_up(&self, _early: Early) -> Result<(), Error> {
        Ok(())
    }

    /// Applies one group of waiting changes, about ten microseconds of work, for a thread that is idle; returns their
    /// number. It is 0 if no change waits or other threads are applying them: the call never waits. An engine whose
    /// index is ordered has no waiting changes.
    ///
    /// # Errors
    /// [`Error::Medium`].
    fn apply(&self) -> Result<u64, Error> {
        Ok(0)
    }

    /// Sets whether the caller's threads call [`OrderedEngine::apply`] between their operations. Then writes wake the
    /// background only if these threads do not keep up.
    fn set_callers_apply(&self, _is_enabled: bool) {}

    /// Returns the queue lengths.
    fn queue_stats(&self) -> QueueStats {
        QueueStats::default()
    }

    /// Calls `each` with the next items of a scan, dozens or hundreds. Returns false when the scan is at its end or
    /// `each` has ended it. In both cases the cursor can continue after the last item that was passed to `each`.
    ///
    /// # Errors
    /// [`Error::NotOrderedYet`] if the index was lost since the last [`OrderedEngine::catch_up`] and the caller is
    /// pinned.
    fn scan(&self, cursor: &mut ScanCursor, each: &mut Visit<'_>) -> Result<bool, Error>;

    /// As [`OrderedEngine::scan`], at a snapshot: it visits each key of the snapshot exactly once while the snapshot
    /// lives. The caller has caught up once since the snapshot was taken.
    fn scan_at(&self, _at: Moment, _cursor: &mut ScanCursor, _each: &mut Visit<'_>) -> Result<bool, Error> {
        Err(Error::Unsupported { engine: self.name(), what: "snapshots" })
    }

    /// Returns the number of keys before `end` in the next part of a scan, without reading all of them; false as in
    /// [`OrderedEngine::scan`].
    fn count(&self, cursor: &mut ScanCursor, end: Bound<&[u8]>) -> Result<(u64, bool), Error> {
        let (is_backward, mut count, mut is_past) = (cursor.is_backward(), 0, false);
        let goes_on = self.scan(cursor, &mut |key, _| {
            is_past = lies_past(key, end, is_backward);
            count += u64::from(!is_past);
            if is_past { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        Ok((count, goes_on && !is_past))
    }

    /// Checks the ordered index, compares it with the hash index, and returns the number of keys. Reports damage to
    /// `damaged`. The caller ensures that no thread writes during the check: a key that changes can look damaged.
    ///
    /// # Errors
    /// See [`OrderedEngine::catch_up`], for a caller that waits.
    fn check_order(&self, damaged: &mut dyn FnMut(Damage)) -> Result<u64, Error>;
}

fn lies_past(key: &[u8], end: Bound<&[u8]>, is_backward: bool) -> bool {
    let (ordering, past) = match end {
        Bound::Included(end) => (key.cmp(end), false),
        Bound::Excluded(end) => (key.cmp(end), true),
        Bound::Unbounded => return false,
    };
    let ordering = if is_backward { ordering.reverse() } else { ordering };
    ordering.is_gt() || past && ordering.is_eq()
}
