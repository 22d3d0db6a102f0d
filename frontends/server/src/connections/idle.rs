//! Idle clients (`timeout`), and clients that vanished without closing their connection (`tcp-keepalive`).

use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rustix::net::sockopt;

use crate::clients::{BLOCKED, MONITORS, Record, SUBSCRIBED};

/// Interval of a loop's checks of its clients, while checks are needed.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// Unanswered probes after which the kernel closes a connection, as in Redis.
const PROBE_COUNT: u32 = 3;

/// The time of a loop's last check of its clients.
pub(crate) struct CheckTimer {
    last_check: Instant,
}

impl Default for CheckTimer {
    fn default() -> CheckTimer {
        CheckTimer { last_check: Instant::now() }
    }
}

impl CheckTimer {
    /// Returns the time until the next check, if one is needed.
    pub(crate) fn sleep_time(&self, needs_checks: bool) -> Option<Duration> {
        needs_checks.then(|| CHECK_INTERVAL.saturating_sub(self.last_check.elapsed()))
    }

    /// Returns whether a check is due.
    pub(crate) fn is_due(&mut self, needs_checks: bool) -> bool {
        let is_due = needs_checks && self.last_check.elapsed() >= CHECK_INTERVAL;
        if is_due {
            self.last_check = Instant::now();
        }
        is_due
    }
}

/// Returns whether the client has sent nothing for `seconds_max`. Clients that wait for messages are exempt.
pub(crate) fn is_idle(record: &Record, seconds_max: u64) -> bool {
    let idle_ms =
        (record.connected.elapsed().as_millis() as u64).saturating_sub(record.active_ms.load(Ordering::Relaxed));
    record.flags.load(Ordering::Relaxed) & (SUBSCRIBED | MONITORS | BLOCKED) == 0
        && idle_ms > seconds_max.saturating_mul(1_000)
}

/// Sets the socket's TCP keepalive interval; 0 disables it.
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
