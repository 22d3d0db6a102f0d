//! Looks up keys.

use pmem::{Dram, Medium, Ticket, Waited};

use crate::Error;
use crate::descent::Reached;
use crate::key;
use crate::layout::KEY_BYTES_MAX;
use crate::locks::{Mode, NodeLock, Patience};
use crate::node::{Node, Target};
use crate::retire::Retire;
use crate::tree::Tree;
use crate::value::Value;

/// The lines of a value that are prefetched while its key is compared: half a KiB. The processor prefetches the lines
/// behind them.
const VALUE_LINES_AHEAD: u64 = 8;

impl<M: Medium, D: Dram, R: Retire<M, D>> Tree<M, D, R> {
    /// Calls `show` with a key's value and returns the result; `None` if the key is absent. `show` runs under the
    /// leaf's lock, so it should only copy. The value is durable when this returns.
    ///
    /// # Errors
    /// [`Error::KeyTooLong`]; [`Error::Damaged`]; [`Error::Heap`] if the medium fails.
    pub fn get<T>(&self, key: &[u8], show: impl FnOnce(&Value<'_>) -> T) -> Result<Option<T>, Error> {
        self.find(
            key,
            Patience::Wait,
            |node, count, checksum| node.find(count, (key, checksum), |i| node.prefetch_value(i, VALUE_LINES_AHEAD)),
            show,
        )
    }

    /// Gets as [`Tree::get`] does, but returns an error if damage to the leaf makes the key seem absent.
    ///
    /// # Errors
    /// As for [`Tree::get`].
    pub fn get_verified<T>(&self, key: &[u8], show: impl FnOnce(&Value<'_>) -> T) -> Result<Option<T>, Error> {
        self.find(key, Patience::Wait, |node, count, checksum| Ok(node.place_of(count, (key, checksum))?.ok()), show)
    }

    /// Gets as [`Tree::get`] does, for callers that may not wait for a lock.
    ///
    /// # Errors
    /// As for [`Tree::get`]; [`Error::WouldWait`].
    pub fn try_get<T>(&self, key: &[u8], show: impl FnOnce(&Value<'_>) -> T) -> Result<Option<T>, Error> {
        self.find(
            key,
            Patience::Try,
            |node, count, checksum| node.find(count, (key, checksum), |i| node.prefetch_value(i, VALUE_LINES_AHEAD)),
            show,
        )
    }

    #[inline(always)]
    fn find<T>(
        &self,
        key: &[u8],
        patience: Patience,
        find: impl FnOnce(Node<'_, M>, usize, u32) -> Result<Option<usize>, Error>,
        show: impl FnOnce(&Value<'_>) -> T,
    ) -> Result<Option<T>, Error> {
        if key.len() > KEY_BYTES_MAX {
            return Err(Error::KeyTooLong { len_bytes: key.len() });
        }
        let leaf = self.descend(Target::At(key), (0, Mode::Shared), patience, |_, _| Ok(()))?;
        let checksum = key::checksum(key);
        let found = find(leaf.node, leaf.meta.count, checksum)?;
        let value = found.map_or(Ok(None), |i| self.value_of(&leaf, i, checksum))?;
        let shown = value.as_ref().map(show);
        self.settled(leaf).or_else(|error| self.settled_alone(checksum, error))?;
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
        if ticket != Ticket(0) && self.medium.acknowledge_met(ticket)? == Waited::Durable {
            self.settle(lock, ticket);
        }
        Ok(())
    }

    /// Waits until this commit of the caller is durable, or leaves that to the caller.
    pub(crate) fn acknowledge(&self, ticket: Ticket) -> Result<(), Error> {
        if self.medium.acknowledge(ticket)? == Waited::Durable {
            self.unsettled.acknowledged(ticket);
        }
        Ok(())
    }

    /// Records that this commit is durable and that no thread needs to wait for it any more.
    pub(crate) fn settle(&self, lock: &NodeLock, ticket: Ticket) {
        self.unsettled.acknowledged(ticket);
        lock.settle(ticket);
    }

    /// Decides whether a key's contents are durable even though `error` prevents the whole leaf from being durable.
    #[cold]
    #[inline(never)]
    fn settled_alone(&self, checksum: u32, error: Error) -> Result<(), Error> {
        match self.unsettled.of(checksum) {
            Some(ticket) => self.medium.acknowledge_met(ticket).map(drop).map_err(|_| error),
            None => Ok(()),
        }
    }
}
