//! The store: a writer and the compaction of its space, with its statistics and the steps of its background.

mod compact;
mod open;
mod ops;

use std::time::{Duration, Instant};

use index::cached_table::CacheStats;
use index::partitioned_hash::{Cursor, SplitStats, layout::SEGMENT_ENTRY_COUNT};
use pmem::{Backoff, Dram, Medium};

use crate::image::write::Resting;
use crate::memory::Memory;
use crate::order::Scans;
use crate::reap::ReapStep;
use crate::write::Writer;
use engine::{Compacting, Compaction, EngineStats, Error, Figure, Progress};

/// The time for which a close waits for readers that keep retired items, before it writes no image: many times the
/// duration of a read, and less than a user who ends a program would notice.
const READER_WAIT_MAX: Duration = Duration::from_millis(20);
/// The time for which a writer that should do a step waits for the thread that does one; then it continues.
const TURN_MAX: Duration = Duration::from_millis(1);

/// A HiKV store on a medium.
pub struct HiKv<M, D: Dram> {
    writer: Writer<M, D>,
    compaction: Compaction<Cursor>,
}

impl<M: Medium, D: Memory> HiKv<M, D> {
    /// Returns the medium.
    pub fn medium(&self) -> &M {
        self.writer.reader().medium()
    }

    fn scans(&self) -> Scans<'_, M, D> {
        Scans::new(self.writer.reader(), self.writer.order(), self.writer.source())
    }

    /// Does a step of sweep, growth, reaping and compaction, by one thread at a time. In a read-only store, free space
    /// is computed when a caller requests it.
    fn space_step(&self) -> Result<Progress, Error> {
        let (medium, space) = (self.medium(), self.writer.space());
        if !medium.is_writable() {
            return Ok(Progress::Idle);
        }
        let Some(mut background) = space.background_within(Duration::ZERO) else {
            return Ok(Progress::Idle);
        };
        if !space.is_swept() {
            space.sweep_step(self.writer.reader(), &mut background)?;
            return Ok(Progress::More);
        }
        if space.heap().prepare(medium, space.heap().ahead_bytes()) {
            return Ok(Progress::More);
        }
        match ReapStep::new(&self.writer).run(background)? {
            Progress::Idle => self.compaction_step(),
            progress => Ok(progress),
        }
    }

    /// Does a step of the reaper for a writer, if the reaper is behind.
    fn keep_pace(&self) -> Result<(), Error> {
        let (pace, space) = (self.writer.reaper().pace(), self.writer.space());
        if !pace.is_behind() || !space.is_swept() || epoch::is_pinned() {
            return Ok(());
        }
        let Some(background) = space.background_within(TURN_MAX) else { return Ok(()) };
        let progress = ReapStep::new(&self.writer).run(background)?;
        if progress == Progress::Idle && pace.is_behind() {
            pace.grant_free_puts();
        }
        Ok(())
    }

    /// Writes a clean image, if that is possible (`image`).
    fn write_image(&self) -> Result<(), Error> {
        let (medium, heap, order) = (self.medium(), self.writer.space().heap(), self.writer.order());
        if !medium.is_writable() || !heap.region().has_features(heap::FEATURE_IMAGE) || !self.is_at_rest()? {
            return Ok(());
        }
        let index = self.writer.reader().index();
        let key_count = order.key_count().filter(|&count| count == index.len());
        let resting = Resting { medium, heap, index, key_count };
        self.writer.image().write(&resting, &mut |each| order.each_sorted(medium, each))
    }

    /// Returns true if all free space is known and nothing waits to be freed.
    fn is_at_rest(&self) -> Result<bool, Error> {
        let space = self.writer.space();
        if !space.heap().is_swept() || !self.writer.order().quiesce(self.writer.disposal())? {
            return Ok(false);
        }
        let (start, mut backoff) = (Instant::now(), Backoff::long());
        while space.has_garbage() {
            if start.elapsed() > READER_WAIT_MAX {
                return Ok(false);
            }
            space.collect(self.medium());
            backoff.relax();
        }
        Ok(true)
    }

    fn gather_stats(&self) -> EngineStats {
        let (space, snapshots) = (self.writer.space().stats(), self.writer.snapshots().stats());
        let (index, cache) = (self.writer.reader().index(), self.writer.cache().stats());
        EngineStats {
            items: index.len(),
            dram_bytes: space.dram_bytes
                + index.dram_bytes()
                + snapshots.dram_bytes
                + cache.map_or(0, |cache| cache.dram_bytes),
            reaped_count: self.writer.reaper().reaped_count(),
            taken_bytes: self.taken_bytes(),
            compaction: self.compaction.stats(),
            counts: self.medium().counts(),
            order: self.writer.order().stats(),
            snapshots,
            figures: self.figures().into_iter().chain(cache.iter().flat_map(cache_figures)).collect(),
            ..space
        }
    }

    /// Returns the figures that only the hash index has.
    fn figures(&self) -> [Figure; 5] {
        let index = self.writer.reader().index();
        let (splits, segment_count) = (index.split_stats(), index.segment_count());
        let load = index.len() as f64 / (segment_count.max(1) * SEGMENT_ENTRY_COUNT) as f64;
        [
            Figure::gauge("segment_count", "Segments of the hash index", segment_count as f64),
            Figure::ratio("load", "Share of used entries in all segments, 0 to 1", load),
            Figure::counter("split_count", "Segments split since open", splits.split_count as f64),
            Figure::ratio(
                "split_load",
                "Mean share of used entries in segments when they were split, 0 to 1",
                split_load(splits),
            ),
            Figure::counter(
                "chained_count",
                "Segments chained since open, because hashes of keys are unevenly distributed",
                splits.chained_count as f64,
            ),
        ]
    }
}

fn split_load(splits: SplitStats) -> f64 {
    let capacity = splits.split_count * SEGMENT_ENTRY_COUNT;
    if capacity == 0 { 0.0 } else { splits.split_entry_count as f64 / capacity as f64 }
}

fn cache_figures(cache: &CacheStats) -> [Figure; 5] {
    let hit_count = cache.hit_count + cache.absent_count;
    Figure::of_cache(cache.hit_ratio(), hit_count, cache.miss_count, cache.evicted_count, cache.live_bytes)
}

/// The parts of a store, of which tests see more than the engine's traits show.
#[cfg(test)]
impl<M, D: Dram> HiKv<M, D> {
    pub(crate) fn writer(&self) -> &Writer<M, D> {
        &self.writer
    }

    pub(crate) fn compaction(&self) -> &Compaction<Cursor> {
        &self.compaction
    }
}
