//! Broken variants: the faulty code of the canaries whose fault is more than an expression. Only tests reach it
//! (`docs/decisions/0005-prove-the-crash-explorer-with-broken-variants.md`).

use pmem::{Dram, Medium};

use super::Slot;
use super::buckets::{At, Bucket, Buckets, Published};
use super::image::{Stored, Words};
use super::layout::Meta;

/// Empties the slot from which an item moves before the item is in its new slot.
#[cold]
pub(super) fn empty_early<M: Medium, D: Dram>(buckets: &Buckets<'_, M, D>, from: Bucket, i: usize) {
    let _ = buckets.empty(from, i);
    buckets.cx.medium.order();
}

/// Publishes the meta word with the bit of slot `i` before the slot is written.
#[cold]
pub(super) fn publish_bit_first<M: Medium>(stored: &Stored<'_, M>, meta: Meta, i: usize, slot: &Slot) {
    let _ = stored.medium.publish(&[(stored.at, meta.word())], stored.at.0);
    stored.medium.order();
    stored.write_slot(i, slot, true);
}

/// Replaces a slot by one in the other bucket, which needs two words.
#[cold]
pub(super) fn replace_across<'a, M: Medium, D: Dram>(
    buckets: Buckets<'a, M, D>,
    old: &At,
    slot: &Slot,
) -> Published<'a> {
    let other = buckets.buckets().find(|bucket| bucket.number != old.bucket.number).expect("there are two");
    let medium = buckets.cx.medium;
    let meta = buckets.stored(other).meta();
    let Some(i) = meta.free_slot() else { return buckets.fill(old.bucket, slot, Some(old.i), 0) };
    buckets.stored(other).write_slot(i, slot, true);
    medium.order();
    let _ = medium.publish(&[(other.at, meta.with(i, slot.shape()).word())], other.at.0);
    medium.order();
    let emptied = buckets.stored(old.bucket).meta().without(old.i);
    buckets.publish(old.bucket, emptied, 0)
}
