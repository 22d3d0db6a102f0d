//! Waiting for events: asleep, or awake while they come soon.
//!
//! A thread that sleeps for microseconds pays more for its wake-up than for the wait, and may be woken on the processor that its
//! client runs on. So a loop whose last events came soon polls for a while before it sleeps. An idle loop sleeps.

use std::io;
use std::time::{Duration, Instant};

use mio::{Events, Poll};

/// How long a loop stays awake for nothing: about what sleeping and being woken costs.
const AWAKE_MAX: Duration = Duration::from_micros(50);

/// What a loop has learnt of its events.
#[derive(Default)]
pub(crate) struct Patience {
    /// The last ones came before a loop that stays awake would have gone to sleep.
    come_soon: bool,
}

impl Patience {
    /// As `poll.poll`.
    pub(crate) fn poll(
        &mut self,
        poll: &mut Poll,
        events: &mut Events,
        timeout: Option<Duration>,
        may_stay_awake: bool,
    ) -> io::Result<()> {
        let began = Instant::now();
        self.come_soon &= may_stay_awake;
        while self.come_soon && timeout.is_none_or(|timeout| timeout > began.elapsed()) {
            poll.poll(events, Some(Duration::ZERO))?;
            if !events.is_empty() {
                return Ok(());
            }
            self.come_soon = began.elapsed() < AWAKE_MAX;
        }
        let asleep = Instant::now();
        let outcome = poll.poll(events, timeout.map(|timeout| timeout.saturating_sub(began.elapsed())));
        self.come_soon = asleep.elapsed() < AWAKE_MAX && !events.is_empty();
        outcome
    }
}
