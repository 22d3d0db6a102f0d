//! Limits on a client's unread replies: whether more may be held, and whether the client is disconnected.

use std::io;
use std::sync::atomic::Ordering;

use super::Connection;
use crate::connections::backlog;
use crate::messages::ClientMessage;

impl Connection {
    /// Counts a message for the client that waits in the loop; [`Connection::receive`] will follow. A client that does
    /// not read its subscriptions is abandoned.
    pub(crate) fn expect(&mut self, message: &ClientMessage) {
        self.expected_bytes += message.len_bytes();
        self.check_unread();
    }

    /// Abandons a client that leaves too many replies or messages unread. Each has its limit: replies are bounded in
    /// other ways as well, so a client may get longer ones than the limit on messages permits.
    pub(crate) fn check_unread(&mut self) {
        let settings = &self.shared.administration.settings;
        let message_bytes = self.output.message_bytes() + self.expected_bytes;
        let reply_bytes = self.unread_bytes() - message_bytes;
        let is_too_much = self.unread_messages.is_too_much(message_bytes, settings.message_limit())
            | self.unread_replies.is_too_much(reply_bytes, settings.reply_limit());
        if !self.abandoned && is_too_much {
            self.abandoned = true;
            self.shared.telemetry.over_limit_count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns whether the client sends while its socket accepts nothing and its output is full.
    fn needs_more_space(&self) -> bool {
        let is_known = || self.session.login.user().is_some();
        self.readable && !self.output.writable && self.output.is_full() && self.session.can_execute() && is_known()
    }

    /// Returns whether more replies may be held for a client that needs it.
    pub(crate) fn may_grow(&self) -> bool {
        let bytes_max = self.shared.administration.settings.backlog_bytes_max();
        self.needs_more_space() && self.shared.backlogs.allow(self.output.backlog_bytes(), bytes_max)
    }

    /// Allows more replies to be held for the client.
    pub(super) fn grow(&mut self) -> io::Result<()> {
        backlog::note_progress(&self.session.record);
        self.output.grow()
    }

    /// Returns whether the client is held back because the backlogs are full.
    pub(crate) fn is_held_back(&self) -> bool {
        self.needs_more_space() && !self.may_grow()
    }

    /// Returns whether the client is held back and does not read.
    pub(crate) fn is_stuck(&self) -> bool {
        self.is_held_back() && backlog::is_stuck(&self.session.record)
    }

    /// Returns the bytes of unsent replies and messages, including messages that wait in the loop.
    pub(super) fn unread_bytes(&self) -> usize {
        self.output.len_bytes() + self.expected_bytes
    }

    /// Returns whether so much is unread that the loop has to check the client again.
    pub(crate) fn is_over_limit(&self) -> bool {
        self.unread_messages.is_over() || self.unread_replies.is_over()
    }

    /// Records the unread bytes after a turn that has sent `sent_bytes`.
    pub(super) fn note_sent(&mut self, sent_bytes: u64) {
        let (record, backlog_bytes) = (&self.session.record, self.output.backlog_bytes());
        self.share.set(backlog_bytes, record, &self.shared.backlogs);
        if sent_bytes > 0 && backlog_bytes > 0 {
            backlog::note_progress(record);
        }
    }
}
