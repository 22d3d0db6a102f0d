//! Looking a key up.

use pmem::{Dram, Medium, Ticket, Waited};

use crate::Error;
use crate::descent::Reached;
use crate::locks::{Mode, Patience};
use crate::node::{Node, Target};
use crate::retire::Retire;
use crate::tree::Tree;
use crate::value::Value;

/// Lines of a value that are asked for while its key is compared: those of half a KiB. The processor sees by itself what comes behind
/// them.
const VALUE_LINES_AHEAD: u64 = 8;

impl<M: Medium, D: Dram, R: Retire<M, D>> Tree<M, D, R> {
    /// Shows a key's value to `show` and answers with what that says; `None` if the key is not there. `show` runs under the
    /// leaf's lock, so it copies and does nothing else. What it saw is durable when this returns.
    ///
    /// # Errors
    /// [`Error::Damaged`]; [`Error::Heap`] if the medium fails.
    pub fn get<T>(&self, key: &[u8], show: impl FnOnce(&Value<'_>) -> T) -> Result<Option<T>, Error> {
        self.look_up(
            key,
            Patience::Wait,
            |node, count| node.find(count, key, |i| node.prefetch_value(i, VALUE_LINES_AHEAD)),
            show,
        )
    }

    /// As [`Tree::get`]; where the key seems to be absent because its leaf is damaged, that is an error.
    ///
    /// # Errors
    /// As for [`Tree::get`].
    pub fn get_surely<T>(&self, key: &[u8], show: impl FnOnce(&Value<'_>) -> T) -> Result<Option<T>, Error> {
        self.look_up(key, Patience::Wait, |node, count| Ok(node.place_of(count, key)?.ok()), show)
    }

    /// As [`Tree::get`], for callers that may not wait for a lock.
    ///
    /// # Errors
    /// [`Error::WouldWait`], too.
    pub fn try_get<T>(&self, key: &[u8], show: impl FnOnce(&Value<'_>) -> T) -> Result<Option<T>, Error> {
        self.look_up(
            key,
            Patience::Try,
            |node, count| node.find(count, key, |i| node.prefetch_value(i, VALUE_LINES_AHEAD)),
            show,
        )
    }

    #[inline(always)]
    fn look_up<T>(
        &self,
        key: &[u8],
        patience: Patience,
        find: impl FnOnce(Node<'_, M>, usize) -> Result<Option<usize>, Error>,
        show: impl FnOnce(&Value<'_>) -> T,
    ) -> Result<Option<T>, Error> {
        let leaf = self.descend(Target::At(key), (0, Mode::Shared), patience, |_, _| Ok(()))?;
        let found = find(leaf.node, leaf.meta.count)?;
        let value = found.map_or(Ok(None), |i| self.value_of(&leaf, i))?;
        let shown = value.as_ref().map(show);
        self.settled(leaf)?;
        Ok(shown)
    }

    /// The value of a leaf's pair; `None` if it was deleted.
    pub(crate) fn value_of<'a>(&self, leaf: &Reached<'a, M>, i: usize) -> Result<Option<Value<'a>>, Error> {
        let word = leaf.node.value_word(i);
        if word == 0 {
            return Ok(None);
        }
        // SAFETY: the leaf is locked, and nobody who changes or frees a value does so without its leaf's lock.
        unsafe { Value::read(leaf.node.medium, leaf.node.value_at(i), word) }.map(Some)
    }

    /// Lets go of a leaf, and waits until what was seen in it is durable.
    pub(crate) fn settled(&self, leaf: Reached<'_, M>) -> Result<(), Error> {
        let (lock, ticket) = (leaf.held.lock(), leaf.held.ticket());
        drop(leaf);
        if ticket != Ticket(0) && self.medium.acknowledge_met(ticket)? == Waited::Durable {
            lock.settle(ticket);
        }
        Ok(())
    }
}
