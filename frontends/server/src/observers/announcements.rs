//! A transaction's announcements to other clients: keyspace notifications, invalidations of tracked keys, published
//! messages, and marks of watched keys.
//!
//! They are collected during the transaction and sent after it is written. A refused transaction announces nothing.

use std::cell::RefCell;

use super::events::Class;
use super::notify;
use super::pubsub::Message;
use super::watch::Name;
use crate::clients::session::Session;
use crate::keyspace::database::Database;
use crate::keyspace::namespace::Namespace;
use crate::shared::Shared;

pub(crate) enum Announcement {
    Changed(Changed),
    Published(Vec<Message>),
    /// All keys that clients track are invalid.
    AllInvalidated,
    /// The client has read a key that it tracks. It was registered before it was read; earlier announcements of the
    /// same transaction may have removed it again.
    Tracked {
        raw: Vec<u8>,
        key: Vec<u8>,
    },
}

/// A change of a key.
pub(crate) struct Changed {
    /// The number of changes that the event stands for.
    pub(crate) change_count: u64,
    pub(crate) class: Class,
    pub(crate) event: &'static str,
    pub(crate) db: Database,
    pub(crate) namespace: Namespace,
    pub(crate) key: Vec<u8>,
}

/// The announcements of one transaction, in the order of its commands.
#[derive(Default)]
pub(crate) struct Announcements {
    in_order: RefCell<Vec<Announcement>>,
    /// Watched keys that were touched by commands that do not report changes of single keys, such as FLUSHALL.
    touched: RefCell<Vec<Name>>,
}

impl Announcements {
    pub(crate) fn add(&self, announcement: Announcement) {
        self.in_order.borrow_mut().push(announcement);
    }

    pub(crate) fn add_touched(&self, names: Vec<Name>) {
        self.touched.borrow_mut().extend(names);
    }

    /// Sends them as those of this session.
    pub(crate) fn send(self, shared: &Shared, session: &Session) {
        self.touched.into_inner().iter().for_each(|(db, key)| shared.observers.watches.touch(*db, key));
        for announcement in self.in_order.into_inner() {
            match announcement {
                Announcement::Changed(Changed { change_count, class, event, db, namespace, key }) => {
                    shared.counters_of(session).note_changes(change_count);
                    notify::report_changed(shared, class, event, (db, namespace, &key), session.id);
                }
                Announcement::Published(messages) => shared.observers.pubsub.send(&shared.mailboxes, messages),
                Announcement::AllInvalidated => shared.observers.tracking.invalidate_all(shared.message_access()),
                Announcement::Tracked { raw, key } => notify::track(shared, (&raw, &key), session.id),
            }
        }
    }
}
