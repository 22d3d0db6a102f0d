//! The reader finds and reads the records of keys: in the table of the batch that is changing the tree, if one is
//! published, else in the tree. Before it returns a state, it waits for the state's durability (`tickets.rs`).

mod leaves;
mod lookup;
mod scan;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use engine::{Clock, Condition, Error, Expiry, Hasher, PriorState, Verify, Witness};
use index::{BPlusTree, Position};
use items::Item;
use parking_lot::RwLock;
use pmem::{Dram, Medium};

use crate::record::{Intact, Records, check_intact, witness};
use crate::region::Region;
use crate::shown::Shown;
use crate::tickets::Tickets;

/// The records of a batch's keys, once the batch is valid.
pub(crate) type Table = BTreeMap<Vec<u8>, Option<Position>>;

/// Reads a store's keys.
pub(crate) struct Reader<M: Medium, D: Dram> {
    region: Region<M, D>,
    tree: BPlusTree<D>,
    /// The batch that is changing the tree, if any.
    shown: Shown<RwLock<Option<Arc<Table>>>>,
    /// True if the tree lacks changes of the batch in the table, which stays published.
    is_stuck: AtomicBool,
    tickets: Tickets,
    hasher: Hasher,
    clock: Clock,
    verify: Verify,
}

impl<M: Medium, D: Dram> Reader<M, D> {
    pub(crate) fn new(region: Region<M, D>, tree: BPlusTree<D>) -> Reader<M, D> {
        Reader {
            hasher: Hasher::new(region.heap().superblock().hash_seed),
            region,
            tree,
            shown: Shown::default(),
            is_stuck: AtomicBool::new(false),
            tickets: Tickets::default(),
            clock: Clock::default(),
            verify: Verify::Nothing,
        }
    }

    pub(crate) fn by_clock(self, clock: Clock) -> Reader<M, D> {
        Reader { clock, ..self }
    }

    pub(crate) fn verifying(self, verify: Verify) -> Reader<M, D> {
        Reader { verify, ..self }
    }

    #[inline(always)]
    pub(crate) fn region(&self) -> &Region<M, D> {
        &self.region
    }

    #[inline(always)]
    pub(crate) fn tree(&self) -> &BPlusTree<D> {
        &self.tree
    }

    #[inline(always)]
    pub(crate) fn tickets(&self) -> &Tickets {
        &self.tickets
    }

    #[inline(always)]
    pub(crate) fn records(&self) -> Records<'_, M> {
        self.region.records()
    }

    #[inline(always)]
    pub(crate) fn hash(&self, key: &[u8]) -> u64 {
        self.hasher.signature(key)
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Returns true if a record with this expiry has expired, so that its key is absent.
    pub(crate) fn is_past(&self, expiry: Expiry) -> bool {
        self.clock.is_past(expiry)
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
    /// The caller holds the lane's lock, or has held all.
    pub(crate) fn is_learnt(&self) -> Result<(), Error> {
        let what = "the index lacks changes of a batch: open the store again";
        if self.is_stuck.load(Ordering::Acquire) { Err(Error::Corrupt { offset: 0, what }) } else { Ok(()) }
    }

    /// Finds the key's record, expired or not; the result is durable. The caller is pinned.
    pub(crate) fn find(&self, key: &[u8]) -> Result<Option<(Position, Item<'_>)>, Error> {
        let position = self.find_position(key)?;
        self.met_key(key)?;
        self.item_at(position)
    }

    /// Reads the record at `position`, if there is one.
    fn item_at(&self, position: Option<Position>) -> Result<Option<(Position, Item<'_>)>, Error> {
        position.map(|position| self.records().read(position).map(|item| (position, item))).transpose()
    }

    /// Finds the key's record, unless it has expired. The caller is pinned.
    pub(crate) fn find_live(&self, key: &[u8]) -> Result<Option<(Position, Item<'_>)>, Error> {
        Ok(self.find(key)?.filter(|(_, item)| !self.is_past(item.expiry)))
    }

    fn find_position(&self, key: &[u8]) -> Result<Option<Position>, Error> {
        let (_, table) = self.shown.now();
        match table.and_then(|table| table.get(key).copied()) {
            Some(held) => Ok(held),
            None => self.find_in_tree(key),
        }
    }

    /// Finds the key in the tree; verifies an absence if the store's `verify` asks for it. The caller is pinned, or
    /// holds the lock of the key's lane.
    pub(crate) fn find_in_tree(&self, key: &[u8]) -> Result<Option<Position>, Error> {
        loop {
            let found = self.tree.find(&self.records(), key)?;
            if found.is_some() || self.is_surely_absent(key)? {
                return Ok(found);
            }
        }
    }

    /// Returns false if a lookup that found nothing has to be repeated, and an error if damage may have hidden the
    /// key's record.
    #[inline(always)]
    pub(crate) fn is_surely_absent(&self, key: &[u8]) -> Result<bool, Error> {
        if self.verify < Verify::Absence {
            return Ok(true);
        }
        Ok(self.tree.find(&Intact(&self.records()), key)?.is_none())
    }

    /// Calls `found` with the key's value and witness, if the key is present.
    pub(crate) fn get(&self, key: &[u8], found: &mut dyn FnMut(Witness, &[u8])) -> Result<bool, Error> {
        let _pin = epoch::pin();
        let Some((position, item)) = self.find_live(key)? else { return Ok(false) };
        self.verify_value(position, &item)?;
        found(witness(position, &item), item.value);
        Ok(true)
    }

    /// Verifies a value before it is returned, if reads do so.
    fn verify_value(&self, position: Position, item: &Item<'_>) -> Result<(), Error> {
        if self.verify > Verify::Nothing { check_intact(position, item) } else { Ok(()) }
    }

    /// Waits for the durability of a key, or of its absence, that a reader met. If nothing is pending at all, the key
    /// need not be hashed: the latest ticket of all keys is raised with each key's, before the tree changes.
    fn met_key(&self, key: &[u8]) -> Result<(), Error> {
        if self.tickets.is_pending() { self.met(self.hash(key)) } else { Ok(()) }
    }

    /// Waits for the durability of the key of this hash, or of its absence, that a reader met without writing.
    pub(crate) fn met(&self, hash: u64) -> Result<(), Error> {
        self.tickets.met(self.region.medium(), hash)
    }

    /// Returns the first condition that does not hold. All lanes are locked; retired records stay until the pin ends.
    pub(crate) fn first_unmet(&self, conditions: &[Condition<'_>]) -> Result<Option<usize>, Error> {
        let _pin = epoch::pin();
        for (number, condition) in conditions.iter().enumerate() {
            let item = self.item_at(self.find_in_tree(condition.key)?)?;
            let live = item.filter(|(_, item)| !self.is_past(item.expiry));
            if !condition.holds(live.map(|(position, item)| (witness(position, &item), item.value))) {
                return Ok(Some(number));
            }
        }
        Ok(None)
    }

    /// Returns the state of a key whose record is `old`. The clock is read once, so that a writer's caller and the
    /// callback agree. The key's lane is locked.
    #[inline(always)]
    pub(crate) fn state_of(&self, old: Option<Position>) -> Result<PriorState, Error> {
        match old {
            None => Ok(PriorState::Absent),
            Some(old) if self.records().plain(old).is_some() => Ok(PriorState::Present),
            Some(old) => self.state_of_any(old),
        }
    }

    #[cold]
    #[inline(never)]
    fn state_of_any(&self, old: Position) -> Result<PriorState, Error> {
        let is_past = self.is_past(self.records().read(old)?.expiry);
        Ok(if is_past { PriorState::Expired } else { PriorState::Present })
    }
}
