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
pub enum Reason {
    /// The command.
    Command,
    /// A key.
    Key,
    /// A channel.
    Channel,
    /// The name or password.
    Auth,
}

impl Reason {
    /// Returns the name in `ACL LOG`.
    pub fn name(self) -> &'static str {
        match self {
            Reason::Command => "command",
            Reason::Key => "key",
            Reason::Channel => "channel",
            Reason::Auth => "auth",
        }
    }
}

/// The circumstances in which a command was denied.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Context {
    /// By itself.
    TopLevel,
    /// In a transaction.
    Transaction,
    /// In a script.
    Script,
}

impl Context {
    /// Returns the name in `ACL LOG`.
    pub fn name(self) -> &'static str {
        match self {
            Context::TopLevel => "toplevel",
            Context::Transaction => "multi",
            Context::Script => "lua",
        }
    }
}

/// Equal denied requests.
#[derive(Clone)]
pub struct LogEntry {
    /// Assigned by the log.
    pub number: u64,
    /// The number of requests.
    pub count: u64,
    /// Why they were denied.
    pub reason: Reason,
    /// The circumstances.
    pub context: Context,
    /// The name of the command, key or channel.
    pub object: Vec<u8>,
    /// The name of the user.
    pub user: String,
    /// The time of the latest request.
    pub at: Instant,
    /// The client as in `CLIENT LIST`.
    pub client: Vec<u8>,
}

/// The most recent denied requests.
#[derive(Default)]
pub struct Log {
    entries: Mutex<VecDeque<LogEntry>>,
    next_number: AtomicU64,
}

impl Log {
    /// Adds an entry, newest first.
    pub fn add(&self, mut event: LogEntry) {
        let mut entries = self.entries.lock();
        let is_equal = |entry: &LogEntry| {
            (entry.reason, entry.context, &entry.object, &entry.user)
                == (event.reason, event.context, &event.object, &event.user)
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

    /// Returns the newest entries.
    pub fn newest(&self, count: usize) -> Vec<LogEntry> {
        self.entries.lock().iter().take(count).cloned().collect()
    }

    /// Removes all entries.
    pub fn clear(&self) {
        self.entries.lock().clear();
    }
}
