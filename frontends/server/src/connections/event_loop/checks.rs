//! Periodic checks of a loop's clients.

use super::EventLoop;
use crate::clients::Place;
use crate::messages::LoopMessage;

impl EventLoop {
    /// Closes idle clients and clients that do not read their replies, and resumes clients whose backlog may grow
    /// again.
    pub(super) fn check_clients(&mut self) {
        if !self.check_timer.is_due(self.needs_checks()) {
            return;
        }
        let seconds_max = self.shared.administration.settings.idle_seconds_max();
        let (mut due, mut has_unread, mut is_stuck) = (Vec::new(), false, false);
        for (key, slot) in &mut self.connections {
            let connection = &mut slot.connection;
            connection.check_unread();
            has_unread |= connection.needs_checks();
            is_stuck |= connection.is_stuck();
            if seconds_max > 0 && connection.is_idle(seconds_max) {
                connection.abandon();
            }
            if connection.is_abandoned() || connection.may_grow() {
                due.push(key);
            }
        }
        self.has_unread = has_unread;
        due.into_iter().for_each(|key| self.queue(key));
        if is_stuck {
            self.disconnect(self.shared.backlogs.choose(&self.shared.clients));
        }
    }

    /// Disconnects a client at once if unread replies use far too much (`backlog`).
    pub(super) fn limit_backlogs(&self) {
        let bytes_max = self.shared.administration.settings.backlog_bytes_max();
        if self.shared.backlogs.exceed(2, bytes_max) {
            self.disconnect(self.shared.backlogs.choose_at_once(&self.shared.clients));
        }
    }

    /// Disconnects a client, so that others can proceed (`backlog`).
    #[cold]
    fn disconnect(&self, chosen: Option<Place>) {
        let shared = &self.shared;
        if let Some(place) = chosen {
            shared.administration.log.evicted(place.client_id);
            shared.mailboxes.send_to_loop(place.loop_index, LoopMessage::Close(place));
        }
    }
}
