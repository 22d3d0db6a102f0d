//! The contents of a store: the record of every key, in the tree and in the region. A method that reads a record checks
//! it as far as the store's `verify` asks for, and compares its expiry with the clock.

mod leaves;

use engine::{Clock, Error, Expiry, PriorState, Verify};
use index::bplus_tree::{ChangeError, Edit, Found};
use index::{BPlusTree, Position};
use items::Item;
use pmem::{Dram, Medium};

use crate::record::{Intact, Records, check_intact};
use crate::region::Region;

/// A record's key, and its value unless the record has expired.
type Pair<'r> = (&'r [u8], Option<&'r [u8]>);

/// The records of a store's keys.
pub(crate) struct Contents<M: Medium, D: Dram> {
    region: Region<M, D>,
    tree: BPlusTree<D>,
    clock: Clock,
    verify: Verify,
}

impl<M: Medium, D: Dram> Contents<M, D> {
    pub(crate) fn new(region: Region<M, D>, tree: BPlusTree<D>) -> Contents<M, D> {
        Contents { region, tree, clock: Clock::default(), verify: Verify::Nothing }
    }

    pub(crate) fn by_clock(self, clock: Clock) -> Contents<M, D> {
        Contents { clock, ..self }
    }

    pub(crate) fn verifying(self, verify: Verify) -> Contents<M, D> {
        Contents { verify, ..self }
    }

    pub(crate) fn region(&self) -> &Region<M, D> {
        &self.region
    }

    pub(crate) fn tree(&self) -> &BPlusTree<D> {
        &self.tree
    }

    pub(crate) fn records(&self) -> Records<'_, M> {
        self.region.records()
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Returns true if a record with this expiry has expired, so that its key is absent.
    pub(crate) fn is_past(&self, expiry: Expiry) -> bool {
        self.clock.is_past(expiry)
    }

    /// Returns true if an absence is verified.
    #[inline(always)]
    pub(crate) fn verifies_absence(&self) -> bool {
        self.verify >= Verify::Absence
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
        if !self.verifies_absence() {
            return Ok(true);
        }
        Ok(self.tree.find(&Intact(&self.records()), key)?.is_none())
    }

    /// Reads the record at `position`, if there is one.
    pub(crate) fn item_at(&self, position: Option<Position>) -> Result<Option<(Position, Item<'_>)>, Error> {
        position.map(|position| self.records().read(position).map(|item| (position, item))).transpose()
    }

    /// Returns the record's value, if the record is plain and passes the checks that reads make.
    #[inline(always)]
    pub(crate) fn value_of(&self, position: Position) -> Option<&[u8]> {
        let plain = self.records().plain(position)?;
        (self.verify == Verify::Nothing || plain.is_intact()).then(|| plain.value())
    }

    /// Returns a record's key, and its value unless it has expired. Most records are plain: they are read in place,
    /// without building an [`items::Item`].
    #[inline(always)]
    pub(crate) fn pair(&self, position: Position) -> Result<Pair<'_>, Error> {
        match self.records().plain(position) {
            Some(plain) if self.verify == Verify::Nothing || plain.is_intact() => {
                Ok((plain.key(), Some(plain.value())))
            }
            _ => self.any_pair(position),
        }
    }

    #[cold]
    #[inline(never)]
    fn any_pair(&self, position: Position) -> Result<Pair<'_>, Error> {
        let item = self.records().read(position)?;
        if self.is_past(item.expiry) {
            return Ok((item.key, None));
        }
        self.verify_value(position, &item)?;
        Ok((item.key, Some(item.value)))
    }

    /// Verifies a value before it is returned, if reads do so.
    pub(crate) fn verify_value(&self, position: Position, item: &Item<'_>) -> Result<(), Error> {
        if self.verify > Verify::Nothing { check_intact(position, item) } else { Ok(()) }
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

    /// Changes the record of a key that was found under its lane's lock.
    pub(crate) fn update_record(&self, found: &Found<'_, '_>, edit: Edit) -> Result<(), Error> {
        self.tree.apply_to(&self.records(), found, edit).map_err(of_change)
    }
}

/// Converts the error of a change of the tree.
fn of_change(error: ChangeError<Error>) -> Error {
    match error {
        ChangeError::Keys(error) => error,
        ChangeError::NoDram { wanted_bytes } => Error::NoMemory { wanted_bytes },
        ChangeError::Exists(position) | ChangeError::Missing(position) => {
            Error::Corrupt { offset: position.offset().0, what: "the index lost track of a key: open the store again" }
        }
    }
}
