//! The start of passes, in the background and on request, and the rests of the background between its steps.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use pmem::{Residency, Space};

use super::plan::Thoroughness;
use super::{CompactionProgress, CompactionReport, Compacts, LOOK_BYTES, OnCompaction, Pass};
use crate::{Error, Progress, wait_for_readers};

/// The background counts chunks again once one part of this many of the allocated space has become free.
const LOOK_SHARE: u64 = 16;
/// The gain that a pass in the background must promise.
const GAIN_BYTES_MIN: u64 = 1 << 20;
/// The background rests this many times as long as it has worked, so that writers keep their cores.
const REST_SHARE: u32 = 3;
/// The longest rest after a step, even if the step was long (a large run).
const REST_MAX: Duration = Duration::from_millis(20);
/// Concurrent writes make new gaps. This bound keeps a request from following them forever.
const PASS_COUNT_MAX: usize = 3;

/// The rest after a step that had to leave compaction undone, as during a check, and while readers keep garbage: it
/// costs at most 1 % of a core.
const LEFT_REST: Duration = Duration::from_millis(100);

/// The compaction of a store, as its engine offers it.
pub trait Compacting: Compacts {
    /// Returns true if enough has changed for the background to count chunks.
    #[inline]
    fn may_compact(&self) -> bool {
        self.heap().supply().newly_free_bytes() >= self.compaction().check_bytes.load(Ordering::Relaxed)
    }

    /// Prepares for a sleep of the background. `collect` frees garbage without readers, which may make compaction
    /// possible; returns true if garbage waits for readers.
    fn tidy_space(&self, collect: impl FnOnce() -> bool) -> Progress
    where
        Self: Sized,
    {
        let was_left = self.may_compact();
        let has_garbage = collect();
        let is_counted = &self.compaction().is_garbage_counted;
        if is_counted.load(Ordering::Relaxed) && matches!(self.settle(), Ok(false)) {
            is_counted.store(false, Ordering::Relaxed);
            self.compaction().check_after(0);
        }
        match self.may_compact() {
            false if has_garbage => {
                Progress::Rest(Residency::collapse_pages(self.medium()).map_or(LEFT_REST, |rest| rest.min(LEFT_REST)))
            }
            false => Progress::resting(Residency::collapse_pages(self.medium())),
            true if was_left => Progress::Rest(LEFT_REST),
            true => Progress::More,
        }
    }

    /// Takes a bounded step in the background, for a store that was swept.
    ///
    /// # Errors
    /// Those of a write.
    fn compaction_step(&self) -> Result<Progress, Error> {
        let compaction = self.compaction();
        let Some(above) = compaction.above else { return Ok(Progress::Idle) };
        if !self.heap().is_swept() {
            // The free space of a damaged store stays unknown: compaction has no figures to work with.
            self.heap().supply().reset_newly_free();
            return Ok(Progress::Idle);
        }
        let Some(mut work) = compaction.work.try_lock() else { return Ok(Progress::Idle) };
        if Arc::strong_count(&compaction.rests) > 1 {
            return Ok(Progress::Idle);
        }
        let start = Instant::now();
        let rest = work.rest_until.map_or(Duration::ZERO, |until| until.saturating_duration_since(start));
        if work.pass.is_some() && !rest.is_zero() {
            return Ok(Progress::Rest(rest));
        }
        if work.pass.is_none() && (self.may_compact() || !work.has_checked) {
            work.has_checked = true;
            work.pass = self.begin_if_above(above)?;
        }
        let Some(mut pass) = work.pass.take() else { return Ok(Progress::Idle) };
        match pass.step(self) {
            Ok(false) => work.pass = Some(pass),
            ended => {
                pass.end(self);
                compaction.check_after(LOOK_BYTES);
                ended?;
                self.note_garbage()?;
            }
        }
        let rest = (start.elapsed() * REST_SHARE).min(REST_MAX);
        work.rest_until = Some(start + rest);
        Ok(Progress::Rest(rest))
    }

    /// Compacts as far as possible, or until `progress` stops it, while other threads read and write.
    ///
    /// # Errors
    /// Those of a write; [`Error::InsideCallback`] if `progress` requests a compaction.
    fn compact_now(&self, progress: &mut OnCompaction<'_>) -> Result<CompactionReport, Error> {
        self.prepare_to_compact()?;
        let compaction = self.compaction();
        let _requested = compaction.request()?;
        let begun = compaction.work.lock().pass.take();
        if let Some(mut pass) = begun {
            pass.end(self);
        }
        compaction.check_after(u64::MAX);
        let mut compacted = CompactionReport { taken_bytes_before: self.taken_bytes(), ..CompactionReport::default() };
        let passes = self.run_passes(&mut compacted, progress);
        compacted.taken_bytes_after = self.taken_bytes();
        compaction.check_after(LOOK_BYTES);
        passes.map(|()| compacted)
    }

    /// Returns the storage allocated to the region: the medium's figure, or the heap's.
    fn taken_bytes(&self) -> u64 {
        Space::allocated_bytes(self.medium()).unwrap_or_else(|| self.heap().supply().footprint_bytes())
    }
}

impl<E: Compacts + ?Sized> Compacting for E {}

/// The parts of [`Compacting`].
trait Passes: Compacting {
    /// Counts chunks, and begins a pass if too much space is allocated and some can be gained.
    fn begin_if_above(&self, above: f64) -> Result<Option<Pass<Self::Cursor>>, Error> {
        let (heap, compaction) = (self.heap(), self.compaction());
        // First, so that space which becomes free from here on leads to another look.
        heap.supply().reset_newly_free();
        self.shrink()?;
        self.note_garbage()?;
        let live_bytes = heap.stats().live_bytes;
        let footprint_bytes = heap.supply().footprint_bytes();
        compaction.check_after(LOOK_BYTES.max(footprint_bytes / LOOK_SHARE));
        if footprint_bytes as f64 <= above * live_bytes as f64 + GAIN_BYTES_MIN as f64 {
            return Ok(None);
        }
        let pass = Pass::plan(self, Thoroughness::Worthwhile, GAIN_BYTES_MIN)?;
        if pass.is_some() {
            compaction.check_after(u64::MAX);
        }
        Ok(pass)
    }

    /// Frees garbage without readers, and notes whether some is left.
    fn note_garbage(&self) -> Result<(), Error> {
        let has_garbage = self.settle()?;
        self.compaction().is_garbage_counted.store(has_garbage, Ordering::Relaxed);
        Ok(())
    }

    fn run_passes(&self, compacted: &mut CompactionReport, progress: &mut OnCompaction<'_>) -> Result<(), Error> {
        for _ in 0..PASS_COUNT_MAX {
            // A plan does not count space that readers keep as a gap.
            let mut settled = Ok(false);
            wait_for_readers(|| {
                settled = self.settle();
                matches!(settled, Ok(true)) && !epoch::is_pinned()
            });
            settled?;
            self.shrink()?;
            let Some(mut pass) = Pass::plan(self, Thoroughness::Full, 1)? else { break };
            let done = self.run_pass(&mut pass, compacted, progress);
            pass.end(self);
            compacted.add(pass.report());
            if done?.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// Runs a pass; returns `Break` if `progress` stopped it.
    fn run_pass(
        &self,
        pass: &mut Pass<Self::Cursor>,
        before: &CompactionReport,
        progress: &mut OnCompaction<'_>,
    ) -> Result<ControlFlow<()>, Error> {
        while !pass.step(self)? {
            let report = pass.report();
            let flow = progress(CompactionProgress {
                moved_items: before.moved_items + report.moved_items,
                moved_bytes: before.moved_bytes + report.moved_bytes,
                moved_bytes_total: before.moved_bytes + pass.moved_bytes_total().max(report.moved_bytes),
                freed_bytes: before.freed_bytes + report.freed_bytes,
            });
            if flow.is_break() {
                return Ok(flow);
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

impl<E: Compacts + ?Sized> Passes for E {}
