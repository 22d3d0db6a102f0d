//! Channels: the subscribers, and the way of a message to them.
//!
//! One table for all event loops says which clients subscribe to a channel or a pattern, and where they are. A message is
//! encoded once and goes to each loop that has receivers as one piece of mail.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::clients::{Kind, Place};
use crate::glob;
use crate::mail::{Parcel, Post};

#[derive(Default)]
pub(crate) struct PubSub {
    /// Subscriptions of all kinds; where it is 0, messages go nowhere.
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
            messages.push(Message { receivers: places.clone(), parcel: Parcel::of_parts(&[verb, channel, message]) });
        }
        if kind != Kind::Shard {
            let patterns = self.patterns.iter().filter(|(pattern, _)| glob::matches(pattern, channel));
            messages.extend(patterns.map(|(pattern, places)| Message {
                receivers: places.clone(),
                parcel: Parcel::of_parts(&[b"pmessage", pattern, channel, message]),
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
            places.retain(|other| *other != place);
            if places.is_empty() {
                names.remove(name);
            }
            self.count.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// The places of clients that subscribe to names for which `is_meant` holds; some more than once.
    pub(crate) fn subscribers(&self, is_meant: impl Fn(Kind, &[u8]) -> bool) -> Vec<Place> {
        let mut table = self.table.lock();
        let mut places = Vec::new();
        for kind in Kind::ALL {
            let names = table.of(kind).iter().filter(|(name, _)| is_meant(kind, name));
            places.extend(names.flat_map(|(_, places)| places));
        }
        places
    }

    /// How many subscribe to this name.
    pub(crate) fn subscriber_count(&self, kind: Kind, name: &[u8]) -> usize {
        self.table.lock().of(kind).get(name).map_or(0, Vec::len)
    }

    /// How many names of this kind have subscribers.
    pub(crate) fn name_count(&self, kind: Kind) -> usize {
        self.table.lock().of(kind).len()
    }

    /// The names of this kind that have subscribers, as far as they match.
    pub(crate) fn names(&self, kind: Kind, pattern: Option<&[u8]>) -> Vec<Vec<u8>> {
        let mut table = self.table.lock();
        let matches = |name: &&Vec<u8>| pattern.is_none_or(|pattern| glob::matches(pattern, name));
        table.of(kind).keys().filter(matches).cloned().collect()
    }

    /// Sends a message to all subscribers of the channel, or of the shard's channel, and returns the number of receivers.
    pub(crate) fn publish(&self, post: &Post, kind: Kind, channel: &[u8], message: &[u8]) -> usize {
        if self.count.load(Ordering::Relaxed) == 0 {
            return 0;
        }
        // The lock is held while letters are given, so that all subscribers see messages in one order.
        let mut table = self.table.lock();
        let messages = table.messages(kind, channel, message);
        messages.into_iter().map(|message| message.send(post)).sum()
    }

    /// The messages for the clients that subscribe now, to be sent later.
    pub(crate) fn messages(&self, kind: Kind, channel: &[u8], message: &[u8]) -> Vec<Message> {
        self.table.lock().messages(kind, channel, message)
    }

    /// Sends messages that were kept, in one order for all subscribers.
    pub(crate) fn send(&self, post: &Post, messages: Vec<Message>) {
        let _table = self.table.lock();
        messages.into_iter().for_each(|message| _ = message.send(post));
    }
}

/// A message for the subscribers of one name.
pub(crate) struct Message {
    receivers: Vec<Place>,
    parcel: Parcel,
}

impl Message {
    fn send(self, post: &Post) -> usize {
        post.send(&self.receivers, self.parcel);
        self.receivers.len()
    }

    pub(crate) fn receiver_count(&self) -> usize {
        self.receivers.len()
    }
}
