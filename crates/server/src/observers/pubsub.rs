//! Channels and their subscribers, and publishing.
//!
//! One table for all event loops records which clients subscribe to a channel or pattern, and their places. A published
//! message is encoded once and sent once to each loop that has receivers.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::clients::{Kind, Place};
use crate::glob;
use crate::messages::{ClientMessage, Mailboxes};

#[derive(Default)]
pub(crate) struct PubSub {
    /// Subscriptions of all kinds; while it is 0, publishing does nothing.
    count: AtomicUsize,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    channels: HashMap<Vec<u8>, Vec<Place>>,
    patterns: HashMap<Vec<u8>, Vec<Place>>,
    shards: HashMap<Vec<u8>, Vec<Place>>,
}

impl Table {
    fn of(&mut self, kind: Kind) -> &mut HashMap<Vec<u8>, Vec<Place>> {
        match kind {
            Kind::Channel => &mut self.channels,
            Kind::Pattern => &mut self.patterns,
            Kind::Shard => &mut self.shards,
        }
    }
}

impl PubSub {
    pub(crate) fn subscribe(&self, kind: Kind, name: &[u8], place: Place) {
        self.table.lock().of(kind).entry(name.to_vec()).or_default().push(place);
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn unsubscribe(&self, kind: Kind, name: &[u8], place: Place) {
        let mut table = self.table.lock();
        let names = table.of(kind);
        if let Some(places) = names.get_mut(name) {
            places.retain(|other| *other != place);
            if places.is_empty() {
                names.remove(name);
            }
            self.count.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Returns the places of clients that subscribe to a name for which `is_meant` returns true; some more than once.
    pub(crate) fn subscribers(&self, is_meant: impl Fn(Kind, &[u8]) -> bool) -> Vec<Place> {
        let mut table = self.table.lock();
        let mut places = Vec::new();
        for kind in Kind::ALL {
            let names = table.of(kind).iter().filter(|(name, _)| is_meant(kind, name));
            places.extend(names.flat_map(|(_, places)| places));
        }
        places
    }

    /// Returns the number of subscribers to this name.
    pub(crate) fn subscriber_count(&self, kind: Kind, name: &[u8]) -> usize {
        self.table.lock().of(kind).get(name).map_or(0, Vec::len)
    }

    /// Returns the number of names of this kind with subscribers.
    pub(crate) fn name_count(&self, kind: Kind) -> usize {
        self.table.lock().of(kind).len()
    }

    /// Returns the names of this kind with subscribers that match the pattern.
    pub(crate) fn names(&self, kind: Kind, pattern: Option<&[u8]>) -> Vec<Vec<u8>> {
        let mut table = self.table.lock();
        let matches = |name: &&Vec<u8>| pattern.is_none_or(|pattern| glob::matches(pattern, name));
        table.of(kind).keys().filter(matches).cloned().collect()
    }

    /// Publishes a message to the channel, and returns how many times it was sent.
    pub(crate) fn publish(&self, mailboxes: &Mailboxes, channel: &[u8], message: &[u8]) -> usize {
        if self.count.load(Ordering::Relaxed) == 0 {
            return 0;
        }
        // The lock is held while messages are sent, so that all subscribers see them in one order.
        let table = self.table.lock();
        let mut sent_count = 0;
        if let Some(places) = table.channels.get(channel) {
            mailboxes.send(places, ClientMessage::of_parts(&[b"message", channel, message]));
            sent_count += places.len();
        }
        for (pattern, places) in table.patterns.iter().filter(|(pattern, _)| glob::matches(pattern, channel)) {
            mailboxes.send(places, ClientMessage::of_parts(&[b"pmessage", pattern, channel, message]));
            sent_count += places.len();
        }
        sent_count
    }

    /// Publishes a message to the shard channel, and returns the number of its subscribers.
    pub(crate) fn publish_to_shard(&self, mailboxes: &Mailboxes, channel: &[u8], message: &[u8]) -> usize {
        if self.count.load(Ordering::Relaxed) == 0 {
            return 0;
        }
        let table = self.table.lock();
        let places = table.shards.get(channel).map_or(&[][..], Vec::as_slice);
        mailboxes.send(places, ClientMessage::of_parts(&[b"smessage", channel, message]));
        places.len()
    }
}
