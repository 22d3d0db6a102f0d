//! Handling of a request that panics: its client gets an error and is disconnected; all other clients are still served.
//!
//! Requests are executed in two places, on an event loop (`turn`) and as a background job (`background`), and both use
//! [`catch`]. Unwinding releases everything that the request holds: its pass or the gate's lanes, a job's claim, locks,
//! and the changes of a transaction, none of which is written. The table of databases is read from the store again
//! (`commands/transactions.rs`). Earlier replies are still sent, after the changes they report are durable; output
//! written by the failed request is discarded.
//!
//! A panic inside a write may leave the engine in an intermediate state. The store then refuses further writes and
//! still serves reads ([`hikv::Error::HalfWay`]).
//!
//! A loop also catches panics in a connection's parsing, TLS and sending. A panic anywhere else in a loop stops the
//! server, because the state shared by the loop's clients may be inconsistent.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;
use std::sync::atomic::Ordering;

use resp::Request;

use super::client::Client;
use crate::connections::output::Output;
use crate::errors::{FixedError, Refusal};
use crate::shared::Shared;
use command_table as table;

thread_local! {
    static PLACE: Cell<Option<CaughtPanic>> = const { Cell::new(None) };
}

/// A caught panic.
pub(crate) struct CaughtPanic {
    /// The source line.
    place: String,
    /// The backtrace, if `RUST_BACKTRACE` requests one.
    calls: Option<String>,
}

impl CaughtPanic {
    /// Counts and logs a panic that happened while `command` was executed.
    #[cold]
    pub(crate) fn note(&self, command: &str, shared: &Shared) {
        shared.telemetry.panics.fetch_add(1, Ordering::Relaxed);
        shared.administration.log.panicked(command, &self.place, self.calls.as_deref().unwrap_or_default());
    }
}

/// Installs a panic hook that records where a panic happens, then calls the previous hook.
pub(crate) fn watch() {
    static WATCHED: Once = Once::new();
    WATCHED.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            let place = panic.location().map_or_else(|| "unknown".into(), ToString::to_string);
            let calls = Backtrace::capture();
            let is_captured = calls.status() == BacktraceStatus::Captured;
            let caught = CaughtPanic { place, calls: is_captured.then(|| calls.to_string()) };
            // Thread-local storage is gone while a thread exits; no location is needed then.
            let _ = PLACE.try_with(|noted| noted.set(Some(caught)));
            before(panic);
        }));
    });
}

/// Calls `run`. If it panics, returns where.
pub(crate) fn catch<R>(run: impl FnOnce() -> R) -> Result<R, CaughtPanic> {
    panic::catch_unwind(AssertUnwindSafe(run))
        .map_err(|_| PLACE.take().unwrap_or_else(|| CaughtPanic { place: "unknown".into(), calls: None }))
}

impl Client<'_> {
    /// Replies with an error to a request whose execution panicked, and marks the connection for closing. The reply
    /// begins at output position `start`.
    #[cold]
    pub(crate) fn abandon(&mut self, caught: &CaughtPanic, request: &Request<'_>, output: &mut Output, start: usize) {
        let entry = table::find(request).ok();
        caught.note(entry.map_or("unknown", |entry| entry.command.name), self.shared);
        output.take_back(start);
        self.session.closing = true;
        let refusal = Refusal::from(FixedError::Panicked);
        let text = match entry {
            Some(entry) => {
                self.shared.counters_of(self.session).commands.note_failed(entry.number);
                self.note_failed(entry, &refusal)
            }
            None => refusal.text(),
        };
        if self.session.wants_reply() {
            output.reply(self.session.protocol).error(&text);
        }
    }
}
