//! Waiting for events: asleep, or awake while they come soon.
//!
//! A thread that sleeps for microseconds pays more for the wake-up than for the wait, and may be woken on the processor that its
//! client runs on. So a loop whose last events came soon polls for a while before it sleeps. An idle loop sleeps.
//!
//! A loop that would wait for nothing else works off what its clients have left ([`Duty`]), and polls between two pieces of that.

use std::io;
use std::time::{Duration, Instant};

use mio::{Events, Poll};

use crate::connections::duty::Duty;

/// How long a loop stays awake for nothing: about what sleeping and being woken costs.
const AWAKE_MAX: Duration = Duration::from_micros(50);

/// What a loop has learnt of its events.
#[derive(Default)]
pub(crate) struct Patience {
    /// The last ones came before a loop that stays awake would have gone to sleep.
    come_soon: bool,
}

impl Patience {
    /// As `poll.poll`, for as long as `timeout` says.
    pub(crate) fn poll(
        &mut self,
        poll: &mut Poll,
        events: &mut Events,
        (timeout, may_stay_awake): (Option<Duration>, bool),
        duty: &mut Duty<'_>,
    ) -> io::Result<()> {
        let began = Instant::now();
        self.come_soon &= may_stay_awake;
        while timeout.is_none_or(|timeout| timeout > began.elapsed()) {
            let has_work = duty.has_work();
            if !has_work && !self.come_soon {
                duty.rest();
                break;
            }
            poll.poll(events, Some(Duration::ZERO))?;
            if !events.is_empty() {
                return Ok(());
            }
            self.come_soon &= began.elapsed() < AWAKE_MAX;
            if has_work {
                duty.apply();
            }
        }
        let asleep = Instant::now();
        let outcome = poll.poll(events, timeout.map(|timeout| timeout.saturating_sub(began.elapsed())));
        self.come_soon = asleep.elapsed() < AWAKE_MAX && !events.is_empty();
        outcome
    }
}
