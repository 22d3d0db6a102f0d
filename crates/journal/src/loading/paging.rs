//! The pages of a region that is larger than its memory: their states, how many have memory, and the hand of the clock
//! that chooses the pages to be evicted. Module `page_state` contains the steps and the argument why they are sound.

use std::ops::Range;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use parking_lot::{Condvar, Mutex};

use super::hand::{Hand, Preference};
use super::page_state::{self, Reached, State};
use crate::region::PAGE_BYTES;

/// Pages that are read from the base in one call.
const LOAD_COUNT_MAX: u64 = 64;

/// Rounds of the hand after which every page in memory that may be evicted was found unused.
const ROUND_COUNT_MAX: u64 = 6;

/// The way in which a caller uses pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Usage {
    /// It reads them while it is pinned.
    Read,
    /// As `Read`, and it will not read them again soon.
    Once,
    /// It stores to them while it is pinned.
    Store,
    /// It may use them at any later time.
    Keep,
}

impl Usage {
    /// Returns true if the page's content may change.
    pub(crate) fn has_changed(self) -> bool {
        !matches!(self, Usage::Read | Usage::Once)
    }
}

/// The pages of a region that may be larger than its memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PageFigures {
    /// The memory for pages.
    pub memory_bytes_max: u64,
    /// Bytes of pages in memory.
    pub resident_bytes: u64,
    /// The part of them that the base may lack: a checkpoint writes it, and then it can be evicted.
    pub stored_bytes: u64,
    /// The part of them that is never evicted, because a thread has used it without a pin.
    pub kept_bytes: u64,
    /// Entries of the replayed log in memory, which no checkpoint has applied.
    pub replayed_bytes: u64,
    /// The part of them that belongs to indexes, at the end of the last round over all pages.
    pub index_bytes: u64,
    /// Pages that were read from the base since open.
    pub loaded_count: u64,
    /// Pages that were evicted since open.
    pub evicted_count: u64,
    /// Pages that a thread needed while they were being evicted, since open.
    pub rescued_count: u64,
}

/// The states of all pages that a region can have.
#[derive(Debug)]
pub(crate) struct Paging {
    /// A byte for each page, in memory that the kernel allocates on first use.
    states: Box<[AtomicU8]>,
    preference: Preference,
    /// The memory for pages and the replayed log, except pages that operations under way need.
    memory_bytes: AtomicU64,
    /// Memory of the replayed log, until a checkpoint has applied it.
    replayed_bytes: AtomicU64,
    /// The state of a page that was evicted.
    evicted_state: State,
    resident_count: AtomicU64,
    /// Number of pages that are `Stored` or `Writing`.
    stored_count: AtomicU64,
    kept_count: AtomicU64,
    loaded_count: AtomicU64,
    evicted_count: AtomicU64,
    rescued_count: AtomicU64,
    /// Held by a thread while it starts to wait for a page.
    waiting: Mutex<()>,
    settled: Condvar,
}

impl Paging {
    /// Creates the states of the pages of a region of at most `limit_bytes`, all absent. A region that is read only is
    /// never written to the base, so an evicted page is absent again.
    pub(crate) fn new(limit_bytes: u64, memory_bytes: u64, replayed_bytes: u64, is_writable: bool) -> Paging {
        let states = Box::<[AtomicU8]>::new_zeroed_slice((limit_bytes / PAGE_BYTES) as usize);
        Paging {
            // SAFETY: a zero is an atomic byte.
            states: unsafe { states.assume_init() },
            preference: Preference::new(limit_bytes / PAGE_BYTES),
            memory_bytes: memory_bytes.into(),
            replayed_bytes: replayed_bytes.into(),
            evicted_state: if is_writable { State::Evicted } else { State::Absent },
            resident_count: 0.into(),
            stored_count: 0.into(),
            kept_count: 0.into(),
            loaded_count: 0.into(),
            evicted_count: 0.into(),
            rescued_count: 0.into(),
            waiting: Mutex::new(()),
            settled: Condvar::new(),
        }
    }

    fn word(&self, page: u64) -> &AtomicU8 {
        &self.states[page as usize]
    }

    /// Returns true if a region may have such a page.
    pub(crate) fn has(&self, page: u64) -> bool {
        page < self.states.len() as u64
    }

    pub(crate) fn state(&self, page: u64) -> State {
        page_state::state_of(self.word(page))
    }

    /// Returns the figures.
    pub(crate) fn figures(&self) -> PageFigures {
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        PageFigures {
            memory_bytes_max: self.count_max() * PAGE_BYTES,
            resident_bytes: load(&self.resident_count) * PAGE_BYTES,
            stored_bytes: self.stored_count() * PAGE_BYTES,
            kept_bytes: load(&self.kept_count) * PAGE_BYTES,
            replayed_bytes: load(&self.replayed_bytes),
            index_bytes: self.preference.index_count() * PAGE_BYTES,
            loaded_count: load(&self.loaded_count),
            evicted_count: load(&self.evicted_count),
            rescued_count: load(&self.rescued_count),
        }
    }

    /// Sets the memory for pages and the replayed log.
    pub(crate) fn set_memory_bytes(&self, memory_bytes: u64) {
        self.memory_bytes.store(memory_bytes, Ordering::Relaxed);
    }

    /// Notes that the memory of the replayed log is freed.
    pub(crate) fn end_replay(&self) {
        self.replayed_bytes.store(0, Ordering::Relaxed);
    }

    /// Returns the memory for pages and the replayed log.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.memory_bytes.load(Ordering::Relaxed)
    }

    /// Returns the largest number of pages in memory: those for which the replayed log leaves memory, but at least a
    /// quarter of all.
    fn count_max(&self) -> u64 {
        let memory_bytes = self.memory_bytes();
        let left_bytes = memory_bytes.saturating_sub(self.replayed_bytes.load(Ordering::Relaxed));
        (left_bytes.max(memory_bytes / 4) / PAGE_BYTES).max(1)
    }

    /// Returns the number of pages that are `Stored` or `Writing`. The counter is below 0 for a moment if a thread
    /// keeps a page before the thread that stored to it has counted it.
    fn stored_count(&self) -> u64 {
        (self.stored_count.load(Ordering::Relaxed) as i64).max(0) as u64
    }

    /// Returns the number of pages above the limit.
    pub(crate) fn excess(&self) -> u64 {
        self.resident_count.load(Ordering::Relaxed).saturating_sub(self.count_max())
    }

    /// Returns the number of pages to be evicted: if 15/16 of the memory is used, everything above 7/8.
    pub(crate) fn surplus(&self) -> u64 {
        let (resident, count_max) = (self.resident_count.load(Ordering::Relaxed), self.count_max());
        let is_due = resident > count_max - count_max / 16;
        if is_due { resident - (count_max - count_max / 8) } else { 0 }
    }

    /// Returns true if pages that differ from the base use a quarter of the memory: a checkpoint makes them clean.
    pub(crate) fn wants_checkpoint(&self) -> bool {
        self.stored_count() * 4 >= self.count_max()
    }

    /// Returns true if they use half of it: writers wait for the checkpoint.
    pub(crate) fn holds_writers(&self) -> bool {
        self.stored_count() * 2 >= self.count_max()
    }

    /// Marks pages that were never used.
    pub(crate) fn add_fresh(&self, pages: Range<u64>) {
        pages.for_each(|page| page_state::settle(self.word(page), State::Fresh));
    }

    /// Notes whether pages are part of an index.
    pub(crate) fn prefer(&self, pages: Range<u64>, is_index: bool) {
        pages.for_each(|page| self.preference.note(page, is_index));
    }

    /// Reaches for a page. The caller loads a page that is claimed for it, and then settles it.
    pub(crate) fn reach(&self, page: u64, usage: Usage) -> Reached {
        let word = self.word(page);
        let reached = match usage {
            Usage::Read => page_state::reach(word),
            Usage::Once => page_state::reach_once(word),
            Usage::Store => page_state::reach_to_store(word),
            Usage::Keep => page_state::keep(word),
        };
        match reached {
            Reached::Claimed(_) => self.count_claimed(1),
            Reached::Ready(before) if usage.has_changed() || before == State::Evicting => {
                self.count_changed(usage, before);
            }
            _ => {}
        }
        reached
    }

    fn count_claimed(&self, count: u64) {
        self.resident_count.fetch_add(count, Ordering::Relaxed);
    }

    /// Counts a page that had the state `before`.
    fn count_changed(&self, usage: Usage, before: State) {
        let was_stored = matches!(before, State::Stored | State::Writing);
        if before == State::Evicting {
            self.rescued_count.fetch_add(1, Ordering::Relaxed);
        }
        match usage {
            Usage::Store if before < State::Writing => {
                self.stored_count.fetch_add(1, Ordering::Relaxed);
            }
            Usage::Keep if before != State::Kept => {
                self.kept_count.fetch_add(1, Ordering::Relaxed);
                self.stored_count.fetch_sub(u64::from(was_stored), Ordering::Relaxed);
            }
            _ => {}
        }
    }

    /// Claims the pages behind `first`, which the caller has claimed, that are in the same state, up to `past`.
    pub(crate) fn claim_more(&self, first: u64, past: u64, from: State) -> Range<u64> {
        let past = past.min(first + LOAD_COUNT_MAX);
        let end = (first + 1..past).find(|&page| !page_state::claim(self.word(page), from)).unwrap_or(past);
        self.count_claimed(end - first - 1);
        first..end
    }

    /// Claims a page, if it has no memory; returns the state that it had.
    pub(crate) fn claim_absent(&self, page: u64) -> Option<State> {
        let from = self.state(page);
        let is_absent = matches!(from, State::Absent | State::Fresh | State::Evicted);
        (is_absent && page_state::claim(self.word(page), from)).then(|| {
            self.count_claimed(1);
            from
        })
    }

    /// Gives a page without memory zeros as its content, which the base lacks; false if it has memory.
    pub(crate) fn overwrite(&self, page: u64) -> bool {
        let claimed = self.claim_absent(page);
        claimed.inspect(|_| self.settle(page, State::Stored, Usage::Store)).is_some()
    }

    /// Counts pages that were read from the base.
    pub(crate) fn note_read(&self, count: u64) {
        self.loaded_count.fetch_add(count, Ordering::Relaxed);
    }

    /// Ends the claim of a page that was loaded, or is lost.
    pub(crate) fn settle(&self, page: u64, state: State, usage: Usage) {
        let is_once = usage == Usage::Once && state == State::Present && self.preference.yields(page);
        self.stored_count.fetch_add(u64::from(state == State::Stored), Ordering::Relaxed);
        page_state::settle(self.word(page), if is_once { State::Cold } else { state });
        if is_once {
            self.preference.note_once(page);
        }
    }

    /// Wakes the threads that wait for pages.
    pub(crate) fn wake(&self) {
        // A thread that has found a page loading holds the lock until it waits.
        drop(self.waiting.lock());
        self.settled.notify_all();
    }

    /// Waits until no thread loads or frees the page.
    pub(crate) fn wait(&self, page: u64) {
        let mut waiting = self.waiting.lock();
        while self.state(page) == State::Loading {
            self.settled.wait(&mut waiting);
        }
    }

    /// Unlinks up to `batch`'s capacity of the first `page_count` pages: those that were read once, and then those that
    /// the hand passes. Moves the hand on until it has found some, at most as many rounds as a page outlives.
    pub(crate) fn unlink(&self, hand: &mut Hand, page_count: u64, batch: &mut Vec<u64>) {
        while batch.len() < batch.capacity()
            && let Some(page) = self.preference.next_once()
        {
            if self.state(page) == State::Cold && page_state::pass(self.word(page)) {
                batch.push(page);
            }
        }
        let pass_count = 2 * page_count;
        let mut passed_count = 0;
        while batch.len() < batch.capacity()
            && passed_count < ROUND_COUNT_MAX * page_count
            && (passed_count < pass_count || batch.is_empty())
        {
            if hand.page >= page_count {
                self.preference.begin_round(hand, self.count_max());
            }
            let word = self.word(hand.page);
            if !self.preference.outlives(hand, hand.page, page_state::state_of(word)) && page_state::pass(word) {
                batch.push(hand.page);
            }
            hand.page += 1;
            passed_count += 1;
        }
    }

    /// Claims an unlinked page to free its memory; false if a thread has reached for it since.
    pub(crate) fn take(&self, page: u64) -> bool {
        page_state::take(self.word(page))
    }

    /// Links an unlinked page again.
    pub(crate) fn relink(&self, page: u64) {
        page_state::relink(self.word(page));
    }

    /// Ends the claim of pages whose memory was freed.
    pub(crate) fn settle_evicted(&self, pages: Range<u64>) {
        let count = pages.end - pages.start;
        pages.for_each(|page| page_state::settle(self.word(page), self.evicted_state));
        self.resident_count.fetch_sub(count, Ordering::Relaxed);
        self.evicted_count.fetch_add(count, Ordering::Relaxed);
    }

    /// Returns the pages, of the first `page_count`, that have stores which the base may lack.
    pub(crate) fn stored(&self, page_count: u64) -> impl Iterator<Item = u64> {
        (0..page_count).filter(|&page| self.state(page) == State::Stored)
    }

    /// Begins to write a page to the base; false if it has no stores.
    pub(crate) fn begin_write(&self, page: u64) -> bool {
        page_state::begin_write(self.word(page))
    }

    /// Ends the write of a page that the base has durably. With `is_clean`, all stores before the copy are in it.
    pub(crate) fn end_write(&self, page: u64, is_clean: bool) {
        if !is_clean {
            page_state::repeat_write(self.word(page));
        } else if page_state::end_write(self.word(page)) {
            self.stored_count.fetch_sub(1, Ordering::Relaxed);
        }
    }
}
