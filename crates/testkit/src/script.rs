//! Scripts: the operations of an exploration.

use std::collections::BTreeSet;
use std::fmt;

use crate::rival::{PREFIX, is_rival};
use crate::shape::Shape;
use crate::subject::Lasting;

/// A key, and the new value, if there is one, with the time at which it expires, if ever.
pub type ExpiringChange = (Vec<u8>, Option<(Vec<u8>, Option<u64>)>);

/// A key, and its value, or none.
pub type Change = (Vec<u8>, Option<Vec<u8>>);

/// One operation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Op {
    /// Format the medium: the first operation of every script.
    Format,
    /// Set a key's value.
    Put(Vec<u8>, Vec<u8>),
    /// Set several keys' values at once.
    MultiPut(Vec<(Vec<u8>, Vec<u8>)>),
    /// Remove several keys at once.
    MultiDelete(Vec<Vec<u8>>),
    /// Set several keys' values, or remove them where there is none, as one step.
    Batch(Vec<Change>),
    /// As [`Op::Batch`], if keys hold these values, or none.
    BatchIf {
        /// What they have to hold.
        expected: Vec<Change>,
        /// What then happens.
        changes: Vec<Change>,
    },
    /// As [`Op::Batch`], of keys that may expire then, in milliseconds.
    BatchExpiring(Vec<ExpiringChange>),
    /// Remove a key.
    Delete(Vec<u8>),
    /// Give a key a value, or none, if it holds this value, or none.
    Cas {
        /// The key.
        key: Vec<u8>,
        /// What it has to hold.
        expected: Option<Vec<u8>>,
        /// What it holds then.
        new: Option<Vec<u8>>,
    },
    /// Set the value of a key that expires then, in milliseconds.
    PutExpiring(Vec<u8>, Vec<u8>, u64),
    /// Let a key expire then, or never, if it is there.
    Expire(Vec<u8>, Option<u64>),
    /// From now on it is this time, in milliseconds. A script begins at 0.
    At(u64),
    /// Let the background work until there is nothing to do.
    Settle,
    /// Remove every key. Snapshots end before.
    Clear,
    /// Read all keys in order, both ways. What is written from then on, the store keeps in order.
    Scan,
    /// Give back what space can be given back; contents stay as they are.
    Compact,
    /// Take a snapshot.
    Snapshot,
    /// End the oldest snapshot, if there is one.
    Release,
    /// Close the store and open it again, without a crash. Snapshots end before.
    Reopen,
    /// From now on the region cannot grow.
    Full,
    /// From now on it can again.
    Room,
}

impl Op {
    /// The keys that it names.
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
                f.write_str("at once")?;
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
            Op::At(now_ms) => write!(f, "it is {now_ms} ms"),
            Op::Settle => f.write_str("settle"),
            Op::Clear => f.write_str("clear"),
            Op::Scan => f.write_str("scan"),
            Op::Compact => f.write_str("compact"),
            Op::Snapshot => f.write_str("take a snapshot"),
            Op::Release => f.write_str("release a snapshot"),
            Op::Reopen => f.write_str("reopen"),
            Op::Full => f.write_str("medium full"),
            Op::Room => f.write_str("room again"),
        }
    }
}

fn write_changes(f: &mut fmt::Formatter<'_>, changes: &[Change]) -> fmt::Result {
    f.write_str("at once")?;
    changes.iter().try_for_each(|(key, value)| match value {
        Some(value) => write!(f, " put {} ({} bytes)", Key(key), value.len()),
        None => write!(f, " delete {}", Key(key)),
    })
}

/// Items as stores take them.
pub(crate) fn slices(items: &[(Vec<u8>, Vec<u8>)]) -> Vec<(&[u8], &[u8])> {
    items.iter().map(|(key, value)| (&key[..], &value[..])).collect()
}

/// Changes as stores take them.
pub(crate) fn changes(changes: &[Change]) -> Vec<(&[u8], Option<&[u8]>)> {
    changes.iter().map(|(key, value)| (&key[..], value.as_deref())).collect()
}

/// Changes of keys that may expire, as stores take them.
pub(crate) fn expiring_changes(changes: &[ExpiringChange]) -> Vec<(&[u8], Lasting<'_>)> {
    changes.iter().map(|(key, new)| (&key[..], new.as_ref().map(|(value, at_ms)| (&value[..], *at_ms)))).collect()
}

/// A key as messages show it: escaped, and long ones cut.
pub(crate) struct Key<'a>(pub(crate) &'a [u8]);

impl fmt::Display for Key<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN_BYTES_MAX: usize = 24;
        let shown = &self.0[..self.0.len().min(SHOWN_BYTES_MAX)];
        write!(f, "\"{}\"", shown.escape_ascii())?;
        if self.0.len() > SHOWN_BYTES_MAX { write!(f, "... of {} bytes", self.0.len()) } else { Ok(()) }
    }
}

/// A list of operations, of which the first ones only set the scene.
#[derive(Clone, Debug)]
pub struct Script {
    /// What it is told by: its seed, if it was generated. Choices of the exploration are drawn from it too.
    pub seed: u64,
    /// Executed, not explored.
    pub setup: Vec<Op>,
    /// Executed, and crashed at every step.
    pub explored: Vec<Op>,
    /// The key that a second writer writes: the prefix of such keys, and what makes it lie where it should.
    rival: Vec<u8>,
}

impl Script {
    /// Explores format and then `ops`.
    #[must_use]
    pub fn fresh(seed: u64, ops: impl IntoIterator<Item = Op>) -> Script {
        let explored = [Op::Format].into_iter().chain(ops).collect();
        Script { seed, setup: Vec::new(), explored, rival: PREFIX.to_vec() }
    }

    /// Explores `ops` on a store that was formatted and went through `setup`.
    #[must_use]
    pub fn after(seed: u64, setup: impl IntoIterator<Item = Op>, ops: impl IntoIterator<Item = Op>) -> Script {
        let setup = [Op::Format].into_iter().chain(setup).collect();
        Script { seed, setup, explored: ops.into_iter().collect(), rival: PREFIX.to_vec() }
    }

    /// The keys among which a script may choose its second writer's.
    pub fn rivals() -> impl Iterator<Item = Vec<u8>> {
        (0u32..).map(|number| [PREFIX, &number.to_be_bytes()].concat())
    }

    /// The same script with another key for the second writer, one of [`Script::rivals`].
    ///
    /// # Panics
    /// If it is none of those.
    #[must_use]
    pub fn with_rival(self, key: Vec<u8>) -> Script {
        assert!(is_rival(&key), "a second writer has keys of its own");
        Script { rival: key, ..self }
    }

    /// The key that a second writer writes.
    pub(crate) fn rival(&self) -> &[u8] {
        &self.rival
    }

    /// Format and then random operations of this shape, all explored.
    #[must_use]
    pub fn seeded(seed: u64, shape: &Shape) -> Script {
        Script::fresh(seed, shape.ops(seed))
    }

    /// Every key that the script names.
    #[must_use]
    pub fn keys(&self) -> BTreeSet<Vec<u8>> {
        self.setup.iter().chain(&self.explored).flat_map(Op::keys).map(<[u8]>::to_vec).collect()
    }
}
