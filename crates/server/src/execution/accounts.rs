//! What is checked before a request is executed whatever the command, and what is noted of it.

use std::time::Duration;

use hikv::{Error, Limits};
use resp::Request;

use crate::clients::session::Session;
use crate::errors::{Refusal, Sentence};
use crate::keyspace::namespace::Namespace;
use crate::shared::Shared;
use crate::table::{self, Entry, flag};
use crate::telemetry::{CommandCounters, Tally};

/// Refuses a request that needs room where there is none.
pub(crate) fn check_memory(entry: Entry, session: &mut Session, shared: &Shared) -> Result<(), Refusal> {
    let executes = entry.command.executes();
    let needs_space = match &session.transaction {
        Some(transaction) if executes => transaction.needs_space,
        _ => entry.command.has(flag::DENYOOM),
    };
    if !needs_space
        || !shared.keyspace.memory.is_over(&shared.keyspace.store, shared.administration.settings.memory_bytes_max())
    {
        return Ok(());
    }
    if executes {
        session.transaction = None;
        session.unwatch(&shared.observers.watches);
        return Err(Sentence::ExecOutOfMemory.into());
    }
    Err(Sentence::OutOfMemory.into())
}

/// Refuses a request that needs of the engine what it lacks.
#[inline]
pub(crate) fn check_engine(entry: Entry, session: &Session, shared: &Shared) -> Result<(), Refusal> {
    let keyspace = &shared.keyspace;
    let Some(what) = entry.command.policy.needs.lacking(&keyspace.features) else { return Ok(()) };
    counters(shared, session).note_rejected(entry.number);
    Err(Error::Unsupported { engine: keyspace.engine.name(), what }.into())
}

/// Shows the request to clients that monitor; an administrator's commands are not shown.
#[inline]
pub(crate) fn show_to_monitors(entry: Entry, session: &Session, request: &Request<'_>, shared: &Shared) {
    let monitors = &shared.observers.monitors;
    if !monitors.is_empty() && !entry.command.has(flag::ADMIN | flag::SKIP_MONITOR) {
        monitors.show(&shared.post, entry, session, request);
    }
}

/// Takes note of how long a request took, where such times are wanted.
pub(crate) fn note_time(entry: Entry, session: &Session, request: &Request<'_>, shared: &Shared, took: Duration) {
    if !entry.command.has(flag::SKIP_SLOWLOG) {
        shared.telemetry.slowlog.note(&shared.administration, session, request, (entry.command, took));
    }
    let event = if entry.command.has(flag::FAST) { "fast-command" } else { "command" };
    shared.telemetry.latency.note(&shared.administration.settings, event, took);
}

/// Counts a request that was refused before it was executed, if it names a command.
#[cold]
pub(crate) fn note_rejected(request: &Request<'_>, session: &Session, shared: &Shared) {
    if let Some(entry) = table::find(request).ok().or_else(|| table::by_name(request.name())) {
        counters(shared, session).note_rejected(entry.number);
    }
}

/// Takes note of an executed request's refusal, and returns what its client is told.
#[cold]
pub(crate) fn note_refusal(refusal: &Refusal, entry: Entry, shared: &Shared, tally: &mut Tally) -> Vec<u8> {
    tally.add_error(entry.kind());
    shared.administration.log.refused(refusal);
    if let Refusal::Store(error) = refusal {
        shared.telemetry.space.note(error, &shared.keyspace.store);
    }
    let text = refusal.text();
    shared.telemetry.errors.note(&text);
    text
}

/// The store knows keys by longer names than clients: a client is told the length of its own.
#[cold]
pub(crate) fn in_own_words(refusal: Refusal, entry: Entry, request: &Request<'_>, namespace: Namespace) -> Refusal {
    let Refusal::Store(Error::KeyTooLong { .. }) = refusal else { return refusal };
    let keys = entry.command.keys_of(request).map(|(index, _)| request.argument(index));
    let too_long =
        keys.map(|key| (key, namespace.raw(key).len())).find(|(_, raw_bytes)| *raw_bytes > Limits::KEY_BYTES_MAX);
    too_long.map_or(refusal, |(key, raw_bytes)| Refusal::KeyLength {
        len_bytes: key.len(),
        len_bytes_max: Limits::KEY_BYTES_MAX - (raw_bytes - key.len()),
    })
}

/// Takes note of so many changes of keys.
#[inline]
pub(crate) fn note_changes(count: u64, shared: &Shared, session: &Session) {
    shared.telemetry.loops[session.record.place.loop_index].note_changes(count);
}

/// What counts the commands of the loop that the client is on.
pub(crate) fn counters<'a>(shared: &'a Shared, session: &Session) -> &'a CommandCounters {
    &shared.telemetry.loops[session.record.place.loop_index].commands
}
