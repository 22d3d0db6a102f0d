//! Channels and their subscribers, and publishing.
//!
//! One table for all event loops records which clients subscribe to a channel or pattern, and their places. A published
//! message is encoded once and sent once to each loop that has receivers.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::clients::{Kind, Place};
use crate::messages::{ClientMessage, Mailboxes};
use resp::glob;

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

    fn messages(&mut self, kind: Kind, channel: &[u8], message: &[u8]) -> Vec<Message> {
        let verb: &[u8] = if kind == Kind::Shard { b"smessage" } else { b"message" };
        let mut messages = Vec::new();
        if let Some(places) = self.of(kind).get(channel) {
            let content = ClientMessage::of_parts(kind, channel, &[verb, channel, message]);
            messages.push(Message { receivers: places.clone(), content });
        }
        if kind != Kind::Shard {
            let patterns = self.patterns.iter().filter(|(pattern, _)| glob::matches(pattern, channel));
            messages.extend(patterns.map(|(pattern, places)| Message {
                receivers: places.clone(),
                content: ClientMessage::of_parts(Kind::Pattern, pattern, &[b"pmessage", pattern, channel, message]),
            }));
        }
        messages
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
            let count_before = places.len();
            places.retain(|other| *other != place);
            self.count.fetch_sub(count_before - places.len(), Ordering::Relaxed);
            if places.is_empty() {
                names.remove(name);
            }
        }
    }

    /// Removes killed clients, before their event loops close them.
    pub(crate) fn remove_clients(&self, client_ids: &HashSet<u64>) {
        let mut table = self.table.lock();
        for kind in Kind::ALL {
            table.of(kind).retain(|_, places| {
                let count_before = places.len();
                places.retain(|place| !client_ids.contains(&place.client_id));
                self.count.fetch_sub(count_before - places.len(), Ordering::Relaxed);
                !places.is_empty()
            });
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

    /// Publishes a message to the channel or shard channel, and returns the number of receivers.
    pub(crate) fn publish(&self, mailboxes: &Mailboxes, kind: Kind, channel: &[u8], message: &[u8]) -> usize {
        if self.count.load(Ordering::Relaxed) == 0 {
            return 0;
        }
        // The lock is held while messages are sent, so that all subscribers see them in one order.
        let mut table = self.table.lock();
        let messages = table.messages(kind, channel, message);
        messages.into_iter().map(|message| message.send(mailboxes)).sum()
    }

    /// Creates the messages for the present subscribers, to be sent later.
    pub(crate) fn messages(&self, kind: Kind, channel: &[u8], message: &[u8]) -> Vec<Message> {
        self.table.lock().messages(kind, channel, message)
    }

    /// Sends messages that were created earlier, in one order for all subscribers.
    pub(crate) fn send(&self, mailboxes: &Mailboxes, messages: Vec<Message>) {
        let _table = self.table.lock();
        messages.into_iter().for_each(|message| _ = message.send(mailboxes));
    }
}

/// A message for the subscribers of one name.
pub(crate) struct Message {
    receivers: Vec<Place>,
    content: ClientMessage,
}

impl Message {
    fn send(self, mailboxes: &Mailboxes) -> usize {
        mailboxes.send(&self.receivers, self.content);
        self.receivers.len()
    }

    pub(crate) fn receiver_count(&self) -> usize {
        self.receivers.len()
    }
}
