//! A request and everything that its execution may use.

use std::borrow::Cow;

use resp::{Reply, Request};

use crate::clients::session::Session;
use crate::errors::Refusal;
use crate::execution::accounts;
use crate::keyspace::database::Database;
use crate::keyspace::items::{ChangeReport, Items, Pending};
use crate::keyspace::namespace::Namespace;
use crate::observers::events::Class;
use crate::observers::notify;
use crate::shared::Shared;
use crate::telemetry::EventCounts;

/// Executes a request. It writes one reply, or returns a refusal before it has written any.
pub(crate) type Function = fn(&mut Call<'_>) -> Result<(), Refusal>;

pub(crate) struct Call<'a> {
    pub(crate) shared: &'a Shared,
    pub(crate) session: &'a mut Session,
    pub(crate) request: Request<'a>,
    pub(crate) reply: Reply<'a>,
    pub(crate) event_counts: &'a mut EventCounts,
    /// Changes made so far by the transaction that contains this request.
    pub(crate) pending: Option<&'a Pending>,
}

impl<'a> Call<'a> {
    /// Returns the items as this request sees them, including uncommitted changes of its transaction.
    #[inline]
    pub(crate) fn store(&self) -> Items<'a> {
        self.shared.keyspace.items(self.pending)
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
        self.shared.keyspace.namespace(self.session.db)
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
        match self.pending {
            None => {
                accounts::note_changes(change_count, self.shared, self.session);
                notify::report_changed(self.shared, class, event, (db, namespace, key), self.session.id);
            }
            Some(pending) => {
                pending.report_later(ChangeReport { change_count, class, event, db, namespace, key: key.to_vec() });
            }
        }
    }

    pub(crate) fn ok(&mut self) {
        self.reply.simple("OK");
    }
}
