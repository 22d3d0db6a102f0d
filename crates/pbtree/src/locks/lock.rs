//! One node's lock, shared or exclusive, and the commit that readers of the node must wait for before they return.

use core::mem;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use pmem::Ticket;

use crate::Error;
use crate::locks::latch::{Latch, Mode, WaitPolicy};
use crate::locks::tree_lock::HeldTree;

/// A node's lock. All zero: free.
#[derive(Debug, Default)]
pub(crate) struct NodeLock {
    latch: Latch<AtomicU64>,
    /// The commit of the node's last change; 0 once a thread has waited for it, or if there is nothing to wait for.
    ticket: AtomicU64,
    /// The heads of an inner node's separators (`heads.rs`); null for none.
    pub(super) heads: AtomicPtr<u8>,
}

impl NodeLock {
    /// Locks.
    #[inline]
    pub(crate) fn lock(&self, mode: Mode, wait_policy: WaitPolicy) -> Result<Held<'_>, Error> {
        self.latch.lock(mode, wait_policy)?;
        Ok(Held { lock: self, own: Some(mode), tree: None })
    }

    /// Returns access to an inner root, which the tree lock gives to all threads that share it.
    #[inline]
    pub(crate) fn of_root<'a>(&'a self, tree: HeldTree<'a>) -> Held<'a> {
        Held { lock: self, own: None, tree: Some(tree) }
    }

    /// Releases a lock that [`Held::keep`] has kept locked exclusively. A thread that reads the node from now on must
    /// wait for `ticket`.
    pub(crate) fn let_go(&self, ticket: Option<Ticket>) {
        ticket.iter().for_each(|ticket| self.ticket.store(ticket.0, Ordering::Relaxed));
        self.latch.unlock(Mode::Exclusive);
    }

    /// Removes `ticket`, which a thread has waited for, unless a later ticket has replaced it.
    pub(crate) fn settle(&self, ticket: Ticket) {
        let _ = self.ticket.compare_exchange(ticket.0, 0, Ordering::Relaxed, Ordering::Relaxed);
    }
}

/// A lock that is held, or access to an inner root by the tree lock.
#[must_use = "a lock that is dropped is free"]
pub(crate) struct Held<'a> {
    lock: &'a NodeLock,
    /// The mode in which the node's own lock is held.
    own: Option<Mode>,
    /// The tree lock, for an inner root.
    tree: Option<HeldTree<'a>>,
}

impl<'a> Held<'a> {
    /// Returns the lock, for use after it is released.
    pub(crate) fn lock(&self) -> &'a NodeLock {
        self.lock
    }

    /// Holds the tree lock, too, until the node is released.
    pub(crate) fn with_tree(mut self, tree: HeldTree<'a>) -> Held<'a> {
        self.tree = Some(tree);
        self
    }

    /// Keeps the node locked; [`NodeLock::let_go`] unlocks it.
    pub(crate) fn keep(self) {
        debug_assert!(self.own == Some(Mode::Exclusive) && self.tree.is_none());
        mem::forget(self);
    }

    /// Returns the node's version, by which a later reader detects changes (`latch.rs`).
    #[inline]
    pub(crate) fn version(&self) -> u64 {
        debug_assert_ne!(self.own, Some(Mode::Exclusive));
        self.lock.latch.version()
    }

    /// Returns the ticket that a reader of the node's contents must wait for.
    pub(crate) fn ticket(&self) -> Ticket {
        Ticket(self.lock.ticket.load(Ordering::Relaxed))
    }

    /// Records the commit that every later reader of the node must wait for.
    pub(crate) fn committed(&self, ticket: Ticket) {
        debug_assert_eq!(self.own, Some(Mode::Exclusive));
        self.lock.ticket.store(ticket.0, Ordering::Relaxed);
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        if let Some(mode) = self.own {
            self.lock.latch.unlock(mode);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn try_lock(lock: &NodeLock, mode: Mode) -> Result<Held<'_>, Error> {
        // A weak exchange may fail spuriously.
        (0..100).map(|_| lock.lock(mode, WaitPolicy::Try)).find_map(Result::ok).ok_or(Error::WouldWait)
    }

    #[test]
    fn many_share_it_or_one_has_it() {
        let lock = NodeLock::default();
        let shared = [try_lock(&lock, Mode::Shared).unwrap(), try_lock(&lock, Mode::Shared).unwrap()];
        assert!(try_lock(&lock, Mode::Exclusive).is_err());
        drop(shared);
        let alone = try_lock(&lock, Mode::Exclusive).unwrap();
        alone.committed(Ticket(7));
        assert!(try_lock(&lock, Mode::Exclusive).is_err() && try_lock(&lock, Mode::Shared).is_err());
        drop(alone);
        assert_eq!(try_lock(&lock, Mode::Shared).unwrap().ticket(), Ticket(7));
    }

    #[test]
    fn exclusive_version_is_never_shared() {
        let lock = NodeLock::default();
        let version = || try_lock(&lock, Mode::Shared).unwrap().version();
        let first = version();
        assert_eq!(version(), first);
        let reader = try_lock(&lock, Mode::Shared).unwrap();
        lock.latch.want();
        drop(reader);
        drop(try_lock(&lock, Mode::Exclusive).unwrap());
        let second = version();
        assert_ne!(second, first);
        try_lock(&lock, Mode::Exclusive).unwrap().keep();
        lock.let_go(None);
        assert!(![first, second].contains(&version()));
    }

    #[test]
    fn exclusive_waiter_keeps_new_readers_out() {
        let lock = NodeLock::default();
        let first = try_lock(&lock, Mode::Shared).unwrap();
        lock.latch.want();
        assert!(try_lock(&lock, Mode::Shared).is_err());
        drop(first);
        drop(try_lock(&lock, Mode::Exclusive).unwrap());
        assert!(try_lock(&lock, Mode::Shared).is_ok());
    }
}
