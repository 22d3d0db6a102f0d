//! Puts of several keys: searches go together, and one commit acknowledges all. That is not one step, for which there are
//! batches.
//!
//! | step | a crash after it leaves |
//! |---|---|
//! | 1 the records are written; flushed | the keys as they were |
//! | 2 the keys' lanes are locked, in ascending order; their logs are seen to have room | the same |
//! | 3 an entry for each key is written in its lane; flushed | each key as it was, or changed: an entry counts if entry and record are whole |
//! | 4 commit: the one fence. *All are acknowledged from here* | all keys changed |
//! | 5 the tree changes; the lanes are unlocked | the same |
//! | 6 the old records are retired | the same |
//!
//! Nothing orders the entries of a group among themselves: each says that what its lane had before the *group* is durable, and no more.
//!
//! A key comes once in a group. A later put of that key, and all puts where anything is in the way (no room, a key that is too long,
//! damage), are carried out one by one behind the group, in the order given, so that each has an outcome. Nothing is put twice.

use arrayvec::ArrayVec;
use engine::{Before, Engine, Error, Expiry, Told};
use index::Position;
use index::bplus_tree::{Found, GROUP_COUNT, Keys as _};
use items::NewItem;
use parking_lot::MutexGuard;
use pmem::{Dram, Level, Medium, Ticket, Waited};

use crate::entry::Entry;
use crate::lane::Log;
use crate::write::{Prepared, check_key, check_value, edit, entry};
use crate::{Pmekv, canary};

type Group<T> = ArrayVec<T, GROUP_COUNT>;

/// A key's put.
struct Put<'a, 'k, D: Dram> {
    number: usize,
    key: &'k [u8],
    hash: u64,
    lane: usize,
    new: Prepared<'a, D>,
    old: Option<Position>,
    before: Before,
}

/// A lane of a group, locked.
struct Lane<'a> {
    log: MutexGuard<'a, Log>,
    /// What of it was durable before the group.
    durable: u64,
    put_count: u64,
}

/// A put that is in the log.
struct Entered<'k> {
    number: usize,
    key: &'k [u8],
    before: Before,
    entry: Entry,
    outcome: Result<(), Error>,
}

impl<M: Medium, D: Dram> Pmekv<M, D> {
    /// Puts at most [`GROUP_COUNT`] items; `told` is told of each what became of it.
    pub(crate) fn put_group(&self, items: &[(&[u8], &[u8])], told: &mut Told<'_>) {
        let mut later = Group::new();
        for Entered { number, key, before, outcome, .. } in self.put_together(items, &mut later) {
            if outcome.is_ok() && before == Before::Expired {
                self.reaper.hook().tell(key);
            }
            told(number, outcome);
        }
        for number in later {
            let (key, value) = items[number];
            told(number, self.put(key, value));
        }
    }

    /// All steps, of those that can go together; the numbers of the others go to `later`.
    fn put_together<'k>(&self, items: &[(&'k [u8], &'k [u8])], later: &mut Group<usize>) -> Group<Entered<'k>> {
        let is_fit = |(key, value): &(&[u8], &[u8])| check_key(key).and(check_value(value.len() as u64)).is_ok();
        let may_go = items.len() > 1 && items.iter().all(is_fit) && self.may_write().is_ok();
        let puts = if may_go && self.bound_log().is_ok() { self.prepare_group(items, later) } else { None };
        let Some((mut entered, ticket)) = puts.and_then(|puts| self.enter_group(puts)) else {
            *later = (0..items.len()).collect();
            return Group::new();
        };
        let acknowledged = self.medium.acknowledge(ticket);
        for Entered { entry, outcome, .. } in &mut entered {
            match &acknowledged {
                Ok(Waited::Durable) => self.tickets.settle(entry.hash, ticket),
                Ok(_) => {}
                Err(error) if outcome.is_ok() => *outcome = Err((*error).into()),
                Err(_) => {}
            }
        }
        entered
    }

    /// Step 1; `None` if one cannot be prepared.
    fn prepare_group<'k>(
        &self,
        items: &[(&'k [u8], &'k [u8])],
        later: &mut Group<usize>,
    ) -> Option<Group<Put<'_, 'k, D>>> {
        let (keys, records) = (items.iter().map(|(key, _)| *key).collect::<Group<_>>(), self.records());
        self.tree.prefetch_many(&records, &keys, |position| records.prefetch(position));
        let mut puts = Group::<Put<'_, 'k, D>>::new();
        for (number, &(key, value)) in items.iter().enumerate() {
            let hash = self.hasher.signature(key);
            // Two keys of one hash, if there are such, go as one key does that comes twice.
            if puts.iter().any(|other| other.hash == hash) {
                later.push(number);
                continue;
            }
            let new = self.prepare(&NewItem { key, value, expiry: Expiry::NEVER }).ok()?;
            puts.push(Put { number, key, hash, lane: self.lane_of(hash), new, old: None, before: Before::Absent });
        }
        Some(puts)
    }

    /// Steps 2 to 6; `None` if nothing was done.
    fn enter_group<'k>(&self, mut puts: Group<Put<'_, 'k, D>>) -> Option<(Group<Entered<'k>>, Ticket)> {
        let mut lanes = self.lock_lanes(&puts);
        self.batches.is_learnt().ok()?;
        let (pin, records, mut found) = (epoch::pin(), self.records(), Group::new());
        for put in &mut puts {
            let looked = self.tree.look(&pin, &records, put.key).ok()?;
            put.old = looked.item();
            put.before = self.before(put.old).ok()?;
            found.push(looked);
        }
        for Lane { log, put_count, .. } in &mut lanes {
            // Each may have to be taken back.
            self.lanes.provide(log, (&self.medium, &self.heap), 2 * *put_count, 1).ok()?;
        }
        let mut entered: Group<Entered<'k>> = puts.into_iter().map(|put| self.enter_one(put, &mut lanes)).collect();
        let ticket = self.medium.commit(Level::default());
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
    fn lock_lanes(&self, puts: &[Put<'_, '_, D>]) -> Group<Lane<'_>> {
        let mut numbers: Group<usize> = puts.iter().map(|put| put.lane).collect();
        numbers.sort_unstable();
        let lock = |same: &[usize]| {
            let log = self.lanes.lock(same[0]);
            Lane { durable: log.next - 1, log, put_count: same.len() as u64 }
        };
        numbers.chunk_by(|one, next| one == next).map(lock).collect()
    }

    /// Step 3, of one key.
    fn enter_one<'k>(&self, put: Put<'_, 'k, D>, lanes: &mut [Lane<'_>]) -> Entered<'k> {
        let Put { number, key, hash, lane, new, old, before } = put;
        let Lane { log, durable, .. } = lane_of(lanes, lane);
        let durable = if self.medium.breaks(canary::GROUP_SAID_DURABLE) { log.next - 1 } else { *durable };
        let entry = Entry { durable, hash, ..entry(old, Some(&new)) };
        new.room.publish();
        self.lanes.append(log, &self.medium, entry);
        Entered { number, key, before, entry, outcome: Ok(()) }
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
            entered.iter_mut().for_each(|put| put.outcome = self.medium.health().map_err(Error::from));
            return;
        }
        entered.iter().for_each(|put| self.tickets.raise(put.entry.hash, ticket));
        for (Entered { entry, outcome, .. }, found) in entered.iter_mut().zip(found) {
            let Some(edit) = edit(found.item(), Some(entry.new)) else { continue };
            if let Err(error) = self.learn(found, edit) {
                let log = &mut lane_of(lanes, self.lane_of(entry.hash)).log;
                *outcome = self.take_back(log, *entry).and(Err(error));
            }
        }
    }
}

fn lane_of<'l, 'a>(lanes: &'l mut [Lane<'a>], number: usize) -> &'l mut Lane<'a> {
    lanes.iter_mut().find(|lane| lane.log.number == number).expect("the group's lanes are locked")
}
