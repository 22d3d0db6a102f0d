//! Looks up keys.

use heap::HeapError;
use pmem::{Dram, Medium, Ticket};

use crate::Error;
use crate::key;
use crate::layout::KEY_BYTES_MAX;
use crate::locks::{Mode, WaitPolicy};
use crate::nodes::{Nodes, Reached, Target};
use crate::unsettled::Unsettled;
use crate::value::{Owner, Value};

/// The lines of a value that are prefetched while its key is compared: half a KiB. The processor prefetches the lines
/// behind them.
const VALUE_LINES_AHEAD: u64 = 8;

/// The certainty that a caller wants about an absent key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Absence {
    /// Damage to the leaf may make a key seem absent.
    Assumed,
    /// Such damage is an error.
    Verified,
}

/// Reads the values of keys; each is durable when it is returned.
pub(crate) struct Reader<M: Medium, D: Dram> {
    nodes: Nodes<M, D>,
    unsettled: Unsettled<D>,
    has_tags: bool,
}

impl<M: Medium, D: Dram> Reader<M, D> {
    /// Creates a reader of these nodes. `has_tags` is true if values have tags.
    pub(crate) fn new(nodes: Nodes<M, D>, has_tags: bool, dram: D) -> Result<Reader<M, D>, HeapError> {
        Ok(Reader { unsettled: Unsettled::new(nodes.medium(), dram)?, nodes, has_tags })
    }

    #[inline(always)]
    pub(crate) fn nodes(&self) -> &Nodes<M, D> {
        &self.nodes
    }

    #[inline(always)]
    pub(crate) fn unsettled(&self) -> &Unsettled<D> {
        &self.unsettled
    }

    /// Returns the owner of the values of a key with this checksum.
    #[inline(always)]
    pub(crate) fn owner(&self, checksum: u32) -> Owner {
        Owner::new(checksum, self.has_tags)
    }

    /// Calls `show` with a key's value under the leaf's lock, and returns the result; `None` if the key is absent.
    #[inline(always)]
    pub(crate) fn get<T>(
        &self,
        key: &[u8],
        wait_policy: WaitPolicy,
        absence: Absence,
        show: impl FnOnce(&Value<'_>) -> T,
    ) -> Result<Option<T>, Error> {
        check_key(key)?;
        let leaf = self.nodes.descend(Target::At(key), (0, Mode::Shared), wait_policy, |_, _| Ok(()))?;
        let checksum = key::checksum(key);
        let (node, count) = (leaf.node, leaf.meta.count);
        let found = match absence {
            Absence::Assumed => node.find(count, (key, checksum), |i| node.prefetch_value(i, VALUE_LINES_AHEAD))?,
            Absence::Verified => node.place_of(count, (key, checksum))?.ok(),
        };
        let value = found.map_or(Ok(None), |i| self.value_of(&leaf, i, checksum))?;
        let shown = value.as_ref().map(show);
        let medium = self.nodes.medium();
        self.settled(leaf).or_else(|error| self.unsettled.settled_alone(medium, checksum, error))?;
        Ok(shown)
    }

    /// Reads the value of a leaf's pair whose key has this checksum; `None` if the key was deleted.
    pub(crate) fn value_of<'a>(
        &self,
        leaf: &Reached<'a, M>,
        i: usize,
        checksum: u32,
    ) -> Result<Option<Value<'a>>, Error> {
        let word = leaf.node.value_word(i);
        if word == 0 {
            return Ok(None);
        }
        // SAFETY: the leaf is locked, and a thread that changes or frees a value holds its leaf's lock exclusively.
        unsafe { Value::read(leaf.node.medium, leaf.node.value_at(i), word, self.owner(checksum)) }.map(Some)
    }

    /// Unlocks a leaf, and waits until the contents that were read are durable.
    pub(crate) fn settled(&self, leaf: Reached<'_, M>) -> Result<(), Error> {
        let (lock, ticket) = (leaf.held.lock(), leaf.held.ticket());
        drop(leaf);
        if ticket != Ticket(0) {
            self.unsettled.settle(lock, ticket, self.nodes.medium().acknowledge_met(ticket)?);
        }
        Ok(())
    }
}

/// Refuses a key that is too long.
#[inline(always)]
pub(crate) fn check_key(key: &[u8]) -> Result<(), Error> {
    if key.len() > KEY_BYTES_MAX { Err(Error::KeyTooLong { len_bytes: key.len() }) } else { Ok(()) }
}
