//! Deleting the keys of dead ids.
//!
//! | step | a crash after it leaves |
//! |---|---|
//! | E1 delete the id's keys in groups, found in order or by a walk | a dead id with fewer keys: the next opening goes on |
//! | E2 no key is left: the id's record goes, and the head counts it no longer | nothing of the id |
//!
//! No thread writes keys of a dead id, because the change that killed it waited for all writes of its tree.

use std::ops::{Bound, ControlFlow};

use engine::{Cursor, Direction, Early, Engine, Error, OrderState, OrderedEngine, ScanCursor};

use crate::names::Catalog;
use crate::record::{HEAD_KEY, id_key};
use crate::tree_id::{Prefix, TreeId};

/// Keys that are deleted together.
const GROUP_COUNT: usize = 64;

/// A pass over the keys of dead ids.
#[derive(Debug, Default)]
pub struct Reclaim {
    ids: Vec<TreeId>,
    cursor: Cursor,
}

/// The work that one step has done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Reclaimed {
    /// Deleted keys.
    pub key_count: u64,
    /// Ids of which nothing is left.
    pub id_count: u64,
}

impl Reclaim {
    /// Returns a pass over the keys of these ids, which are dead and not in use.
    #[must_use]
    pub fn of(ids: Vec<TreeId>) -> Reclaim {
        Reclaim { ids: ids.into_iter().filter(|id| *id != TreeId::NAMELESS).collect(), cursor: Cursor::default() }
    }

    /// Returns the ids that the pass has not finished.
    #[must_use]
    pub fn ids(&self) -> &[TreeId] {
        &self.ids
    }

    /// Returns true if nothing is left of the ids.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.ids.is_empty()
    }

    /// Deletes some keys, or a dead id without keys.
    ///
    /// # Errors
    /// As for [`engine::Writes::delete`] and [`engine::Walks::walk`]. The step can be repeated.
    pub fn step(&mut self, engine: &dyn Engine) -> Result<Reclaimed, Error> {
        let Some(&id) = self.ids.last() else { return Ok(Reclaimed::default()) };
        let is_ready = engine.stats().order.is_some_and(|order| order.state == OrderState::Ready);
        match engine.ordered().filter(|_| is_ready && self.cursor == Cursor::Start) {
            Some(ordered) => self.step_in_order(ordered, engine, id),
            None => self.step_of_walk(engine),
        }
    }

    fn step_in_order(
        &mut self,
        ordered: &dyn OrderedEngine,
        engine: &dyn Engine,
        id: TreeId,
    ) -> Result<Reclaimed, Error> {
        let (prefix, mut keys) = (Prefix::of(id), Vec::new());
        match ordered.catch_up(Early::Refuse) {
            // The order was lost, or the caller must not wait for it.
            Err(Error::NotOrderedYet { .. }) => return self.step_of_walk(engine),
            caught_up => caught_up?,
        }
        let mut cursor = ScanCursor::new(Bound::Included(prefix.as_bytes()), Direction::Forward);
        let mut each = |key: &[u8], _: &[u8]| {
            if keys.len() == GROUP_COUNT || !key.starts_with(prefix.as_bytes()) {
                return ControlFlow::Break(());
            }
            keys.push(key.to_vec());
            ControlFlow::Continue(())
        };
        while ordered.scan(&mut cursor, &mut each)? {}
        if !keys.is_empty() {
            return Ok(Reclaimed { key_count: delete_all(engine, &keys)?, id_count: 0 });
        }
        Catalog::of(engine).forget(id)?;
        self.ids.pop();
        Ok(Reclaimed { key_count: 0, id_count: 1 })
    }

    /// Deletes the keys of all ids in the next part of the store.
    fn step_of_walk(&mut self, engine: &dyn Engine) -> Result<Reclaimed, Error> {
        let mut keys = Vec::new();
        let is_dead = |key: &[u8]| TreeId::of_stored(key).is_some_and(|id| self.ids.contains(&id));
        let next =
            engine.walk(self.cursor.clone(), &mut |key, _, _| keys.extend(is_dead(key).then(|| key.to_vec())))?;
        let mut done = Reclaimed { key_count: delete_all(engine, &keys)?, id_count: 0 };
        self.cursor = next;
        if self.cursor.is_done() {
            while let Some(&id) = self.ids.last() {
                Catalog::of(engine).forget(id)?;
                self.ids.pop();
                done.id_count += 1;
            }
        }
        Ok(done)
    }
}

fn delete_all(engine: &dyn Engine, keys: &[Vec<u8>]) -> Result<u64, Error> {
    let (mut count, mut failed) = (0, None);
    for group in keys.chunks(GROUP_COUNT) {
        let group: Vec<_> = group.iter().map(Vec::as_slice).collect();
        engine.multi_delete_each(&group, &mut |_, deleted| match deleted {
            Ok(was_present) => count += u64::from(was_present),
            Err(error) => failed = Some(error),
        });
    }
    failed.map_or(Ok(count), Err)
}

impl Catalog<'_> {
    /// Removes the record of a dead id that has no keys left (step E2).
    ///
    /// # Errors
    /// As for [`engine::Atomic::write_batch_if`].
    pub fn forget(self, id: TreeId) -> Result<(), Error> {
        self.change(|batch| {
            let Some((version, name)) = self.read(&id_key(id))? else { return Ok(()) };
            if !name.is_empty() {
                return Ok(());
            }
            let mut head = self.expected_head(batch)?;
            head.dead_count = head.dead_count.saturating_sub(1);
            while head.least < head.next && (head.least == id || self.read(&id_key(head.least))?.is_none()) {
                head.least = TreeId::new(head.least.number() + 1);
            }
            batch.expect(&id_key(id), Some(version));
            batch.delete(&id_key(id));
            batch.put(HEAD_KEY.to_vec(), head.bytes());
            Ok(())
        })
    }
}
