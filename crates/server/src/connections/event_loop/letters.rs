//! Processing of the messages to an event loop.
//!
//! The loop takes all messages out of its mailbox and processes as many as it has time for. Messages to clients that
//! are left count as unread bytes of their receivers, like their outputs. So a client is disconnected for everything
//! that was published to it, before the remaining messages are copied.

use std::sync::Arc;

use hikv::Ticket;
use mio::Token;

use super::{EventLoop, Seat};
use crate::clients::{Peer, Place};
use crate::connections::admission::Admission;
use crate::connections::connection::Connection;
use crate::connections::transport::Transport;
use crate::execution::errands::desk::Done;
use crate::mail::{Letter, Parcel};

/// Maximum bytes of messages added to outputs before the receivers get a turn to send them.
const DELIVERED_BYTES_MAX: usize = 1 << 20;

impl EventLoop {
    /// Takes messages out of the mailbox and processes them while there is time; returns whether some are left.
    pub(crate) fn take_letters(&mut self) -> bool {
        self.empty_box();
        let mut delivered_bytes = 0;
        while delivered_bytes < DELIVERED_BYTES_MAX
            && let Some(letter) = self.taken.pop_front()
        {
            match letter {
                Letter::Arrival(transport, addr, admission) => self.adopt(transport, addr, admission),
                Letter::Parcel { receivers, parcel } => {
                    delivered_bytes += receivers.len() * parcel.len_bytes();
                    self.deliver(&receivers, &parcel);
                    self.shared.post.note_taken(&receivers, &parcel);
                }
                Letter::Done(place, done) => self.welcome(place, *done),
                Letter::Close(place) => self.close(place),
            }
        }
        !self.taken.is_empty()
    }

    fn empty_box(&mut self) {
        while let Ok(letter) = self.letters.try_recv() {
            if let Letter::Parcel { receivers, parcel } = &letter {
                self.announce(receivers, parcel);
            }
            self.taken.push_back(letter);
        }
    }

    /// Counts a message for its receivers. A client that has not been adopted yet has no subscriptions.
    fn announce(&mut self, receivers: &[Place], parcel: &Parcel) {
        for place in receivers {
            let Some(connection) = self.connection_at(*place) else { continue };
            connection.expect(parcel);
            if connection.is_abandoned() {
                self.queue(place.key);
            }
        }
    }

    /// Returns the connection at this place, if it still belongs to that client.
    fn connection_at(&mut self, place: Place) -> Option<&mut Connection> {
        let connection = self.connections.get_mut(place.key).map(|seat| &mut seat.connection);
        connection.filter(|connection| connection.is_of(place.client_id))
    }

    /// Gives a client the result of its background job. If the client has disconnected, its session is discarded.
    fn welcome(&mut self, place: Place, mut done: Done) {
        match self.connection_at(place) {
            Some(connection) => {
                connection.come_back(done);
                self.queue(place.key);
            }
            None => self.shared.dismiss(&mut done.desk.session),
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
            entry.insert(Seat { connection, queued: false, holds: false });
            self.finish_if_stopping(key);
        }
    }

    /// Adds a message to its receivers' outputs. It may reveal data that is not durable yet, and is held until then.
    fn deliver(&mut self, receivers: &[Place], parcel: &Parcel) {
        let so_far = self.shared.keyspace.store.deferred_so_far();
        let is_durable = self.shared.keyspace.store.is_durable(so_far).unwrap_or(false);
        let ticket = if is_durable { Ticket::default() } else { so_far };
        for place in receivers {
            if let Some(connection) = self.connection_at(*place) {
                connection.receive(parcel, ticket);
                self.queue(place.key);
            }
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
