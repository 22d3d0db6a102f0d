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

use super::image::Words;
use super::layout::{BUCKET_COUNT, FILLED_MAX, bucket, choices};
use super::{BlockHash, Slot};
use crate::segmented::record::header;
use crate::segmented::{Cursor, Segmented};

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

impl BlockHash {
    /// Reports the damage in the segment at `cursor` to `damaged`, and passes every slot to `each`, including both
    /// of duplicates. The caller is pinned. The store must have been swept. No thread may write to the segment during
    /// the call; otherwise damage may be reported that does not exist.
    pub fn check_segment<M: Medium>(
        &self,
        medium: &M,
        cursor: Cursor,
        damaged: &mut dyn FnMut(Damage),
        each: &mut dyn FnMut(Offset, &Slot),
    ) -> Cursor {
        let segment = self.root().at_cursor(cursor);
        if header(medium, segment.offset()).is_none() {
            damaged(Damage { at: segment.offset(), what: "a segment's header is damaged" });
        }
        let mut met = HashSet::new();
        for segment_at in segment.offsets() {
            let before = met.len();
            for number in 0..BUCKET_COUNT {
                let at = bucket(segment_at, number);
                let image = self.decided_image(medium, at);
                let mut wrong = |what| damaged(Damage { at, what });
                if image.meta().filled() > FILLED_MAX {
                    wrong("a bucket has no free slot");
                }
                for (_, slot) in image.slots() {
                    met.insert(slot);
                    let signature = self.signature_of(&slot).filter(|_| slot.is_intact());
                    match signature {
                        None => wrong("a slot's bytes are damaged"),
                        Some(signature) if !choices(signature).contains(&number) => {
                            wrong("an item is in a bucket that is not its key's");
                        }
                        Some(signature) if self.geometry.prefix(signature, segment.depth()) != segment.prefix() => {
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
        cursor.past(segment, self.geometry.partition_count())
    }
}

/// Returns the pages of a segment in which no bit is set.
fn zero_pages<M: Medium>(medium: &M, segment: Offset) -> impl Iterator<Item = Offset> {
    let pages = (0..SEGMENT_BYTES).step_by(PAGE_BYTES as usize).map(move |at| segment.plus(at));
    pages.filter(|page| (0..PAGE_BYTES).step_by(8).all(|at| medium.load(page.plus(at), Ordering::Relaxed) == 0))
}
