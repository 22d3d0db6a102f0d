//! Tracking clients, and the keys that each has read.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::prefixes::{Overlap, Prefixes};
use super::{MessageAccess, Sizes};
use crate::clients::{Mode, Place, Record, Tracks};
use crate::messages::ClientMessage;

#[derive(Default)]
pub(super) struct Table {
    /// By their names in the store.
    keys: HashMap<Vec<u8>, Readers>,
    /// Total number of entries of all readers.
    item_count: usize,
    clients: HashMap<u64, Tracker>,
    pub(super) prefixes: Prefixes,
}

struct Readers {
    /// The key's name for clients.
    key: Vec<u8>,
    client_ids: Vec<u64>,
}

struct Tracker {
    record: Arc<Record>,
    tracks: Tracks,
}

impl Table {
    pub(super) fn count(&self) -> usize {
        self.keys.len() + self.prefixes.len()
    }

    pub(super) fn sizes(&self) -> Sizes {
        Sizes { key_count: self.keys.len(), item_count: self.item_count, prefix_count: self.prefixes.len() }
    }

    pub(super) fn enable(&mut self, record: &Arc<Record>, tracks: Tracks, prefixes: &[&[u8]]) -> Result<(), Overlap> {
        let client_id = record.place.client_id;
        if tracks.mode == Mode::Broadcast {
            self.prefixes.add(client_id, prefixes)?;
        }
        record.is_redirect_broken.store(false, Ordering::Relaxed);
        self.clients.insert(client_id, Tracker { record: Arc::clone(record), tracks });
        Ok(())
    }

    pub(super) fn disable(&mut self, client_id: u64) {
        if let Some(tracker) = self.clients.remove(&client_id) {
            tracker.record.is_redirect_broken.store(false, Ordering::Relaxed);
            self.prefixes.remove(client_id);
        }
    }

    pub(super) fn note(&mut self, raw: &[u8], key: &[u8], client_id: u64) {
        let fresh = || Readers { key: key.to_vec(), client_ids: Vec::new() };
        let readers = self.keys.entry(raw.to_vec()).or_insert_with(fresh);
        if !readers.client_ids.contains(&client_id) {
            readers.client_ids.push(client_id);
            self.item_count += 1;
        }
    }

    /// Invalidates keys until there are at most `key_count_max`.
    pub(super) fn shrink(&mut self, message_access: MessageAccess<'_>, key_count_max: usize) {
        while self.keys.len() > key_count_max
            && let Some(other) = self.keys.keys().next().cloned()
        {
            self.invalidate(message_access, &other, None);
        }
    }

    pub(super) fn invalidate(&mut self, message_access: MessageAccess<'_>, raw: &[u8], by: Option<u64>) {
        let Some(Readers { key, client_ids }) = self.keys.remove(raw) else { return };
        self.item_count -= client_ids.len();
        let trackers = client_ids.iter().filter_map(|id| self.clients.get(id));
        let meant = trackers.filter(|tracker| tracker.tracks.mode != Mode::Broadcast && !tracker.skips(by));
        send(message_access, meant, Some(&[&key]));
    }

    pub(super) fn announce(&mut self, message_access: MessageAccess<'_>) {
        for (client_ids, changed) in self.prefixes.take_gathered() {
            let trackers = || client_ids.iter().filter_map(|id| self.clients.get(id));
            let keys: Vec<&[u8]> = changed.keys().map(Vec::as_slice).collect();
            send(message_access, trackers().filter(|tracker| !tracker.tracks.skips_own), Some(&keys));
            for tracker in trackers().filter(|tracker| tracker.tracks.skips_own) {
                let others = changed.iter().filter(|(_, by)| !tracker.skips(**by));
                let keys: Vec<&[u8]> = others.map(|(key, _)| key.as_slice()).collect();
                if !keys.is_empty() {
                    send(message_access, std::iter::once(tracker), Some(&keys));
                }
            }
        }
    }

    pub(super) fn invalidate_all(&mut self, message_access: MessageAccess<'_>) {
        self.keys.clear();
        self.item_count = 0;
        send(message_access, self.clients.values(), None);
    }
}

impl Tracker {
    /// Returns whether it is not notified of this client's changes.
    fn skips(&self, by: Option<u64>) -> bool {
        self.tracks.skips_own && by == Some(self.record.place.client_id)
    }
}

/// Sends the invalidated keys, or that everything was changed, to the trackers or their redirection targets.
fn send<'a>(message_access: MessageAccess<'_>, trackers: impl Iterator<Item = &'a Tracker>, keys: Option<&[&[u8]]>) {
    let (mut own, mut redirected): (Vec<Place>, Vec<Place>) = Default::default();
    for tracker in trackers {
        let Some(other) = tracker.tracks.redirect else {
            own.push(tracker.record.place);
            continue;
        };
        match message_access.clients.place_of(other) {
            Some(place) => redirected.push(place),
            None => {
                tracker.record.is_redirect_broken.store(true, Ordering::Relaxed);
                message_access.mailboxes.send(&[tracker.record.place], ClientMessage::of_broken_redirection(other));
            }
        }
    }
    for (places, is_redirected) in [(own, false), (redirected, true)] {
        if !places.is_empty() {
            message_access.mailboxes.send(&places, ClientMessage::of_invalidation(keys, is_redirected));
        }
    }
}
