//! A request and everything that its execution may use.

use std::borrow::Cow;

use resp::{Reply, Request};

use crate::clients::Kind;
use crate::clients::session::Session;
use crate::errors::Refusal;
use crate::execution::client::Client;
use crate::keyspace::database::Database;
use crate::keyspace::items::{Items, Pending};
use crate::keyspace::namespace::Namespace;
use crate::observers::announcements::{Announcement, Announcements, Changed};
use crate::observers::events::Class;
use crate::observers::notify;
use crate::observers::pubsub::Message;
use crate::shared::Shared;
use crate::telemetry::EventCounts;
use command_table::Entry;

/// The maximum size of a reply before its last value: the maximum size of a request.
pub(crate) const REPLY_BYTES_MAX: usize = 1 << 30;

/// Executes a request. It writes one reply, or returns a refusal before it has written any.
pub(crate) type Function = fn(&mut Call<'_>) -> Result<(), Refusal>;

pub(crate) struct Call<'a> {
    pub(crate) shared: &'a Shared,
    pub(crate) session: &'a mut Session,
    pub(crate) entry: Entry,
    pub(crate) request: Request<'a>,
    pub(crate) reply: Reply<'a>,
    pub(crate) event_counts: &'a mut EventCounts,
    /// Changes made so far by the transaction that contains this request.
    pub(crate) pending: Option<&'a Pending>,
    /// Announcements of that transaction.
    pub(crate) announcements: Option<&'a Announcements>,
}

impl<'a> Call<'a> {
    /// Returns its client.
    pub(crate) fn client(&mut self) -> Client<'_> {
        Client { shared: self.shared, session: self.session, event_counts: self.event_counts }
    }

    /// Returns the items as this request sees them, including uncommitted changes of its transaction.
    #[inline]
    pub(crate) fn store(&self) -> Items<'a> {
        Items::new(&self.shared.keyspace.store, &self.shared.keyspace.databases, self.pending)
    }

    /// Returns argument number `index`.
    pub(crate) fn argument(&self, index: usize) -> &'a [u8] {
        self.request.argument(index)
    }

    /// Parses argument number `index` as an integer.
    pub(crate) fn integer(&self, index: usize) -> Result<i64, Refusal> {
        resp::parse_integer(self.argument(index)).ok_or(Refusal::NotAnInteger)
    }

    /// Returns the selected database.
    pub(crate) fn namespace(&self) -> Namespace {
        self.shared.keyspace.databases.namespace(self.session.db)
    }

    /// Returns argument number `index` as a key of the store.
    pub(crate) fn key(&self, index: usize) -> Cow<'a, [u8]> {
        self.namespace().raw(self.argument(index))
    }

    /// Counts a change and reports that the key in argument number `index` was changed. Watchers, tracking clients and
    /// keyspace subscribers are notified. A command that changed nothing must not call this.
    pub(crate) fn changed(&self, class: Class, event: &'static str, index: usize) {
        self.changed_key(1, class, event, self.session.db, self.argument(index));
    }

    /// Reports one more event for a change that has already been counted.
    pub(crate) fn report(&self, class: Class, event: &'static str, index: usize) {
        self.changed_key(0, class, event, self.session.db, self.argument(index));
    }

    /// Like [`Call::changed`], for any key and for `change_count` changes. Changes of a transaction are reported after
    /// it is written.
    pub(crate) fn changed_key(&self, change_count: u64, class: Class, event: &'static str, db: Database, key: &[u8]) {
        let namespace = self.shared.keyspace.namespace(db);
        match self.announcements {
            None => {
                self.shared.counters_of(self.session).note_changes(change_count);
                notify::report_changed(self.shared, class, event, (db, namespace, key), self.session.id);
            }
            Some(announcements) => {
                let changed = Changed { change_count, class, event, db, namespace, key: key.to_vec() };
                announcements.add(Announcement::Changed(changed));
            }
        }
    }

    /// Returns whether the reply that began at output position `start` must not get another value.
    pub(crate) fn is_reply_too_long(&self, start: usize) -> bool {
        self.reply.len_bytes() - start > REPLY_BYTES_MAX
    }

    /// Sends a message to all subscribers, and returns the number of receivers. A transaction's message is sent after
    /// the transaction is written.
    pub(crate) fn publish(&self, kind: Kind, channel: &[u8], message: &[u8]) -> usize {
        let pubsub = &self.shared.observers.pubsub;
        let Some(announcements) = self.announcements else {
            return pubsub.publish(&self.shared.mailboxes, kind, channel, message);
        };
        let messages = pubsub.messages(kind, channel, message);
        let receiver_count = messages.iter().map(Message::receiver_count).sum();
        announcements.add(Announcement::Published(messages));
        receiver_count
    }

    /// Marks the clients that watch a key for which `is_changed` returns true. A transaction marks them after it is
    /// written.
    pub(crate) fn touch_where(&self, is_changed: impl Fn(Database, &[u8]) -> bool) {
        self.shared.waiters.note_all();
        let watches = &self.shared.observers.watches;
        let names = watches.names_where(is_changed);
        match self.announcements {
            None => names.iter().for_each(|(db, key)| watches.touch(*db, key)),
            Some(announcements) => announcements.add_touched(names),
        }
    }

    /// Invalidates all keys that clients track. A transaction does so after it is written.
    pub(crate) fn invalidate_all(&self) {
        match self.announcements {
            None => self.shared.observers.tracking.invalidate_all(self.shared.message_access()),
            Some(announcements) => announcements.add(Announcement::AllInvalidated),
        }
    }

    /// In a background job, waits until each loop has ended its current turn: a background job has no exclusive access,
    /// whatever its command.
    pub(crate) fn await_turns_if_background(&self) {
        if self.session.awaits_job {
            self.shared.gate.await_turns();
        }
    }

    pub(crate) fn ok(&mut self) {
        self.reply.simple("OK");
    }
}
