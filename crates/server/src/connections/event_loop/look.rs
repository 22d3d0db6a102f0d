//! What a loop looks for every so often, though nothing happens.

use super::EventLoop;
use crate::mail::Letter;

impl EventLoop {
    /// Closes clients that say nothing, and those that do not read what they get, though nothing happens; and lets those go on for whose
    /// replies there is room again.
    pub(super) fn look_at_clients(&mut self) {
        if !self.watchman.is_due(self.has_to_look()) {
            return;
        }
        let seconds_max = self.shared.administration.settings.idle_seconds_max();
        let (mut due, mut has_unread, mut is_stuck) = (Vec::new(), false, false);
        for (key, seat) in &mut self.connections {
            let connection = &mut seat.connection;
            connection.look_at_unread();
            has_unread |= connection.is_over_limit() || connection.is_held_back();
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
            self.make_space();
        }
    }

    /// Has one client disconnected, so that those which are held back go on (`backlog`).
    #[cold]
    fn make_space(&self) {
        let shared = &self.shared;
        if let Some(place) = shared.backlogs.choose(&shared.clients) {
            shared.administration.log.evicted(place.client_id);
            shared.post.give(place.loop_index, Letter::Close(place));
        }
    }
}
