//! The running TLS handshakes of one event loop, so that none lasts forever.
//!
//! All handshakes have the same time limit, so the first one that began expires first.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::clients::Place;

#[derive(Default)]
pub(crate) struct Handshakes {
    pending: VecDeque<(Instant, Place)>,
}

impl Handshakes {
    /// Registers a client whose handshake must finish within `time_max`.
    pub(crate) fn begin(&mut self, place: Place, time_max: Duration) {
        self.pending.push_back((Instant::now() + time_max, place));
    }

    /// Returns the time until the next handshake expires.
    pub(crate) fn timeout(&self) -> Option<Duration> {
        let (deadline, _) = self.pending.front()?;
        Some(deadline.saturating_duration_since(Instant::now()))
    }

    /// Removes the next client whose time is over, whether its handshake is complete or not.
    pub(crate) fn pop_overdue(&mut self) -> Option<Place> {
        let (deadline, place) = *self.pending.front()?;
        (Instant::now() >= deadline).then(|| self.pending.pop_front()).flatten().map(|_| place)
    }
}
