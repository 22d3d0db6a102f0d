//! When a pass begins, in the background and by request, and how long the background rests between its steps.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use pmem::{Residency, Space};

use super::plan::Thoroughness;
use super::{CompactionProgress, CompactionReport, Compacts, LOOK_BYTES, OnCompaction, Pass};
use crate::{Error, Progress, wait_for_readers};

const LOOK_SHARE: u64 = 16;
/// What a pass in the background must promise.
const GAIN_BYTES_MIN: u64 = 1 << 20;
/// The background rests this many times as long as it has worked, so that writers keep their cores.
const REST_SHARE: u32 = 3;
/// However long a step took (a large run), the next is not put off for longer.
const REST_MAX: Duration = Duration::from_millis(20);
/// What is written meanwhile makes new gaps: a request does not go after them for ever.
const PASS_COUNT_MAX: usize = 3;

/// After a step has left what there is to compact, as it does beside a check, and while readers keep garbage: a hundredth of a core at most.
const LEFT_REST: Duration = Duration::from_millis(100);

/// Compaction of a store, as its engine offers it.
pub trait Compacting: Compacts {
    /// True if enough has changed for the background to look.
    #[inline]
    fn may_compact(&self) -> bool {
        self.heap().newly_free_bytes() >= self.compaction().check_bytes.load(Ordering::Relaxed)
    }

    /// Comes before the background sleeps: `collect` frees what readers have left, which may give something to compact; true if there is more for
    /// which to wait.
    fn tidy_space(&self, collect: impl FnOnce() -> bool) -> Progress
    where
        Self: Sized,
    {
        let was_left = self.may_compact();
        let has_garbage = collect();
        match self.may_compact() {
            false if has_garbage => {
                Progress::Rest(Residency::collapse_pages(self.medium()).map_or(LEFT_REST, |rest| rest.min(LEFT_REST)))
            }
            false => Progress::resting(Residency::collapse_pages(self.medium())),
            true if was_left => Progress::Rest(LEFT_REST),
            true => Progress::More,
        }
    }

    /// A bounded step in the background, of a store that was swept.
    ///
    /// # Errors
    /// Those of a write.
    fn compaction_step(&self) -> Result<Progress, Error> {
        let compaction = self.compaction();
        let Some(above) = compaction.above else { return Ok(Progress::Idle) };
        if !self.heap().is_swept() {
            // A damaged store's free space stays unknown: there is nothing to look at.
            self.heap().reset_newly_free();
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
            }
        }
        let rest = (start.elapsed() * REST_SHARE).min(REST_MAX);
        work.rest_until = Some(start + rest);
        Ok(Progress::Rest(rest))
    }

    /// Compacts as far as it can be done, or until `progress` stops it, while others read and write.
    ///
    /// # Errors
    /// Those of a write; [`Error::InsideCallback`] if `progress` asks for it.
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

    /// The space that the region takes: the medium's figure, or the heap's.
    fn taken_bytes(&self) -> u64 {
        Space::allocated_bytes(self.medium()).unwrap_or_else(|| self.heap().footprint_bytes())
    }
}

impl<E: Compacts + ?Sized> Compacting for E {}

/// The parts of it.
trait Passes: Compacting {
    /// Looks, and begins a pass where too much space is taken and something can be gained.
    fn begin_if_above(&self, above: f64) -> Result<Option<Pass<Self::Cursor>>, Error> {
        let (heap, compaction) = (self.heap(), self.compaction());
        self.shrink()?;
        heap.reset_newly_free();
        let live_bytes = heap.stats().live_bytes;
        let footprint_bytes = heap.footprint_bytes();
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

    fn run_passes(&self, compacted: &mut CompactionReport, progress: &mut OnCompaction<'_>) -> Result<(), Error> {
        for _ in 0..PASS_COUNT_MAX {
            // What readers keep is no gap to a plan.
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

    /// Whether `progress` wants more passes.
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
