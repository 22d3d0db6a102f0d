//! The seam between fronts and engines that keep keys in order.

use std::ops::{Bound, ControlFlow};

use crate::{Damage, Engine, Error, Moment, ScanCursor};

/// How an ordered index is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OrderState {
    /// Nobody has asked for order yet: writes pay nothing for it.
    Off,
    /// It is being built.
    Building,
    /// Scans run.
    Ready,
}

impl OrderState {
    /// The name in stats: `off`, `building` or `ready`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            OrderState::Off => "off",
            OrderState::Building => "building",
            OrderState::Ready => "ready",
        }
    }
}

/// The figures of an ordered index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OrderStats {
    /// How it is doing.
    pub state: OrderState,
    /// Steps of the last build that are done: two for each key, or one where a clean image had them in order.
    pub done: u64,
    /// Steps of the last build; estimated at first.
    pub total: u64,
    /// Changes that wait in queues.
    pub queued_count: u64,
    /// Changes that wait for the build to end.
    pub delta_count: u64,
    /// Changes that were applied to the ordered index since the store was opened.
    pub applied_count: u64,
    /// How many of those replaced an item by another.
    pub updated_count: u64,
    /// Volatile memory of the tree.
    pub dram_bytes: u64,
}

impl OrderStats {
    /// Of an engine whose keys are in order by themselves: nothing is ever built or waits.
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

/// How an ordered index keeps up with writers; cheap to ask for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct QueueStats {
    /// Changes that wait in queues.
    pub queued_count: u64,
    /// As [`OrderStats::applied_count`].
    pub applied_count: u64,
    /// As [`OrderStats::updated_count`].
    pub updated_count: u64,
}

/// What a scan does that comes before the index is built.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Early {
    /// It waits, and helps.
    #[default]
    Wait,
    /// It is refused: [`Error::NotOrderedYet`].
    Refuse,
}

/// Is shown a key and its value, and says whether to go on.
pub type Visit<'a> = dyn FnMut(&[u8], &[u8]) -> ControlFlow<()> + 'a;

/// What an engine that keeps order can do besides (HiKV paper, section 3.2).
pub trait OrderedEngine: Engine {
    /// Has the ordered index built, in the background, unless it is there. Why an earlier one was lost is told once.
    /// An engine whose index is ordered has nothing to build.
    fn request_order(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Returns once a scan would see every write that was acknowledged before this call.
    ///
    /// # Errors
    /// [`Error::NotOrderedYet`] if the index is not built yet and the caller will not wait, or cannot, since it is inside
    /// of another operation's callback.
    fn catch_up(&self, _early: Early) -> Result<(), Error> {
        Ok(())
    }

    /// Applies one group of the changes that wait, some ten microseconds of work, for a thread that has nothing better to do; how many
    /// those were. None where none waits, or other threads are at them: nothing is waited for. An engine whose index is ordered has none.
    ///
    /// # Errors
    /// The medium's.
    fn apply(&self) -> Result<u64, Error> {
        Ok(0)
    }

    /// Whether the caller's threads do that between their operations: the background is then asked only where they do not keep up.
    fn set_callers_apply(&self, _is_enabled: bool) {}

    /// How that stands.
    fn queue_stats(&self) -> QueueStats {
        QueueStats::default()
    }

    /// Shows the next items of a scan, dozens or hundreds, to `each`; false when the scan is at its end, or `each` has ended it.
    /// It can then be gone on with, too, after the last item that was shown.
    fn scan(&self, cursor: &mut ScanCursor, each: &mut Visit<'_>) -> Result<bool, Error>;

    /// As [`OrderedEngine::scan`], at a snapshot, whose keys it shows exactly once, as long as the snapshot lives. The caller
    /// has caught up once since it was taken.
    fn scan_at(&self, _at: Moment, _cursor: &mut ScanCursor, _each: &mut Visit<'_>) -> Result<bool, Error> {
        Err(Error::Unsupported { engine: self.name(), what: "snapshots" })
    }

    /// How many keys the next part of a scan has that lie before `end`, without reading all of them; false as in
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

    /// Checks the ordered index, and compares it with the index of points; how many keys that were. Damage is shown to
    /// `damaged`. Nobody writes meanwhile: a key that changes can look damaged.
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
