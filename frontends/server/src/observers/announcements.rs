//! A transaction's announcements to other clients: keyspace notifications, invalidations of tracked keys, published
//! messages, and marks of watched keys.
//!
//! They are collected during the transaction and sent after it is written. A refused transaction announces nothing.

use std::cell::RefCell;

use super::events::Class;
use super::pubsub::Message;
use super::watch::Name;
use crate::keyspace::database::Database;
use crate::keyspace::namespace::Namespace;

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

    pub(crate) fn into_parts(self) -> (Vec<Announcement>, Vec<Name>) {
        (self.in_order.into_inner(), self.touched.into_inner())
    }
}
