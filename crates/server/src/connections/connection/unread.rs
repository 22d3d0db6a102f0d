//! What a connection's client leaves unread: whether more may be held, and whether the client is given up.

use std::io;
use std::sync::atomic::Ordering;

use super::Connection;
use crate::clients;
use crate::connections::backlog;
use crate::mail::Parcel;

impl Connection {
    /// A message for the client waits in the loop; [`Connection::receive`] will follow. A client that does not read what it
    /// subscribes to is abandoned.
    pub(crate) fn expect(&mut self, parcel: &Parcel) {
        self.expected_bytes += parcel.len_bytes();
        self.look_at_unread();
    }

    /// Gives up a client that leaves too much unread.
    pub(crate) fn look_at_unread(&mut self) {
        let settings = &self.shared.administration.settings;
        let gets_messages = self.session.record.has(clients::SUBSCRIBED | clients::MONITORS | clients::TRACKS);
        let limit = if gets_messages { settings.message_limit() } else { settings.reply_limit() };
        if !self.abandoned && self.unread.is_too_much(self.unread_bytes(), limit) {
            self.abandoned = true;
            self.shared.telemetry.over_limit_count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Whether the client still sends while its socket takes nothing, with as much unread as a client may have anyway.
    fn wants_more_space(&self) -> bool {
        let is_known = || self.session.login.user().is_some();
        self.readable && !self.output.writable && self.output.is_full() && self.session.goes_on() && is_known()
    }

    /// Whether more replies may be held for the client, which waits for that.
    pub(crate) fn may_grow(&self) -> bool {
        let bytes_max = self.shared.administration.settings.backlog_bytes_max();
        self.wants_more_space() && self.shared.backlogs.allow(self.output.backlog_bytes(), bytes_max)
    }

    /// Lets more replies be held for the client.
    pub(super) fn grow(&mut self) -> io::Result<()> {
        backlog::note_progress(&self.session.record);
        self.output.grow()
    }

    /// Whether the client is held back by the backlogs that there are.
    pub(crate) fn is_held_back(&self) -> bool {
        self.wants_more_space() && !self.may_grow()
    }

    /// Whether the client is held back, and does not read.
    pub(crate) fn is_stuck(&self) -> bool {
        self.is_held_back() && backlog::is_stuck(&self.session.record)
    }

    /// Replies and messages that were not sent, those among them that wait in the loop.
    pub(super) fn unread_bytes(&self) -> usize {
        self.output.len_bytes() + self.expected_bytes
    }

    /// Whether it leaves so much unread that the loop has to look again.
    pub(crate) fn is_over_limit(&self) -> bool {
        self.unread.is_over()
    }

    /// Takes note of what is unread after a turn that has sent so much.
    pub(super) fn note_sent(&mut self, sent_bytes: u64) {
        let (record, backlog_bytes) = (&self.session.record, self.output.backlog_bytes());
        self.share.set(backlog_bytes, record, &self.shared.backlogs);
        if sent_bytes > 0 && backlog_bytes > 0 {
            backlog::note_progress(record);
        }
    }
}
