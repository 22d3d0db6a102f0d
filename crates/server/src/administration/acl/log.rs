//! Denied requests, for `ACL LOG`: the most recent ones, with equal entries counted together.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use parking_lot::Mutex;

/// As in Redis.
const ENTRY_COUNT_MAX: usize = 128;
/// Equal entries within this time are combined, as in Redis.
const GROUPED_SECONDS: u64 = 60;

/// Why something was denied.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reason {
    Command,
    Key,
    Channel,
    Auth,
}

impl Reason {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Reason::Command => "command",
            Reason::Key => "key",
            Reason::Channel => "channel",
            Reason::Auth => "auth",
        }
    }
}

#[derive(Clone)]
pub(crate) struct LogEntry {
    pub(crate) number: u64,
    pub(crate) count: u64,
    pub(crate) reason: Reason,
    pub(crate) in_transaction: bool,
    pub(crate) object: Vec<u8>,
    pub(crate) user: String,
    pub(crate) at: Instant,
    pub(crate) client: Vec<u8>,
}

#[derive(Default)]
pub(crate) struct Log {
    entries: Mutex<VecDeque<LogEntry>>,
    next_number: AtomicU64,
}

impl Log {
    /// Adds an entry, newest first.
    pub(crate) fn add(&self, mut event: LogEntry) {
        let mut entries = self.entries.lock();
        let is_equal = |entry: &LogEntry| {
            (entry.reason, entry.in_transaction, &entry.object, &entry.user)
                == (event.reason, event.in_transaction, &event.object, &event.user)
                && entry.at.elapsed().as_secs() < GROUPED_SECONDS
        };
        if let Some(found) = entries.iter().position(is_equal) {
            let known = entries.remove(found).expect("it was just found");
            (event.number, event.count) = (known.number, known.count + 1);
        } else {
            event.number = self.next_number.fetch_add(1, Ordering::Relaxed);
        }
        entries.push_front(event);
        entries.truncate(ENTRY_COUNT_MAX);
    }

    pub(crate) fn newest(&self, count: usize) -> Vec<LogEntry> {
        self.entries.lock().iter().take(count).cloned().collect()
    }

    pub(crate) fn clear(&self) {
        self.entries.lock().clear();
    }
}
