//! Verifies the table: every slot is intact and in a bucket where a search finds it, and no key occurs twice.
//! Exception: a store opened for reading only may contain duplicates.
//!
//! A bucket of zeros is one that was never written. So a page that a medium has lost and returns as zeros looks
//! intact. The check rejects such a page among many items, because there it is too improbable: keys are hashed with
//! a seed of the store.

use std::collections::HashSet;
use std::sync::atomic::Ordering;

use heap::layout::SEGMENT_BYTES;
use pmem::{Medium, Offset};

use super::Slot;
use super::batch::Batches;
use super::image::Words;
use super::layout::{BUCKET_COUNT, FILLED_MAX, bucket, choices};
use super::segment::Segment;
use super::slot::Signer;
use crate::segmented::Segmented;
use crate::segmented::layout::Geometry;
use crate::segmented::record::header;

/// The unit in which media lose data, in bytes.
const PAGE_BYTES: u64 = 4096;
/// With so many items in a segment, the chance that all of them missed the sixteen buckets of a page, of 63, is
/// (47/63)^128, less than 10^-16.
const NEIGHBOUR_COUNT_MIN: usize = 128;

/// Damage found in a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The place of the damaged word or bucket.
    pub at: Offset,
    /// A description of the damage.
    pub what: &'static str,
}

/// Reports the damage in a segment to `damaged`, and passes every slot to `each`, including both of duplicates.
pub(super) fn check<M: Medium>(
    medium: &M,
    segment: &Segment,
    (geometry, signer, batches): (Geometry, &Signer, &Batches),
    damaged: &mut dyn FnMut(Damage),
    each: &mut dyn FnMut(Offset, &Slot),
) {
    if header(medium, segment.offset()).is_none() {
        damaged(Damage { at: segment.offset(), what: "a segment's header is damaged" });
    }
    let mut met = HashSet::new();
    for segment_at in segment.offsets() {
        let before = met.len();
        for number in 0..BUCKET_COUNT {
            let at = bucket(segment_at, number);
            let image = batches.decided_image(medium, at);
            let mut wrong = |what| damaged(Damage { at, what });
            if image.meta().filled() > FILLED_MAX {
                wrong("a bucket has no free slot");
            }
            for (_, slot) in image.slots() {
                met.insert(slot);
                let signature = signer.signature_of_intact(&slot);
                match signature {
                    None => wrong("a slot's bytes are damaged"),
                    Some(signature) if !choices(signature).contains(&number) => {
                        wrong("an item is in a bucket that is not its key's");
                    }
                    Some(signature) if geometry.prefix(signature, segment.depth()) != segment.prefix() => {
                        wrong("an item's signature belongs to another segment");
                    }
                    Some(_) => each(at, &slot),
                }
            }
        }
        if met.len() - before >= NEIGHBOUR_COUNT_MIN {
            let what = "a page of buckets is all zeros among many items";
            zero_pages(medium, segment_at).for_each(|at| damaged(Damage { at, what }));
        }
    }
    if segment.item_count() != met.len() as u64 {
        damaged(Damage { at: segment.offset(), what: "a segment's number of items differs from its counter" });
    }
}

/// Returns the pages of a segment in which no bit is set.
fn zero_pages<M: Medium>(medium: &M, segment: Offset) -> impl Iterator<Item = Offset> {
    let pages = (0..SEGMENT_BYTES).step_by(PAGE_BYTES as usize).map(move |at| segment.plus(at));
    pages.filter(|page| (0..PAGE_BYTES).step_by(8).all(|at| medium.load(page.plus(at), Ordering::Relaxed) == 0))
}
