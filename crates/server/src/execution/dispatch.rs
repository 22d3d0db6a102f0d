//! From a request to the command that answers it: may it, must it wait in a transaction, may others run beside it.

use std::time::{Duration, Instant};

use hikv::{Error, Limits};
use resp::{Protocol, Request};

use crate::administration::acl::{LogEntry, Reason};
use crate::clients::session::{Replies, Session, Transaction};
use crate::commands::functions;
use crate::errors::{Refusal, Sentence};
use crate::execution::call::Call;
use crate::keyspace::databases::Slot;
use crate::keyspace::items::Items;
use crate::observers::monitors;
use crate::observers::notify::NEW;
use crate::observers::tracking;
use crate::shared::Shared;
use crate::table::{self, Entry, flag};
use crate::telemetry::CommandCounters;

/// Bytes of requests that a transaction may have waiting: as much as the longest request.
const QUEUED_BYTES_MAX: usize = resp::Limits::REQUEST_BYTES_MAX;

/// The command that a request names, if the client may use it now.
#[inline]
pub(crate) fn admit(request: &Request<'_>, session: &Session) -> Result<Entry, Refusal> {
    let entry = table::find(request)?;
    if session.subscription_count() > 0
        && session.protocol == Protocol::Resp2
        && !entry.command.policy.when.serves_subscribers()
    {
        return Err(Refusal::Names(format!(
            "Can't execute '{}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context",
            entry.command.name
        )));
    }
    permit(entry, request, session)
}

/// The command that a transaction has kept, if the client may use it still. Where the client subscribes meanwhile, the
/// transaction goes on, as in Redis.
pub(crate) fn admit_kept(request: &Request<'_>, session: &Session) -> Result<Entry, Refusal> {
    permit(table::find(request)?, request, session)
}

#[inline]
fn permit(entry: Entry, request: &Request<'_>, session: &Session) -> Result<Entry, Refusal> {
    match session.login.user() {
        Some(user) => {
            user.check(entry, request).map(|()| entry).map_err(|denied| denial(entry, denied.reason, &denied.object))
        }
        None if entry.command.has(flag::NO_AUTH) => Ok(entry),
        None => Err(Sentence::NoAuth.into()),
    }
}

fn denial(entry: Entry, reason: Reason, object: &[u8]) -> Refusal {
    let what = match reason {
        Reason::Key => "this user has no permissions to access one of the keys used as arguments".into(),
        Reason::Channel => "this user has no permissions to access one of the channels used as arguments".into(),
        Reason::Command | Reason::Auth => {
            format!("this user has no permissions to run the '{}' command", entry.command.name)
        }
    };
    Refusal::Denied { what, reason, object: object.to_vec() }
}

/// Takes note that a request was refused: it spoils a transaction, and may be in the log of what was denied.
pub(crate) fn note_refused(refusal: &Refusal, session: &mut Session, shared: &Shared) {
    if let Some(transaction) = &mut session.transaction {
        transaction.is_broken = true;
    }
    if let Refusal::Denied { reason, object, .. } = refusal {
        log_denied(shared, session, *reason, object.clone(), session.login.name().to_owned());
    }
}

/// The refusal of a request by which a transaction would have been executed: that is over, as in Redis. Any other stays as it is.
pub(crate) fn end_refused(refusal: Refusal, request: &Request<'_>, session: &mut Session, shared: &Shared) -> Refusal {
    if !table::by_name(request.name()).is_some_and(|entry| entry.command.executes()) {
        return refusal;
    }
    note_refused(&refusal, session, shared);
    session.transaction = None;
    session.unwatch(shared);
    let text = refusal.text();
    let why = String::from_utf8_lossy(text.strip_prefix(b"ERR ").unwrap_or(&text)).into_owned();
    Refusal::ExecAbort(why)
}

pub(crate) fn log_denied(shared: &Shared, session: &Session, reason: Reason, object: Vec<u8>, user: String) {
    shared.acl.log.add(LogEntry {
        number: 0,
        count: 1,
        reason,
        in_transaction: session.transaction.is_some() || session.is_executing,
        object,
        user,
        at: Instant::now(),
        client: session.record.line(),
    });
}

/// Whether the request waits for `EXEC`.
pub(crate) fn is_queued(entry: Entry, session: &Session) -> bool {
    session.transaction.is_some() && entry.command.policy.when.waits()
}

/// Adds a request to the client's transaction.
pub(crate) fn queue(entry: Entry, request: &Request<'_>, transaction: &mut Transaction) -> Result<(), Refusal> {
    if entry.command.has(flag::NO_MULTI) {
        return Err(Sentence::NotInTransaction.into());
    }
    if transaction.requests.capacity_bytes() > QUEUED_BYTES_MAX {
        return Err(Sentence::TransactionTooLong.into());
    }
    transaction.needs_room |= entry.command.has(flag::DENYOOM);
    transaction.changes |= entry.command.is_noticed();
    transaction.requests.push_copy(request);
    Ok(())
}

/// Refuses a request that needs room where there is none.
pub(crate) fn check_memory(entry: Entry, session: &mut Session, shared: &Shared) -> Result<(), Refusal> {
    let executes = entry.command.executes();
    let needs_room = match &session.transaction {
        Some(transaction) if executes => transaction.needs_room,
        _ => entry.command.has(flag::DENYOOM),
    };
    if !needs_room || !shared.memory.is_over(&shared.store, shared.settings.memory_bytes_max()) {
        return Ok(());
    }
    if executes {
        session.transaction = None;
        session.unwatch(shared);
        return Err(Sentence::ExecOutOfMemory.into());
    }
    Err(Sentence::OutOfMemory.into())
}

/// Executes a request, and says how it went. The caller holds a pass, or is alone if the command must be.
pub(crate) fn execute(entry: Entry, call: &mut Call<'_>) -> Result<(), Refusal> {
    if call.session.tracks && entry.command.has(flag::READONLY) {
        track(entry, call);
    }
    if !call.shared.monitors.is_empty() && !entry.command.has(flag::ADMIN | flag::SKIP_MONITOR) {
        monitors::show(entry, call.shared, call.session, &call.request);
    }
    note_use(entry, call.slot(), call.shared, call.store())?;
    let tells_new = call.shared.settings.notified_classes() & NEW != 0 && entry.command.has(flag::WRITE);
    let absent = if tells_new { absent_keys(entry, call)? } else { Vec::new() };
    let began = Instant::now();
    let outcome = match functions::of(entry) {
        Some(function) => function(call),
        None => Err(Refusal::ArgumentCount { command: entry.command.name }),
    };
    let took = began.elapsed();
    note_time(entry, call.session, &call.request, call.shared, took);
    counters(call.shared, call.session).note(entry.number, 1, took);
    tell_new(call, &absent)?;
    outcome.map_err(|refusal| {
        counters(call.shared, call.session).note_failed(entry.number);
        in_own_words(refusal, entry, call)
    })
}

/// The store knows keys by longer names than clients: a client is told the length of its own.
fn in_own_words(refusal: Refusal, entry: Entry, call: &Call<'_>) -> Refusal {
    let Refusal::Store(Error::KeyTooLong { .. }) = refusal else { return refusal };
    let mut keys = entry.command.keys_of(&call.request).map(|(index, _)| (call.argument(index), call.key(index)));
    let too_long = keys.find(|(_, raw)| raw.len() > Limits::KEY_BYTES_MAX);
    too_long.map_or(refusal, |(key, raw)| Refusal::KeyLength {
        len_bytes: key.len(),
        len_bytes_max: Limits::KEY_BYTES_MAX - (raw.len() - key.len()),
    })
}

/// The numbers of the arguments that are keys which the request may make.
#[cold]
fn absent_keys(entry: Entry, call: &Call<'_>) -> Result<Vec<usize>, Refusal> {
    let mut absent = Vec::new();
    for (index, _) in entry.command.keys_of(&call.request).filter(|(_, access)| access.writes()) {
        if !call.store().contains(call.key(index))? {
            absent.push(index);
        }
    }
    Ok(absent)
}

fn tell_new(call: &Call<'_>, absent: &[usize]) -> Result<(), Refusal> {
    for index in absent {
        if call.store().contains(call.key(*index))? {
            call.changed(NEW, "new", *index);
        }
    }
    Ok(())
}

/// Notes the keys that a client is about to read.
fn track(entry: Entry, call: &Call<'_>) {
    for (index, _) in entry.command.keys_of(&call.request) {
        let raw = call.key(index);
        tracking::note(call.shared, &raw, call.argument(index), call.session.record.place);
    }
}

/// A slot that is written to for the first time is noted before.
pub(crate) fn note_use(entry: Entry, slot: Slot, shared: &Shared, items: Items<'_>) -> Result<(), Refusal> {
    if slot != Slot::FIRST && entry.command.has(flag::WRITE) {
        shared.databases.note_use(items, slot)?;
    }
    Ok(())
}

/// Takes note of how long a request took, where such times are wanted.
pub(crate) fn note_time(entry: Entry, session: &Session, request: &Request<'_>, shared: &Shared, took: Duration) {
    if !entry.command.has(flag::SKIP_SLOWLOG) {
        shared.slowlog.note(shared, session, request, (entry.command, took));
    }
    let event = if entry.command.has(flag::FAST) { "fast-command" } else { "command" };
    shared.latency.note(&shared.settings, event, took);
}

/// Counts a request that was refused before it was executed, if it names a command.
#[cold]
pub(crate) fn note_rejected(request: &Request<'_>, session: &Session, shared: &Shared) {
    if let Some(entry) = table::find(request).ok().or_else(|| table::by_name(request.name())) {
        counters(shared, session).note_rejected(entry.number);
    }
}

/// What counts the commands of the loop that the client is on.
pub(crate) fn counters<'a>(shared: &'a Shared, session: &Session) -> &'a CommandCounters {
    &shared.loops[session.record.place.loop_index].commands
}

/// Whether the client wants the reply to the request just executed, and what it wants from now on.
pub(crate) fn wants_reply(session: &mut Session) -> bool {
    let replies = session.replies;
    session.replies = match replies {
        Replies::SkipThis => Replies::SkipNext,
        Replies::SkipNext => Replies::On,
        other => other,
    };
    replies == Replies::On
}
