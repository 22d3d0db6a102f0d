//! What an operation can fail with.

use std::{fmt, io};

use heap::HeapError;
use items::ItemError;
use pmem::{Durability, MediumError};

use crate::{BatchOp, Condition};

/// How long what an engine keeps may be: the constants are what formats and fronts may assume of any store, the values what one engine
/// says ([`crate::Engine::limits`]), which is no more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// The longest key.
    pub key_bytes_max: usize,
    /// The longest value.
    pub value_bytes_max: u64,
    /// One batch, counted as [`Limits::BATCH_BYTES_MAX`] is.
    pub batch_bytes_max: u64,
}

impl Default for Limits {
    /// The constants.
    fn default() -> Limits {
        Limits {
            key_bytes_max: Limits::KEY_BYTES_MAX,
            value_bytes_max: Limits::VALUE_BYTES_MAX,
            batch_bytes_max: Limits::BATCH_BYTES_MAX,
        }
    }
}

impl Limits {
    /// The longest key.
    pub const KEY_BYTES_MAX: usize = items::KEY_BYTES_MAX;
    /// The longest value: 1 GiB.
    pub const VALUE_BYTES_MAX: u64 = items::VALUE_BYTES_MAX;
    /// The longest value that compaction moves, which changes its version and nothing else. A longer one stays where it is.
    pub const MOVED_VALUE_BYTES_MAX: usize = heap::Class::BYTES_MAX as usize;
    /// One batch: the bytes of its keys and values, and [`Limits::BATCH_OP_BYTES`] for each operation. 1 GiB: what a batch
    /// needs of volatile memory and of the store is there at once, and other writers of the keys' buckets wait while it is
    /// carried out.
    pub const BATCH_BYTES_MAX: u64 = 1 << 30;
    /// What an operation of a batch counts for beside its key and value: somewhat more than what is known of it in volatile
    /// memory and in the batch's record while it is carried out.
    pub const BATCH_OP_BYTES: u64 = 512;

    /// What an operation of a batch counts for in all: one that deletes has no value.
    #[must_use]
    pub const fn batch_op_bytes(key: &[u8], value: &[u8]) -> u64 {
        (key.len() + value.len()) as u64 + Limits::BATCH_OP_BYTES
    }

    /// Whether a batch, which may have conditions, keeps the limits. A condition counts as an operation without a value.
    ///
    /// # Errors
    /// [`Error::KeyTooLong`], [`Error::ValueTooLong`], [`Error::BatchTooLong`].
    pub fn check_batch(conditions: &[Condition<'_>], ops: &[BatchOp<'_>]) -> Result<(), Error> {
        let asked = conditions.iter().map(|condition| (condition.key, &[][..]));
        let written = ops.iter().map(|op| (op.key(), op.value().unwrap_or_default()));
        let mut bytes = 0;
        for (key, value) in asked.chain(written) {
            if key.len() > Limits::KEY_BYTES_MAX {
                return Err(Error::KeyTooLong { len_bytes: key.len() });
            }
            if value.len() as u64 > Limits::VALUE_BYTES_MAX {
                return Err(Error::ValueTooLong { len_bytes: value.len() as u64 });
            }
            bytes += Limits::batch_op_bytes(key, value);
        }
        if bytes > Limits::BATCH_BYTES_MAX { Err(Error::BatchTooLong { len_bytes: bytes }) } else { Ok(()) }
    }
}

/// Why an operation did not happen. Unless said otherwise nothing has changed.
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
    /// The batch is longer than [`Limits::BATCH_BYTES_MAX`].
    BatchTooLong {
        /// The batch's length, as that limit counts it.
        len_bytes: u64,
    },
    /// The key was to expire later than a store can note.
    ExpiryTooLate {
        /// So many seconds from now, or from the Unix epoch where a moment was given.
        seconds: u64,
    },
    /// A condition of the batch does not hold.
    ConditionFailed {
        /// Its number among the batch's conditions, from 0.
        condition: usize,
    },
    /// A streamed value ended before its announced length, or its source failed.
    Source(std::io::Error),
    /// The medium failed: it is full, read-only, or the operating system refused.
    Medium(MediumError),
    /// The store's bytes contradict themselves.
    Corrupt {
        /// Where, as an offset into the region.
        offset: u64,
        /// What is wrong there.
        what: &'static str,
    },
    /// The process has no memory left for the store's tables.
    NoMemory {
        /// How much was wanted.
        wanted_bytes: usize,
    },
    /// The ordered index is still being built, and the caller did not want to wait.
    NotOrderedYet {
        /// Steps that are done.
        done: u64,
        /// Steps in all, as far as is known.
        total: u64,
    },
    /// The store's engine cannot do this.
    Unsupported {
        /// The engine's name.
        engine: &'static str,
        /// What it lacks.
        what: &'static str,
    },
    /// A walk was to go on at a number that is not known any more.
    CursorForgotten {
        /// The number.
        number: u64,
    },
    /// The store was opened without order.
    NoOrder,
    /// Live snapshots see the keys that were to be deleted all at once.
    SnapshotLive {
        /// How many there are.
        count: usize,
    },
    /// A snapshot was asked for inside of another operation's callback, for whose end it would wait; or a compaction by the callback
    /// of one.
    InsideCallback,
    /// The store was to be closed, and other handles of this process keep it open: the last of them closes it.
    StillOpen {
        /// How many of each kind: `2 handles, 1 snapshot`.
        kept_by: Box<str>,
    },
    /// As many snapshots were taken of the store as its format can count.
    TooManySnapshots {
        /// How many that is.
        count: u64,
    },
    /// The key that was to be incremented holds something else than a whole number of 64 bits.
    NotANumber {
        /// What it holds, escaped, and cut if it is long.
        value: String,
    },
    /// The sum has more than 64 bits.
    Overflow {
        /// What the key holds.
        number: i64,
        /// What was to be added.
        by: i64,
    },
    /// More durability was asked for than the medium gives.
    Durability {
        /// What was asked for.
        wanted: Durability,
        /// What the medium gives.
        given: Durability,
        /// The medium's name.
        medium: &'static str,
    },
    /// The store was opened by this process' parent: a child of a fork may not touch it.
    Forked,
    /// A write of this store has panicked, and may have left the engine half way: the store takes no further write until it is opened
    /// again, which recovers it as after a crash.
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
            Error::ExpiryTooLate { seconds } => {
                write!(f, "an expiry of {seconds} seconds is later than a store can note; a key without one stays")
            }
            Error::ConditionFailed { condition } => {
                write!(f, "condition {} of the batch does not hold; nothing has changed", condition + 1)
            }
            Error::Source(error) => write!(f, "the value could not be read: {error}"),
            Error::Medium(error @ MediumError::Limit { .. }) => {
                write!(
                    f,
                    "{error}; single keys can be deleted (DEL, UNLINK), or the limit raised (--size of `hikv device`, \
                     `Options::region_bytes_max`)"
                )
            }
            Error::Medium(error) if error.is_full() => {
                write!(f, "{error}; single keys can be deleted (DEL, UNLINK), or space freed on the disk")
            }
            Error::Medium(error) => error.fmt(f),
            Error::Corrupt { offset, what } => write!(f, "the store is damaged at offset {offset:#x}: {what}"),
            Error::NoMemory { wanted_bytes } => write!(f, "no memory left: {wanted_bytes} bytes were wanted"),
            Error::NotOrderedYet { done, total } => {
                write!(f, "keys are not in order yet: {done} of {total} steps are done; ask again later, or wait")
            }
            Error::NotANumber { value } => write!(f, "the value '{value}' is not a whole number of 64 bits"),
            Error::Overflow { number, by } => {
                write!(f, "{number} and {by} make more than a number of 64 bits can hold")
            }
            Error::Unsupported { engine, what } => write!(f, "engine {engine} has no {what}"),
            Error::CursorForgotten { number } => {
                write!(f, "the walk's number {number} is not known any more: begin again at 0")
            }
            Error::NoOrder => f.write_str("the store was opened without order: there are no ranges; Options::ordered opens it with order"),
            Error::SnapshotLive { count } => {
                write!(
                    f,
                    "{count} live snapshots see the store's keys: they cannot be cleared before those are dropped"
                )
            }
            Error::InsideCallback => {
                f.write_str("not inside of a callback of the store, for whose end it would wait: before, or after")
            }
            Error::StillOpen { kept_by } => {
                write!(f, "the store is not closed yet: {kept_by} of this process keep it open")
            }
            Error::TooManySnapshots { count } => {
                write!(
                    f,
                    "{count} snapshots were taken of this store, which is the limit: dump and load it to begin anew"
                )
            }
            Error::Durability { wanted, given, medium } => {
                write!(f, "durability '{wanted}' is wanted, and the store's medium, {medium}, gives '{given}': ask for less, or put the store on a disk")
            }
            Error::HalfWay => f.write_str(
                "a write panicked, and may have left the store half way: no write is taken until the store is opened again",
            ),
            Error::Forked => f.write_str("the store was opened before a fork: open it anew in the child process"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Source(error) => Some(error),
            Error::Medium(error) => Some(error),
            _ => None,
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
            // The rest concerns format and open alone.
            _ => Error::Corrupt { offset: 0, what: "the region's head changed while it was open" },
        }
    }
}

/// Why a region does not open as a store.
#[derive(Debug)]
pub enum OpenError {
    /// The region's head, chunks or medium.
    Heap(HeapError),
    /// The operating system gives it no thread.
    Thread(io::Error),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Heap(error) => error.fmt(f),
            OpenError::Thread(error) => write!(f, "no thread can be started: {error}"),
        }
    }
}

impl std::error::Error for OpenError {}

impl From<ItemError> for OpenError {
    fn from(error: ItemError) -> OpenError {
        OpenError::Heap(match error {
            ItemError::Medium(error) => HeapError::Medium(error),
            ItemError::Damaged { offset, what } => HeapError::Damaged { offset, what },
        })
    }
}

impl From<HeapError> for OpenError {
    fn from(error: HeapError) -> OpenError {
        OpenError::Heap(error)
    }
}
