//! Waiting for events, with a short spin before sleeping if events arrive often.
//!
//! A thread that sleeps for microseconds pays more for the wake-up than for the wait, and may be woken on the processor
//! that its client runs on. So a loop whose last events arrived quickly polls for a short time before it sleeps. An
//! idle loop sleeps.
//!
//! A loop without requests applies queued changes ([`OrderMaintenance`]), and polls between two groups of them.

use std::io;
use std::time::{Duration, Instant};

use mio::{Events, Poll};

use crate::connections::order_maintenance::OrderMaintenance;

/// Maximum time that a loop spins in vain: about the cost of sleeping and being woken.
const AWAKE_MAX: Duration = Duration::from_micros(50);

/// A poll that spins if the last events arrived quickly.
#[derive(Default)]
pub(crate) struct AdaptivePoll {
    /// The last events arrived before a spinning loop would have slept.
    come_soon: bool,
}

impl AdaptivePoll {
    /// Like `poll.poll`, with this timeout.
    pub(crate) fn poll(
        &mut self,
        poll: &mut Poll,
        events: &mut Events,
        (timeout, may_stay_awake): (Option<Duration>, bool),
        order_maintenance: &mut OrderMaintenance<'_>,
    ) -> io::Result<()> {
        let began = Instant::now();
        self.come_soon &= may_stay_awake;
        while timeout.is_none_or(|timeout| timeout > began.elapsed()) {
            let has_work = order_maintenance.has_work();
            if !has_work && !self.come_soon {
                order_maintenance.rest();
                break;
            }
            poll.poll(events, Some(Duration::ZERO))?;
            if !events.is_empty() {
                return Ok(());
            }
            self.come_soon &= began.elapsed() < AWAKE_MAX;
            if has_work {
                order_maintenance.apply();
            }
        }
        let asleep = Instant::now();
        let outcome = poll.poll(events, timeout.map(|timeout| timeout.saturating_sub(began.elapsed())));
        self.come_soon = asleep.elapsed() < AWAKE_MAX && !events.is_empty();
        outcome
    }
}
