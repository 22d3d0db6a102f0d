//! Puts, or deletes, of several keys: their lookups run together, and one commit acknowledges all. They are not atomic
//! together; batches are.
//!
//! | step | a crash after it leaves |
//! |---|---|
//! | 1 reserve slots; lock the lanes, ascending; write the records (before locking if long); flush | the old state |
//! | 2 find the keys; provide space in the logs | the same |
//! | 3 write an entry to each key's lane; flush | each key old or new: valid if entry and record are intact |
//! | 4 commit: the one fence. *All are acknowledged from here* | the new state |
//! | 5 update the tree; unlock the lanes | the same |
//! | 6 retire the old records | the same |
//!
//! There is no locked instruction between the first record and the commit: it would wait for all earlier streamed
//! stores.
//!
//! The entries of a group are not ordered among themselves: each records what its lane had durable before the *group*.
//!
//! A delete of an absent key has no entry. Another write may have deleted the key a moment ago: the absence is reported
//! when that write is durable.
//!
//! A key occurs once in a group. Later changes of the same key, and all changes if the group cannot be carried out (no
//! space, a key that is too long, damage), are carried out one by one after the group, in the given order, so that each
//! has an outcome. No change is made twice.

use std::mem;

use arrayvec::ArrayVec;
use engine::{Error, ExpiredItem, Expiry, Limits, OnResult, PriorState};
use epoch::Pinned;
use index::Position;
use index::bplus_tree::{Edit, Found, GROUP_COUNT, Keys as _, PrefetchedLeaf};
use items::NewItem;
use parking_lot::MutexGuard;
use pmem::{Dram, Level, Medium, Ticket, Waited};

use super::{Writer, edit, entry};
use crate::canary;
use crate::entry::Entry;
use crate::lanes::Log;
use crate::layout::LANE_COUNT_MAX;
use crate::prepared::Prepared;

type Group<T> = ArrayVec<T, GROUP_COUNT>;

/// A key and its new value; `None` deletes the key.
pub(crate) type Wanted<'k> = (&'k [u8], Option<&'k [u8]>);

/// The change of a key.
struct Change<'a, 'k, D: Dram> {
    number: usize,
    key: &'k [u8],
    hash: u64,
    /// The lane's number; after locking, its index among the group's lanes.
    lane: usize,
    new: Option<Prepared<'a, 'k, D>>,
    /// The position of the new record, also after `new` was taken because the log has it.
    position: Option<Position>,
    old: Option<Position>,
    before: PriorState,
    /// The item that had expired before, for the callback.
    expired: Option<ExpiredItem>,
    outcome: Result<(), Error>,
}

impl<D: Dram> Change<'_, '_, D> {
    #[inline(always)]
    fn edit(&self) -> Option<Edit> {
        edit(self.old, self.position)
    }
}

/// A locked lane of a group.
struct Lane<'a> {
    log: MutexGuard<'a, Log>,
    /// The last durable sequence before the group.
    durable: u64,
    /// The number of entries that the group writes to it.
    change_count: u64,
    /// The number of keys that the group adds to it.
    added_count: u64,
}

/// Puts or deletes of several keys under way.
pub(crate) struct GroupWrite<'w, 'k, M: Medium, D: Dram> {
    writer: &'w Writer<M, D>,
    wanted: &'k [Wanted<'k>],
    changes: Group<Change<'w, 'k, D>>,
    /// The numbers of the changes that are carried out one by one afterwards.
    later: Group<usize>,
}

impl<'w, 'k, M: Medium, D: Dram> GroupWrite<'w, 'k, M, D> {
    /// Creates at most [`GROUP_COUNT`] changes, either puts or deletes.
    pub(crate) fn new(writer: &'w Writer<M, D>, wanted: &'k [Wanted<'k>]) -> GroupWrite<'w, 'k, M, D> {
        GroupWrite { writer, wanted, changes: Group::new(), later: Group::new() }
    }

    /// Carries out the changes. Calls `on_result` for each, with true if the key was present.
    pub(crate) fn run(&mut self, on_result: &mut OnResult<'_, bool>) {
        self.change_together();
        for Change { number, before, expired, outcome, .. } in &mut self.changes {
            expired.take().into_iter().for_each(|item| self.writer.reaper.hook().notify(item));
            on_result(*number, mem::replace(outcome, Ok(())).map(|()| *before == PriorState::Present));
        }
        for &number in &self.later {
            let (key, value) = self.wanted[number];
            let was_there = match value {
                Some(value) => self.writer.put_item(&NewItem { key, value, expiry: Expiry::NEVER }),
                None => self.writer.remove(key),
            };
            on_result(number, was_there);
        }
    }

    /// Carries out all steps for the changes that can go together; the numbers of the others go to `later`.
    fn change_together(&mut self) {
        let is_fit = |(key, value): &Wanted<'_>| {
            Limits::check_key(key).and_then(|()| Limits::check_value(value.map_or(0, <[u8]>::len) as u64)).is_ok()
        };
        let may_write = || self.writer.reader().region().may_write().and_then(|()| self.writer.bound()).is_ok();
        let may_go = self.wanted.len() > 1 && self.wanted.iter().all(is_fit) && may_write();
        let ticket = if may_go { self.try_together() } else { None };
        match ticket {
            Some(ticket) => self.acknowledge(ticket),
            None => {
                self.changes.clear();
                self.later = (0..self.wanted.len()).collect();
            }
        }
    }

    /// Steps 1 to 6; `None` if nothing was done.
    fn try_together(&mut self) -> Option<Ticket> {
        let reader = self.writer.reader();
        let (pin, records) = (epoch::pin(), reader.records());
        let keys: Group<_> = self.wanted.iter().map(|&(key, _)| key).collect();
        let leaves = reader.tree().prefetch_many(pin.pinned(), &records, &keys);
        self.prepare()?;
        for leaf in &leaves[..self.wanted.len()] {
            reader.tree().likely(&records, leaf).into_iter().for_each(|old| records.prefetch(old));
        }
        let mut lanes = self.lock_lanes();
        reader.check_batches_applied().ok()?;
        let new = self.changes.iter_mut().filter_map(|change| change.new.as_mut());
        new.for_each(|new| new.write(reader.region().medium()));
        let found = self.find(pin.pinned(), &leaves, &mut lanes)?;
        self.enter(&mut lanes);
        let ticket = self.commit();
        self.update_record(&found, &mut lanes, ticket);
        drop((lanes, found));
        drop(pin);
        self.retire();
        Some(ticket)
    }

    /// The part of step 1 before the locks; `None` if a record cannot be prepared.
    fn prepare(&mut self) -> Option<()> {
        let writer = self.writer;
        for (number, &(key, value)) in self.wanted.iter().enumerate() {
            let hash = writer.reader().hash(key);
            // Different keys of one hash are treated like one key that occurs twice.
            if self.changes.iter().any(|other| other.hash == hash) {
                self.later.push(number);
                continue;
            }
            let lane = writer.lanes().of_write(writer.reader().region().medium(), hash);
            let prepare = |value| writer.prepare(&NewItem { key, value, expiry: Expiry::NEVER });
            let new = value.map(prepare).transpose().ok()?;
            self.changes.push(Change {
                number,
                key,
                hash,
                lane,
                position: new.as_ref().map(Prepared::position),
                new,
                old: None,
                before: PriorState::Absent,
                expired: None,
                outcome: Ok(()),
            });
        }
        Some(())
    }

    /// Locks the lanes of these keys.
    fn lock_lanes(&mut self) -> Group<Lane<'w>> {
        const _: () = assert!(LANE_COUNT_MAX <= u64::BITS as usize);
        let mask = self.changes.iter().fold(0u64, |mask, change| mask | 1 << change.lane);
        let (mut lanes, mut left) = (Group::new(), mask);
        while left != 0 {
            let log = self.writer.lanes().lock(left.trailing_zeros() as usize);
            lanes.push(Lane { durable: log.last(), log, change_count: 0, added_count: 0 });
            left &= left - 1;
        }
        for change in &mut self.changes {
            change.lane = (mask & ((1 << change.lane) - 1)).count_ones() as usize;
        }
        lanes
    }

    /// Step 2; `None` if a key cannot be found, or a log gets no space.
    fn find<'t>(
        &mut self,
        pinned: Pinned<'t>,
        leaves: &[PrefetchedLeaf<'t, 'k>],
        lanes: &mut [Lane<'_>],
    ) -> Option<Group<Found<'t, 'k>>>
    where
        'w: 't,
    {
        let (reader, all_lanes) = (self.writer.reader(), self.writer.lanes());
        let (records, mut all) = (reader.records(), Group::new());
        for change in &mut self.changes {
            let found = reader.tree().find_prefetched_to_change(pinned, &records, &leaves[change.number]).ok()?;
            change.old = found.item();
            if change.old.is_none() {
                reader.contents().is_surely_absent(change.key).ok()?;
            }
            change.before = reader.contents().state_of(change.old).ok()?;
            lanes[change.lane].change_count += u64::from(change.edit().is_some());
            lanes[change.lane].added_count += u64::from(matches!(change.edit(), Some(Edit::Insert(_))));
            all.push(found);
        }
        // A full region has a segment left for deletes.
        let spare = usize::from(self.changes.iter().any(|change| change.new.is_some()));
        for Lane { log, change_count, added_count, .. } in lanes.iter_mut().filter(|lane| lane.change_count > 0) {
            // Each change may have to be reverted.
            all_lanes.provide(log, reader.region(), 2 * *change_count, spare, *added_count).ok()?;
        }
        Some(all)
    }

    /// Step 3.
    fn enter(&mut self, lanes: &mut [Lane<'_>]) {
        let medium = self.writer.reader().region().medium();
        for change in &mut self.changes {
            let Lane { log, durable, .. } = &mut lanes[change.lane];
            let durable = if medium.breaks(canary::GROUP_REPORTED_DURABLE) { log.last() } else { *durable };
            if change.edit().is_some() {
                let entry = entry(change.old, change.new.as_ref());
                log.append(medium, Entry { durable, hash: change.hash, ..entry });
            }
            change.new.take().into_iter().for_each(Prepared::publish);
        }
    }

    /// Step 4. If no key changes, there is nothing to commit.
    fn commit(&self) -> Ticket {
        let medium = self.writer.reader().region().medium();
        let ticket = match self.has_changes() && !medium.breaks(canary::GROUP_NOT_COMMITTED) {
            true => medium.commit(Level::default()),
            false => Ticket::default(),
        };
        let count = self.changes.iter().filter(|change| change.edit().is_some()).count();
        self.writer.lanes().count_entries(count as u64, 0);
        ticket
    }

    /// Step 5. Readers must not see changes that a failed medium did not accept.
    fn update_record(&mut self, found: &[Found<'_, '_>], lanes: &mut [Lane<'_>], ticket: Ticket) {
        let medium = self.writer.reader().region().medium();
        if medium.health().is_err() {
            self.changes.iter_mut().for_each(|change| change.outcome = medium.health().map_err(Error::from));
            return;
        }
        for (change, found) in self.changes.iter_mut().zip(found) {
            let Some(edit) = change.edit() else { continue };
            self.writer.reader().tickets().raise(change.hash, ticket);
            if let Err(error) = self.writer.reader().contents().update_record(found, edit) {
                let of = |position: Option<Position>| position.unwrap_or(Position::EMPTY);
                let (new, old) = (of(change.position), of(change.old));
                let entry = Entry { new, old, hash: change.hash, ..Entry::VOID };
                change.outcome = self.writer.take_back(&mut lanes[change.lane].log, entry).and(Err(error));
            } else {
                self.writer.count(change.key, edit);
            }
        }
    }

    /// Step 6.
    fn retire(&mut self) {
        let region = self.writer.reader().region();
        for Change { old, before, expired, outcome, .. } in &mut self.changes {
            if outcome.is_ok() && *before == PriorState::Expired {
                *expired = self.writer.copy_expired(*old);
            }
            if let (Ok(()), Some(old)) = (&outcome, *old)
                && !region.medium().breaks(canary::FREED_BEFORE_COMMIT)
            {
                *outcome = region.retire(old);
            }
        }
    }

    /// Waits for the durability of all changes.
    fn acknowledge(&mut self, ticket: Ticket) {
        let reader = self.writer.reader();
        let acknowledged =
            if self.has_changes() { reader.region().medium().acknowledge(ticket) } else { Ok(Waited::Durable) };
        for change in self.changes.iter_mut().filter(|change| change.outcome.is_ok()) {
            match (change.edit(), &acknowledged) {
                (None, _) => change.outcome = reader.met(change.hash),
                (Some(_), Ok(Waited::Durable)) => reader.tickets().settle(change.hash, ticket),
                (Some(_), Ok(_)) => {}
                (Some(_), Err(error)) => change.outcome = Err((*error).into()),
            }
        }
    }

    /// Returns true if any key changes.
    fn has_changes(&self) -> bool {
        self.changes.iter().any(|change| change.edit().is_some())
    }
}
