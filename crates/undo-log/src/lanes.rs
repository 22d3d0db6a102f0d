//! The lanes of an open region, in DRAM.

use core::sync::atomic::{AtomicU64, Ordering};

use heap::{Heap, HeapError, Place, PlaceKind};
use pmem::{Backoff, Dram, DramBox, Medium, Offset, Span, Ticket, seal, unseal};

use crate::holding::{Holding, hold_any};
use crate::layout::{LANE_COUNT_MAX, LOG_BYTES, RUN_HEADER_BYTES, intent_at, log_at, number_at};
use crate::run;

/// A lane's state in DRAM. Has a cache line of its own, because each lane belongs to another thread.
#[repr(align(64))]
struct LaneState {
    holding: Holding<AtomicU64>,
    number: AtomicU64,
    log: AtomicU64,
    log_bytes: AtomicU64,
}

/// A region's lanes, in DRAM that the host allocates. Every method that accepts a medium needs the region's medium.
pub struct Lanes {
    states: [LaneState; LANE_COUNT_MAX],
    count: usize,
}

impl Lanes {
    /// Creates a region's `count` lanes, each with a log without a run, and flushes them: they are valid once the
    /// region is.
    ///
    /// # Errors
    /// [`HeapError`] if there is no space for the logs.
    ///
    /// # Panics
    /// If `count` is 0 or more than [`LANE_COUNT_MAX`].
    pub fn format<M: Medium, D: Dram>(
        medium: &M,
        heap: &Heap<D>,
        count: usize,
        dram: D,
    ) -> Result<DramBox<Lanes, D>, HeapError> {
        let lanes = Lanes::of(count, dram)?;
        for (lane, state) in lanes.states[..count].iter().enumerate() {
            let log = heap.reserve_extent(medium, LOG_BYTES)?.publish().offset;
            state.log.store(log.0, Ordering::Relaxed);
            state.log_bytes.store(LOG_BYTES, Ordering::Relaxed);
            run::void(medium, log);
            medium.store(number_at(lane), seal(0), Ordering::Release);
            medium.store(log_at(lane), seal(log.0), Ordering::Release);
            medium.flush(number_at(lane).span(16));
        }
        Ok(lanes)
    }

    /// Reads the lanes of a region. Nothing is recovered yet, and nothing may be changed before [`Lanes::recover`].
    ///
    /// # Errors
    /// [`HeapError::Damaged`] if a lane's number or its log's place is damaged; [`HeapError::Parameter`] for a bad
    /// `count`; [`HeapError::NoDram`] if the host has no DRAM left.
    pub fn open<M: Medium, D: Dram>(
        medium: &M,
        heap: &Heap<D>,
        count: usize,
        dram: D,
    ) -> Result<DramBox<Lanes, D>, HeapError> {
        if count == 0 || count > LANE_COUNT_MAX {
            return Err(HeapError::Parameter { what: "the number of lanes", value: count as u64 });
        }
        let lanes = Lanes::of(count, dram)?;
        for (lane, state) in lanes.states[..count].iter().enumerate() {
            state.number.store(load_sealed(medium, number_at(lane), "a lane's number")?, Ordering::Relaxed);
            state.log.store(load_sealed(medium, log_at(lane), "the place of a lane's log")?, Ordering::Relaxed);
            let damaged = |_| HeapError::Damaged { offset: log_at(lane).0, what: "a lane's log is not a heap extent" };
            state.log_bytes.store(heap.table().check_place(lanes.log(lane)).map_err(damaged)?, Ordering::Relaxed);
        }
        Ok(lanes)
    }

    fn of<D: Dram>(count: usize, dram: D) -> Result<DramBox<Lanes, D>, HeapError> {
        assert!((1..=LANE_COUNT_MAX).contains(&count));
        // SAFETY: all zeros are lanes that no thread holds, zero in number.
        let lanes = unsafe { DramBox::<Lanes, D>::zeroed(dram) };
        let mut lanes = lanes.ok_or(HeapError::NoDram { wanted_bytes: size_of::<Lanes>() })?;
        lanes.count = count;
        Ok(lanes)
    }

    /// Returns the number of lanes.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// Returns the place of a lane's log, which the caller must report to a sweep.
    #[must_use]
    pub fn log(&self, lane: usize) -> Place {
        Place { offset: Offset(self.states[lane].log.load(Ordering::Relaxed)), kind: PlaceKind::Extent }
    }

    /// Returns the span of the log with its full capacity.
    pub(crate) fn log_span(&self, lane: usize) -> Span {
        self.log(lane).offset.span(self.states[lane].log_bytes.load(Ordering::Relaxed))
    }

    pub(crate) fn number(&self, lane: usize) -> u64 {
        self.states[lane].number.load(Ordering::Relaxed)
    }

    /// Stores a lane's next number and flushes it.
    pub(crate) fn raise<M: Medium>(&self, medium: &M, lane: usize) {
        let number = self.number(lane) + 1;
        self.states[lane].number.store(number, Ordering::Relaxed);
        medium.store(number_at(lane), seal(number), Ordering::Release);
        medium.flush(number_at(lane).span(8));
    }

    /// Waits for a lane: the preferred one, or another free one.
    pub fn take(&self, preferred: usize) -> Lane<'_> {
        let mut backoff = Backoff::short();
        loop {
            if let Some(number) = hold_any(self.count, preferred, |lane| self.try_hold(lane)) {
                return Lane { lanes: self, number };
            }
            backoff.relax();
        }
    }

    /// Waits for the given lane. A thread that waits for all lanes does so in ascending order, and holds no other.
    pub fn take_exactly(&self, lane: usize) -> Lane<'_> {
        let mut backoff = Backoff::short();
        while !self.try_hold(lane) {
            backoff.relax();
        }
        Lane { lanes: self, number: lane }
    }

    fn try_hold(&self, lane: usize) -> bool {
        self.states[lane].holding.try_hold()
    }
}

fn load_sealed<M: Medium>(medium: &M, at: Offset, what: &'static str) -> Result<u64, HeapError> {
    unseal(medium.load(at, Ordering::Acquire)).ok_or(HeapError::Damaged { offset: at.0, what })
}

/// A lane that only its holder writes to. Dropping it frees the lane.
#[must_use = "a lane that is dropped is free again"]
pub struct Lane<'a> {
    lanes: &'a Lanes,
    number: usize,
}

impl Lane<'_> {
    /// Returns the lane's index.
    #[must_use]
    pub fn index(&self) -> usize {
        self.number
    }

    /// Step 1: writes the present content of `ranges` as the lane's run, and orders it, with everything that this
    /// thread has flushed, before later stores.
    ///
    /// # Panics
    /// If the ranges do not consist of whole words, or do not fit into a log.
    ///
    /// # Safety
    /// Only the caller stores to the ranges until [`Lane::finish`] has returned.
    pub unsafe fn log<M: Medium>(&mut self, medium: &M, ranges: &[Span]) {
        // SAFETY: the caller's promise.
        unsafe { self.log_each(medium, ranges.iter().copied()) }
    }

    /// Like [`Lane::log`], for as many ranges as [`Lane::fit_log`] made space for.
    ///
    /// # Panics
    /// As for [`Lane::log`].
    ///
    /// # Safety
    /// As for [`Lane::log`].
    pub unsafe fn log_each<M: Medium>(&mut self, medium: &M, ranges: impl Iterator<Item = Span> + Clone) {
        let (log, number) = (self.lanes.log_span(self.number), self.lanes.number(self.number));
        // SAFETY: the log is this lane's, and the caller's promise covers the ranges.
        unsafe { run::write(medium, log, (number, self.number), ranges) };
        run::order_log(medium);
    }

    /// Gives the lane a log for ranges of `ranges_bytes` bytes, headers included, if its log is too short or
    /// needlessly long. No run is open.
    ///
    /// # Steps
    /// An extent is reserved, and the beginning of its run is voided, because the space may hold an earlier value,
    /// whose bytes its writer chose; flush, order. The lane's line names the extent; flush, order. *Crash before:
    /// the old log; after: the new one. Neither has a valid run.* The old log is freed.
    ///
    /// # Errors
    /// [`HeapError`] if there is no space; nothing has changed then.
    pub fn fit_log<M: Medium, D: Dram>(
        &mut self,
        medium: &M,
        heap: &Heap<D>,
        ranges_bytes: u64,
    ) -> Result<(), HeapError> {
        let (wanted_bytes, old) = ((RUN_HEADER_BYTES + ranges_bytes).max(LOG_BYTES), self.lanes.log_span(self.number));
        if old.len_bytes >= wanted_bytes && (old.len_bytes == LOG_BYTES || wanted_bytes > LOG_BYTES) {
            return Ok(());
        }
        let (state, old) = (&self.lanes.states[self.number], self.lanes.log(self.number));
        let new = heap.reserve_extent(medium, wanted_bytes)?.publish();
        // Before a sweep can find the new log in its place, and free the old one before this function does.
        heap.sweep().mark_unlinked(old);
        run::void(medium, new.offset);
        medium.order();
        state.log_bytes.store(heap.table().place_bytes(new), Ordering::Relaxed);
        state.log.store(new.offset.0, Ordering::Relaxed);
        medium.store(log_at(self.number), seal(new.offset.0), Ordering::Release);
        medium.flush(log_at(self.number).span(8));
        medium.order();
        heap.free(medium, old);
        Ok(())
    }

    /// Steps 3 and 4: makes the flushed change final. Wait for the ticket once no lock is held.
    pub fn finish<M: Medium>(&mut self, medium: &M) -> Ticket {
        run::order_change(medium);
        self.lanes.raise(medium, self.number);
        medium.commit(pmem::Level::default())
    }

    /// Records that the word at `at` is about to be changed, as a single word and without a run.
    pub fn intend<M: Medium>(&mut self, medium: &M, at: Offset) {
        medium.store(intent_at(self.number), seal(at.0), Ordering::Relaxed);
    }
}

impl Drop for Lane<'_> {
    fn drop(&mut self) {
        self.lanes.states[self.number].holding.let_go();
    }
}
