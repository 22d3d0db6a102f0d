//! Writing one key: the steps of the crate's head.
//!
//! Where the tree cannot learn of a change that the log has (the host lends no memory, a neighbour's record is damaged), a second
//! entry takes the change back before the lane is unlocked, and the write is an error. A crash between the two leaves the change.

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

/// What a key has to hold to be changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Expected {
    Anything,
    /// This record, or none. The caller is pinned since before finding the record, so no other has come to its place.
    Record(Option<Position>),
}

/// What came of a write.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) answer: WriteResult<PriorState>,
    /// The item that had expired before, for the callback, if there is one.
    pub(crate) expired: Option<ExpiredItem>,
}

impl Outcome {
    pub(crate) const UNEXPECTED: Outcome = Outcome { answer: WriteResult::Unexpected, expired: None };

    pub(crate) fn found(before: PriorState) -> Outcome {
        Outcome { answer: WriteResult::Done(before), expired: None }
    }

    /// True if the key was there.
    pub(crate) fn was_there(&self) -> bool {
        self.answer == WriteResult::Done(PriorState::Present)
    }

    /// What it was to a decision that was shown a value, or none: an item that it was shown had not expired.
    pub(crate) fn shown(self, is_shown: bool) -> Outcome {
        let Outcome { answer, expired } = self;
        Outcome { answer: answer.map(|before| before.present_if(is_shown)), expired: expired.filter(|_| !is_shown) }
    }
}

/// What came of a change, and what is left to be done of it when the lane is unlocked.
pub(crate) enum Changed {
    /// The key does not hold what was expected.
    Unexpected,
    /// There was nothing to delete.
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
    /// Changes a key, whose new record may have to be written. `new` is taken when it is in the log, and not before: where a write finds no
    /// room it can be tried again.
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

    /// Steps 1 to 5, of a key whose leaf was asked for.
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
        // The leaf is there by now, or will be; what the key holds is on its way while the record is written.
        self.tree.likely(&records, prefetched).into_iter().for_each(|old| records.prefetch(old));
        new.iter_mut().for_each(|new| new.write(&self.medium));
        let found = self.tree.find_prefetched_to_change(pinned, &records, prefetched)?;
        let old = found.item();
        if old.is_none() {
            // Under the lane's lock nobody puts it meanwhile.
            self.is_surely_absent(prefetched.key())?;
        }
        if matches!(expected, Expected::Record(expected) if expected != old) {
            return Ok(Changed::Unexpected);
        }
        let Some(edit) = edit(old, new.as_ref().map(Prepared::position)) else { return Ok(Changed::Nothing { hash }) };
        let before = self.before(old)?;
        // A region that is full has a segment left for deletes.
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
        // What a failed medium did not take in, readers must not see.
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

    /// Step 6, and waiting for what the medium makes durable later. The caller is not pinned by then.
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

    /// A copy of a record that had expired, for the callback, if there is one. It was taken out of the tree, and not retired yet.
    #[cold]
    pub(crate) fn copy_expired(&self, old: Option<Position>) -> Option<ExpiredItem> {
        let (position, hook) = (old?, self.reaper.hook());
        let item = self.records().read(position).ok()?;
        // A time that has rotted is none, and neither is a value.
        check_intact(position, &item).ok()?;
        hook.copy(item.key, item.value, item.expiry)
    }

    /// Reports to the reaper so many records that expire, which the tree has by now: a walk that the reaper began before may have met the
    /// keys' old records.
    pub(crate) fn expect(&self, count: u64) {
        if count > 0 {
            self.reaper.expect(count);
        }
    }

    /// What a write finds. The clock is looked at once: the caller and the hook go by the same. The key's lane is locked.
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

    /// Instead of step 5, where the tree cannot learn of the change: the log takes it back, so that the two go on saying the same.
    pub(crate) fn take_back(&self, log: &mut Log, entry: Entry) -> Result<(), Error> {
        if self.medium.breaks(canary::NOT_TAKEN_BACK) {
            return Ok(());
        }
        let (kind, checksum) = match entry.old {
            Position::EMPTY => (Kind::Delete, 0),
            old => (Kind::Put, self.records().read(old)?.header.checksum),
        };
        if entry.new == Position::EMPTY {
            // What was promised for the key that was deleted is for this one.
            (log.keys.left, log.keys.gone) = (log.keys.left + 1, log.keys.gone - 1);
        }
        let back = Entry { kind, checksum, new: entry.old, old: entry.new, durable: log.next - 1, ..entry };
        self.lanes.append(log, &self.medium, back);
        self.lanes.count_entries(1, 0);
        let ticket = self.medium.commit(Level::default());
        self.medium.health()?;
        self.tickets.raise(entry.hash, ticket);
        // Nobody has found it.
        self.free(entry.new);
        Ok(())
    }

    /// Step 6.
    pub(crate) fn retire(&self, old: Position) -> Result<(), Error> {
        let bytes = self.heap.place_bytes(place_of(old)?);
        let mut free = ArrayVec::<_, FREED_COUNT_MAX>::new();
        let waiting_bytes = self.limbo.retire(old, bytes, |record| free.push(record));
        if waiting_bytes > 0 {
            self.heap.expect_newly_free(waiting_bytes);
        }
        if !free.is_empty() {
            self.free_all(&free);
        }
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn free_all(&self, records: &[Position]) {
        records.iter().filter_map(|record| record.place()).for_each(|place| self.heap.expect_free(place));
        records.iter().for_each(|&record| self.free(record));
    }

    pub(crate) fn free(&self, record: Position) {
        let Some(place) = record.place() else { return };
        self.heap.free(&self.medium, place);
    }
}

/// Why the tree did not learn of a change.
pub(crate) fn of_change(error: ChangeError<Error>) -> Error {
    match error {
        ChangeError::Keys(error) => error,
        ChangeError::NoDram { wanted_bytes } => Error::NoMemory { wanted_bytes },
        ChangeError::Exists(position) | ChangeError::Missing(position) => {
            Error::Corrupt { offset: position.offset().0, what: "the index does not hold what it did" }
        }
    }
}

/// What happens to the tree; `None` if nothing does.
#[inline(always)]
pub(crate) fn edit(old: Option<Position>, new: Option<Position>) -> Option<Edit> {
    match (old, new) {
        (None, None) => None,
        (None, Some(new)) => Some(Edit::Insert(new)),
        (Some(old), Some(new)) => Some(Edit::Replace { old, new }),
        (Some(old), None) => Some(Edit::Remove(old)),
    }
}

/// The entry that says so.
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
