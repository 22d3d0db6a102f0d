//! The sending side of a connection: replies and messages until they are sent, and the limits on those that the client
//! leaves unread.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use hikv::Ticket;

use crate::administration::output_limits::Unread;
use crate::clients::session::Session;
use crate::clients::{self, Record};
use crate::connections::backlog::{self, Share};
use crate::connections::output::Output;
use crate::connections::transport::Transport;
use crate::messages::ClientMessage;
use crate::shared::Shared;
use crate::telemetry::{BatchCounts, LoopCounters, Unanswered};

#[derive(Default)]
pub(super) struct Outgoing {
    pub(super) output: Output,
    unanswered: Unanswered,
    unread_messages: Unread,
    unread_replies: Unread,
    /// Its part of all clients' backlogs.
    share: Share,
    /// Bytes of messages for it that wait in the loop.
    expected_bytes: usize,
    /// Messages that wait for the end of a background job which may start or change what the client receives. The reply
    /// comes first, and decides the messages' form.
    delayed: Option<Vec<(Arc<ClientMessage>, Ticket)>>,
    /// No more replies are sent.
    is_abandoned: bool,
}

impl Outgoing {
    /// Counts a message for the client that waits in the loop; [`Outgoing::receive`] will follow. A client that does
    /// not read its subscriptions is abandoned.
    pub(super) fn expect(&mut self, message: &ClientMessage, shared: &Shared) {
        self.expected_bytes += message.len_bytes();
        self.check_unread(shared);
    }

    /// Adds a message for the client, to be sent when `ticket` is durable. Does nothing if the connection is abandoned.
    pub(super) fn receive(&mut self, message: &Arc<ClientMessage>, ticket: Ticket, session: &Session, shared: &Shared) {
        if let Some(delayed) = self.delayed.as_mut().filter(|_| !self.is_abandoned) {
            delayed.push((Arc::clone(message), ticket));
            return;
        }
        self.expected_bytes -= message.len_bytes();
        if !self.is_abandoned && message.is_expected_by(session) {
            let is_subscribed = session.record.has(clients::SUBSCRIBED);
            self.output.push(message.parts(session.protocol, is_subscribed), ticket);
        }
        self.check_unread(shared);
    }

    /// Delays messages from now on.
    pub(super) fn delay(&mut self) {
        self.delayed = Some(Vec::new());
    }

    /// Adds the delayed messages.
    pub(super) fn receive_delayed(&mut self, session: &Session, shared: &Shared) {
        for (message, ticket) in self.delayed.take().into_iter().flatten() {
            self.receive(&message, ticket, session, shared);
        }
    }

    /// Records that replies were added from output position `start` on. They wait for `ticket`, unless it is `None`.
    pub(super) fn note_replies(&mut self, start: usize, ticket: Option<Ticket>, is_within_reply: bool) {
        if let Some(ticket) = ticket {
            self.output.hold(start, ticket);
        }
        self.output.set_within_reply(is_within_reply);
    }

    /// Counts requests that were reported when the loop `woke`: now, or when their replies may be sent.
    pub(super) fn count(
        &mut self,
        counts: &BatchCounts,
        ticket: Ticket,
        (woke, now): (Instant, Instant),
        counters: &LoopCounters,
    ) {
        if self.output.holds() {
            self.unanswered.add(ticket, woke, *counts);
        } else {
            counters.watched.note_answered(counts, now - woke);
        }
    }

    /// Releases durable replies, and returns whether the connection needs a turn. Closes a connection that waits for
    /// data that will never be durable.
    pub(super) fn release(&mut self, shared: &Shared, counters: &LoopCounters) -> bool {
        let released = self.output.release(&shared.keyspace.store);
        self.unanswered.release(&shared.keyspace.store, &counters.watched);
        self.is_abandoned |= released.is_err();
        released.unwrap_or(true)
    }

    /// Has the connection closed at its next turn; unsent replies are dropped.
    pub(super) fn abandon(&mut self) {
        self.is_abandoned = true;
    }

    pub(super) fn is_abandoned(&self) -> bool {
        self.is_abandoned
    }

    /// Abandons a client that leaves too many replies or messages unread. Each has its limit: replies are bounded in
    /// other ways as well, so a client may get longer ones than the limit on messages permits.
    pub(super) fn check_unread(&mut self, shared: &Shared) {
        let settings = &shared.administration.settings;
        let message_bytes = self.output.message_bytes() + self.expected_bytes;
        let reply_bytes = self.unread_bytes() - message_bytes;
        let is_too_much = self.unread_messages.is_too_much(message_bytes, settings.message_limit())
            | self.unread_replies.is_too_much(reply_bytes, settings.reply_limit());
        if !self.is_abandoned && is_too_much {
            self.is_abandoned = true;
            shared.telemetry.over_limit_count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns whether so much is unread that the loop has to check the client again.
    pub(super) fn is_over_limit(&self) -> bool {
        self.unread_messages.is_over() || self.unread_replies.is_over()
    }

    /// Returns whether the socket accepts nothing and the output is full.
    pub(super) fn is_stopped(&self) -> bool {
        !self.output.writable && self.output.is_full()
    }

    /// Returns whether the backlogs have space for more replies.
    pub(super) fn may_grow(&self, shared: &Shared) -> bool {
        shared.backlogs.allow(self.output.backlog_bytes(), shared.administration.settings.backlog_bytes_max())
    }

    /// Returns whether unread replies use more than this many times their limit.
    pub(super) fn backlogs_exceed(&self, factor: u64, shared: &Shared) -> bool {
        shared.backlogs.exceed(factor, shared.administration.settings.backlog_bytes_max())
    }

    /// Allows more replies to be held for the client.
    pub(super) fn grow(&mut self, record: &Record) -> io::Result<()> {
        backlog::note_progress(record);
        self.output.grow()
    }

    /// Returns the bytes of unsent replies and messages, including messages that wait in the loop.
    pub(super) fn unread_bytes(&self) -> usize {
        self.output.len_bytes() + self.expected_bytes
    }

    /// Sends at the end of a turn, and returns the number of bytes sent since the last one.
    pub(super) fn end_turn(&mut self, transport: &mut Transport, record: &Record, shared: &Shared) -> u64 {
        self.is_abandoned = self.is_abandoned || self.output.send(transport).is_err();
        let (sent_bytes, backlog_bytes) = (self.output.take_count(), self.output.backlog_bytes());
        self.share.set(backlog_bytes, record, &shared.backlogs);
        if sent_bytes > 0 && backlog_bytes > 0 {
            backlog::note_progress(record);
        }
        self.check_unread(shared);
        sent_bytes
    }

    /// Returns its part of the backlogs.
    pub(super) fn leave(&mut self, record: &Record, shared: &Shared) {
        self.share.set(0, record, &shared.backlogs);
    }
}
