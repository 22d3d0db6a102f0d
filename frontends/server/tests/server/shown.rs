//! What a snapshot shows of the tree of collections.

use std::collections::{BTreeMap, BTreeSet};

use hikv::{Expiry, Snapshot};

pub(crate) const TREE: &str = "hikv:collections";

/// What a snapshot of the tree shows: the invariants of `docs/format/collections.md`.
#[derive(Default)]
pub(crate) struct Shown {
    /// The count (in a sorted set twice), the owner and the expiry of each record, by its id.
    records: BTreeMap<Vec<u8>, (u64, Vec<u8>, Expiry)>,
    element_counts: BTreeMap<Vec<u8>, u64>,
    /// Ids whose elements may be there without a record.
    dead: BTreeSet<Vec<u8>>,
    /// The rows of expiring collections, with their owners.
    due: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl Shown {
    pub(crate) fn of(snapshot: &Snapshot) -> Shown {
        let mut shown = Shown::default();
        let tree = snapshot.tree(TREE).expect("it is read").expect("there is the tree");
        let each = |key: &[u8], value: &[u8], expiry: Expiry| match key {
            [1, owner @ ..] => {
                let mut id = value[8..16].to_vec();
                id.reverse();
                let count = u64::from_le_bytes(value[16..24].try_into().expect("8 bytes"));
                let count = if value[0] == 4 { 2 * count } else { count };
                assert!(shown.records.insert(id, (count, owner.to_vec(), expiry)).is_none(), "an id is used twice");
            }
            [2, rest @ ..] => *shown.element_counts.entry(rest[..8].to_vec()).or_default() += 1,
            [3, id @ ..] => _ = shown.dead.insert(id.to_vec()),
            [4, row @ ..] => {
                shown.dead.insert(row[8..].to_vec());
                shown.due.insert(row.to_vec(), value.to_vec());
            }
            _ => {}
        };
        tree.for_each_with_expiry(each).expect("it is read");
        shown
    }

    /// Returns the number of elements without a record.
    pub(crate) fn dead_elements(&self) -> u64 {
        let dead = self.element_counts.iter().filter(|(id, _)| !self.records.contains_key(*id));
        dead.map(|(_, count)| count).sum()
    }

    /// Returns a description of the first violated invariant.
    pub(crate) fn violation(&self) -> Option<String> {
        for (id, (count, owner, expiry)) in &self.records {
            let elements = self.element_counts.get(id).copied().unwrap_or(0);
            if elements != *count || elements == 0 {
                return Some(format!("{id:?}: {elements} elements, counted {count}"));
            }
            let row = [&expiry.ms().to_be_bytes()[..], id].concat();
            if !expiry.is_never() && self.due.get(&row) != Some(owner) {
                return Some(format!("{id:?}: no row for its expiry"));
            }
        }
        let is_lost = |id: &&Vec<u8>| !self.records.contains_key(*id) && !self.dead.contains(*id);
        self.element_counts.keys().find(is_lost).map(|id| format!("{id:?}: elements of no collection"))
    }
}
