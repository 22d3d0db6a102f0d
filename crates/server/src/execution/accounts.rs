//! Checks that apply to every command before its execution, and the bookkeeping afterwards.

use std::time::Duration;

use hikv::{Error, Limits};
use resp::Request;

use crate::clients::session::Session;
use crate::errors::{FixedError, Refusal};
use crate::keyspace::namespace::Namespace;
use crate::shared::Shared;
use crate::table::{self, Entry, flag};
use crate::telemetry::{CommandCounters, EventCounts};

/// Refuses a command that needs memory when the limit is reached.
pub(crate) fn check_memory(entry: Entry, session: &mut Session, shared: &Shared) -> Result<(), Refusal> {
    let executes = entry.command.executes();
    let needs_memory = match &session.transaction {
        Some(transaction) if executes => transaction.needs_memory,
        _ => entry.command.has(flag::DENYOOM),
    };
    if !needs_memory
        || !shared.keyspace.memory.is_over(&shared.keyspace.store, shared.administration.settings.memory_bytes_max())
    {
        return Ok(());
    }
    if executes {
        session.transaction = None;
        session.unwatch(&shared.observers.watches);
        return Err(FixedError::ExecOutOfMemory.into());
    }
    Err(FixedError::OutOfMemory.into())
}

/// Refuses a command that needs an engine feature which the store's engine lacks.
#[inline]
pub(crate) fn check_engine(entry: Entry, session: &Session, shared: &Shared) -> Result<(), Refusal> {
    let keyspace = &shared.keyspace;
    let Some(what) = entry.command.policy.needs.missing(&keyspace.features) else { return Ok(()) };
    counters(shared, session).note_rejected(entry.number);
    Err(Error::Unsupported { engine: keyspace.engine.name(), what }.into())
}

/// Shows the request to `MONITOR` clients. Exception: administrative commands are not shown.
#[inline]
pub(crate) fn show_to_monitors(entry: Entry, session: &Session, request: &Request<'_>, shared: &Shared) {
    let monitors = &shared.observers.monitors;
    if !monitors.is_empty() && !entry.command.has(flag::ADMIN | flag::SKIP_MONITOR) {
        monitors.show(&shared.mailboxes, entry, session, request);
    }
}

/// Records how long a request took, if the slow log or the latency monitor is on.
pub(crate) fn note_time(entry: Entry, session: &Session, request: &Request<'_>, shared: &Shared, took: Duration) {
    if !entry.command.has(flag::SKIP_SLOWLOG) {
        shared.telemetry.slowlog.note(&shared.administration, session, request, (entry.command, took));
    }
    let event = if entry.command.has(flag::FAST) { "fast-command" } else { "command" };
    shared.telemetry.latency.note(&shared.administration.settings, event, took);
}

/// Counts a refused request, if it names a command.
#[cold]
pub(crate) fn note_rejected(request: &Request<'_>, session: &Session, shared: &Shared) {
    if let Some(entry) = table::find(request).ok().or_else(|| table::by_name(request.name())) {
        counters(shared, session).note_rejected(entry.number);
    }
}

/// Records that an executed request failed, and returns the error for its client.
#[cold]
pub(crate) fn note_refusal(
    refusal: &Refusal,
    entry: Entry,
    shared: &Shared,
    event_counts: &mut EventCounts,
) -> Vec<u8> {
    event_counts.add_error(entry.kind());
    shared.administration.log.refused(refusal);
    if let Refusal::Store(error) = refusal {
        shared.telemetry.space.note(error, &shared.keyspace.store);
    }
    let text = refusal.text();
    shared.telemetry.errors.note(&text);
    text
}

/// Converts a store error. The store's keys are longer than the client's, so the reply states the client's key length.
#[cold]
pub(crate) fn in_client_terms(refusal: Refusal, entry: Entry, request: &Request<'_>, namespace: Namespace) -> Refusal {
    let Refusal::Store(Error::KeyTooLong { .. }) = refusal else { return refusal };
    let keys = entry.command.keys_of(request).map(|(index, _)| request.argument(index));
    let too_long =
        keys.map(|key| (key, namespace.raw(key).len())).find(|(_, raw_bytes)| *raw_bytes > Limits::KEY_BYTES_MAX);
    too_long.map_or(refusal, |(key, raw_bytes)| Refusal::KeyLength {
        len_bytes: key.len(),
        len_bytes_max: Limits::KEY_BYTES_MAX - (raw_bytes - key.len()),
    })
}

/// Counts `count` changed keys.
#[inline]
pub(crate) fn note_changes(count: u64, shared: &Shared, session: &Session) {
    shared.telemetry.loops[session.record.place.loop_index].note_changes(count);
}

/// Returns the command counters of the client's event loop.
pub(crate) fn counters<'a>(shared: &'a Shared, session: &Session) -> &'a CommandCounters {
    &shared.telemetry.loops[session.record.place.loop_index].commands
}
