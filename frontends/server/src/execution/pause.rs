//! `CLIENT PAUSE`: paused requests stay in their pipelines until the pause ends, and nothing further is read.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::clients::session::Session;
use command_table::Entry;

pub(crate) struct Pause {
    since: Instant,
    /// End of the pause in milliseconds after `since`; 0 if there is none.
    until_ms: AtomicU64,
    holds_all: AtomicBool,
    /// Serializes changes of the pause.
    turn: Mutex<()>,
}

impl Pause {
    pub(crate) fn new() -> Pause {
        Pause {
            since: Instant::now(),
            until_ms: AtomicU64::new(0),
            holds_all: AtomicBool::new(false),
            turn: Mutex::new(()),
        }
    }

    /// Pauses writes, or all commands, for `length`. As in Redis, this neither shortens a running pause nor reduces its
    /// scope.
    pub(crate) fn begin(&self, length: Duration, holds_all: bool) {
        let _turn = self.turn.lock();
        let is_paused = self.remaining().is_some();
        self.holds_all.store(holds_all || is_paused && self.holds_all.load(Ordering::SeqCst), Ordering::SeqCst);
        // Rounded up, so that the pause is not too short and not 0.
        let until_ms =
            self.now_ms().saturating_add(1).saturating_add(length.as_millis().try_into().unwrap_or(u64::MAX));
        self.until_ms.fetch_max(until_ms, Ordering::SeqCst);
    }

    pub(crate) fn end(&self) {
        let _turn = self.turn.lock();
        self.until_ms.store(0, Ordering::SeqCst);
    }

    /// Returns the remaining time, or `None` if there is no pause.
    #[inline]
    pub(crate) fn remaining(&self) -> Option<Duration> {
        match self.until_ms.load(Ordering::Relaxed) {
            0 => None,
            until_ms => until_ms.checked_sub(self.now_ms()).filter(|ms| *ms > 0).map(Duration::from_millis),
        }
    }

    /// Returns whether this client's command has to wait.
    #[inline]
    pub(crate) fn holds(&self, entry: Entry, session: &Session) -> bool {
        self.remaining().is_some() && (self.holds_all.load(Ordering::SeqCst) || session.changes_by(entry))
    }

    fn now_ms(&self) -> u64 {
        self.since.elapsed().as_millis() as u64
    }
}
