//! Writes of one key: the steps of the crate's head.
//!
//! If the tree cannot take a change that is in the log (DRAM allocation fails, a neighbour's record is damaged), a
//! second entry reverts the change before the lane is unlocked, and the write returns an error. A crash between the two
//! leaves the change.

mod batch;
mod clear;
mod group;
mod maintenance;
mod update;

use std::sync::atomic::AtomicU64;

use engine::{Error, ExpiredItem, KeyChanges, Outcome, PriorState, Reaper, WriteResult};
use epoch::Pinned;
use index::Position;
use index::bplus_tree::{Edit, Keys as _, PrefetchedLeaf};
use items::NewItem;
use pmem::{Dram, Level, Medium, Ticket, Waited};

use crate::checkpoint::Checkpointer;
use crate::entry::{Entry, Kind};
use crate::lanes::{Lanes, Log};
use crate::prepared::Prepared;
use crate::reader::Reader;
use crate::record::check_intact;
use crate::{broken, canary};

pub(crate) use batch::Batch;
pub(crate) use group::GroupWrite;

/// The record that a key must have to be changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Expected {
    Anything,
    /// This record, or none. The caller was pinned before it found the record, so the place was not reused.
    Record(Option<Position>),
}

/// The result of a change, and the work that is left for after unlocking the lane.
enum Changed {
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

/// Writes keys.
pub(crate) struct Writer<M: Medium, D: Dram> {
    checkpointer: Checkpointer<M, D>,
    reaper: Reaper,
    /// The number of batches of this opening.
    batch_count: AtomicU64,
    key_changes: KeyChanges,
}

impl<M: Medium, D: Dram> Writer<M, D> {
    pub(crate) fn new(checkpointer: Checkpointer<M, D>) -> Writer<M, D> {
        Writer {
            checkpointer,
            reaper: Reaper::default(),
            batch_count: AtomicU64::new(0),
            key_changes: KeyChanges::default(),
        }
    }

    pub(crate) fn with_reader(self, with: impl FnOnce(Reader<M, D>) -> Reader<M, D>) -> Writer<M, D> {
        Writer { checkpointer: self.checkpointer.with_reader(with), ..self }
    }

    pub(crate) fn checkpointer(&self) -> &Checkpointer<M, D> {
        &self.checkpointer
    }

    pub(crate) fn reader(&self) -> &Reader<M, D> {
        self.checkpointer.reader()
    }

    fn lanes(&self) -> &Lanes {
        self.checkpointer.lanes()
    }

    pub(crate) fn reaper(&self) -> &Reaper {
        &self.reaper
    }

    pub(crate) fn key_changes(&self) -> &KeyChanges {
        &self.key_changes
    }

    /// Reports a change of the tree.
    #[inline(always)]
    fn count(&self, key: &[u8], edit: Edit) {
        match edit {
            Edit::Insert(_) => self.key_changes.added(key),
            Edit::Remove(_) => self.key_changes.removed(key),
            Edit::Replace { .. } => {}
        }
    }

    /// Waits, before a write takes a lock, for space in the log and while too many old records wait for readers.
    fn bound(&self) -> Result<(), Error> {
        self.reader().region().bound_garbage();
        self.checkpointer.bound_log()
    }

    /// Reserves a slot for a record, and writes the record if it is long.
    #[inline(always)]
    fn prepare<'i>(&self, item: &NewItem<'i>) -> Result<Prepared<'_, 'i, D>, Error> {
        if self.reader().region().medium().breaks(canary::FREED_BEFORE_COMMIT) {
            broken::free_present(self.reader(), item.key)?;
        }
        Prepared::new(self.reader().region(), item)
    }

    /// Changes a key, whose new record may have to be written first. `new` is taken only when it is in the log: a write
    /// that finds no space can be retried.
    fn change(&self, key: &[u8], new: &mut Option<Prepared<'_, '_, D>>, expected: Expected) -> Result<Outcome, Error> {
        let pin = epoch::pin();
        let prefetched = self.reader().tree().prefetch(pin.pinned(), &self.reader().records(), key);
        let changed = self.change_at(pin.pinned(), &prefetched, new, expected)?;
        drop(pin);
        self.conclude(changed)
    }

    /// Steps 1 to 5, of a key whose leaf was prefetched.
    #[inline(always)]
    fn change_at<'t>(
        &'t self,
        pinned: Pinned<'t>,
        prefetched: &PrefetchedLeaf<'t, '_>,
        new: &mut Option<Prepared<'_, '_, D>>,
        expected: Expected,
    ) -> Result<Changed, Error> {
        let (reader, region, medium) = (self.reader(), self.reader().region(), self.reader().region().medium());
        let (hash, records) = (reader.hash(prefetched.key()), reader.records());
        let mut log = self.lanes().lock(self.lanes().of_write(medium, hash));
        reader.check_batches_applied()?;
        // The leaf has arrived by now, or will soon; the old record arrives while the new one is written.
        reader.tree().likely(&records, prefetched).into_iter().for_each(|old| records.prefetch(old));
        new.iter_mut().for_each(|new| new.write(medium));
        let found = reader.tree().find_prefetched_to_change(pinned, &records, prefetched)?;
        let old = found.item();
        if old.is_none() {
            // The lane's lock keeps other threads from putting the key.
            reader.contents().is_surely_absent(prefetched.key())?;
        }
        if matches!(expected, Expected::Record(expected) if expected != old) {
            return Ok(Changed::Unexpected);
        }
        let Some(edit) = edit(old, new.as_ref().map(Prepared::position)) else { return Ok(Changed::Nothing { hash }) };
        let before = reader.contents().state_of(old)?;
        // A full region has a segment left for deletes.
        let (spare, added) = (usize::from(new.is_some()), u64::from(matches!(edit, Edit::Insert(_))));
        self.lanes().provide(&mut log, region, 2, spare, added)?;
        let durable = log.last();
        let entry = Entry { durable, hash, ..entry(old, new.as_ref()) };
        let expires = new.as_ref().is_some_and(Prepared::expires);
        new.take().into_iter().for_each(Prepared::publish);
        if medium.breaks(canary::TREE_BEFORE_COMMIT) {
            reader.contents().update_record(&found, edit)?;
        }
        log.append(medium, entry);
        let is_early = medium.breaks(canary::ACKNOWLEDGED_BEFORE_COMMIT);
        let ticket = if is_early { Ticket::default() } else { medium.commit(Level::default()) };
        self.lanes().count_entries(1, 0);
        // Readers must not see changes that a failed medium did not accept.
        medium.health()?;
        reader.tickets().raise(hash, ticket);
        if !medium.breaks(canary::TREE_BEFORE_COMMIT)
            && let Err(error) = reader.contents().update_record(&found, edit)
        {
            self.take_back(&mut log, entry)?;
            return Err(error);
        }
        self.count(prefetched.key(), edit);
        self.expect(expires.into());
        Ok(Changed::Done { before, old, hash, ticket })
    }

    /// Step 6, and waiting for durability that the medium provides later. The caller is not pinned by then.
    #[inline(always)]
    fn conclude(&self, changed: Changed) -> Result<Outcome, Error> {
        let (reader, region, medium) = (self.reader(), self.reader().region(), self.reader().region().medium());
        let (before, old, hash, ticket) = match changed {
            Changed::Done { before, old, hash, ticket } => (before, old, hash, ticket),
            Changed::Unexpected => return Ok(Outcome::UNEXPECTED),
            Changed::Nothing { hash } => {
                reader.met(hash)?;
                return Ok(Outcome::found(PriorState::Absent));
            }
        };
        let expired = if before == PriorState::Expired { self.copy_expired(old) } else { None };
        if let Some(old) = old.filter(|_| !medium.breaks(canary::FREED_BEFORE_COMMIT)) {
            region.retire(old)?;
        }
        if medium.acknowledge(ticket)? == Waited::Durable {
            reader.tickets().settle(hash, ticket);
        }
        Ok(Outcome { answer: WriteResult::Done(before), expired })
    }

    /// Copies an expired record for the callback, if there is one. The record was removed from the tree and is not
    /// retired yet.
    #[cold]
    fn copy_expired(&self, old: Option<Position>) -> Option<ExpiredItem> {
        let (position, hook) = (old?, self.reaper.hook());
        let item = self.reader().records().read(position).ok()?;
        // A damaged expiry or value is not reported.
        check_intact(position, &item).ok()?;
        hook.copy(item.key, item.value, item.expiry)
    }

    /// Reports `count` records that expire to the reaper, after they are in the tree: a walk that the reaper began
    /// before may have met the keys' old records.
    fn expect(&self, count: u64) {
        if count > 0 {
            self.reaper.expect(count);
        }
    }

    /// Reverts a change in the log, instead of step 5, if the tree cannot take it: log and tree stay equal.
    fn take_back(&self, log: &mut Log, entry: Entry) -> Result<(), Error> {
        let (reader, region, medium) = (self.reader(), self.reader().region(), self.reader().region().medium());
        if medium.breaks(canary::NOT_TAKEN_BACK) {
            return Ok(());
        }
        let (kind, checksum) = match entry.old {
            Position::EMPTY => (Kind::Delete, 0),
            old => (Kind::Put, reader.records().read(old)?.header.checksum),
        };
        if entry.new == Position::EMPTY {
            // The promise for the deleted key is for this one.
            log.keys().reuse_promise();
        }
        let back = Entry { kind, checksum, new: entry.old, old: entry.new, durable: log.last(), ..entry };
        log.append(medium, back);
        self.lanes().count_entries(1, 0);
        let ticket = medium.commit(Level::default());
        medium.health()?;
        reader.tickets().raise(entry.hash, ticket);
        // No reader has found it.
        region.free(entry.new);
        Ok(())
    }
}

/// Returns the change of the tree, or `None` if there is none.
#[inline(always)]
fn edit(old: Option<Position>, new: Option<Position>) -> Option<Edit> {
    match (old, new) {
        (None, None) => None,
        (None, Some(new)) => Some(Edit::Insert(new)),
        (Some(old), Some(new)) => Some(Edit::Replace { old, new }),
        (Some(old), None) => Some(Edit::Remove(old)),
    }
}

/// Returns the log entry of the change.
#[inline(always)]
fn entry<D: Dram>(old: Option<Position>, new: Option<&Prepared<'_, '_, D>>) -> Entry {
    Entry {
        kind: if new.is_some() { Kind::Put } else { Kind::Delete },
        new: new.map_or(Position::EMPTY, Prepared::position),
        old: old.unwrap_or(Position::EMPTY),
        checksum: new.map_or(0, Prepared::checksum),
        ..Entry::VOID
    }
}
