//! Errors of operations.

use std::fmt;

use heap::HeapError;
use items::ItemError;
use pmem::{Durability, MediumError};
use transact::Inside;

use crate::Limits;

/// The failure of an operation. Nothing has changed unless the variant says otherwise.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The key is longer than [`Limits::KEY_BYTES_MAX`].
    KeyTooLong {
        /// The key's length.
        len_bytes: usize,
    },
    /// The value is longer than [`Limits::VALUE_BYTES_MAX`].
    ValueTooLong {
        /// The value's length.
        len_bytes: u64,
    },
    /// The batch is larger than [`Limits::BATCH_BYTES_MAX`].
    BatchTooLong {
        /// The batch's size, counted as that limit is.
        len_bytes: u64,
    },
    /// The batch is larger than half of the store's limit of memory, `memory_bytes_max`.
    BatchExceedsMemory {
        /// The batch's size, counted as [`Limits::BATCH_BYTES_MAX`] is.
        len_bytes: u64,
        /// The limit of memory.
        memory_bytes_max: u64,
    },
    /// The requested expiry is later than a store can record.
    ExpiryTooLate {
        /// Seconds from now, or from the Unix epoch if the caller passed a point in time.
        seconds: u64,
    },
    /// A condition of the batch or put does not hold.
    ConditionFailed {
        /// The condition's number in the batch, from 0; 0 for a put.
        condition: usize,
    },
    /// A streamed value ended before its announced length, or its source failed.
    Source(std::io::Error),
    /// The medium failed: it is full, read-only, or the operating system refused.
    Medium(MediumError),
    /// The store's bytes contradict each other.
    Corrupt {
        /// The offset into the region.
        offset: u64,
        /// A description of the damage.
        what: &'static str,
    },
    /// The process has no memory left for the store's tables.
    NoMemory {
        /// The requested bytes.
        wanted_bytes: usize,
    },
    /// The ordered index is still being built, and the caller did not want to wait.
    NotOrderedYet {
        /// Finished steps.
        done: u64,
        /// All steps, as far as is known.
        total: u64,
    },
    /// The store's engine lacks this operation.
    Unsupported {
        /// The engine's name.
        engine: &'static str,
        /// The missing operation.
        what: &'static str,
    },
    /// The store no longer has the position of this walk's number.
    CursorForgotten {
        /// The number.
        number: u64,
    },
    /// The store was opened without order.
    NoOrder,
    /// Live snapshots see the keys that should be cleared.
    SnapshotLive {
        /// The number of live snapshots.
        count: usize,
    },
    /// The call was made inside a callback: a snapshot inside another operation's callback, whose end it would wait
    /// for; or a compaction inside a compaction's callback.
    InsideCallback,
    /// A key that the transaction has read was changed by another thread. Pass this error on (`?`):
    /// the transaction is then tried again.
    Conflict,
    /// The transaction was tried as often as its options allow. Each time, another thread changed a key or range that
    /// it had read.
    Contended {
        /// The number of attempts.
        attempts: u32,
    },
    /// The body of a transaction wrote past the transaction, or began another one.
    InsideTransaction,
    /// The store cannot be closed yet: other handles of this process keep it open. The last of them closes it.
    StillOpen {
        /// The number of each kind: `2 handles, 1 snapshot`.
        kept_by: Box<str>,
    },
    /// The store has reached the number of snapshots that its format can count.
    TooManySnapshots {
        /// That number.
        count: u64,
    },
    /// The key to increment holds something other than a 64-bit integer.
    NotANumber {
        /// The key's value, escaped, and cut if it is long.
        value: String,
    },
    /// The sum does not fit in 64 bits.
    Overflow {
        /// The key's number.
        number: i64,
        /// The increment.
        by: i64,
    },
    /// The medium gives less durability than requested.
    Durability {
        /// The requested durability.
        wanted: Durability,
        /// The medium's durability.
        given: Durability,
        /// The medium's name.
        medium: &'static str,
    },
    /// The store has no tree of this name, or it was dropped.
    NoSuchTree {
        /// The name.
        name: Box<str>,
    },
    /// The store has a tree of this name already.
    TreeExists {
        /// The name.
        name: Box<str>,
    },
    /// A tree cannot have this name.
    TreeName {
        /// The name.
        name: Box<str>,
        /// The reason.
        why: &'static str,
    },
    /// The store has as many trees as it can have.
    TooManyTrees {
        /// That number.
        limit: u32,
    },
    /// The tree cannot be changed or created now: operations did not end in time, or a server uses the store.
    TreeBusy {
        /// The name.
        name: Box<str>,
    },
    /// A tree has keys and values of other types than the program expects.
    TypeMismatch {
        /// The names of the tree's types.
        stored: Box<str>,
        /// The names of the types that the program expects.
        asked: Box<str>,
    },
    /// A key or value of a tree with types is none of its type: another program has put it.
    NotOfType {
        /// The name of the type.
        type_name: Box<str>,
        /// The bytes, escaped, and cut if they are long.
        bytes: Box<str>,
    },
    /// The store was opened by this process' parent: a forked child must not use it.
    Forked,
    /// A write of this store has panicked and may have left the engine in the middle of a change. The store refuses
    /// further writes until it is opened again, which recovers it as after a crash.
    HalfWay,
}

impl Error {
    /// As [`MediumError::is_full`].
    #[must_use]
    #[inline]
    pub fn is_full(&self) -> bool {
        matches!(self, Error::Medium(error) if error.is_full())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::KeyTooLong { len_bytes } => {
                write!(f, "the key has {len_bytes} bytes; the limit is {}", Limits::KEY_BYTES_MAX)
            }
            Error::ValueTooLong { len_bytes } => {
                write!(f, "the value has {len_bytes} bytes; the limit is {}", Limits::VALUE_BYTES_MAX)
            }
            Error::BatchTooLong { len_bytes } => {
                let (most, each) = (Limits::BATCH_BYTES_MAX, Limits::BATCH_OP_BYTES);
                write!(f, "the batch has {len_bytes} bytes, {each} for each operation; the limit is {most}")
            }
            Error::BatchExceedsMemory { len_bytes, memory_bytes_max } => {
                let each = Limits::BATCH_OP_BYTES;
                write!(
                    f,
                    "the batch has {len_bytes} bytes, {each} for each operation; the limit is half of the memory of \
                     {memory_bytes_max} bytes (memory_bytes_max)"
                )
            }
            Error::ExpiryTooLate { seconds } => {
                write!(f, "an expiry of {seconds} seconds is later than a store can record; put the key without expiry")
            }
            Error::ConditionFailed { condition } => {
                write!(f, "condition {} does not hold; nothing has changed", condition + 1)
            }
            Error::Source(error) => write!(f, "the value could not be read: {error}"),
            Error::Medium(error @ MediumError::Limit { .. }) => {
                write!(f, "{error}; delete single keys, or raise the limit (`Options::region_bytes_max`)")
            }
            Error::Medium(error) if error.is_full() => {
                write!(f, "{error}; delete single keys, or free space on the disk")
            }
            Error::Medium(error) => error.fmt(f),
            Error::Corrupt { offset, what } => write!(f, "the store is damaged at offset {offset:#x}: {what}"),
            Error::NoMemory { wanted_bytes } => write!(f, "out of memory: cannot allocate {wanted_bytes} bytes"),
            Error::NotOrderedYet { done, total } => {
                write!(f, "keys are not in order yet: {done} of {total} steps are done; wait, or try again later")
            }
            Error::NotANumber { value } => write!(f, "the value '{value}' is not a 64-bit integer"),
            Error::Overflow { number, by } => {
                write!(f, "the sum of {number} and {by} does not fit in 64 bits")
            }
            Error::Unsupported { engine, what } => write!(f, "engine {engine} has no {what}"),
            Error::CursorForgotten { number } => {
                write!(f, "the walk's number {number} is no longer known; begin again at 0")
            }
            Error::NoOrder => {
                f.write_str("the store was opened without order; open it with `Options::ordered` to read ranges")
            }
            Error::SnapshotLive { count } => {
                write!(f, "the store cannot be cleared while {count} snapshots are live; drop them first")
            }
            Error::InsideCallback => {
                f.write_str("this call cannot run inside a callback whose end it waits for; make it before or after")
            }
            Error::Conflict => f.write_str("another thread has changed what the transaction read; nothing has changed"),
            Error::Contended { attempts } => {
                write!(
                    f,
                    "the transaction was tried {attempts} times, and other threads changed what it read each time"
                )
            }
            Error::InsideTransaction => f.write_str(
                "the body of a transaction can write only through the transaction, and cannot begin another one",
            ),
            Error::StillOpen { kept_by } => {
                write!(f, "the store is not closed yet: {kept_by} of this process keep it open; drop them")
            }
            Error::TooManySnapshots { count } => {
                write!(
                    f,
                    "{count} snapshots were taken of this store, which is the limit; copy its items into a new store"
                )
            }
            Error::Durability { wanted, given, medium } => {
                write!(
                    f,
                    "durability '{wanted}' is not available: the store's medium, {medium}, gives '{given}'; request less, or put the store on a disk"
                )
            }
            Error::NoSuchTree { name } => write!(f, "the store has no tree '{name}'"),
            Error::TreeExists { name } => write!(f, "the store has a tree '{name}' already"),
            Error::TreeName { name, why } => write!(f, "a tree cannot have the name '{name}': {why}"),
            Error::TooManyTrees { limit } => {
                write!(f, "the store has {limit} trees, which is the limit; drop one first")
            }
            Error::TreeBusy { name } => {
                write!(
                    f,
                    "the tree '{name}' cannot be changed while other operations or a server use it; try again later"
                )
            }
            Error::TypeMismatch { stored, asked } => write!(f, "the tree has the types '{stored}', and not '{asked}'"),
            Error::NotOfType { type_name, bytes } => write!(f, "the bytes '{bytes}' are none of type '{type_name}'"),
            Error::HalfWay => f.write_str(
                "a write panicked and may have left a change unfinished; writes fail until the store is opened again",
            ),
            Error::Forked => f.write_str("the store was opened before a fork; open it again in the child process"),
        }
    }
}

impl std::error::Error for Error {
    /// Returns the source of the inner error, because `Display` includes the inner error's own text.
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Source(error) => error.source(),
            Error::Medium(error) => error.source(),
            _ => None,
        }
    }
}

impl From<Inside> for Error {
    fn from(inside: Inside) -> Error {
        match inside {
            Inside::Write => Error::InsideCallback,
            Inside::Body => Error::InsideTransaction,
        }
    }
}

impl From<MediumError> for Error {
    fn from(error: MediumError) -> Error {
        Error::Medium(error)
    }
}

impl From<ItemError> for Error {
    #[inline]
    fn from(error: ItemError) -> Error {
        match error {
            ItemError::Medium(error) => Error::Medium(error),
            ItemError::Damaged { offset, what } => Error::Corrupt { offset, what },
        }
    }
}

impl From<HeapError> for Error {
    fn from(error: HeapError) -> Error {
        match error {
            HeapError::Medium(error) => Error::Medium(error),
            HeapError::NoDram { wanted_bytes } => Error::NoMemory { wanted_bytes },
            HeapError::TooLong { len_bytes, .. } => Error::ValueTooLong { len_bytes },
            HeapError::Damaged { offset, what } => Error::Corrupt { offset, what },
            // The other variants occur only when a region is formatted or opened.
            _ => Error::Corrupt { offset: 0, what: "the region's head changed while it was open" },
        }
    }
}
