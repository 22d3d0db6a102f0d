//! The handshakes of one event loop that are under way, so that none lasts for ever.
//!
//! Every handshake may last equally long, so the first that began is the first that is over.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::clients::Place;

#[derive(Default)]
pub(crate) struct Handshakes {
    pending: VecDeque<(Instant, Place)>,
}

impl Handshakes {
    /// Takes note of a client that must be done within `time_max`.
    pub(crate) fn begin(&mut self, place: Place, time_max: Duration) {
        self.pending.push_back((Instant::now() + time_max, place));
    }

    /// How long until the time of the next one is over.
    pub(crate) fn timeout(&self) -> Option<Duration> {
        let (deadline, _) = self.pending.front()?;
        Some(deadline.saturating_duration_since(Instant::now()))
    }

    /// The next client whose time is over, done or not.
    pub(crate) fn pop_overdue(&mut self) -> Option<Place> {
        let (deadline, place) = *self.pending.front()?;
        (Instant::now() >= deadline).then(|| self.pending.pop_front()).flatten().map(|_| place)
    }
}
