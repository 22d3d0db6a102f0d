//! When a pass begins, in the background and by request, and how long the background rests between its steps.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use pmem::Medium;

use super::plan::Thoroughness;
use super::{LOOK_BYTES, Pass};
use crate::{HiKv, Memory};
use engine::{Compacted, CompactionProgress, Error, Progress};

const LOOK_SHARE: u64 = 16;
/// What a pass in the background must promise.
const GAIN_BYTES_MIN: u64 = 1 << 20;
/// The background rests this many times as long as it has worked, so that writers keep their cores.
const REST_SHARE: u32 = 3;
/// However long a step took (a large run), the next is not put off for longer.
const REST_MAX: Duration = Duration::from_millis(20);
/// What is written meanwhile makes new gaps: a request does not go after them for ever.
const PASS_COUNT_MAX: usize = 3;

impl<M: Medium, D: Memory> HiKv<M, D> {
    /// True if enough has changed for the background to look.
    #[inline]
    pub(crate) fn may_compact(&self) -> bool {
        self.heap.loosened_bytes() >= self.compaction.look_bytes.load(Ordering::Relaxed)
    }

    /// A bounded step in the background, of a store that was swept.
    pub(crate) fn compaction_step(&self) -> Result<Progress, Error> {
        let Some(above) = self.compaction.above else { return Ok(Progress::Idle) };
        if !self.heap.is_swept() {
            // A damaged store's free space stays unknown: there is nothing to look at.
            self.heap.forget_loosened();
            return Ok(Progress::Idle);
        }
        let Some(mut work) = self.compaction.work.try_lock() else { return Ok(Progress::Idle) };
        if Arc::strong_count(&self.compaction.rests) > 1 {
            return Ok(Progress::Idle);
        }
        let start = Instant::now();
        let rest = work.rest_until.map_or(Duration::ZERO, |until| until.saturating_duration_since(start));
        if work.pass.is_some() && !rest.is_zero() {
            return Ok(Progress::Rest(rest));
        }
        if work.pass.is_none() && (self.may_compact() || !work.has_looked) {
            work.has_looked = true;
            work.pass = self.begin_if_above(above)?;
        }
        let Some(mut pass) = work.pass.take() else { return Ok(Progress::Idle) };
        match self.pass_step(&mut pass) {
            Ok(false) => work.pass = Some(pass),
            ended => {
                self.end_pass(&mut pass);
                self.compaction.look_after(LOOK_BYTES);
                ended?;
            }
        }
        let rest = (start.elapsed() * REST_SHARE).min(REST_MAX);
        work.rest_until = Some(start + rest);
        Ok(Progress::Rest(rest))
    }

    /// Looks, and begins a pass where too much space is taken and something can be gained.
    fn begin_if_above(&self, above: f64) -> Result<Option<Pass>, Error> {
        self.heap.forget_loosened();
        let live_bytes = self.heap.stats().live_bytes;
        let footprint_bytes = self.heap.footprint_bytes();
        self.compaction.look_after(LOOK_BYTES.max(footprint_bytes / LOOK_SHARE));
        if footprint_bytes as f64 <= above * live_bytes as f64 + GAIN_BYTES_MIN as f64 {
            return Ok(None);
        }
        let pass = self.plan_pass(Thoroughness::Worthwhile, GAIN_BYTES_MIN)?;
        if pass.is_some() {
            self.compaction.look_after(u64::MAX);
        }
        Ok(pass)
    }

    /// Compacts as far as it can be done, while others read and write, and shows how far it is to `progress`.
    pub(crate) fn compact_now(&self, progress: &mut dyn FnMut(CompactionProgress)) -> Result<Compacted, Error> {
        self.check_writable()?;
        self.finish_sweep()?;
        if !self.heap.is_swept() {
            let offset = self.misplaced().map_or(0, |entry| entry.0);
            return Err(Error::Corrupt {
                offset,
                what: "an entry names a place that is none: free space is not known",
            });
        }
        let _requested = self.compaction.request()?;
        let begun = self.compaction.work.lock().pass.take();
        if let Some(mut pass) = begun {
            self.end_pass(&mut pass);
        }
        self.compaction.look_after(u64::MAX);
        let mut compacted = Compacted { taken_bytes_before: self.taken_bytes(), ..Compacted::default() };
        let passes = self.run_passes(&mut compacted, progress);
        compacted.taken_bytes_after = self.taken_bytes();
        self.compaction.look_after(LOOK_BYTES);
        passes.map(|()| compacted)
    }

    fn run_passes(&self, compacted: &mut Compacted, progress: &mut dyn FnMut(CompactionProgress)) -> Result<(), Error> {
        for _ in 0..PASS_COUNT_MAX {
            // What readers keep is no gap to a plan.
            self.await_readers();
            let Some(mut pass) = self.plan_pass(Thoroughness::Full, 1)? else { break };
            let done = self.run_pass(&mut pass, compacted, progress);
            self.end_pass(&mut pass);
            compacted.add(pass.report());
            done?;
        }
        Ok(())
    }

    fn run_pass(
        &self,
        pass: &mut Pass,
        before: &Compacted,
        progress: &mut dyn FnMut(CompactionProgress),
    ) -> Result<(), Error> {
        while !self.pass_step(pass)? {
            let report = pass.report();
            progress(CompactionProgress {
                moved_items: before.moved_items + report.moved_items,
                moved_bytes: before.moved_bytes + report.moved_bytes,
                moved_bytes_total: before.moved_bytes + pass.moved_bytes_total().max(report.moved_bytes),
                given_back_bytes: before.given_back_bytes + report.given_back_bytes,
            });
        }
        Ok(())
    }

    /// The space that the region takes: the medium's figure, or the heap's.
    pub(crate) fn taken_bytes(&self) -> u64 {
        self.medium.allocated_bytes().unwrap_or_else(|| self.heap.footprint_bytes())
    }
}
