//! Broken variants: an engine that writes the server's batches in a wrong way, as a wrong server would.

use std::marker::PhantomData;
use std::sync::Arc;

use engine::prelude::*;
use engine::{
    BatchOp, Check, Clock, Condition, Cursor, Damage, Decide, Engine, EngineStats, Error, Expiry, Features, KeyChanges,
    Limits, OnFound, OnItem, OnResult, OrderedEngine, Progress,
};

const RECORD: u8 = 1;
const ELEMENT: u8 = 2;
const DEAD: u8 = 3;
const DUE: u8 = 4;
/// The bytes before the kind of a row.
const PREFIX_BYTES: usize = 4;

/// Returns the kind of a row, and the bytes after it, if the key is in a named tree.
fn row_of(stored: &[u8]) -> Option<(u8, &[u8])> {
    match stored {
        [0xFF, 0x11, _, _, kind, rest @ ..] => Some((*kind, rest)),
        _ => None,
    }
}

fn is_of(op: &BatchOp<'_>, kind: u8) -> bool {
    row_of(op.key()).is_some_and(|(found, _)| found == kind)
}

/// A way of writing, sound or broken.
pub(crate) trait Way: Send + Sync + 'static {
    const IS_SOUND: bool = false;
    /// The row of a dead collection goes before its elements.
    const ROW_FIRST: bool = false;

    /// Returns the batches that are written instead of one.
    fn split<'a>(ops: &[BatchOp<'a>]) -> Vec<Vec<BatchOp<'a>>> {
        vec![ops.to_vec()]
    }
}

pub(crate) struct Sound;
impl Way for Sound {
    const IS_SOUND: bool = true;
}

fn first<'a>(ops: &[BatchOp<'a>], is_first: impl Fn(&BatchOp<'a>) -> bool) -> Vec<Vec<BatchOp<'a>>> {
    let (first, then): (Vec<_>, Vec<_>) = ops.iter().copied().partition(is_first);
    [first, then].into_iter().filter(|ops| !ops.is_empty()).collect()
}

fn without<'a>(ops: &[BatchOp<'a>], is_left_out: impl Fn(&BatchOp<'a>) -> bool) -> Vec<Vec<BatchOp<'a>>> {
    vec![ops.iter().copied().filter(|op| !is_left_out(op)).collect()]
}

/// The record with its count is written in a batch after the others.
pub(crate) struct CountLater;
impl Way for CountLater {
    fn split<'a>(ops: &[BatchOp<'a>]) -> Vec<Vec<BatchOp<'a>>> {
        first(ops, |op| !is_of(op, RECORD))
    }
}

/// Elements are written in a batch after the others.
pub(crate) struct ElementsLater;
impl Way for ElementsLater {
    fn split<'a>(ops: &[BatchOp<'a>]) -> Vec<Vec<BatchOp<'a>>> {
        first(ops, |op| !is_of(op, ELEMENT))
    }
}

/// The count of a record stays as it is when an element is removed.
pub(crate) struct CountForgotten;
impl Way for CountForgotten {
    fn split<'a>(ops: &[BatchOp<'a>]) -> Vec<Vec<BatchOp<'a>>> {
        let removes = ops.iter().any(|op| is_of(op, ELEMENT) && op.value().is_none());
        without(ops, |op| removes && is_of(op, RECORD) && op.value().is_some())
    }
}

/// The old score of a member stays among the scores.
pub(crate) struct ScoresForgotten;
impl Way for ScoresForgotten {
    fn split<'a>(ops: &[BatchOp<'a>]) -> Vec<Vec<BatchOp<'a>>> {
        // After the id.
        let is_score = |op: &BatchOp<'_>| row_of(op.key()).is_some_and(|(_, rest)| rest.get(8) == Some(&1));
        without(ops, |op| is_of(op, ELEMENT) && op.value().is_none() && is_score(op))
    }
}

/// An entry that is no longer pending stays among those of its consumer.
pub(crate) struct OwnerForgotten;
impl Way for OwnerForgotten {
    fn split<'a>(ops: &[BatchOp<'a>]) -> Vec<Vec<BatchOp<'a>>> {
        // After the id.
        let is_owner = |op: &BatchOp<'_>| row_of(op.key()).is_some_and(|(_, rest)| rest.get(8) == Some(&5));
        without(ops, |op| is_of(op, ELEMENT) && op.value().is_none() && is_owner(op))
    }
}

/// Deleted collections are not marked as dead.
pub(crate) struct DeadForgotten;
impl Way for DeadForgotten {
    fn split<'a>(ops: &[BatchOp<'a>]) -> Vec<Vec<BatchOp<'a>>> {
        without(ops, |op| is_of(op, DEAD))
    }
}

/// A collection that expires has no row for it.
pub(crate) struct DueForgotten;
impl Way for DueForgotten {
    fn split<'a>(ops: &[BatchOp<'a>]) -> Vec<Vec<BatchOp<'a>>> {
        without(ops, |op| is_of(op, DUE) && op.value().is_some())
    }
}

/// The string that replaces a collection is written in a batch before the others.
pub(crate) struct StringFirst;
impl Way for StringFirst {
    fn split<'a>(ops: &[BatchOp<'a>]) -> Vec<Vec<BatchOp<'a>>> {
        first(ops, |op| row_of(op.key()).is_none())
    }
}

pub(crate) struct RowFirst;
impl Way for RowFirst {
    const ROW_FIRST: bool = true;
}

/// An engine that writes in such a way.
pub(crate) struct Broken<W>(Arc<dyn Engine>, PhantomData<fn() -> W>);

impl<W: Way> Broken<W> {
    pub(crate) fn over(engine: Arc<dyn Engine>) -> Arc<dyn Engine> {
        Arc::new(Broken::<W>(engine, PhantomData))
    }
}

impl<W: Way> Atomic for Broken<W> {
    fn update<'v>(&self, key: &[u8], decide: &mut Decide<'_, 'v>) -> Result<bool, Error> {
        self.0.update(key, decide)
    }

    fn write_batch_if(&self, conditions: &[Condition<'_>], ops: &[BatchOp<'_>]) -> Result<(), Error> {
        if !conditions.is_empty() {
            return self.0.write_batch_if(conditions, ops);
        }
        W::split(ops).iter().try_for_each(|ops| self.0.write_batch(ops))
    }
}

impl<W: Way> Writes for Broken<W> {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.0.put(key, value)
    }

    fn put_until(&self, key: &[u8], value: &[u8], expiry: Expiry) -> Result<(), Error> {
        self.0.put_until(key, value, expiry)
    }

    fn delete(&self, key: &[u8]) -> Result<bool, Error> {
        self.0.delete(key)
    }

    fn multi_delete_each(&self, keys: &[&[u8]], on_result: &mut OnResult<'_, bool>) {
        if W::ROW_FIRST
            && let Some((ELEMENT, rest)) = keys.first().and_then(|key| row_of(key))
        {
            let row = [&keys[0][..PREFIX_BYTES], &[DEAD], &rest[..8]].concat();
            if let Err(error) = self.0.delete(&row) {
                return on_result(0, Err(error));
            }
        }
        self.0.multi_delete_each(keys, on_result);
    }

    fn clear(&self) -> Result<(), Error> {
        self.0.clear()
    }
}

impl<W: Way> Identity for Broken<W> {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn features(&self) -> Features {
        self.0.features()
    }

    fn limits(&self) -> Limits {
        self.0.limits()
    }

    fn uuid(&self) -> [u8; 16] {
        self.0.uuid()
    }

    fn has_trees(&self) -> bool {
        self.0.has_trees()
    }

    fn set_has_trees(&self) -> Result<(), Error> {
        self.0.set_has_trees()
    }
}

impl<W: Way> Reads for Broken<W> {
    fn get(&self, key: &[u8], found: &mut OnFound<'_>) -> Result<bool, Error> {
        self.0.get(key, found)
    }
}

impl<W: Way> Expires for Broken<W> {
    fn clock(&self) -> &Clock {
        self.0.clock()
    }
}

impl<W: Way> Walks for Broken<W> {
    fn len(&self) -> Result<u64, Error> {
        self.0.len()
    }

    fn walk(&self, cursor: Cursor, each: &mut OnItem<'_>) -> Result<Cursor, Error> {
        self.0.walk(cursor, each)
    }

    fn walk_stored(&self, cursor: Cursor, each: &mut dyn FnMut(&[u8])) -> Result<Cursor, Error> {
        self.0.walk_stored(cursor, each)
    }

    fn has_passed(&self, cursor: &Cursor, key: &[u8]) -> bool {
        self.0.has_passed(cursor, key)
    }

    fn key_changes(&self) -> Option<&KeyChanges> {
        self.0.key_changes()
    }

    fn check(&self, check: &mut Check, damaged: &mut dyn FnMut(Damage)) -> Result<(), Error> {
        self.0.check(check, damaged)
    }
}

impl<W: Way> Maintenance for Broken<W> {
    fn step(&self) -> Result<Progress, Error> {
        self.0.step()
    }

    fn run_idle_maintenance(&self) -> Progress {
        self.0.run_idle_maintenance()
    }
}

impl<W: Way> Engine for Broken<W> {
    fn health(&self) -> Result<(), Error> {
        self.0.health()
    }

    fn sync(&self) -> Result<(), Error> {
        self.0.sync()
    }

    fn close(&self) -> Result<(), Error> {
        self.0.close()
    }

    fn stats(&self) -> EngineStats {
        self.0.stats()
    }

    fn ordered(&self) -> Option<&dyn OrderedEngine> {
        self.0.ordered()
    }
}
