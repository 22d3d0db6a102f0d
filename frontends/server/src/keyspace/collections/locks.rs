//! Locks of keys, for commands that have several steps in a store with collections.
//!
//! A command of an event loop locks its keys before its first step, all at once and in the order of the locks, so no
//! two commands wait for each other. It waits for nothing else while it holds them. A command with exclusive access, or
//! one in the background, which other commands of its keys wait for (`execution::claims`), needs no locks.

use std::collections::BTreeSet;

use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::keyspace::namespace::Namespace;

/// Several keys share a lock.
const LOCK_COUNT: usize = 1 << 12;

pub(crate) struct Locks(Box<[RwLock<()>]>);

/// The locks of a command's keys.
#[allow(dead_code, reason = "they are held")]
pub(crate) enum Locked<'a> {
    None,
    Shared(RwLockReadGuard<'a, ()>),
    Exclusive(RwLockWriteGuard<'a, ()>),
    AllShared(Vec<RwLockReadGuard<'a, ()>>),
    AllExclusive(Vec<RwLockWriteGuard<'a, ()>>),
}

impl Default for Locks {
    fn default() -> Locks {
        Locks((0..LOCK_COUNT).map(|_| RwLock::new(())).collect())
    }
}

impl Locks {
    fn number_of(namespace: Namespace, key: &[u8]) -> usize {
        let hash = super::layout::hash_of(key) ^ namespace.id().number().wrapping_mul(0x9E37_79B1);
        hash as usize % LOCK_COUNT
    }

    /// Locks keys for a command that changes them, or only reads them.
    pub(crate) fn lock<'k>(
        &self,
        namespace: Namespace,
        mut keys: impl Iterator<Item = &'k [u8]>,
        is_write: bool,
    ) -> Locked<'_> {
        let Some(first) = keys.next() else { return Locked::None };
        let first = Locks::number_of(namespace, first);
        let Some(second) = keys.next() else {
            let lock = &self.0[first];
            return if is_write { Locked::Exclusive(lock.write()) } else { Locked::Shared(lock.read()) };
        };
        let mut numbers = BTreeSet::from([first, Locks::number_of(namespace, second)]);
        numbers.extend(keys.map(|key| Locks::number_of(namespace, key)));
        let locks = numbers.into_iter().map(|number| &self.0[number]);
        if is_write {
            return Locked::AllExclusive(locks.map(RwLock::write).collect());
        }
        Locked::AllShared(locks.map(RwLock::read).collect())
    }
}
