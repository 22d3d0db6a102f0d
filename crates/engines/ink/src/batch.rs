//! Batches: what the tree wants of one.

use std::collections::BTreeMap;

use engine::{BatchOp, Error, Limits};
use pbtree::{BatchWrite, Change};
use pmem::{Dram, Medium};

use crate::Ink;
use crate::update::put;

impl<M: Medium, D: Dram> Ink<M, D> {
    /// Carries out a batch as one step; the last operation of a key counts.
    pub(crate) fn apply(&self, ops: &[BatchOp<'_>]) -> Result<(), Error> {
        self.may_write()?;
        check(ops)?;
        let last: BTreeMap<&[u8], &BatchOp<'_>> = ops.iter().map(|op| (op.key(), op)).collect();
        if ops.iter().any(|op| !op.expiry().is_never()) {
            self.reaper.expect();
        }
        self.with_room(|| {
            let mut writes: Vec<_> = last.iter().map(|(key, op)| BatchWrite::new(key, change(op))).collect();
            self.tree.batch(epoch::thread_index(), &mut writes)
        })
    }
}

fn change<'a>(op: &BatchOp<'a>) -> Change<'a> {
    op.value().map_or(Change::Delete, |value| put(value, op.expiry()))
}

fn check(ops: &[BatchOp<'_>]) -> Result<(), Error> {
    let mut len_bytes = 0u64;
    for op in ops {
        let value = op.value().unwrap_or_default();
        if op.key().len() > Limits::KEY_BYTES_MAX {
            return Err(Error::KeyTooLong { len_bytes: op.key().len() });
        }
        if value.len() as u64 > Limits::VALUE_BYTES_MAX {
            return Err(Error::ValueTooLong { len_bytes: value.len() as u64 });
        }
        len_bytes += Limits::batch_op_bytes(op.key(), value);
    }
    if len_bytes > Limits::BATCH_BYTES_MAX { Err(Error::BatchTooLong { len_bytes }) } else { Ok(()) }
}
