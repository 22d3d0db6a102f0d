//! Loads the order of a clean image: nothing is collected or sorted, but each key is read, and the loader refuses keys
//! that do not ascend.

use index::Position;
use index::bplus_tree::Keys;
use pmem::Medium;

use super::collect::{Entries, PART_COUNT, Plan};
use super::items::Items;
use engine::Error;

/// Divides items, which are in key order, into the parts of a tree.
pub(super) fn divide<M: Medium>(medium: &M, sorted: &[Position]) -> Result<(Plan, Vec<Entries>), Error> {
    let _pin = epoch::pin();
    let parts = sorted.chunks(PART_COUNT as usize);
    let splitters = parts.clone().skip(1).map(|part| Items(medium).key(part[0]).map(Box::from));
    let plan = Plan::of_splitters(splitters.collect::<Result<_, _>>()?, sorted.len() as u64);
    let entries = parts.map(|part| Entries::Sorted(part.to_vec()));
    // An empty tree also has a part.
    let entries = entries.chain(sorted.is_empty().then(|| Entries::Sorted(Vec::new())));
    Ok((plan, entries.collect()))
}
