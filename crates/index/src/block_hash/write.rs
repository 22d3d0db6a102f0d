//! Writes one key: step 2, and the choice of the slot (see the parent module).

use pmem::{Dram, LINE_BYTES, Medium};

use super::buckets::{At, Buckets, Full, Published, mark_unlinked};
use super::crowding::LIGHT_FILLED_MAX;
use super::layout::{BUCKET_BYTES, FILLED_MAX, bucket, choices};
use super::segment::Segment;
use super::{BlockHash, Slot, broken, canary};
use crate::segmented::Context;

/// The place to which a write of a signature leads.
#[derive(Clone, Copy)]
pub struct Target<'a> {
    pub(super) segment: &'a Segment,
    pub(super) numbers: [usize; 2],
}

impl BlockHash {
    /// Prefetches the lines with which a write of the signature begins: two buckets, with locks and counters. The
    /// caller is pinned while it uses the result.
    #[inline(always)]
    pub fn prefetch<M: Medium>(&self, medium: &M, signature: u64) -> Target<'_> {
        let (start, segment) = self.segments.both(signature);
        let numbers = choices(signature);
        segment.prefetch(numbers);
        let lines = (0..BUCKET_BYTES).step_by(LINE_BYTES as usize);
        let lines =
            numbers.into_iter().flat_map(|number| lines.clone().map(move |byte| bucket(start, number).plus(byte)));
        lines.for_each(|line| medium.prefetch_line(line));
        Target { segment, numbers }
    }

    /// Carries out step 2: locks the buckets of a signature.
    #[inline(always)]
    pub fn lock<'a, M: Medium, D: Dram>(&'a self, cx: Context<'a, M, D>, signature: u64) -> Buckets<'a, M, D> {
        let numbers = choices(signature);
        loop {
            if let Some(locked) = self.try_lock(cx, Target { segment: self.segments.of(signature), numbers }) {
                return locked;
            }
        }
    }

    /// Like [`BlockHash::lock`], with the target that a prefetch of this signature returned.
    #[inline(always)]
    pub fn lock_target<'a, M: Medium, D: Dram>(
        &'a self,
        cx: Context<'a, M, D>,
        target: Target<'a>,
        signature: u64,
    ) -> Buckets<'a, M, D> {
        self.try_lock(cx, target).unwrap_or_else(|| self.lock(cx, signature))
    }

    /// Returns `None` if the segment was split or cleared.
    #[inline(always)]
    fn try_lock<'a, M: Medium, D: Dram>(
        &'a self,
        cx: Context<'a, M, D>,
        Target { segment, numbers }: Target<'a>,
    ) -> Option<Buckets<'a, M, D>> {
        let locks = segment.lock(numbers);
        if segment.is_dead() {
            return None;
        }
        segment.make_durable(cx.medium);
        Some(Buckets { signer: &self.signer, moves: &self.moves, cx, segment, numbers, _locks: locks })
    }
}

impl<'a, M: Medium, D: Dram> Buckets<'a, M, D> {
    /// Inserts a slot for a key that was not found.
    ///
    /// # Errors
    /// [`Full`]; then nothing has changed.
    #[inline(always)]
    pub fn insert(self, slot: &Slot) -> Result<Published<'a>, Full> {
        match self.emptiest() {
            (filled, bucket) if filled < FILLED_MAX => Ok(self.fill(bucket, slot, None, 1)),
            _ => self.insert_moving(slot),
        }
    }

    /// Replaces a slot of the key by another, in the same bucket.
    #[inline(always)]
    pub fn replace(self, old: &At, slot: &Slot) -> Published<'a> {
        if self.cx.medium.breaks(canary::UPDATE_ACROSS_BUCKETS) {
            return broken::replace_across(self, old, slot);
        }
        mark_unlinked(self.cx, &old.slot);
        self.fill(old.bucket, slot, Some(old.i), 0)
    }

    /// Removes the key.
    #[inline(always)]
    pub fn remove(self, old: &At) -> Published<'a> {
        mark_unlinked(self.cx, &old.slot);
        self.segment.raise(old.bucket.number);
        let meta = self.meta_to_change(old.bucket).without(old.i);
        let moves = self.moves;
        let published = self.publish(old.bucket, meta, -1);
        if meta.filled() == LIGHT_FILLED_MAX {
            moves.note_crowding();
        }
        published
    }
}
