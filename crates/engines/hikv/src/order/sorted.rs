//! Loading what a clean image has in order: nothing is collected and nothing sorted, but each key is read, and the loader
//! refuses what does not ascend.

use index::Position;
use index::bplus_tree::Keys;
use pmem::Medium;

use super::collect::{Entries, PART_COUNT, Plan};
use super::items::Items;
use engine::Error;

/// The parts of a tree of these items, which come in the order of their keys.
pub(super) fn divide<M: Medium>(medium: &M, sorted: &[Position]) -> Result<(Plan, Vec<Entries>), Error> {
    let _pin = epoch::pin();
    let parts = sorted.chunks(PART_COUNT as usize);
    let splitters = parts.clone().skip(1).map(|part| Items(medium).key(part[0]).map(Box::from));
    let plan = Plan::of_splitters(splitters.collect::<Result<_, _>>()?, sorted.len() as u64);
    let entries = parts.map(|part| Entries::Sorted(part.to_vec()));
    // A tree of nothing has a part, too.
    let entries = entries.chain(sorted.is_empty().then(|| Entries::Sorted(Vec::new())));
    Ok((plan, entries.collect()))
}
