//! Limits of keys, values and batches.

use crate::{BatchOp, Condition, Error};

/// The longest keys, values and batches. The constants are the bounds that formats and front ends may assume for any
/// store; the fields are the limits of one engine ([`crate::Identity::limits`]), which are never higher.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// The longest key.
    pub key_bytes_max: usize,
    /// The longest value.
    pub value_bytes_max: u64,
    /// The largest batch, counted as [`Limits::BATCH_BYTES_MAX`] is.
    pub batch_bytes_max: u64,
}

impl Default for Limits {
    /// Returns the constants.
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
    /// The longest value that compaction moves. A move changes the value's version and nothing else; a longer value is
    /// not moved.
    pub const MOVED_VALUE_BYTES_MAX: usize = heap::Class::BYTES_MAX as usize;
    /// The largest batch: the bytes of its keys and values, plus [`Limits::BATCH_OP_BYTES`] for each operation. The
    /// limit is 1 GiB, because a batch allocates all its DRAM and storage at the same time, and other writers of the
    /// keys' buckets wait during the batch.
    pub const BATCH_BYTES_MAX: u64 = 1 << 30;
    /// The size of an operation of a batch in addition to key and value: a little more than its entries in DRAM and in
    /// the batch record.
    pub const BATCH_OP_BYTES: u64 = 512;

    /// Returns the size that an operation of a batch counts for. A delete has no value.
    #[must_use]
    pub const fn batch_op_bytes(key: &[u8], value: &[u8]) -> u64 {
        (key.len() + value.len()) as u64 + Limits::BATCH_OP_BYTES
    }

    /// Returns an error if a key is too long.
    ///
    /// # Errors
    /// [`Error::KeyTooLong`].
    #[inline(always)]
    pub fn check_key(key: &[u8]) -> Result<(), Error> {
        match key.len() {
            len_bytes if len_bytes > Limits::KEY_BYTES_MAX => Err(Error::KeyTooLong { len_bytes }),
            _ => Ok(()),
        }
    }

    /// Returns an error if a value of this length is too long.
    ///
    /// # Errors
    /// [`Error::ValueTooLong`].
    #[inline(always)]
    pub fn check_value(len_bytes: u64) -> Result<(), Error> {
        if len_bytes > Limits::VALUE_BYTES_MAX { Err(Error::ValueTooLong { len_bytes }) } else { Ok(()) }
    }

    /// Returns an error if a batch with its conditions exceeds a limit. A condition counts as an operation without a
    /// value.
    ///
    /// # Errors
    /// [`Error::KeyTooLong`], [`Error::ValueTooLong`], [`Error::BatchTooLong`].
    pub fn check_batch(conditions: &[Condition<'_>], ops: &[BatchOp<'_>]) -> Result<(), Error> {
        let asked = conditions.iter().map(|condition| (condition.key, &[][..]));
        let written = ops.iter().map(|op| (op.key(), op.value().unwrap_or_default()));
        let mut bytes = 0;
        for (key, value) in asked.chain(written) {
            Limits::check_key(key)?;
            Limits::check_value(value.len() as u64)?;
            bytes += Limits::batch_op_bytes(key, value);
        }
        if bytes > Limits::BATCH_BYTES_MAX { Err(Error::BatchTooLong { len_bytes: bytes }) } else { Ok(()) }
    }

    /// Returns the size of a batch, counted as [`Limits::BATCH_BYTES_MAX`] is.
    #[must_use]
    pub fn batch_bytes(ops: &[BatchOp<'_>]) -> u64 {
        ops.iter().map(|op| Limits::batch_op_bytes(op.key(), op.value().unwrap_or_default())).sum()
    }
}
