//! The reader finds and reads the records of keys: in the table of the batch that is changing the tree, if one is
//! published, else in the tree. Before it returns a state, it waits for the state's durability (`tickets.rs`).

mod lookup;
mod scan;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use engine::{Condition, Error, Hasher, OnFound};
use index::{BPlusTree, Position};
use items::Item;
use parking_lot::RwLock;
use pmem::{Dram, Medium};

use crate::contents::Contents;
use crate::record::{Records, witness};
use crate::region::Region;
use crate::shown::Shown;
use crate::tickets::Tickets;

/// The records of a batch's keys, once the batch is valid.
pub(crate) type Table = BTreeMap<Vec<u8>, Option<Position>>;

/// Reads a store's keys.
pub(crate) struct Reader<M: Medium, D: Dram> {
    contents: Contents<M, D>,
    /// The batch that is changing the tree, if any.
    shown: Shown<RwLock<Option<Arc<Table>>>>,
    /// True if the tree lacks changes of the batch in the table, which stays published.
    is_stuck: AtomicBool,
    tickets: Tickets,
    hasher: Hasher,
}

impl<M: Medium, D: Dram> Reader<M, D> {
    pub(crate) fn new(contents: Contents<M, D>) -> Reader<M, D> {
        Reader {
            hasher: Hasher::new(contents.region().heap().region().superblock().hash_seed),
            contents,
            shown: Shown::default(),
            is_stuck: AtomicBool::new(false),
            tickets: Tickets::default(),
        }
    }

    pub(crate) fn with_contents(self, with: impl FnOnce(Contents<M, D>) -> Contents<M, D>) -> Reader<M, D> {
        Reader { contents: with(self.contents), ..self }
    }

    pub(crate) fn contents(&self) -> &Contents<M, D> {
        &self.contents
    }

    pub(crate) fn region(&self) -> &Region<M, D> {
        self.contents.region()
    }

    pub(crate) fn tree(&self) -> &BPlusTree<D> {
        self.contents.tree()
    }

    pub(crate) fn records(&self) -> Records<'_, M> {
        self.contents.records()
    }

    pub(crate) fn tickets(&self) -> &Tickets {
        &self.tickets
    }

    #[inline(always)]
    pub(crate) fn hash(&self, key: &[u8]) -> u64 {
        self.hasher.signature(key)
    }

    /// Publishes the changes of a batch, until the tree has them.
    pub(crate) fn publish(&self, table: Table) {
        self.shown.show(table);
    }

    /// Ends the publication of a batch: the tree has its changes.
    pub(crate) fn withdraw(&self) {
        self.shown.take_away();
    }

    /// Keeps the published batch: the tree cannot take its changes.
    pub(crate) fn keep_published(&self) {
        self.is_stuck.store(true, Ordering::Release);
    }

    /// Returns an error if the tree lacks changes of a valid batch: a write based on the tree would contradict the log.
    /// The caller holds the lane's lock, or all.
    pub(crate) fn check_batches_applied(&self) -> Result<(), Error> {
        let what = "the index lacks changes of a batch: open the store again";
        if self.is_stuck.load(Ordering::Acquire) { Err(Error::Corrupt { offset: 0, what }) } else { Ok(()) }
    }

    /// Finds the key's record, expired or not; the result is durable. The caller is pinned.
    pub(crate) fn find(&self, key: &[u8]) -> Result<Option<(Position, Item<'_>)>, Error> {
        let position = self.find_position(key)?;
        self.met_key(key)?;
        self.contents.item_at(position)
    }

    /// Finds the key's record, unless it has expired. The caller is pinned.
    pub(crate) fn find_live(&self, key: &[u8]) -> Result<Option<(Position, Item<'_>)>, Error> {
        Ok(self.find(key)?.filter(|(_, item)| !self.contents.is_past(item.expiry)))
    }

    fn find_position(&self, key: &[u8]) -> Result<Option<Position>, Error> {
        let (_, table) = self.shown.now();
        match table.and_then(|table| table.get(key).copied()) {
            Some(held) => Ok(held),
            None => self.contents.find_in_tree(key),
        }
    }

    /// Calls `found` with the key's value and witness, if the key is present.
    pub(crate) fn get(&self, key: &[u8], found: &mut OnFound<'_>) -> Result<bool, Error> {
        let _pin = epoch::pin();
        let Some((position, item)) = self.find_live(key)? else { return Ok(false) };
        self.contents.verify_value(position, &item)?;
        found(witness(position, &item), item.expiry, item.value);
        Ok(true)
    }

    /// Waits for the durability of a key, or of its absence, that a reader met. If nothing is pending at all, the key
    /// need not be hashed: the latest ticket of all keys is raised with each key's, before the tree changes.
    fn met_key(&self, key: &[u8]) -> Result<(), Error> {
        if self.tickets.is_pending() { self.met(self.hash(key)) } else { Ok(()) }
    }

    /// Waits for the durability of the key of this hash, or of its absence, that a reader met without writing.
    pub(crate) fn met(&self, hash: u64) -> Result<(), Error> {
        self.tickets.met(self.region().medium(), hash)
    }

    /// Returns the first condition that does not hold. All lanes are locked; retired records stay until the pin ends.
    pub(crate) fn first_unmet(&self, conditions: &[Condition<'_>]) -> Result<Option<usize>, Error> {
        let _pin = epoch::pin();
        for (number, condition) in conditions.iter().enumerate() {
            let item = self.contents.item_at(self.contents.find_in_tree(condition.key)?)?;
            let live = item.filter(|(_, item)| !self.contents.is_past(item.expiry));
            if !condition.holds(live.map(|(position, item)| (witness(position, &item), item.value))) {
                return Ok(Some(number));
            }
        }
        Ok(None)
    }
}
