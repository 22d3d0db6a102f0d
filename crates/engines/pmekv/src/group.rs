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
use engine::{Error, ExpiredItem, Expiry, OnResult, PriorState};
use epoch::Pinned;
use index::Position;
use index::bplus_tree::{Edit, Found, GROUP_COUNT, Keys as _, PrefetchedLeaf};
use items::NewItem;
use parking_lot::MutexGuard;
use pmem::{Dram, Level, Medium, Ticket, Waited};

use crate::entry::Entry;
use crate::lanes::Log;
use crate::layout::LANE_COUNT_MAX;
use crate::prepared::Prepared;
use crate::write::{check_key, check_value, edit, entry};
use crate::{Pmekv, canary};

type Group<T> = ArrayVec<T, GROUP_COUNT>;

/// A key and its new value; `None` deletes the key.
type Wanted<'k> = (&'k [u8], Option<&'k [u8]>);

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

impl<M: Medium, D: Dram> Pmekv<M, D> {
    /// Carries out at most [`GROUP_COUNT`] changes, either puts or deletes. Calls `on_result` for each, with true if
    /// the key was present.
    pub(crate) fn change_group(&self, wanted: &[Wanted<'_>], on_result: &mut OnResult<'_, bool>) {
        let mut later = Group::new();
        for Change { number, before, expired, outcome, .. } in &mut self.change_together(wanted, &mut later) {
            expired.take().into_iter().for_each(|item| self.reaper.hook().notify(item));
            on_result(*number, mem::replace(outcome, Ok(())).map(|()| *before == PriorState::Present));
        }
        for number in later {
            let (key, value) = wanted[number];
            let was_there = match value {
                Some(value) => self.put_item(&NewItem { key, value, expiry: Expiry::NEVER }),
                None => self.remove(key),
            };
            on_result(number, was_there);
        }
    }

    /// Carries out all steps for the changes that can go together; the numbers of the others go to `later`.
    fn change_together<'k>(&self, wanted: &[Wanted<'k>], later: &mut Group<usize>) -> Group<Change<'_, 'k, D>> {
        let is_fit = |(key, value): &Wanted<'_>| {
            check_key(key).and_then(|()| check_value(value.map_or(0, <[u8]>::len) as u64)).is_ok()
        };
        let may_go = wanted.len() > 1 && wanted.iter().all(is_fit) && self.reader.region().may_write().is_ok();
        let mut changes = Group::new();
        self.reader.region().bound_garbage();
        let ticket = if may_go && self.checkpointer.bound_log(&self.reader, &self.lanes).is_ok() {
            self.try_together(wanted, &mut changes, later)
        } else {
            None
        };
        let Some(ticket) = ticket else {
            *later = (0..wanted.len()).collect();
            return Group::new();
        };
        let acknowledged =
            if any_changes(&changes) { self.reader.region().medium().acknowledge(ticket) } else { Ok(Waited::Durable) };
        for change in changes.iter_mut().filter(|change| change.outcome.is_ok()) {
            match (change.edit(), &acknowledged) {
                (None, _) => change.outcome = self.reader.met(change.hash),
                (Some(_), Ok(Waited::Durable)) => self.reader.tickets().settle(change.hash, ticket),
                (Some(_), Ok(_)) => {}
                (Some(_), Err(error)) => change.outcome = Err((*error).into()),
            }
        }
        changes
    }

    /// Steps 1 to 6; `None` if nothing was done.
    fn try_together<'a, 'k>(
        &'a self,
        wanted: &[Wanted<'k>],
        changes: &mut Group<Change<'a, 'k, D>>,
        later: &mut Group<usize>,
    ) -> Option<Ticket> {
        let (pin, records) = (epoch::pin(), self.reader.records());
        let keys: Group<_> = wanted.iter().map(|&(key, _)| key).collect();
        let leaves = self.reader.tree().prefetch_many(pin.pinned(), &records, &keys);
        self.prepare_group(wanted, changes, later)?;
        for leaf in &leaves[..wanted.len()] {
            self.reader.tree().likely(&records, leaf).into_iter().for_each(|old| records.prefetch(old));
        }
        let mut lanes = self.lock_lanes(changes);
        self.reader.is_learnt().ok()?;
        changes
            .iter_mut()
            .filter_map(|change| change.new.as_mut())
            .for_each(|new| new.write(self.reader.region().medium()));
        let found = self.find_group(pin.pinned(), &leaves, changes, &mut lanes)?;
        changes.iter_mut().for_each(|change| self.enter_one(change, &mut lanes));
        let ticket = self.commit_group(changes);
        self.learn_group(changes, &found, &mut lanes, ticket);
        drop((lanes, found));
        drop(pin);
        for Change { old, before, expired, outcome, .. } in changes {
            if outcome.is_ok() && *before == PriorState::Expired {
                *expired = self.copy_expired(*old);
            }
            if let (Ok(()), Some(old)) = (&outcome, *old)
                && !self.reader.region().medium().breaks(canary::FREED_BEFORE_COMMIT)
            {
                *outcome = self.reader.region().retire(old);
            }
        }
        Some(ticket)
    }

    /// The part of step 1 before the locks; `None` if a record cannot be prepared.
    fn prepare_group<'a, 'k>(
        &'a self,
        wanted: &[Wanted<'k>],
        changes: &mut Group<Change<'a, 'k, D>>,
        later: &mut Group<usize>,
    ) -> Option<()> {
        for (number, &(key, value)) in wanted.iter().enumerate() {
            let hash = self.reader.hash(key);
            // Different keys of one hash are treated like one key that occurs twice.
            if changes.iter().any(|other| other.hash == hash) {
                later.push(number);
                continue;
            }
            let prepare = |value| self.prepare(&NewItem { key, value, expiry: Expiry::NEVER });
            let (lane, new) =
                (self.lanes.of_write(self.reader.region().medium(), hash), value.map(prepare).transpose().ok()?);
            let (position, old) = (new.as_ref().map(Prepared::position), None);
            changes.push(Change {
                number,
                key,
                hash,
                lane,
                new,
                position,
                old,
                before: PriorState::Absent,
                expired: None,
                outcome: Ok(()),
            });
        }
        Some(())
    }

    /// Locks the lanes of these keys.
    fn lock_lanes(&self, changes: &mut [Change<'_, '_, D>]) -> Group<Lane<'_>> {
        const _: () = assert!(LANE_COUNT_MAX <= u64::BITS as usize);
        let mask = changes.iter().fold(0u64, |mask, change| mask | 1 << change.lane);
        let (mut lanes, mut left) = (Group::new(), mask);
        while left != 0 {
            let log = self.lanes.lock(left.trailing_zeros() as usize);
            lanes.push(Lane { durable: log.last(), log, change_count: 0, added_count: 0 });
            left &= left - 1;
        }
        for change in changes {
            change.lane = (mask & ((1 << change.lane) - 1)).count_ones() as usize;
        }
        lanes
    }

    /// Step 2; `None` if a key cannot be found, or a log gets no space.
    fn find_group<'t, 'k>(
        &'t self,
        pinned: Pinned<'t>,
        leaves: &[PrefetchedLeaf<'t, 'k>],
        changes: &mut [Change<'_, 'k, D>],
        lanes: &mut [Lane<'_>],
    ) -> Option<Group<Found<'t, 'k>>> {
        let (records, mut all) = (self.reader.records(), Group::new());
        for change in &mut *changes {
            let found = self.reader.tree().find_prefetched_to_change(pinned, &records, &leaves[change.number]).ok()?;
            change.old = found.item();
            if change.old.is_none() {
                self.reader.is_surely_absent(change.key).ok()?;
            }
            change.before = self.reader.state_of(change.old).ok()?;
            lanes[change.lane].change_count += u64::from(change.edit().is_some());
            lanes[change.lane].added_count += u64::from(matches!(change.edit(), Some(Edit::Insert(_))));
            all.push(found);
        }
        // A full region has a segment left for deletes.
        let spare = usize::from(changes.iter().any(|change| change.new.is_some()));
        for Lane { log, change_count, added_count, .. } in lanes.iter_mut().filter(|lane| lane.change_count > 0) {
            // Each change may have to be reverted.
            self.lanes.provide(log, self.reader.region(), 2 * *change_count, spare, *added_count).ok()?;
        }
        Some(all)
    }

    /// Step 3, of one key.
    fn enter_one(&self, change: &mut Change<'_, '_, D>, lanes: &mut [Lane<'_>]) {
        let Lane { log, durable, .. } = &mut lanes[change.lane];
        let durable =
            if self.reader.region().medium().breaks(canary::GROUP_SAID_DURABLE) { log.last() } else { *durable };
        if change.edit().is_some() {
            let entry = entry(change.old, change.new.as_ref());
            self.lanes.append(log, self.reader.region().medium(), Entry { durable, hash: change.hash, ..entry });
        }
        change.new.take().into_iter().for_each(Prepared::publish);
    }

    /// Step 4. If no key changes, there is nothing to commit.
    fn commit_group(&self, changes: &[Change<'_, '_, D>]) -> Ticket {
        let ticket = match any_changes(changes) && !self.reader.region().medium().breaks(canary::GROUP_NOT_COMMITTED) {
            true => self.reader.region().medium().commit(Level::default()),
            false => Ticket::default(),
        };
        self.lanes.count_entries(changes.iter().filter(|change| change.edit().is_some()).count() as u64, 0);
        ticket
    }

    /// Step 5. Readers must not see changes that a failed medium did not accept.
    fn learn_group(
        &self,
        changes: &mut [Change<'_, '_, D>],
        found: &[Found<'_, '_>],
        lanes: &mut [Lane<'_>],
        ticket: Ticket,
    ) {
        if self.reader.region().medium().health().is_err() {
            changes
                .iter_mut()
                .for_each(|change| change.outcome = self.reader.region().medium().health().map_err(Error::from));
            return;
        }
        for (change, found) in changes.iter_mut().zip(found) {
            let Some(edit) = change.edit() else { continue };
            self.reader.tickets().raise(change.hash, ticket);
            if let Err(error) = self.learn(found, edit) {
                let of = |position: Option<Position>| position.unwrap_or(Position::EMPTY);
                let (new, old) = (of(change.position), of(change.old));
                let entry = Entry { new, old, hash: change.hash, ..Entry::VOID };
                change.outcome = self.take_back(&mut lanes[change.lane].log, entry).and(Err(error));
            }
        }
    }
}

/// Returns true if any key changes.
fn any_changes<D: Dram>(changes: &[Change<'_, '_, D>]) -> bool {
    changes.iter().any(|change| change.edit().is_some())
}
