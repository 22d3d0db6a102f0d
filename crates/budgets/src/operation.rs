//! The loops that are counted.
//!
//! Keys are made before counting begins, and every kind of operation has been done before on other keys, so that what
//! happens once (a thread's pin, a chunk's first slot) is not counted.

use std::hint::black_box;
use std::path::PathBuf;

use bench::{stamp, write_key};
use clap::ValueEnum;
use hikv::{Options, Ordered, Store};

use crate::Failure;
use crate::tracer::{boundary, mark};

const KEY_BYTES: usize = 16;
/// Keys of one `multi_get`.
const GROUP_COUNT: usize = 16;
/// Far from the records that are loaded.
const FRESH: u64 = 1 << 40;
const ABSENT: u64 = 1 << 41;

type Key = [u8; KEY_BYTES];

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Operation {
    /// The loop alone.
    Nothing,
    /// A value shown in place.
    Get,
    /// A value copied out.
    GetInto,
    /// A key that is not there.
    Miss,
    /// Sixteen values shown in place, a key.
    MultiGet,
    /// A value replaced by one of the same length.
    Update,
    /// A new key.
    Insert,
    /// A key that is there.
    Delete,
}

impl Operation {
    pub(crate) const COUNTED: [Operation; 7] = [
        Operation::Get,
        Operation::GetInto,
        Operation::Miss,
        Operation::MultiGet,
        Operation::Update,
        Operation::Insert,
        Operation::Delete,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Operation::Nothing => "nothing",
            Operation::Get => "get",
            Operation::GetInto => "get-into",
            Operation::Miss => "miss",
            Operation::MultiGet => "multi-get",
            Operation::Update => "update",
            Operation::Insert => "insert",
            Operation::Delete => "delete",
        }
    }

    /// Keys that one call is given.
    pub(crate) fn keys_at_once(self) -> usize {
        if self == Operation::MultiGet { GROUP_COUNT } else { 1 }
    }

    fn first_record(self) -> u64 {
        match self {
            Operation::Miss => ABSENT,
            Operation::Insert => FRESH,
            _ => 0,
        }
    }
}

/// Whether keys are kept in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Order {
    /// By the hash index alone.
    Hash,
    /// By both indexes.
    Ordered,
}

impl Order {
    pub(crate) const ALL: [Order; 2] = [Order::Hash, Order::Ordered];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Order::Hash => "hash",
            Order::Ordered => "ordered",
        }
    }
}

/// A loop over a store of its own.
pub(crate) struct Loop {
    pub(crate) dir: PathBuf,
    pub(crate) records: u64,
    pub(crate) operations: u64,
    pub(crate) options: Options,
    pub(crate) order: Order,
    pub(crate) value_bytes: usize,
}

impl Loop {
    /// Loads the store, warms up, and runs the loop between two marks.
    pub(crate) fn run(&self, operation: Operation) -> Result<(), Failure> {
        let dir = tempfile::Builder::new().prefix("hikv-budgets-").tempdir_in(&self.dir)?;
        let store = self.options.open(dir.path().join("store"))?;
        let mut value = vec![0; self.value_bytes];
        for record in 0..self.records {
            stamp(record, 0, &mut value);
            store.put(key_of(record), &value)?;
        }
        // Kept alive: order is dropped with its last handle.
        let _ordered = self.put_in_order(&store)?;
        let first = operation.first_record();
        repeat(&store, operation, &keys(first, self.operations), &value)?;
        let keys = keys(first + self.operations, self.operations);
        mark()?;
        repeat(&store, operation, &keys, &value)?;
        mark()
    }

    fn put_in_order(&self, store: &Store) -> Result<Option<Ordered>, Failure> {
        if self.order == Order::Hash {
            return Ok(None);
        }
        let ordered = store.ordered()?;
        ordered.wait_until_ready(|_| {})?;
        Ok(Some(ordered))
    }
}

fn key_of(record: u64) -> Key {
    let mut key = [0; KEY_BYTES];
    write_key(record, &mut key);
    key
}

/// The keys of `count` records; neighbours in number are far apart in the index.
fn keys(first: u64, count: u64) -> Vec<Key> {
    (first..first + count).map(key_of).collect()
}

#[inline(never)]
fn repeat(store: &Store, operation: Operation, keys: &[Key], value: &[u8]) -> Result<(), Failure> {
    let mut copy = Vec::with_capacity(value.len());
    boundary();
    for group in keys.chunks(operation.keys_at_once()) {
        let key = &group[0];
        match operation {
            Operation::Nothing => {}
            Operation::Get | Operation::Miss => {
                black_box(store.get_with(key, |value| black_box(value.len()))?);
            }
            Operation::GetInto => {
                black_box(store.get_into(key, &mut copy)?);
            }
            Operation::MultiGet => store.multi_get_with(group, |_, value| {
                black_box(value.map(<[u8]>::len));
            })?,
            Operation::Update | Operation::Insert => store.put(key, black_box(value))?,
            Operation::Delete => {
                black_box(store.delete(key)?);
            }
        }
        boundary();
    }
    Ok(())
}
