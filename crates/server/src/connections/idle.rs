//! Clients that say nothing for long (`timeout`), and those that went without closing their connection
//! (`tcp-keepalive`).

use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rustix::net::sockopt;

use crate::clients::{MONITORS, Record, SUBSCRIBED};

/// How often a loop looks at its clients, while there is something to look for.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Unanswered probes after which the kernel gives a connection up, as in Redis.
const PROBE_COUNT: u32 = 3;

/// When a loop looks next.
pub(crate) struct Watchman {
    looked: Instant,
}

impl Default for Watchman {
    fn default() -> Watchman {
        Watchman { looked: Instant::now() }
    }
}

impl Watchman {
    /// How long until the next look, if there is to be one.
    pub(crate) fn sleep_time(&self, has_to_look: bool) -> Option<Duration> {
        has_to_look.then(|| LOOK_EVERY.saturating_sub(self.looked.elapsed()))
    }

    /// Whether it is time to look.
    pub(crate) fn is_due(&mut self, has_to_look: bool) -> bool {
        let is_due = has_to_look && self.looked.elapsed() >= LOOK_EVERY;
        if is_due {
            self.looked = Instant::now();
        }
        is_due
    }
}

/// Whether the client has said nothing for so long. A client that waits for messages may.
pub(crate) fn is_idle(record: &Record, seconds_max: u64) -> bool {
    let idle_ms =
        (record.connected.elapsed().as_millis() as u64).saturating_sub(record.active_ms.load(Ordering::Relaxed));
    record.flags.load(Ordering::Relaxed) & (SUBSCRIBED | MONITORS) == 0 && idle_ms > seconds_max.saturating_mul(1_000)
}

/// Has the kernel ask a silent client every so often whether it is there; 0 for not at all.
pub(crate) fn keep_alive(socket: impl AsFd, seconds: u32) -> io::Result<()> {
    if seconds == 0 {
        return Ok(());
    }
    let between = Duration::from_secs((seconds / PROBE_COUNT).max(1).into());
    sockopt::set_socket_keepalive(&socket, true)?;
    sockopt::set_tcp_keepidle(&socket, Duration::from_secs(seconds.into()))?;
    sockopt::set_tcp_keepintvl(&socket, between)?;
    Ok(sockopt::set_tcp_keepcnt(&socket, PROBE_COUNT)?)
}
