//! Broken variants: the faulty code of the canaries whose fault is more than an expression. Only tests reach it
//! (`docs/decisions/0005-prove-the-crash-explorer-with-broken-variants.md`).

use engine::Error;
use pmem::{Dram, Medium, Span};

use crate::lanes::Lanes;
use crate::layout::LANE_COUNT_MAX;
use crate::reader::Reader;
use crate::record::place_of;

/// Frees the key's present record before the new record is written.
#[cold]
pub(crate) fn free_present<M: Medium, D: Dram>(reader: &Reader<M, D>, key: &[u8]) -> Result<(), Error> {
    if let Some(old) = reader.tree().find(&reader.records(), key)? {
        reader.region().heap().free(reader.region().medium(), place_of(old)?);
    }
    Ok(())
}

/// Returns a checkpoint's cuts and the number of entries. The lanes are locked one after the other, so a cut may
/// divide a batch.
#[cold]
pub(crate) fn cuts_apart<M: Medium>(lanes: &Lanes, medium: &M) -> ([u64; LANE_COUNT_MAX], u64) {
    let mut cuts = [0; LANE_COUNT_MAX];
    for (lane, cut) in cuts.iter_mut().enumerate() {
        *cut = if lane < lanes.count() { lanes.lock(lane).last() } else { 0 };
        medium.order();
    }
    (cuts, lanes.entry_count())
}

/// Counts a put whatever its record, and ends the log where the record is bad. Returns true: the put counts.
#[cold]
pub(crate) fn end_at_bad_record(record: Option<Span>, is_ended: &mut bool) -> bool {
    *is_ended |= record.is_none();
    true
}
