//! Puts, or deletes, of several keys: searches go together, and one commit acknowledges all. That is not one step, for which there are
//! batches.
//!
//! | step | a crash after it leaves |
//! |---|---|
//! | 1 the records of puts are written; flushed | the keys as they were |
//! | 2 the keys' lanes are locked, in ascending order; their logs are seen to have room | the same |
//! | 3 an entry for each key is written in its lane; flushed | each key as it was, or changed: an entry counts if entry and record are whole |
//! | 4 commit: the one fence. *All are acknowledged from here* | all keys changed |
//! | 5 the tree changes; the lanes are unlocked | the same |
//! | 6 the old records are retired | the same |
//!
//! Nothing orders the entries of a group among themselves: each says that what its lane had before the *group* is durable, and no more.
//!
//! A delete of a key that is not there has no entry. Its absence is what others' writes may have left a moment ago: it is told when that is
//! durable.
//!
//! A key comes once in a group. A later change of that key, and all where anything is in the way (no room, a key that is too long,
//! damage), are carried out one by one behind the group, in the order given, so that each has an outcome. Nothing is done twice.

use arrayvec::ArrayVec;
use engine::{Answer, Before, Error, Expiry, Told};
use index::Position;
use index::bplus_tree::{Edit, Found, GROUP_COUNT, Keys as _};
use items::NewItem;
use parking_lot::MutexGuard;
use pmem::{Dram, Level, Medium, Ticket, Waited};

use crate::entry::Entry;
use crate::lane::Log;
use crate::write::{Prepared, check_key, check_value, edit, entry};
use crate::{Pmekv, canary};

type Group<T> = ArrayVec<T, GROUP_COUNT>;

/// A key, and the value that it gets, or none.
type Wanted<'k> = (&'k [u8], Option<&'k [u8]>);

/// A key's change.
struct Change<'a, 'k, D: Dram> {
    number: usize,
    key: &'k [u8],
    hash: u64,
    lane: usize,
    new: Option<Prepared<'a, D>>,
    old: Option<Position>,
    before: Before,
}

impl<D: Dram> Change<'_, '_, D> {
    fn edit(&self) -> Option<Edit> {
        edit(self.old, self.new.as_ref().map(Prepared::position))
    }
}

/// A lane of a group, locked.
struct Lane<'a> {
    log: MutexGuard<'a, Log>,
    /// What of it was durable before the group.
    durable: u64,
    /// Entries that it is to get.
    change_count: u64,
}

/// A change that is in the log, or needs not be.
struct Entered<'k> {
    number: usize,
    key: &'k [u8],
    before: Before,
    edit: Option<Edit>,
    entry: Entry,
    outcome: Result<(), Error>,
}

impl<M: Medium, D: Dram> Pmekv<M, D> {
    /// Carries out at most [`GROUP_COUNT`] changes, either puts or deletes; `told` is told of each whether the key was there.
    pub(crate) fn change_group(&self, wanted: &[Wanted<'_>], told: &mut Told<'_, bool>) {
        let mut later = Group::new();
        for Entered { number, key, before, outcome, .. } in self.change_together(wanted, &mut later) {
            if outcome.is_ok() {
                self.tell_if_expired(key, Answer::Done(before));
            }
            told(number, outcome.map(|()| before == Before::Present));
        }
        for number in later {
            let (key, value) = wanted[number];
            let was_there = match value {
                Some(value) => self.put_item(&NewItem { key, value, expiry: Expiry::NEVER }),
                None => self.remove(key),
            };
            told(number, was_there);
        }
    }

    /// All steps, of those that can go together; the numbers of the others go to `later`.
    fn change_together<'k>(&self, wanted: &[Wanted<'k>], later: &mut Group<usize>) -> Group<Entered<'k>> {
        let is_fit = |(key, value): &Wanted<'_>| {
            check_key(key).and_then(|()| check_value(value.map_or(0, <[u8]>::len) as u64)).is_ok()
        };
        let may_go = wanted.len() > 1 && wanted.iter().all(is_fit) && self.may_write().is_ok();
        let prepared = if may_go && self.bound_log().is_ok() { self.prepare_group(wanted, later) } else { None };
        let Some((mut entered, ticket)) = prepared.and_then(|prepared| self.enter_group(prepared)) else {
            *later = (0..wanted.len()).collect();
            return Group::new();
        };
        let acknowledged = if changes(&entered) { self.medium.acknowledge(ticket) } else { Ok(Waited::Durable) };
        for Entered { edit, entry, outcome, .. } in entered.iter_mut().filter(|change| change.outcome.is_ok()) {
            match (edit, &acknowledged) {
                (None, _) => *outcome = self.met(entry.hash),
                (Some(_), Ok(Waited::Durable)) => self.tickets.settle(entry.hash, ticket),
                (Some(_), Ok(_)) => {}
                (Some(_), Err(error)) => *outcome = Err((*error).into()),
            }
        }
        entered
    }

    /// Step 1; `None` if one cannot be prepared.
    fn prepare_group<'k>(&self, wanted: &[Wanted<'k>], later: &mut Group<usize>) -> Option<Group<Change<'_, 'k, D>>> {
        let (keys, records) = (wanted.iter().map(|(key, _)| *key).collect::<Group<_>>(), self.records());
        self.tree.prefetch_many(&records, &keys, |position| records.prefetch(position));
        let mut changes = Group::<Change<'_, 'k, D>>::new();
        for (number, &(key, value)) in wanted.iter().enumerate() {
            let hash = self.hasher.signature(key);
            // Two keys of one hash, if there are such, go as one key does that comes twice.
            if changes.iter().any(|other| other.hash == hash) {
                later.push(number);
                continue;
            }
            let prepare = |value| self.prepare(&NewItem { key, value, expiry: Expiry::NEVER });
            let new = value.map(prepare).transpose().ok()?;
            changes.push(Change {
                number,
                key,
                hash,
                lane: self.lane_of(hash),
                new,
                old: None,
                before: Before::Absent,
            });
        }
        Some(changes)
    }

    /// Steps 2 to 6; `None` if nothing was done.
    fn enter_group<'k>(&self, mut changes: Group<Change<'_, 'k, D>>) -> Option<(Group<Entered<'k>>, Ticket)> {
        let mut lanes = self.lock_lanes(&changes);
        self.batches.is_learnt().ok()?;
        let (pin, records, mut found) = (epoch::pin(), self.records(), Group::new());
        for change in &mut changes {
            let looked = self.tree.look(&pin, &records, change.key).ok()?;
            change.old = looked.item();
            change.before = self.before(change.old).ok()?;
            lane_of(&mut lanes, change.lane).change_count += u64::from(change.edit().is_some());
            found.push(looked);
        }
        // A region that is full has a segment left for deletes.
        let spare = usize::from(changes.iter().any(|change| change.new.is_some()));
        for Lane { log, change_count, .. } in lanes.iter_mut().filter(|lane| lane.change_count > 0) {
            // Each may have to be taken back.
            self.lanes.provide(log, (&self.medium, &self.heap), 2 * *change_count, spare).ok()?;
        }
        let mut entered: Group<_> = changes.into_iter().map(|change| self.enter_one(change, &mut lanes)).collect();
        let ticket = self.commit_group(&entered);
        self.learn_group(&mut entered, &found, &mut lanes, ticket);
        drop((lanes, found));
        drop(pin);
        for Entered { entry, outcome, .. } in &mut entered {
            if outcome.is_ok() && entry.old != Position::EMPTY && !self.medium.breaks(canary::FREED_BEFORE_COMMIT) {
                *outcome = self.retire(entry.old);
            }
        }
        Some((entered, ticket))
    }

    /// Locks the lanes of these keys.
    fn lock_lanes(&self, changes: &[Change<'_, '_, D>]) -> Group<Lane<'_>> {
        let mut numbers: Group<usize> = changes.iter().map(|change| change.lane).collect();
        numbers.sort_unstable();
        let lock = |same: &[usize]| {
            let log = self.lanes.lock(same[0]);
            Lane { durable: log.next - 1, log, change_count: 0 }
        };
        numbers.chunk_by(|one, next| one == next).map(lock).collect()
    }

    /// Step 3, of one key.
    fn enter_one<'k>(&self, change: Change<'_, 'k, D>, lanes: &mut [Lane<'_>]) -> Entered<'k> {
        let edit = change.edit();
        let Change { number, key, hash, lane, new, old, before } = change;
        let Lane { log, durable, .. } = lane_of(lanes, lane);
        let durable = if self.medium.breaks(canary::GROUP_SAID_DURABLE) { log.next - 1 } else { *durable };
        let entry = Entry { durable, hash, ..entry(old, new.as_ref()) };
        new.map(|new| new.room.publish());
        if edit.is_some() {
            self.lanes.append(log, &self.medium, entry);
        }
        Entered { number, key, before, edit, entry, outcome: Ok(()) }
    }

    /// Step 4. Where no key changes there is nothing to commit.
    fn commit_group(&self, entered: &[Entered<'_>]) -> Ticket {
        match changes(entered) && !self.medium.breaks(canary::GROUP_NOT_COMMITTED) {
            true => self.medium.commit(Level::default()),
            false => Ticket::default(),
        }
    }

    /// Step 5. What a failed medium did not take in, readers must not see.
    fn learn_group(
        &self,
        entered: &mut [Entered<'_>],
        found: &[Found<'_, '_>],
        lanes: &mut [Lane<'_>],
        ticket: Ticket,
    ) {
        if self.medium.health().is_err() {
            entered.iter_mut().for_each(|change| change.outcome = self.medium.health().map_err(Error::from));
            return;
        }
        for (Entered { edit, entry, outcome, .. }, found) in entered.iter_mut().zip(found) {
            let Some(edit) = *edit else { continue };
            self.tickets.raise(entry.hash, ticket);
            if let Err(error) = self.learn(found, edit) {
                let log = &mut lane_of(lanes, self.lane_of(entry.hash)).log;
                *outcome = self.take_back(log, *entry).and(Err(error));
            }
        }
    }
}

/// Whether any key changes.
fn changes(entered: &[Entered<'_>]) -> bool {
    entered.iter().any(|change| change.edit.is_some())
}

fn lane_of<'l, 'a>(lanes: &'l mut [Lane<'a>], number: usize) -> &'l mut Lane<'a> {
    lanes.iter_mut().find(|lane| lane.log.number == number).expect("the group's lanes are locked")
}
