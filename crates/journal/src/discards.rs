//! Discards: frees space of the base that the region does not need any more, once no replay can need it.
//!
//! Discarded pages lose their memory immediately, or when they are evicted (`loading`). Their space in the base is
//! freed later, because entries from before the discard may still be replayed, and written there. So each discard has
//! the position at which the log ended. It is carried out when replay begins behind that position, as recorded in the
//! newest durable header. Until then a crash leaves the space allocated.
//!
//! No other condition is needed: with a durable header, no entry before its position is replayed, at any time of
//! the punch and of recycling. So a checkpoint may recycle its segments and free space in either order.
//!
//! Allocating space again removes the pages from the list, and allocates any space that they lack. Both happen
//! under the list's lock, as does punching.

use std::mem;
use std::ops::Range;
use std::sync::Arc;

use parking_lot::Mutex;
use pmem::{MediumError, Span};

use crate::File;
use crate::buffer::Appender;
use crate::guarded::Guarded;
use crate::region::{PAGE_BYTES, Region};

/// Pages whose space has to be freed.
#[derive(Debug, Default)]
struct Discards {
    waiting: Vec<Discard>,
    /// The file system does not support it.
    is_refused: bool,
}

#[derive(Clone, Debug)]
struct Discard {
    position: u64,
    pages: Range<u64>,
}

impl Discards {
    /// Removes `pages` from the list.
    fn keep(&mut self, pages: &Range<u64>) {
        let waiting = mem::take(&mut self.waiting);
        self.waiting = waiting.into_iter().flat_map(|discard| discard.without(pages)).collect();
    }

    /// Removes and returns the discards up to `position`.
    fn take(&mut self, position: u64) -> Vec<Discard> {
        let (due, waiting) = mem::take(&mut self.waiting).into_iter().partition(|discard| discard.position <= position);
        self.waiting = waiting;
        due
    }
}

impl Discard {
    /// Returns the parts of it before and behind `pages`.
    fn without(self, pages: &Range<u64>) -> impl Iterator<Item = Discard> {
        let before = self.pages.start..self.pages.end.min(pages.start);
        let behind = self.pages.start.max(pages.end)..self.pages.end;
        let position = self.position;
        [before, behind].into_iter().filter(|left| !left.is_empty()).map(move |pages| Discard { position, pages })
    }
}

/// The space of the base that is freed or allocated again.
#[derive(Debug)]
pub(crate) struct Spaces<F> {
    base: Arc<Guarded<F>>,
    discards: Mutex<Discards>,
}

impl<F: File> Spaces<F> {
    pub(crate) fn new(base: &Arc<Guarded<F>>) -> Spaces<F> {
        Spaces { base: Arc::clone(base), discards: Mutex::default() }
    }

    /// Frees space that no replay from `replayed_from` on can need. If the file system refuses, the space stays
    /// allocated.
    pub(crate) fn punch(&self, replayed_from: impl Fn() -> u64) {
        let mut discards = self.discards.lock();
        for Discard { pages, .. } in discards.take(replayed_from()) {
            discards.is_refused |= self.base.file().punch(pages).is_err();
        }
    }

    /// Returns the space that the base uses, without space that is about to be freed.
    pub(crate) fn allocated_bytes(&self) -> Option<u64> {
        let discards = self.discards.lock();
        let waiting_bytes: u64 = discards.waiting.iter().map(|discard| discard.pages.end - discard.pages.start).sum();
        Some(self.base.file().allocated_bytes()?.saturating_sub(waiting_bytes))
    }

    /// See [`pmem::Space::discard`].
    ///
    /// # Safety
    /// As there.
    pub(crate) unsafe fn discard(&self, (region, is_paged): (&Region, bool), appender: &Appender, span: Span) -> u64 {
        let end = span.end().unwrap_or(u64::MAX).min(region.len_bytes());
        let pages = span.start.0.next_multiple_of(PAGE_BYTES)..end - end % PAGE_BYTES;
        let mut discards = self.discards.lock();
        if pages.is_empty() || !region.memory.in_owner() || discards.is_refused {
            return 0;
        }
        if !is_paged {
            // SAFETY: only the caller uses the pages.
            unsafe { region.memory.discard(pages.clone()) };
        }
        discards.keep(&pages);
        discards.waiting.push(Discard { position: appender.appended(), pages: pages.clone() });
        pages.end - pages.start
    }

    /// See [`pmem::Space::allocate`].
    pub(crate) fn allocate(&self, region: &Region, span: Span) -> Result<(), MediumError> {
        let region_bytes = region.len_bytes();
        let end = span.end().unwrap_or(u64::MAX).min(region_bytes).next_multiple_of(PAGE_BYTES);
        let pages = span.start.0 - span.start.0 % PAGE_BYTES..end;
        if pages.is_empty() {
            return Ok(());
        }
        let mut discards = self.discards.lock();
        discards.keep(&pages);
        self.base.allocate(pages, region_bytes)
    }
}

#[cfg(test)]
mod tests {
    use pmem::{Offset, Space};

    use super::*;
    use crate::Journaled;
    use crate::test_file::TestFile;
    use crate::{Files, JournalOptions};

    #[test]
    fn reused_block_is_not_released() {
        let discard = |position, pages| Discard { position, pages };
        let mut discards = Discards { waiting: vec![discard(1, 0..50), discard(2, 80..90)], is_refused: false };
        discards.keep(&(10..20));
        discards.keep(&(40..85));
        let left = |discards: &Discards| discards.waiting.iter().map(|left| left.pages.clone()).collect::<Vec<_>>();
        assert_eq!(left(&discards), [0..10, 20..40, 85..90]);
        assert_eq!(discards.take(1).len(), 2);
        assert_eq!(left(&discards)[0], 85..90);
        discards.keep(&(0..100));
        assert!(discards.take(9).is_empty());
    }

    #[test]
    fn partial_pages_are_not_released() {
        let files = Files { base: TestFile::default(), log: TestFile::default() };
        let options = JournalOptions {
            reserve_bytes: 1 << 30,
            huge_pages: false,
            background: false,
            ..JournalOptions::default()
        };
        let journal = Journaled::create(files.handles(), 8 * PAGE_BYTES, [1; 16], options).unwrap();
        // SAFETY: no code uses the pages.
        let discard = |start, len_bytes| unsafe { journal.discard(Offset(start).span(len_bytes)) };
        assert_eq!((discard(100, PAGE_BYTES), discard(PAGE_BYTES, 2 * PAGE_BYTES)), (0, 2 * PAGE_BYTES));
        journal.journal.checkpointer.spaces().discards.lock().is_refused = true;
        assert_eq!(discard(4 * PAGE_BYTES, PAGE_BYTES), 0);
        assert_eq!(journal.journal.checkpointer.spaces().discards.lock().waiting.len(), 1);
    }
}
