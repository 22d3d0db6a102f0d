//! Writes of one key: the steps of the crate's head.
//!
//! If the tree cannot take a change that is in the log (DRAM allocation fails, a neighbour's record is damaged), a
//! second entry reverts the change before the lane is unlocked, and the write returns an error. A crash between the two
//! leaves the change.

use arrayvec::ArrayVec;
use engine::{Error, ExpiredItem, Limits, PriorState, WriteResult};
use epoch::{FREED_COUNT_MAX, Pinned};
use index::Position;
use index::bplus_tree::{ChangeError, Edit, Found, Keys as _, PrefetchedLeaf};
use pmem::{Dram, Level, Medium, Ticket, Waited};

use crate::entry::{Entry, Kind};
use crate::lane::Log;
use crate::prepared::Prepared;
use crate::record::{check_intact, place_of};
use crate::{Pmekv, canary};

/// The record that a key must have to be changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Expected {
    Anything,
    /// This record, or none. The caller was pinned before it found the record, so the place was not reused.
    Record(Option<Position>),
}

/// The result of a write.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) answer: WriteResult<PriorState>,
    /// The item that had expired before, if there is a callback for it.
    pub(crate) expired: Option<ExpiredItem>,
}

impl Outcome {
    pub(crate) const UNEXPECTED: Outcome = Outcome { answer: WriteResult::Unexpected, expired: None };

    pub(crate) fn found(before: PriorState) -> Outcome {
        Outcome { answer: WriteResult::Done(before), expired: None }
    }

    /// Returns true if the key was present.
    pub(crate) fn was_there(&self) -> bool {
        self.answer == WriteResult::Done(PriorState::Present)
    }

    /// Adjusts the outcome to the value that the caller's decision saw: an item that it saw had not expired.
    pub(crate) fn shown(self, is_shown: bool) -> Outcome {
        let Outcome { answer, expired } = self;
        Outcome { answer: answer.map(|before| before.present_if(is_shown)), expired: expired.filter(|_| !is_shown) }
    }
}

/// The result of a change, and the work that is left for after unlocking the lane.
pub(crate) enum Changed {
    /// The key does not have the expected record.
    Unexpected,
    /// There was no record to delete.
    Nothing {
        hash: u64,
    },
    Done {
        before: PriorState,
        old: Option<Position>,
        hash: u64,
        ticket: Ticket,
    },
}

impl<M: Medium, D: Dram> Pmekv<M, D> {
    /// Changes a key, whose new record may have to be written first. `new` is taken only when it is in the log: a write
    /// that finds no space can be retried.
    pub(crate) fn change(
        &self,
        key: &[u8],
        new: &mut Option<Prepared<'_, '_, D>>,
        expected: Expected,
    ) -> Result<Outcome, Error> {
        let pin = epoch::pin();
        let prefetched = self.tree.prefetch(pin.pinned(), &self.records(), key);
        let changed = self.change_at(pin.pinned(), &prefetched, new, expected)?;
        drop(pin);
        self.conclude(changed)
    }

    /// Steps 1 to 5, of a key whose leaf was prefetched.
    #[inline(always)]
    pub(crate) fn change_at<'t>(
        &'t self,
        pinned: Pinned<'t>,
        prefetched: &PrefetchedLeaf<'t, '_>,
        new: &mut Option<Prepared<'_, '_, D>>,
        expected: Expected,
    ) -> Result<Changed, Error> {
        let (hash, records) = (self.hasher.signature(prefetched.key()), self.records());
        let mut log = self.lanes.lock(self.lane_of(hash));
        self.batches.is_learnt()?;
        // The leaf has arrived by now, or will soon; the old record arrives while the new one is written.
        self.tree.likely(&records, prefetched).into_iter().for_each(|old| records.prefetch(old));
        new.iter_mut().for_each(|new| new.write(&self.medium));
        let found = self.tree.find_prefetched_to_change(pinned, &records, prefetched)?;
        let old = found.item();
        if old.is_none() {
            // The lane's lock keeps other threads from putting the key.
            self.is_surely_absent(prefetched.key())?;
        }
        if matches!(expected, Expected::Record(expected) if expected != old) {
            return Ok(Changed::Unexpected);
        }
        let Some(edit) = edit(old, new.as_ref().map(Prepared::position)) else { return Ok(Changed::Nothing { hash }) };
        let before = self.before(old)?;
        // A full region has a segment left for deletes.
        self.provide(&mut log, 2, usize::from(new.is_some()), u64::from(matches!(edit, Edit::Insert(_))))?;
        let durable = log.next - 1;
        let entry = Entry { durable, hash, ..entry(old, new.as_ref()) };
        let expires = new.as_ref().is_some_and(Prepared::expires);
        new.take().into_iter().for_each(Prepared::publish);
        if self.medium.breaks(canary::TREE_BEFORE_COMMIT) {
            self.learn(&found, edit)?;
        }
        self.lanes.append(&mut log, &self.medium, entry);
        let ticket = match self.medium.breaks(canary::ACKNOWLEDGED_BEFORE_COMMIT) {
            true => Ticket::default(),
            false => self.medium.commit(Level::default()),
        };
        self.lanes.count_entries(1, 0);
        // Readers must not see changes that a failed medium did not accept.
        self.medium.health()?;
        self.tickets.raise(hash, ticket);
        if !self.medium.breaks(canary::TREE_BEFORE_COMMIT)
            && let Err(error) = self.learn(&found, edit)
        {
            self.take_back(&mut log, entry)?;
            return Err(error);
        }
        self.expect(expires.into());
        Ok(Changed::Done { before, old, hash, ticket })
    }

    /// Step 6, and waiting for durability that the medium provides later. The caller is not pinned by then.
    #[inline(always)]
    pub(crate) fn conclude(&self, changed: Changed) -> Result<Outcome, Error> {
        let (before, old, hash, ticket) = match changed {
            Changed::Done { before, old, hash, ticket } => (before, old, hash, ticket),
            Changed::Unexpected => return Ok(Outcome::UNEXPECTED),
            Changed::Nothing { hash } => {
                self.met(hash)?;
                return Ok(Outcome::found(PriorState::Absent));
            }
        };
        let expired = if before == PriorState::Expired { self.copy_expired(old) } else { None };
        if let Some(old) = old.filter(|_| !self.medium.breaks(canary::FREED_BEFORE_COMMIT)) {
            self.retire(old)?;
        }
        if self.medium.acknowledge(ticket)? == Waited::Durable {
            self.tickets.settle(hash, ticket);
        }
        Ok(Outcome { answer: WriteResult::Done(before), expired })
    }

    /// Copies an expired record for the callback, if there is one. The record was removed from the tree and is not
    /// retired yet.
    #[cold]
    pub(crate) fn copy_expired(&self, old: Option<Position>) -> Option<ExpiredItem> {
        let (position, hook) = (old?, self.reaper.hook());
        let item = self.records().read(position).ok()?;
        // A damaged expiry or value is not reported.
        check_intact(position, &item).ok()?;
        hook.copy(item.key, item.value, item.expiry)
    }

    /// Reports `count` records that expire to the reaper, after they are in the tree: a walk that the reaper began
    /// before may have met the keys' old records.
    pub(crate) fn expect(&self, count: u64) {
        if count > 0 {
            self.reaper.expect(count);
        }
    }

    /// Returns the state of the key before the write. The clock is read once, so that the caller and the callback
    /// agree. The key's lane is locked.
    #[inline(always)]
    pub(crate) fn before(&self, old: Option<Position>) -> Result<PriorState, Error> {
        match old {
            None => Ok(PriorState::Absent),
            Some(old) if self.records().plain(old).is_some() => Ok(PriorState::Present),
            Some(old) => self.before_of_any(old),
        }
    }

    #[cold]
    #[inline(never)]
    fn before_of_any(&self, old: Position) -> Result<PriorState, Error> {
        let is_past = self.is_past(self.records().read(old)?.expiry);
        Ok(if is_past { PriorState::Expired } else { PriorState::Present })
    }

    pub(crate) fn lane_of(&self, hash: u64) -> usize {
        let turn = if self.medium.breaks(canary::KEY_IN_ANY_LANE) { self.lanes.entry_count() << 32 } else { 0 };
        self.lanes.of(hash.wrapping_add(turn))
    }

    /// Step 5, of a key that was found under its lane's lock.
    pub(crate) fn learn(&self, found: &Found<'_, '_>, edit: Edit) -> Result<(), Error> {
        self.tree.apply_to(&self.records(), found, edit).map_err(of_change)
    }

    /// Reverts a change in the log, instead of step 5, if the tree cannot take it: log and tree stay equal.
    pub(crate) fn take_back(&self, log: &mut Log, entry: Entry) -> Result<(), Error> {
        if self.medium.breaks(canary::NOT_TAKEN_BACK) {
            return Ok(());
        }
        let (kind, checksum) = match entry.old {
            Position::EMPTY => (Kind::Delete, 0),
            old => (Kind::Put, self.records().read(old)?.header.checksum),
        };
        if entry.new == Position::EMPTY {
            // The promise for the deleted key is for this one.
            (log.keys.left, log.keys.gone) = (log.keys.left + 1, log.keys.gone - 1);
        }
        let back = Entry { kind, checksum, new: entry.old, old: entry.new, durable: log.next - 1, ..entry };
        self.lanes.append(log, &self.medium, back);
        self.lanes.count_entries(1, 0);
        let ticket = self.medium.commit(Level::default());
        self.medium.health()?;
        self.tickets.raise(entry.hash, ticket);
        // No reader has found it.
        self.free(entry.new);
        Ok(())
    }

    /// Step 6.
    pub(crate) fn retire(&self, old: Position) -> Result<(), Error> {
        let bytes = self.heap.table().place_bytes(place_of(old)?);
        let mut free = ArrayVec::<_, FREED_COUNT_MAX>::new();
        let waiting_bytes = self.limbo.retire(old, bytes, |record| free.push(record));
        if waiting_bytes > 0 {
            self.heap.supply().expect_newly_free(waiting_bytes);
        }
        if !free.is_empty() {
            self.free_all(&free);
        }
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn free_all(&self, records: &[Position]) {
        records.iter().filter_map(|record| record.place()).for_each(|place| self.heap.table().expect_free(place));
        records.iter().for_each(|&record| self.free(record));
    }

    pub(crate) fn free(&self, record: Position) {
        let Some(place) = record.place() else { return };
        self.heap.free(&self.medium, place);
    }
}

/// Converts the error of a change of the tree.
pub(crate) fn of_change(error: ChangeError<Error>) -> Error {
    match error {
        ChangeError::Keys(error) => error,
        ChangeError::NoDram { wanted_bytes } => Error::NoMemory { wanted_bytes },
        ChangeError::Exists(position) | ChangeError::Missing(position) => {
            Error::Corrupt { offset: position.offset().0, what: "the index lost track of a key: open the store again" }
        }
    }
}

/// Returns the change of the tree, or `None` if there is none.
#[inline(always)]
pub(crate) fn edit(old: Option<Position>, new: Option<Position>) -> Option<Edit> {
    match (old, new) {
        (None, None) => None,
        (None, Some(new)) => Some(Edit::Insert(new)),
        (Some(old), Some(new)) => Some(Edit::Replace { old, new }),
        (Some(old), None) => Some(Edit::Remove(old)),
    }
}

/// Returns the log entry of the change.
#[inline(always)]
pub(crate) fn entry<D: Dram>(old: Option<Position>, new: Option<&Prepared<'_, '_, D>>) -> Entry {
    Entry {
        kind: if new.is_some() { Kind::Put } else { Kind::Delete },
        new: new.map_or(Position::EMPTY, Prepared::position),
        old: old.unwrap_or(Position::EMPTY),
        checksum: new.map_or(0, Prepared::checksum),
        ..Entry::VOID
    }
}

pub(crate) fn check_key(key: &[u8]) -> Result<(), Error> {
    if key.len() > Limits::KEY_BYTES_MAX { Err(Error::KeyTooLong { len_bytes: key.len() }) } else { Ok(()) }
}

pub(crate) fn check_value(len_bytes: u64) -> Result<(), Error> {
    if len_bytes > Limits::VALUE_BYTES_MAX { Err(Error::ValueTooLong { len_bytes }) } else { Ok(()) }
}
