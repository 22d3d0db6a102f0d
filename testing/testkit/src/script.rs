//! Scripts: the lists of operations that the explorer runs and crashes.

use std::collections::BTreeSet;
use std::fmt;

use crate::rival::{PREFIX, is_rival};
use crate::shape::Shape;
use crate::subject::Lasting;

/// A key and its new value with an expiry time in milliseconds, if any; `None` deletes the key.
pub type ExpiringChange = (Vec<u8>, Option<(Vec<u8>, Option<u64>)>);

/// A key and its value; `None` deletes the key or expects it to be absent.
pub type Change = (Vec<u8>, Option<Vec<u8>>);

/// An operation of a script.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Op {
    /// Formats the medium. It is the first operation of every script.
    Format,
    /// Sets a key's value.
    Put(Vec<u8>, Vec<u8>),
    /// Sets the values of several keys with one call; each of them may survive a crash separately.
    MultiPut(Vec<(Vec<u8>, Vec<u8>)>),
    /// Removes several keys with one call; each of them may survive a crash separately.
    MultiDelete(Vec<Vec<u8>>),
    /// Sets or removes (`None`) several keys as one atomic step.
    Batch(Vec<Change>),
    /// Like [`Op::Batch`], but only if these keys hold these values or are absent.
    BatchIf {
        /// The expected values.
        expected: Vec<Change>,
        /// The changes.
        changes: Vec<Change>,
    },
    /// Like [`Op::Batch`], with expiry times in milliseconds.
    BatchExpiring(Vec<ExpiringChange>),
    /// Removes a key.
    Delete(Vec<u8>),
    /// Replaces a key's value if the key holds the expected value or is absent as expected.
    Cas {
        /// The key.
        key: Vec<u8>,
        /// The expected value, or `None` for absent.
        expected: Option<Vec<u8>>,
        /// The new value; `None` deletes the key.
        new: Option<Vec<u8>>,
    },
    /// Sets a key's value, with an expiry time in milliseconds.
    PutExpiring(Vec<u8>, Vec<u8>, u64),
    /// Sets a key's expiry time, or removes it, if the key exists.
    Expire(Vec<u8>, Option<u64>),
    /// Sets the clock to this time, in milliseconds. A script begins at 0.
    At(u64),
    /// Runs background work until none is left.
    Settle,
    /// Removes every key. Live snapshots are released first.
    Clear,
    /// Reads all keys in order, forward and backward. From then on the store keeps its ordered index up to date.
    Scan,
    /// Runs a compaction, which frees space and leaves the contents unchanged.
    Compact,
    /// Takes a snapshot.
    Snapshot,
    /// Releases the oldest live snapshot, if any.
    Release,
    /// Closes the store and opens it again, without a crash. Live snapshots are released first.
    Reopen,
    /// From now on the region cannot grow.
    Full,
    /// The region can grow again.
    NotFull,
}

impl Op {
    /// Returns the keys that the operation names.
    pub fn keys(&self) -> impl Iterator<Item = &[u8]> {
        let keys: Vec<&[u8]> = match self {
            Op::Put(key, _) | Op::Delete(key) | Op::Cas { key, .. } | Op::PutExpiring(key, ..) | Op::Expire(key, _) => {
                vec![key]
            }
            Op::MultiPut(items) => items.iter().map(|(key, _)| &key[..]).collect(),
            Op::MultiDelete(keys) => keys.iter().map(Vec::as_slice).collect(),
            Op::Batch(changes) => changes.iter().map(|(key, _)| &key[..]).collect(),
            Op::BatchIf { expected, changes } => expected.iter().chain(changes).map(|(key, _)| &key[..]).collect(),
            Op::BatchExpiring(changes) => changes.iter().map(|(key, _)| &key[..]).collect(),
            _ => Vec::new(),
        };
        keys.into_iter()
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Op::Format => f.write_str("format"),
            Op::Put(key, value) => write!(f, "put {} ({} bytes)", Key(key), value.len()),
            Op::MultiPut(items) => {
                f.write_str("put")?;
                items.iter().try_for_each(|(key, value)| write!(f, " {} ({} bytes)", Key(key), value.len()))
            }
            Op::MultiDelete(keys) => {
                f.write_str("delete")?;
                keys.iter().try_for_each(|key| write!(f, " {}", Key(key)))
            }
            Op::Batch(changes) => write_changes(f, changes),
            Op::BatchIf { expected, changes } => {
                f.write_str("if")?;
                expected.iter().try_for_each(|(key, value)| {
                    write!(f, " {} has {:?} bytes", Key(key), value.as_ref().map(Vec::len))
                })?;
                f.write_str(", ")?;
                write_changes(f, changes)
            }
            Op::BatchExpiring(changes) => {
                f.write_str("batch")?;
                changes.iter().try_for_each(|(key, new)| match new {
                    Some((value, at_ms)) => write!(f, " put {} ({} bytes) until {at_ms:?} ms", Key(key), value.len()),
                    None => write!(f, " delete {}", Key(key)),
                })
            }
            Op::Delete(key) => write!(f, "delete {}", Key(key)),
            Op::Cas { key, expected, new } => {
                let bytes = |value: &Option<Vec<u8>>| value.as_ref().map(Vec::len);
                write!(f, "cas {} ({:?} to {:?} bytes)", Key(key), bytes(expected), bytes(new))
            }
            Op::PutExpiring(key, value, at_ms) => {
                write!(f, "put {} ({} bytes) until {at_ms} ms", Key(key), value.len())
            }
            Op::Expire(key, at_ms) => write!(f, "expire {} at {at_ms:?} ms", Key(key)),
            Op::At(now_ms) => write!(f, "set the clock to {now_ms} ms"),
            Op::Settle => f.write_str("settle"),
            Op::Clear => f.write_str("clear"),
            Op::Scan => f.write_str("scan"),
            Op::Compact => f.write_str("compact"),
            Op::Snapshot => f.write_str("take a snapshot"),
            Op::Release => f.write_str("release a snapshot"),
            Op::Reopen => f.write_str("reopen"),
            Op::Full => f.write_str("medium full"),
            Op::NotFull => f.write_str("medium not full"),
        }
    }
}

fn write_changes(f: &mut fmt::Formatter<'_>, changes: &[Change]) -> fmt::Result {
    f.write_str("batch")?;
    changes.iter().try_for_each(|(key, value)| match value {
        Some(value) => write!(f, " put {} ({} bytes)", Key(key), value.len()),
        None => write!(f, " delete {}", Key(key)),
    })
}

/// Borrows the items in the form of [`crate::Operations::multi_put`].
pub(crate) fn slices(items: &[(Vec<u8>, Vec<u8>)]) -> Vec<(&[u8], &[u8])> {
    items.iter().map(|(key, value)| (&key[..], &value[..])).collect()
}

/// Borrows the changes in the form of [`crate::Operations::batch`].
pub(crate) fn changes(changes: &[Change]) -> Vec<(&[u8], Option<&[u8]>)> {
    changes.iter().map(|(key, value)| (&key[..], value.as_deref())).collect()
}

/// Borrows the changes in the form of [`crate::Operations::batch_expiring`].
pub(crate) fn expiring_changes(changes: &[ExpiringChange]) -> Vec<(&[u8], Lasting<'_>)> {
    changes.iter().map(|(key, new)| (&key[..], new.as_ref().map(|(value, at_ms)| (&value[..], *at_ms)))).collect()
}

/// A key as messages print it: escaped, and cut if long.
pub(crate) struct Key<'a>(pub(crate) &'a [u8]);

impl fmt::Display for Key<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN_BYTES_MAX: usize = 24;
        let shown = &self.0[..self.0.len().min(SHOWN_BYTES_MAX)];
        write!(f, "\"{}\"", shown.escape_ascii())?;
        if self.0.len() > SHOWN_BYTES_MAX { write!(f, "... of {} bytes", self.0.len()) } else { Ok(()) }
    }
}

/// A list of operations. The setup comes first and is not crashed.
#[derive(Clone, Debug)]
pub struct Script {
    /// The script's name in messages: the seed if it was generated. The exploration's random choices depend on it as
    /// well.
    pub seed: u64,
    /// Operations that run without crashes.
    pub setup: Vec<Op>,
    /// Operations that are crashed at every step.
    pub explored: Vec<Op>,
    /// The second writer's key: [`PREFIX`], and a suffix that a test may choose to place the key in a certain bucket or
    /// page.
    rival: Vec<u8>,
    /// True if each write of the second writer is a batch.
    has_rival_batches: bool,
}

impl Script {
    /// Creates a script that explores format and then `ops`.
    #[must_use]
    pub fn fresh(seed: u64, ops: impl IntoIterator<Item = Op>) -> Script {
        let explored = [Op::Format].into_iter().chain(ops).collect();
        Script { seed, setup: Vec::new(), explored, rival: PREFIX.to_vec(), has_rival_batches: false }
    }

    /// Returns a script of keys that expire, are renewed, and are reaped.
    #[must_use]
    pub fn expiring() -> Script {
        let until = |key: &str, at_ms| Op::PutExpiring(key.into(), vec![b'v'; 12], at_ms);
        let expire = |key: &str, at_ms| Op::Expire(key.into(), at_ms);
        let first = [until("a", 10), until("b", 20), expire("b", Some(30)), expire("c", Some(5)), expire("a", None)];
        let then = [Op::At(35), until("b", 50), Op::Settle, expire("a", Some(40)), Op::At(45), Op::Settle, Op::Reopen];
        Script::fresh(1, first.into_iter().chain(then))
    }

    /// Creates a script that explores `ops` on a store that was formatted and went through `setup`.
    #[must_use]
    pub fn after(seed: u64, setup: impl IntoIterator<Item = Op>, ops: impl IntoIterator<Item = Op>) -> Script {
        let setup = [Op::Format].into_iter().chain(setup).collect();
        Script { seed, setup, explored: ops.into_iter().collect(), rival: PREFIX.to_vec(), has_rival_batches: false }
    }

    /// Returns the candidate keys for the second writer.
    pub fn rivals() -> impl Iterator<Item = Vec<u8>> {
        (0u32..).map(|number| [PREFIX, &number.to_be_bytes()].concat())
    }

    /// Sets the second writer's key to one of [`Script::rivals`].
    ///
    /// # Panics
    /// If `key` is not one of them.
    #[must_use]
    pub fn with_rival(self, key: Vec<u8>) -> Script {
        assert!(is_rival(&key), "the key is not one of Script::rivals");
        Script { rival: key, ..self }
    }

    /// Makes each write of the second writer a batch.
    #[must_use]
    pub fn with_rival_batches(self) -> Script {
        Script { has_rival_batches: true, ..self }
    }

    /// Returns true if each write of the second writer is a batch.
    pub(crate) fn has_rival_batches(&self) -> bool {
        self.has_rival_batches
    }

    /// Returns the second writer's key.
    pub(crate) fn rival(&self) -> &[u8] {
        &self.rival
    }

    /// Creates a script of format and random operations of this shape, all explored.
    #[must_use]
    pub fn seeded(seed: u64, shape: &Shape) -> Script {
        Script::fresh(seed, shape.ops(seed))
    }

    /// Returns every key that the script names.
    #[must_use]
    pub fn keys(&self) -> BTreeSet<Vec<u8>> {
        self.setup.iter().chain(&self.explored).flat_map(Op::keys).map(<[u8]>::to_vec).collect()
    }
}
