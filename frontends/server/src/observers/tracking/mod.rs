//! Clients that cache keys (`CLIENT TRACKING`) and are notified when a copy becomes invalid.
//!
//! A key is registered before it is read and looked up after a change, so no change is missed. A notified client is
//! removed from the key's readers until its next read. A client in broadcast mode has prefixes, and is notified of
//! every change of a key with one of them. These changes are collected and announced together at the end of the turn
//! that made them, as in Redis.
//!
//! Keys that were read by a client which stopped tracking stay in the table until their next change. No message is sent
//! for them.

mod prefixes;
mod table;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::clients::{Clients, Record, Tracks};
use crate::messages::Mailboxes;
use table::Table;

#[derive(Default)]
pub(crate) struct Tracking {
    /// Number of keys read, and prefixes; while it is 0, no client is notified of changes.
    count: AtomicUsize,
    /// Changes of keys with such a prefix have not been announced yet.
    has_gathered: AtomicBool,
    table: Mutex<Table>,
}

/// The access needed to send messages to clients.
#[derive(Clone, Copy)]
pub(crate) struct MessageAccess<'a> {
    pub(crate) mailboxes: &'a Mailboxes,
    pub(crate) clients: &'a Clients,
}

/// The sizes of the table, for `INFO`.
pub(crate) struct Sizes {
    pub(crate) key_count: usize,
    /// Pairs of a key and a client that has read it.
    pub(crate) item_count: usize,
    pub(crate) prefix_count: usize,
}

impl Tracking {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.count.load(Ordering::SeqCst) == 0
    }

    /// Enables tracking for the client, adding these prefixes to its present ones.
    ///
    /// # Errors
    /// Two overlapping prefixes, and whether the second is one that the client already had; nothing has changed then.
    pub(crate) fn enable(
        &self,
        record: &Arc<Record>,
        tracks: Tracks,
        prefixes: &[&[u8]],
    ) -> Result<(), prefixes::Overlap> {
        self.change(|table| table.enable(record, tracks, prefixes))
    }

    /// Disables tracking for the client.
    pub(crate) fn disable(&self, client_id: u64) {
        self.change(|table| table.disable(client_id));
    }

    /// Returns the client's prefixes in order.
    pub(crate) fn prefixes(&self, client_id: u64) -> Vec<Vec<u8>> {
        self.table.lock().prefixes.of(client_id)
    }

    pub(crate) fn sizes(&self) -> Sizes {
        self.table.lock().sizes()
    }

    /// Registers that a client reads a key, named `raw` in the store. If more than `key_count_max` keys are registered,
    /// some are invalidated.
    pub(crate) fn note(
        &self,
        message_access: MessageAccess<'_>,
        (raw, key): (&[u8], &[u8]),
        client_id: u64,
        key_count_max: usize,
    ) {
        self.change(|table| {
            table.note(raw, key, client_id);
            table.shrink(message_access, key_count_max);
        });
    }

    /// Invalidates keys while more than `key_count_max` are registered.
    pub(crate) fn shrink(&self, message_access: MessageAccess<'_>, key_count_max: usize) {
        self.change(|table| table.shrink(message_access, key_count_max));
    }

    /// Notifies the clients that have read the key, and records the change for broadcast clients. `by` is the client
    /// that changed it, if any.
    #[inline]
    pub(crate) fn invalidate(&self, message_access: MessageAccess<'_>, (raw, key): (&[u8], &[u8]), by: Option<u64>) {
        if !self.is_empty() {
            self.notify(message_access, (raw, key), by);
        }
    }

    #[cold]
    fn notify(&self, message_access: MessageAccess<'_>, (raw, key): (&[u8], &[u8]), by: Option<u64>) {
        let has_gathered = self.change(|table| {
            table.invalidate(message_access, raw, by);
            table.prefixes.gather(key, by)
        });
        if has_gathered {
            self.has_gathered.store(true, Ordering::SeqCst);
        }
    }

    /// Announces the collected changes to broadcast clients.
    #[inline]
    pub(crate) fn announce(&self, message_access: MessageAccess<'_>) {
        if self.has_gathered.load(Ordering::Relaxed) {
            self.announce_gathered(message_access);
        }
    }

    #[cold]
    fn announce_gathered(&self, message_access: MessageAccess<'_>) {
        let table = self.table.lock();
        self.has_gathered.store(false, Ordering::SeqCst);
        drop(table);
        self.change(|table| table.announce(message_access));
    }

    /// Notifies all tracking clients that everything was changed, whether they have read anything or not.
    pub(crate) fn invalidate_all(&self, message_access: MessageAccess<'_>) {
        self.change(|table| table.invalidate_all(message_access));
    }

    fn change<R>(&self, change: impl FnOnce(&mut Table) -> R) -> R {
        let mut table = self.table.lock();
        let outcome = change(&mut table);
        self.count.store(table.count(), Ordering::SeqCst);
        outcome
    }
}
