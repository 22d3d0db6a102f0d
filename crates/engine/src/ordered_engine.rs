//! The seam between fronts and engines that keep keys in order.

use std::ops::{Bound, ControlFlow};

use index::bplus_tree::{Direction, Page};

use crate::{Damage, Engine, Error, Moment};

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
    /// Volatile memory of the tree.
    pub dram_bytes: u64,
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

/// How far a scan has come. It holds nothing of the engine.
#[derive(Debug)]
pub struct ScanCursor {
    from: Bound<Vec<u8>>,
    direction: Direction,
    page: Page,
}

impl ScanCursor {
    /// A scan from `from` on, upwards or downwards.
    #[must_use]
    pub fn new(from: Bound<&[u8]>, direction: Direction) -> ScanCursor {
        ScanCursor { from: from.map(<[u8]>::to_vec), direction, page: Page::default() }
    }

    pub(crate) fn parts(&mut self) -> (Bound<&[u8]>, Direction, &mut Page) {
        (self.from.as_ref().map(Vec::as_slice), self.direction, &mut self.page)
    }

    pub(crate) fn from(&self) -> Bound<&[u8]> {
        self.from.as_ref().map(Vec::as_slice)
    }

    pub(crate) fn is_backward(&self) -> bool {
        self.direction == Direction::Backward
    }

    pub(crate) fn page(&self) -> &Page {
        &self.page
    }

    /// The next key is the one after `key`.
    pub(crate) fn pass(&mut self, key: &[u8]) {
        let mut from = self.take_from();
        from.extend_from_slice(key);
        self.from = Bound::Excluded(from);
    }

    /// The next key is the first one after the page. False if there is none.
    pub(crate) fn follow(&mut self) -> bool {
        let mut from = self.take_from();
        let next = self.page.next().map(|next| {
            next.map(|fence| {
                from.extend_from_slice(fence);
                from
            })
        });
        match next {
            Some(next) => self.from = next,
            None => return false,
        }
        true
    }

    /// The memory of the present bound, emptied.
    fn take_from(&mut self) -> Vec<u8> {
        match std::mem::replace(&mut self.from, Bound::Unbounded) {
            Bound::Included(mut from) | Bound::Excluded(mut from) => {
                from.clear();
                from
            }
            Bound::Unbounded => Vec::new(),
        }
    }
}

/// Is shown a key and its value, and says whether to go on.
pub type Visit<'a> = dyn FnMut(&[u8], &[u8]) -> ControlFlow<()> + 'a;

/// What an engine that keeps order can do besides (HiKV paper, section 3.2).
pub trait OrderedEngine: Engine {
    /// Has the ordered index built, in the background, unless it is there. Why an earlier one was lost is told once.
    fn ask_for_order(&self) -> Result<(), Error>;

    /// Returns once a scan would see every write that was acknowledged before this call.
    ///
    /// # Errors
    /// [`Error::NotOrderedYet`] if the index is not built yet and the caller will not wait, or cannot, since it is inside
    /// of another operation's callback.
    fn catch_up(&self, early: Early) -> Result<(), Error>;

    /// Shows the next items of a scan, some dozens, to `each`; false when the scan is at its end, or `each` has ended it.
    /// It can then be gone on with, too, after the last item that was shown.
    fn scan(&self, cursor: &mut ScanCursor, each: &mut Visit<'_>) -> Result<bool, Error>;

    /// As [`OrderedEngine::scan`], at a snapshot, whose keys it shows exactly once, as long as the snapshot lives. The caller
    /// has caught up once since it was taken.
    fn scan_at(&self, at: Moment, cursor: &mut ScanCursor, each: &mut Visit<'_>) -> Result<bool, Error>;

    /// How many keys the next part of a scan has that lie before `end`, without reading all of them; false as in
    /// [`OrderedEngine::scan`].
    fn count(&self, cursor: &mut ScanCursor, end: Bound<&[u8]>) -> Result<(u64, bool), Error>;

    /// Checks the ordered index, and compares it with the index of points; how many keys that were. Damage is shown to
    /// `damaged`. Nobody writes meanwhile: a key that changes can look damaged.
    ///
    /// # Errors
    /// See [`OrderedEngine::catch_up`], for who waits.
    fn check_order(&self, damaged: &mut dyn FnMut(Damage)) -> Result<u64, Error>;
}
