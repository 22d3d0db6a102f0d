//! A request that panics: its client gets an error and is disconnected, and all other clients are served on.
//!
//! Requests are executed in two places, on an event loop (`turn`) and as an errand (`errands`), and each runs them within [`catch`].
//! Everything that a request holds is given back while the panic unwinds: the pass or the lanes of the gate, an errand's claim, locks, and
//! the changes of a transaction, of which none is written. The table of databases is read from the store again
//! (`commands/transactions.rs`). Replies that the client was due before stand, and what they report is durable first; whatever the
//! request itself had written to the output is taken back.
//!
//! A panic inside a write of the store may leave the engine half way. The store then refuses all further writes, and goes on answering
//! reads ([`hikv::Error::HalfWay`]).
//!
//! A loop also catches what happens to a connection beside its requests: parsing, TLS, sending. A panic in anything else that a
//! loop does ends the server, because what all of the loop's clients share may be half way.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;
use std::sync::atomic::Ordering;

use resp::Request;

use super::accounts;
use crate::clients::session::Session;
use crate::connections::output::Output;
use crate::errors::{Refusal, Sentence};
use crate::shared::Shared;
use crate::table;
use crate::telemetry::Tally;

thread_local! {
    static PLACE: Cell<Option<Caught>> = const { Cell::new(None) };
}

/// A panic that was caught.
pub(crate) struct Caught {
    /// The line of the source.
    place: String,
    /// The calls that led there, where the environment asks for them (`RUST_BACKTRACE`).
    calls: Option<String>,
}

impl Caught {
    /// Counts and logs the panic, which came while `command` was executed.
    #[cold]
    pub(crate) fn note(&self, command: &str, shared: &Shared) {
        shared.telemetry.panics.fetch_add(1, Ordering::Relaxed);
        shared.administration.log.panicked(command, &self.place, self.calls.as_deref().unwrap_or_default());
    }
}

/// Has panics note where they happen. Whatever else the process does at a panic, it goes on doing.
pub(crate) fn watch() {
    static WATCHED: Once = Once::new();
    WATCHED.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            let place = panic.location().map_or_else(|| "unknown".into(), ToString::to_string);
            let calls = Backtrace::capture();
            let is_captured = calls.status() == BacktraceStatus::Captured;
            let caught = Caught { place, calls: is_captured.then(|| calls.to_string()) };
            // A thread that ends has no place any more, and needs none.
            let _ = PLACE.try_with(|noted| noted.set(Some(caught)));
            before(panic);
        }));
    });
}

/// Runs `run`, and returns where it panicked, if it did.
pub(crate) fn catch<R>(run: impl FnOnce() -> R) -> Result<R, Caught> {
    panic::catch_unwind(AssertUnwindSafe(run))
        .map_err(|_| PLACE.take().unwrap_or_else(|| Caught { place: "unknown".into(), calls: None }))
}

/// What a request was answered with until it panicked.
pub(crate) struct Abandoned<'a> {
    pub(crate) request: Request<'a>,
    /// Where its reply began.
    pub(crate) start: usize,
}

impl Abandoned<'_> {
    /// Answers the request with an error, after which the connection is closed.
    #[cold]
    pub(crate) fn answer(
        &self,
        caught: &Caught,
        session: &mut Session,
        shared: &Shared,
        output: &mut Output,
        tally: &mut Tally,
    ) {
        let entry = table::find(&self.request).ok();
        caught.note(entry.map_or("unknown", |entry| entry.command.name), shared);
        output.take_back(self.start);
        session.closing = true;
        let refusal = Refusal::from(Sentence::Panicked);
        let text = match entry {
            Some(entry) => {
                accounts::counters(shared, session).note_failed(entry.number);
                accounts::note_refusal(&refusal, entry, shared, tally)
            }
            None => refusal.text(),
        };
        if session.takes_reply() {
            output.reply(session.protocol).error(&text);
        }
    }
}
