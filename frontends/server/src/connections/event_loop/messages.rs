//! Processing of the messages to an event loop.
//!
//! The loop takes all messages out of its mailbox and processes as many as time permits. Messages to clients that are
//! left count as unread bytes of the receivers, like the receivers' outputs. So a client is disconnected for everything
//! that was published to it, before the remaining messages are copied.

use std::sync::Arc;

use hikv::Ticket;
use mio::Token;

use super::{ConnectionSlot, EventLoop};
use crate::clients::{Peer, Place};
use crate::connections::admission::Admission;
use crate::connections::connection::Connection;
use crate::connections::transport::Transport;
use crate::execution::background::client_state::JobResult;
use crate::messages::{ClientMessage, LoopMessage};

/// Maximum bytes of messages added to outputs before the receivers get a turn to send them.
const DELIVERED_BYTES_MAX: usize = 1 << 20;

impl EventLoop {
    /// Takes messages out of the mailbox and processes them while there is time; returns whether some are left.
    pub(crate) fn take_messages(&mut self) -> bool {
        self.empty_box();
        let mut delivered_bytes = 0;
        while delivered_bytes < DELIVERED_BYTES_MAX
            && let Some(message) = self.taken.pop_front()
        {
            match message {
                LoopMessage::Arrival(transport, addr, admission) => self.adopt(transport, addr, admission),
                LoopMessage::Deliver { receivers, message } => {
                    delivered_bytes += receivers.len() * message.len_bytes();
                    self.deliver(&receivers, &message);
                    self.shared.mailboxes.note_received(&receivers, &message);
                }
                LoopMessage::JobDone(place, done) => self.deliver_result(place, *done),
                LoopMessage::AllReceived(place) => self.end_receipt(place),
                LoopMessage::WaitOver(place) => self.resume_waiter(place),
                LoopMessage::Close(place) => self.close(place),
            }
        }
        !self.taken.is_empty()
    }

    fn empty_box(&mut self) {
        while let Ok(message) = self.messages.try_recv() {
            if let LoopMessage::Deliver { receivers, message } = &message {
                self.announce(receivers, message);
            }
            self.taken.push_back(message);
        }
    }

    /// Counts a message for its receivers. A client that has not been adopted yet has no subscriptions.
    fn announce(&mut self, receivers: &[Place], message: &ClientMessage) {
        for place in receivers {
            let Some(connection) = self.connection_at(*place) else { continue };
            connection.expect(message);
            if connection.is_abandoned() {
                self.queue(place.key);
            }
        }
    }

    /// Returns the connection at this place, if it still belongs to that client.
    pub(super) fn connection_at(&mut self, place: Place) -> Option<&mut Connection> {
        let connection = self.connections.get_mut(place.key).map(|slot| &mut slot.connection);
        connection.filter(|connection| connection.is_of(place.client_id))
    }

    /// Gives a client the result of its background job. If the client has disconnected, its session is discarded.
    fn deliver_result(&mut self, place: Place, mut done: JobResult) {
        match self.connection_at(place) {
            Some(connection) => {
                connection.resume(done);
                connection.end_wait();
                self.queue(place.key);
            }
            None => self.shared.dismiss(&mut done.client_state.session),
        }
    }

    /// Takes over a connection that was assigned to this loop.
    fn adopt(&mut self, transport: Transport, addr: Peer, admission: Admission) {
        let entry = self.connections.vacant_entry();
        let key = entry.key();
        let place = Place { loop_index: self.index, key, client_id: admission.client_id };
        if transport.is_shaking_hands() {
            self.handshakes.begin(place, self.times.handshake_max);
        }
        let mut connection = Connection::new(transport, addr, place, admission, Arc::clone(&self.shared));
        // On failure the connection is dropped, which closes it.
        if connection.register(&self.poll, Token(key)).is_ok() {
            entry.insert(ConnectionSlot { connection, queued: false, holds: false, deadline: None });
            self.finish_if_stopping(key);
        }
    }

    /// Adds a message to its receivers' outputs. It may reveal data that is not durable yet, and is held until then.
    fn deliver(&mut self, receivers: &[Place], message: &Arc<ClientMessage>) {
        let so_far = hikv::FrontEnd::of(&self.shared.keyspace.store).deferred_so_far();
        let is_durable = self.shared.keyspace.store.is_durable(so_far).unwrap_or(false);
        let ticket = if is_durable { Ticket::default() } else { so_far };
        for place in receivers {
            if let Some(connection) = self.connection_at(*place) {
                connection.receive(message, ticket);
                self.queue(place.key);
            }
        }
    }

    /// Resumes a client that has waited for its messages.
    fn end_receipt(&mut self, place: Place) {
        if let Some(connection) = self.connection_at(place) {
            connection.end_receipt();
            self.queue(place.key);
        }
    }

    fn close(&mut self, place: Place) {
        if let Some(connection) = self.connection_at(place) {
            connection.abandon();
            self.queue(place.key);
        }
    }

    /// Closes the connections whose handshake takes too long.
    pub(super) fn end_handshakes(&mut self) {
        while let Some(place) = self.handshakes.pop_overdue() {
            if let Some(connection) = self.connection_at(place) {
                connection.end_handshake();
                self.queue(place.key);
            }
        }
    }
}
