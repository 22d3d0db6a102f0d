//! Clients of this loop that wait for elements, and the ends of their waits (`execution::waiting`).

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use super::EventLoop;
use crate::clients::Place;

/// The poller cannot sleep for several weeks.
const SLEEP_MAX: Duration = Duration::from_secs(3600);

/// The times at which waits end, by connections.
#[derive(Default)]
pub(super) struct Deadlines(BTreeSet<(Instant, usize)>);

impl Deadlines {
    /// Replaces the time of a connection.
    pub(super) fn replace(&mut self, key: usize, old: Option<Instant>, new: Option<Instant>) {
        if old != new {
            old.iter().for_each(|deadline| _ = self.0.remove(&(*deadline, key)));
            new.iter().for_each(|deadline| _ = self.0.insert((*deadline, key)));
        }
    }

    /// Returns how long the loop may sleep; `None` if no wait ends.
    pub(super) fn timeout(&self) -> Option<Duration> {
        self.0.first().map(|(deadline, _)| deadline.saturating_duration_since(Instant::now()).min(SLEEP_MAX))
    }

    fn next_due(&self, now: Instant) -> Option<usize> {
        self.0.first().filter(|(deadline, _)| *deadline <= now).map(|(_, key)| *key)
    }
}

impl EventLoop {
    /// Ends the waits whose time is over.
    pub(super) fn end_waits(&mut self) {
        if self.deadlines.timeout().is_none() {
            return;
        }
        let now = Instant::now();
        while let Some(key) = self.deadlines.next_due(now) {
            let slot = &mut self.connections[key];
            self.deadlines.replace(key, slot.deadline.take(), None);
            slot.connection.end_overdue_wait(now);
            self.queue(key);
        }
    }

    /// Resumes a client whose wait has ended.
    pub(super) fn resume_waiter(&mut self, place: Place) {
        if let Some(connection) = self.connection_at(place) {
            connection.end_wait();
            self.queue(place.key);
        }
    }

    /// Notes whether a connection waits after its turn, and until when.
    pub(super) fn note_wait(&mut self, key: usize) {
        let slot = &mut self.connections[key];
        let deadline = slot.connection.wait_deadline();
        self.deadlines.replace(key, std::mem::replace(&mut slot.deadline, deadline), deadline);
    }
}
