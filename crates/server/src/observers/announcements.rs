//! What other clients receive of a transaction: keyspace notifications, invalidations of their copies, published messages, and marks of
//! watched keys. All of it waits until the transaction is written. A transaction that is refused announces nothing.

use std::cell::RefCell;

use super::events::Class;
use super::pubsub::Message;
use super::watch::Name;
use crate::keyspace::database::Database;
use crate::keyspace::namespace::Namespace;

pub(crate) enum Announcement {
    Changed(Changed),
    Published(Vec<Message>),
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

/// The announcements of one transaction, in order.
#[derive(Default)]
pub(crate) struct Announcements {
    in_order: RefCell<Vec<Announcement>>,
    /// Watched keys that commands have touched which report no change of single keys.
    touched: RefCell<Vec<Name>>,
}

impl Announcements {
    pub(crate) fn add(&self, announcement: Announcement) {
        self.in_order.borrow_mut().push(announcement);
    }

    pub(crate) fn add_touched(&self, names: Vec<Name>) {
        self.touched.borrow_mut().extend(names);
    }

    pub(crate) fn into_parts(self) -> (Vec<Announcement>, Vec<Name>) {
        (self.in_order.into_inner(), self.touched.into_inner())
    }
}
