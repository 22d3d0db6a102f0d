//! Broken variants: the faulty code of the canaries whose fault is more than an expression. Only tests reach it
//! (`docs/decisions/0005-prove-the-crash-explorer-with-broken-variants.md`).

use engine::Error;
use pmem::{Dram, Medium};

use crate::Pmekv;
use crate::layout::LANE_COUNT_MAX;
use crate::record::place_of;

/// Frees the key's present record before the new record is written.
#[cold]
pub(crate) fn free_present<M: Medium, D: Dram>(store: &Pmekv<M, D>, key: &[u8]) -> Result<(), Error> {
    if let Some(old) = store.reader.tree().find(&store.reader.records(), key)? {
        store.reader.region().heap().free(store.reader.region().medium(), place_of(old)?);
    }
    Ok(())
}

/// Returns a checkpoint's cuts and the number of entries. The lanes are locked one after the other, so a cut may
/// divide a batch.
#[cold]
pub(crate) fn cuts_apart<M: Medium, D: Dram>(store: &Pmekv<M, D>) -> ([u64; LANE_COUNT_MAX], u64) {
    let last = |lane| {
        let last = if lane < store.lanes.count() { store.lanes.lock(lane).next - 1 } else { 0 };
        store.reader.region().medium().order();
        last
    };
    (std::array::from_fn(last), store.lanes.entry_count())
}
