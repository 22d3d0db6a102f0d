//! The conformance suite, which every store must pass on every medium and through every interface: it answers like a
//! map.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;

use crate::oracle::{Oracle, holds};
use crate::read::{check, in_order, read, refused};
use crate::script::{Op, changes, slices};
use crate::shape::Shape;
use crate::subject::{Contents, Operations};
use crate::violation::Problem;

/// The complete contents are compared after this many operations, after each clear, and at the end.
const OPS_BETWEEN_READS: usize = 16;

/// The first difference between a store and a map.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mismatch {
    /// The seed of the operations.
    pub seed: u64,
    /// The index of the last operation.
    pub op_index: usize,
    /// The last operation.
    pub op: String,
    /// The difference.
    pub problem: Problem,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Mismatch { seed, op_index, op, problem } = self;
        write!(f, "seed {seed}, operation {op_index} ({op}): {problem}")
    }
}

impl std::error::Error for Mismatch {}

/// Draws operations of `shape` from each seed, applies them to a map and to an empty store from `open`, and compares
/// every answer. Returns the number of operations.
///
/// # Errors
/// The first difference.
///
/// # Panics
/// If the shape contains operations that an open store has no call for: reopening, filling the medium, snapshots.
pub fn conformance(open: impl Fn() -> Box<dyn Operations>, shape: &Shape, seeds: Range<u64>) -> Result<u64, Mismatch> {
    assert!(!shape.reopens && !shape.fills, "an open store neither reopens itself nor fills its medium");
    assert!(!shape.snapshots, "snapshots are for the explorer");
    let compared = seeds.map(|seed| run(&*open(), shape, seed));
    compared.sum()
}

fn run(store: &dyn Operations, shape: &Shape, seed: u64) -> Result<u64, Mismatch> {
    let keys: BTreeSet<Vec<u8>> = shape.keys.iter().cloned().collect();
    let mut oracle = Oracle::exactly(Some(Contents::new()));
    let ops = shape.ops(seed);
    for (op_index, op) in ops.iter().enumerate() {
        let is_due = op_index % OPS_BETWEEN_READS == 0 || op_index + 1 == ops.len() || *op == Op::Clear;
        let compared =
            apply(store, op, &mut oracle).and_then(|()| if is_due { compare(store, &keys, &oracle) } else { Ok(()) });
        compared.map_err(|problem| Mismatch { seed, op_index, op: op.to_string(), problem })?;
    }
    Ok(ops.len() as u64)
}

fn apply(store: &dyn Operations, op: &Op, oracle: &mut Oracle) -> Result<(), Problem> {
    let held = |oracle: &Oracle, key: &[u8]| oracle.acknowledged().as_ref().and_then(|held| held.get(key).cloned());
    match op {
        Op::Put(key, value) => store.put(key, value).map_err(refused("put"))?,
        Op::MultiPut(items) => store.multi_put(&slices(items)).map_err(refused("multi_put"))?,
        Op::MultiDelete(keys) => {
            let mut held = oracle.acknowledged().clone().unwrap_or_default();
            let were_there: Vec<bool> = keys.iter().map(|key| held.remove(key).is_some()).collect();
            let slices: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
            let said = store.multi_delete(&slices).map_err(refused("multi_delete"))?;
            expect(said == were_there, "multi_delete returns which keys existed")?;
        }
        Op::Batch(batch) => store.batch(&changes(batch)).map_err(refused("batch"))?,
        Op::Delete(key) => {
            let was_there = store.delete(key).map_err(refused("delete"))?;
            expect(was_there == held(oracle, key).is_some(), "delete returns whether the key existed")?;
        }
        Op::Cas { key, expected, new } => {
            let is_swapped = store.compare_and_swap(key, expected.as_deref(), new.as_deref());
            let is_equal = held(oracle, key) == *expected;
            expect(is_swapped.map_err(refused("compare_and_swap"))? == is_equal, "cas returns whether it matched")?;
        }
        Op::BatchIf { expected, changes: batch } => {
            let is_done = store.batch_if(&changes(expected), &changes(batch)).map_err(refused("batch_if"))?;
            expect(is_done == holds(oracle.acknowledged(), expected), "batch_if returns whether the conditions held")?;
        }
        Op::Clear => store.clear().map_err(refused("clear"))?,
        Op::Scan => in_order(store, oracle.acknowledged().as_ref().expect("an open store"))?,
        Op::Compact => store.compact().map_err(refused("compact"))?,
        Op::Format
        | Op::Snapshot
        | Op::Release
        | Op::Reopen
        | Op::Full
        | Op::NotFull
        | Op::BatchExpiring(_)
        | Op::PutExpiring(..)
        | Op::Expire(..)
        | Op::At(_)
        | Op::Settle => unreachable!("the shape was checked"),
    }
    oracle.begin(op);
    oracle.acknowledge();
    op.keys().try_for_each(|key| {
        let found = store.get(key).map_err(refused("get"))?;
        expect(found == held(oracle, key), "get returns the value put last")
    })
}

fn compare(store: &dyn Operations, keys: &BTreeSet<Vec<u8>>, oracle: &Oracle) -> Result<(), Problem> {
    oracle.judge(&Some(read(store, keys)?))?;
    check(store)
}

fn expect(holds: bool, what: &str) -> Result<(), Problem> {
    if holds { Ok(()) } else { Err(Problem::Answer(what.into())) }
}
