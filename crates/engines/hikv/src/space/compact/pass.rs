//! A pass: one plan carried out, a bounded step at a time.

use std::thread;

use index::partitioned_hash::Cursor;
use pmem::Medium;

use super::plan::{Plan, Thoroughness};
use super::{Pass, Stage};
use crate::order::Ordered;
use crate::{HiKv, Memory};
use engine::{Compacted, Error, Progress};

/// How often readers who keep retired items are waited for: what they keep for longer becomes free later.
const READER_WAITS_MAX: u32 = 1000;

impl<M: Medium, D: Memory> HiKv<M, D> {
    /// A pass, if so much can be gained. Threads give up their chunks for it: each keeps one of every class.
    pub(super) fn plan_pass(&self, thoroughness: Thoroughness, gain_bytes_min: u64) -> Result<Option<Pass>, Error> {
        self.collect();
        self.heap.empty_lanes(&self.medium);
        let mut chunks = Vec::new();
        self.heap.each_unowned_chunk(&mut |chunk| chunks.push(chunk));
        let mut plan = Plan::of(chunks, thoroughness);
        let gain_bytes = plan.leaving_bytes() + self.heap.spaced_bytes();
        if gain_bytes < gain_bytes_min {
            return Ok(None);
        }
        self.check_writable()?;
        let moved_bytes_total = plan.moved_bytes();
        plan.leaving.retain(|&chunk| self.heap.evacuate(chunk));
        let stage = if plan.leaving.is_empty() { Stage::GivingBack(0) } else { Stage::Moving(Cursor::default()) };
        Ok(Some(Pass { plan, stage, moved_bytes_total, report: Compacted::default() }))
    }

    /// Takes a step; true when nothing is left to do.
    pub(super) fn pass_step(&self, pass: &mut Pass) -> Result<bool, Error> {
        pass.stage = match pass.stage {
            Stage::Moving(cursor) => {
                let cursor = self.move_segment(pass, cursor)?;
                self.collect();
                if cursor.is_done() { Stage::Waiting(0) } else { Stage::Moving(cursor) }
            }
            Stage::Waiting(count) => self.wait_for_readers(count)?,
            Stage::GivingBack(from) => match self.heap.give_space_back(&self.medium, from) {
                Some((next, bytes)) => {
                    self.note_given_back(pass, bytes);
                    Stage::GivingBack(next)
                }
                None => Stage::GivingBackAbove,
            },
            Stage::GivingBackAbove => match self.heap.give_space_above_back(&self.medium) {
                Some(bytes) => {
                    self.note_given_back(pass, bytes);
                    Stage::GivingBackAbove
                }
                None => return Ok(true),
            },
        };
        Ok(false)
    }

    fn note_given_back(&self, pass: &mut Pass, bytes: u64) {
        pass.report.given_back_bytes += bytes;
        self.compaction.note_given_back(bytes);
    }

    /// What was moved is still in the tree's queues, or a reader has it. A pinned caller would wait for itself.
    fn wait_for_readers(&self, count: u32) -> Result<Stage, Error> {
        if epoch::is_pinned() || count == READER_WAITS_MAX {
            return Ok(Stage::GivingBack(0));
        }
        let is_queued = Ordered::step(self)? == Progress::More;
        self.collect();
        if !is_queued && self.limbo.is_empty() {
            return Ok(Stage::GivingBack(0));
        }
        thread::yield_now();
        Ok(Stage::Waiting(count + 1))
    }

    /// Nothing is evacuated or filled any more.
    pub(super) fn end_pass(&self, pass: &mut Pass) {
        self.heap.stop_filling(&self.medium);
        for chunk in pass.plan.leaving.drain(..) {
            self.heap.stop_evacuating(&self.medium, chunk);
        }
    }
}
