//! Ordered operations (paper, sections 3.2 and 3.3).
//!
//! A scan waits until every ticket taken before the scan began is applied. Then it reads one leaf after the other, and
//! holds nothing in between. It is not a snapshot: each key is visited at most once, in order, with its value at some
//! moment of the scan.

use std::ops::Bound;

use epoch::Pin;
use index::Position;
use pmem::{Backoff, Medium};

use super::items::Items;
use super::ordered::{Ordered, Phase};
use super::paged::{Paged, way};
use crate::item;
use crate::{HiKv, Memory};
use engine::{Damage, Direction, Early, Error, Moment, OrderedEngine, Progress, QueueStats, ScanCursor, Visit};
use items::{Item, prefetch_ahead};

/// A key and its value.
type Pair<'a> = (&'a [u8], &'a [u8]);

impl<M: Medium, D: Memory> OrderedEngine for HiKv<M, D> {
    fn request_order(&self) -> Result<(), Error> {
        self.order.ask_for_order()
    }

    fn catch_up(&self, early: Early) -> Result<(), Error> {
        let mut backoff = Backoff::long();
        while self.order.phase() != Phase::Ready {
            self.order.ask_for_order()?;
            // A pinned thread keeps the build from starting, so it would wait for itself.
            if early == Early::Refuse || epoch::is_pinned() {
                return Err(self.not_ordered_yet());
            }
            if Ordered::step(self)? == Progress::Idle {
                backoff.relax();
            }
        }
        for queue in &self.order.queues {
            let (tail, mut backoff) = (queue.ring.tail(), Backoff::long());
            while queue.ring.head() < tail && self.order.phase() == Phase::Ready {
                if self.order.drain(self.disposal(), queue)? == 0 {
                    backoff.relax();
                }
            }
        }
        Ok(())
    }

    fn apply(&self) -> Result<u64, Error> {
        self.order.drain_one(self.disposal()).map(|count| count as u64)
    }

    fn set_callers_apply(&self, do_they: bool) {
        self.order.leave_to_callers(do_they);
    }

    fn queue_stats(&self) -> QueueStats {
        let [applied_count, updated_count] = self.order.applied();
        QueueStats { queued_count: self.order.queued_count(), applied_count, updated_count }
    }

    fn scan(&self, cursor: &mut ScanCursor, each: &mut Visit<'_>) -> Result<bool, Error> {
        let _pin = self.read_page(cursor)?;
        let mut last = None;
        for &position in
            prefetch_ahead(cursor.page().positions(), |&position| item::prefetch(self.reader.medium(), position))
        {
            let Some((key, value)) = self.pair(position)? else { continue };
            if each(key, value).is_break() {
                last = Some(key);
                break;
            }
        }
        match last {
            Some(key) => {
                cursor.continue_after(key);
                Ok(false)
            }
            None => Ok(cursor.follow_page()),
        }
    }

    fn scan_at(&self, at: Moment, cursor: &mut ScanCursor, each: &mut Visit<'_>) -> Result<bool, Error> {
        self.scan_page_at(at, cursor, each)
    }

    fn count(&self, cursor: &mut ScanCursor, end: Bound<&[u8]>) -> Result<(u64, bool), Error> {
        let _pin = self.read_page(cursor)?;
        let page = cursor.page();
        let is_within = page.next().is_some_and(|next| next_is_before(next, end));
        // Only the item shows whether a key has expired.
        if (is_within || end == Bound::Unbounded) && !self.may_expire() {
            let count = page.positions().len() as u64;
            return Ok((count, cursor.follow_page()));
        }
        let mut count = 0;
        for &position in page.positions() {
            let Some(item) = self.shown(position)? else { continue };
            if !is_before(item.key, end) {
                return Ok((count, false));
            }
            count += 1;
        }
        Ok((count, cursor.follow_page()))
    }

    fn check_order(&self, damaged: &mut dyn FnMut(Damage)) -> Result<u64, Error> {
        let _rest = self.compaction.pause();
        self.catch_up(Early::Wait)?;
        self.check_tree(damaged)
    }
}

impl<M: Medium, D: Memory> HiKv<M, D> {
    /// Reads the next leaf. Its items stay while the caller keeps the pin.
    pub(super) fn read_page(&self, cursor: &mut ScanCursor) -> Result<Pin, Error> {
        loop {
            let pin = epoch::pin();
            if let Some(tree) = &*self.order.tree.read() {
                let (from, direction, page) = cursor.parts();
                tree.read_page(&Items(self.reader.medium()), from, way(direction), page)?;
                self.reader.acknowledge_deferred()?;
                return Ok(pin);
            }
            drop(pin);
            // A thread is deleting every key, or the tree was dropped.
            self.catch_up(Early::Wait)?;
        }
    }

    /// Calls `each` with every item in key order, if there is a tree; returns their number.
    pub(crate) fn each_sorted(&self, each: &mut dyn FnMut(Position)) -> Result<u64, Error> {
        let (mut cursor, mut count) = (ScanCursor::new(Bound::Unbounded, Direction::Forward), 0);
        let tree = self.order.tree.read();
        let Some(tree) = &*tree else { return Ok(0) };
        loop {
            let (from, direction, page) = cursor.parts();
            tree.read_page(&Items(self.reader.medium()), from, way(direction), page)?;
            page.positions().iter().for_each(|&position| each(position));
            count += page.positions().len() as u64;
            if !cursor.follow_page() {
                return Ok(count);
            }
        }
    }

    /// Returns key and value of an item that a leaf names, unless it has expired. Most items are plain: they are read
    /// in place, without an [`Item`] in memory.
    #[inline(always)]
    fn pair(&self, position: Position) -> Result<Option<Pair<'_>>, Error> {
        // SAFETY: as for `scanned`.
        match unsafe { item::read_plain(self.reader.medium(), position) } {
            Some(plain) if self.reader.is_verified(&plain, u64::MAX) => Ok(Some((plain.key(), plain.value()))),
            _ => self.any_pair(position),
        }
    }

    #[cold]
    #[inline(never)]
    fn any_pair(&self, position: Position) -> Result<Option<Pair<'_>>, Error> {
        Ok(self.shown(position)?.map(|item| (item.key, item.value)))
    }

    /// Returns an item that a leaf names, unless it has expired.
    fn shown(&self, position: Position) -> Result<Option<Item<'_>>, Error> {
        self.reader.unexpired(self.scanned(position)?, position)
    }

    pub(super) fn scanned(&self, position: Position) -> Result<Item<'_>, Error> {
        // SAFETY: a leaf referred to it when the leaf was read, which was after the pin: so it was not retired before.
        let item = unsafe { item::read(self.reader.medium(), position) }?;
        self.reader.verify_value(&item, position)?;
        Ok(item)
    }

    pub(super) fn not_ordered_yet(&self) -> Error {
        let (done, total) = self.order.progress.now();
        Error::NotOrderedYet { done, total }
    }
}

/// Returns true if every key before `next` is also before `end`.
fn next_is_before(next: Bound<&[u8]>, end: Bound<&[u8]>) -> bool {
    match (next, end) {
        (Bound::Included(next), Bound::Included(end) | Bound::Excluded(end)) => next <= end,
        _ => false,
    }
}

fn is_before(key: &[u8], end: Bound<&[u8]>) -> bool {
    match end {
        Bound::Included(end) => key <= end,
        Bound::Excluded(end) => key < end,
        Bound::Unbounded => true,
    }
}
