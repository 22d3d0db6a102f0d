//! The loops that are counted.
//!
//! Keys are made before counting begins, and every kind of operation has run before on other keys, so that work that
//! happens only once (a thread's first pin, a chunk's first slot) is not counted.

use std::hint::black_box;
use std::ops::ControlFlow;
use std::path::PathBuf;

use bench::{stamp, write_key};
use clap::ValueEnum;
use hikv::{Error, Options, Ordered, Store, Tree, WriteBatch};

use crate::failure::Failure;
use crate::tracer::{boundary, mark};

const KEY_BYTES: usize = 16;
/// Keys of one `multi_get`.
const GROUP_COUNT: usize = 16;
/// Puts of one batch.
const BATCH_COUNT: usize = 1000;
/// Items of one scan: the mean of `hikv bench --workloads scan`.
const SCAN_COUNT: usize = 50;
/// One scan is counted for this many other operations.
const SCANS_FEWER: u64 = 4;
/// Keys of every kind that are written or looked up before counting. By then retired items are freed at their steady
/// rate, because a reclaimer checks the existing pins after every 512.
const WARM_UP_COUNT: u64 = 2048;
/// Far from the loaded records.
const FRESH: u64 = 1 << 40;
const ABSENT: u64 = 1 << 41;

type Key = [u8; KEY_BYTES];

/// The counted operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Operation {
    /// Only the loop.
    Nothing,
    /// A value read in place.
    Get,
    /// A value copied out.
    GetInto,
    /// A lookup of an absent key.
    Miss,
    /// Sixteen values read in place; counted per key.
    MultiGet,
    /// A value replaced by one of the same length.
    Update,
    /// A new key.
    Insert,
    /// A delete of an existing key.
    Delete,
    /// A thousand values replaced atomically; counted per key, including the filling of the batch.
    Batch,
    /// Fifty items from a key on, copied out; counted per item.
    Scan,
    /// A value of a named tree read in place.
    TreeGet,
    /// A value of a named tree replaced.
    TreeUpdate,
    /// A transaction that reads two values and replaces them.
    Transact,
    /// A transaction that reads two values.
    TransactRead,
    /// A transaction that deletes the item with the least key.
    TakeFirst,
}

impl Operation {
    pub(crate) const COUNTED: [Operation; 14] = [
        Operation::Get,
        Operation::GetInto,
        Operation::Miss,
        Operation::MultiGet,
        Operation::Update,
        Operation::Insert,
        Operation::Delete,
        Operation::Batch,
        Operation::Scan,
        Operation::TreeGet,
        Operation::TreeUpdate,
        Operation::Transact,
        Operation::TransactRead,
        Operation::TakeFirst,
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
            Operation::Batch => "batch",
            Operation::Scan => "scan",
            Operation::TreeGet => "tree-get",
            Operation::TreeUpdate => "tree-update",
            Operation::Transact => "transact",
            Operation::TransactRead => "transact-read",
            Operation::TakeFirst => "take-first",
        }
    }

    /// Returns true for an operation that needs keys in order.
    pub(crate) fn needs_order(self) -> bool {
        matches!(self, Operation::Scan | Operation::TakeFirst)
    }

    fn is_transaction(self) -> bool {
        matches!(self, Operation::Transact | Operation::TransactRead | Operation::TakeFirst)
    }

    fn is_in_tree(self) -> bool {
        matches!(self, Operation::TreeGet | Operation::TreeUpdate)
    }

    /// Returns the number of keys or items by which one call is divided.
    pub(crate) fn items_at_once(self) -> usize {
        match self {
            Operation::Scan => SCAN_COUNT,
            Operation::Transact | Operation::TransactRead => 1,
            _ => self.keys_at_once(),
        }
    }

    /// Returns the number of keys in one call.
    fn keys_at_once(self) -> usize {
        match self {
            Operation::MultiGet => GROUP_COUNT,
            Operation::Batch => BATCH_COUNT,
            Operation::Transact | Operation::TransactRead => 2,
            _ => 1,
        }
    }

    /// Returns the number of keys for this many operations, at least one call. A scan has as many instructions as a
    /// dozen other operations.
    fn key_count(self, operations: u64) -> u64 {
        match self {
            Operation::Scan => operations.div_ceil(SCANS_FEWER),
            Operation::Transact | Operation::TransactRead => 2 * operations,
            _ => operations.max(self.keys_at_once() as u64),
        }
    }

    fn first_record(self) -> u64 {
        match self {
            Operation::Miss => ABSENT,
            Operation::Insert => FRESH,
            _ => 0,
        }
    }
}

/// The kind of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Order {
    /// Only a hash index.
    Hash,
    /// A hash index and an ordered index.
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

/// A loop on a store of its own.
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
        // Single steps take so long that the background would check the store's files and free space within each
        // transaction. Without it, the calling thread frees space.
        let options = self.options.clone().background(!operation.is_transaction());
        let store = options.open(dir.path().join("store"))?;
        let mut value = vec![0; self.value_bytes];
        let tree = if operation.is_in_tree() { Some(store.tree("tree")?) } else { None };
        let loaded = tree.as_ref().unwrap_or(&store);
        for record in 0..self.records {
            stamp(record, 0, &mut value);
            loaded.put(key_of(record), &value)?;
        }
        // Kept alive: the order is dropped with its last handle.
        let ordered = self.put_in_order(&store, operation)?;
        let (first, store) = (operation.first_record(), Subject { store, tree, ordered });
        repeat(&store, operation, &keys(first, WARM_UP_COUNT), &value)?;
        let keys = keys(first + WARM_UP_COUNT, operation.key_count(self.operations));
        mark()?;
        repeat(&store, operation, &keys, &value)?;
        mark()
    }

    fn put_in_order(&self, store: &Store, operation: Operation) -> Result<Option<Ordered>, Failure> {
        if self.order == Order::Hash && !operation.needs_order() {
            return Ok(None);
        }
        let ordered = store.ordered()?;
        ordered.wait_until_ready(|_| {})?;
        Ok(Some(ordered))
    }
}

/// The store of a loop.
struct Subject {
    store: Store,
    tree: Option<Tree>,
    ordered: Option<Ordered>,
}

fn key_of(record: u64) -> Key {
    let mut key = [0; KEY_BYTES];
    write_key(record, &mut key);
    key
}

/// Returns the keys of `count` records; adjacent numbers are far apart in the index.
fn keys(first: u64, count: u64) -> Vec<Key> {
    (first..first + count).map(key_of).collect()
}

#[inline(never)]
fn repeat(subject: &Subject, operation: Operation, keys: &[Key], value: &[u8]) -> Result<(), Failure> {
    let (mut copy, mut batch) = (Vec::with_capacity(value.len()), WriteBatch::new());
    let Subject { store, tree, ordered } = subject;
    let tree = tree.as_ref().unwrap_or(store);
    boundary();
    for group in keys.chunks(operation.keys_at_once()) {
        let key = &group[0];
        match operation {
            Operation::Nothing => {}
            Operation::Get | Operation::Miss | Operation::TreeGet => {
                black_box(tree.in_place().get(key, |value| black_box(value.len()))?);
            }
            Operation::GetInto => {
                black_box(store.get_into(key, &mut copy)?);
            }
            Operation::MultiGet => store.in_place().multi_get(group, |_, value| {
                black_box(value.map(<[u8]>::len));
            })?,
            Operation::Update | Operation::Insert | Operation::TreeUpdate => tree.put(key, black_box(value))?,
            Operation::Delete => {
                black_box(store.delete(key)?);
            }
            Operation::Batch => {
                batch.clear();
                for key in group {
                    batch.put(key, black_box(value));
                }
                store.write(&batch)?;
            }
            Operation::Scan => scan(ordered.as_ref().expect("it was put in order"), key, &mut copy)?,
            Operation::Transact => store.transact(|tx| {
                black_box((tx.get(key)?, tx.get(group[1])?));
                tx.put(key, black_box(value))?;
                tx.put(group[1], black_box(value))
            })?,
            Operation::TransactRead => {
                black_box(store.transact(|tx| Ok::<_, Error>((tx.get(key)?, tx.get(group[1])?)))?);
            }
            Operation::TakeFirst => store.transact(|tx| {
                let first = tx.first()?;
                first.map_or(Ok(()), |(key, value)| {
                    black_box(value);
                    tx.delete(key)
                })
            })?,
        }
        boundary();
    }
    Ok(())
}

/// Scans as `hikv bench` does: keys and values are copied into reused memory.
fn scan(ordered: &Ordered, from: &Key, copy: &mut Vec<u8>) -> Result<(), Failure> {
    copy.clear();
    let mut missing = SCAN_COUNT;
    ordered.scan(from, |key, value| {
        copy.extend_from_slice(key);
        copy.extend_from_slice(value);
        missing -= 1;
        if missing > 0 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    Ok(())
}
