//! A request and all that its execution may touch.

use std::borrow::Cow;

use resp::{Reply, Request};

use crate::clients::Kind;
use crate::clients::session::Session;
use crate::errors::Refusal;
use crate::execution::accounts;
use crate::keyspace::database::Database;
use crate::keyspace::items::{Items, Pending};
use crate::keyspace::namespace::Namespace;
use crate::observers::announcements::{Announcement, Announcements, Changed};
use crate::observers::events::Class;
use crate::observers::notify;
use crate::observers::pubsub::Message;
use crate::shared::Shared;
use crate::telemetry::Tally;

/// What a reply may have before its last value: as much as the longest request.
pub(crate) const REPLY_BYTES_MAX: usize = 1 << 30;

/// Executes a request. It replies once, or refuses before it has replied.
pub(crate) type Function = fn(&mut Call<'_>) -> Result<(), Refusal>;

pub(crate) struct Call<'a> {
    pub(crate) shared: &'a Shared,
    pub(crate) session: &'a mut Session,
    pub(crate) request: Request<'a>,
    pub(crate) reply: Reply<'a>,
    pub(crate) tally: &'a mut Tally,
    /// What the transaction has changed that the request is part of.
    pub(crate) pending: Option<&'a Pending>,
    /// What that transaction announces.
    pub(crate) announcements: Option<&'a Announcements>,
}

impl<'a> Call<'a> {
    /// The items, as the request sees them.
    #[inline]
    pub(crate) fn store(&self) -> Items<'a> {
        self.shared.keyspace.items(self.pending)
    }

    /// Argument number `index`.
    pub(crate) fn argument(&self, index: usize) -> &'a [u8] {
        self.request.argument(index)
    }

    /// Argument number `index`, a whole number.
    pub(crate) fn integer(&self, index: usize) -> Result<i64, Refusal> {
        resp::parse_integer(self.argument(index)).ok_or(Refusal::NotAnInteger)
    }

    /// The selected database.
    pub(crate) fn namespace(&self) -> Namespace {
        self.shared.keyspace.namespace(self.session.db)
    }

    /// Argument number `index`, a key, as the store calls it.
    pub(crate) fn key(&self, index: usize) -> Cow<'a, [u8]> {
        self.namespace().raw(self.argument(index))
    }

    /// Counts a change, and reports it: the key that is argument number `index` was changed. Watchers, clients that keep a copy, and
    /// subscribers hear of that. A command that leaves everything as it was must not call this.
    pub(crate) fn changed(&self, class: Class, event: &'static str, index: usize) {
        self.changed_key(1, class, event, self.session.db, self.argument(index));
    }

    /// Reports a further event of a change that is counted already.
    pub(crate) fn report(&self, class: Class, event: &'static str, index: usize) {
        self.changed_key(0, class, event, self.session.db, self.argument(index));
    }

    /// As [`Call::changed`], of any key, and of so many changes. Those of a transaction are reported once they are written.
    pub(crate) fn changed_key(&self, change_count: u64, class: Class, event: &'static str, db: Database, key: &[u8]) {
        let namespace = self.shared.keyspace.namespace(db);
        match self.announcements {
            None => {
                accounts::note_changes(change_count, self.shared, self.session);
                notify::tell_changed(self.shared, class, event, (db, namespace, key), self.session.id);
            }
            Some(announcements) => {
                let changed = Changed { change_count, class, event, db, namespace, key: key.to_vec() };
                announcements.add(Announcement::Changed(changed));
            }
        }
    }

    /// Whether the reply, which began when the output had `start` bytes, may have no further value.
    pub(crate) fn is_reply_too_long(&self, start: usize) -> bool {
        self.reply.len_bytes() - start > REPLY_BYTES_MAX
    }

    /// Sends a message to all subscribers, and returns the number of receivers. A transaction sends it once it is written.
    pub(crate) fn publish(&self, kind: Kind, channel: &[u8], message: &[u8]) -> usize {
        let pubsub = &self.shared.observers.pubsub;
        let Some(announcements) = self.announcements else {
            return pubsub.publish(&self.shared.post, kind, channel, message);
        };
        let messages = pubsub.messages(kind, channel, message);
        let receiver_count = messages.iter().map(Message::receiver_count).sum();
        announcements.add(Announcement::Published(messages));
        receiver_count
    }

    /// Marks the clients that watch a key for which `is_changed` returns true. Those of a transaction are marked once it is written.
    pub(crate) fn touch_where(&self, is_changed: impl Fn(Database, &[u8]) -> bool) {
        let watches = &self.shared.observers.watches;
        let names = watches.names_where(is_changed);
        match self.announcements {
            None => names.iter().for_each(|(db, key)| watches.touch(*db, key)),
            Some(announcements) => announcements.add_touched(names),
        }
    }

    /// An errand is executed alongside the loops, whatever its command. Waits until each loop has ended the turn that it is at now.
    pub(crate) fn await_turns_if_away(&self) {
        if self.session.is_away {
            self.shared.gate.await_turns();
        }
    }

    pub(crate) fn ok(&mut self) {
        self.reply.simple("OK");
    }
}
