//! MULTI, EXEC, DISCARD, WATCH, UNWATCH.
//!
//! EXEC runs alone, and the changes are written as one batch when its last command is done: neither a client nor a crash
//! sees some of them without the others (`items/pending.rs`).

use std::sync::atomic::Ordering;

use crate::clients::session::Transaction;
use crate::errors::{Refusal, Sentence};
use crate::execution::accounts;
use crate::execution::call::{Call, Function};
use crate::execution::dispatch::Execution;
use crate::execution::permission;
use crate::keyspace::databases::Table;
use crate::keyspace::items::{Pending, Premises, Seen, Told};
use crate::observers::notify;
use crate::observers::watch::Watched;
use crate::shared::Shared;
use crate::telemetry::Kind;

/// By the names of their rows.
pub(super) const FUNCTIONS: &[(&str, Function)] =
    &[("discard", discard), ("exec", exec), ("multi", multi), ("unwatch", unwatch), ("watch", watch)];

fn multi(call: &mut Call<'_>) -> Result<(), Refusal> {
    if call.session.transaction.is_some() {
        return Err(Sentence::NestedMulti.into());
    }
    call.session.transaction = Some(Box::default());
    call.ok();
    Ok(())
}

fn discard(call: &mut Call<'_>) -> Result<(), Refusal> {
    call.session.transaction.take().ok_or(Sentence::DiscardWithoutMulti)?;
    call.session.unwatch(&call.shared.observers.watches);
    call.ok();
    Ok(())
}

fn exec(call: &mut Call<'_>) -> Result<(), Refusal> {
    let transaction = call.session.transaction.take().ok_or(Sentence::ExecWithoutMulti)?;
    let premises = premises(call)?;
    call.session.unwatch(&call.shared.observers.watches);
    if transaction.is_broken {
        return Err(Sentence::ExecAbort.into());
    }
    let Some(premises) = premises else {
        overtaken(call);
        return Ok(());
    };
    let (pending, start) = (Pending::resting_on(premises), call.reply.len_bytes());
    let mut databases =
        UntilWritten { shared: call.shared, before: call.shared.keyspace.databases.now(), is_written: false };
    call.session.is_executing = true;
    execute_all(call, &transaction, &pending);
    call.session.is_executing = false;
    databases.is_written = write(call, pending)?;
    if !databases.is_written {
        call.reply.truncate(start);
        overtaken(call);
    }
    Ok(())
}

/// The table of databases, as the transaction may have changed it: the one that the store has, unless the transaction is written. So
/// nothing is left of one that is refused, or panics.
struct UntilWritten<'a> {
    shared: &'a Shared,
    before: Table,
    is_written: bool,
}

impl Drop for UntilWritten<'_> {
    fn drop(&mut self) {
        if !self.is_written {
            self.shared.keyspace.databases.reload(&self.shared.keyspace.store, &self.before);
        }
    }
}

/// Says that a watched key was changed.
fn overtaken(call: &mut Call<'_>) {
    // It tells of another client's write, which was not read here and may not be durable yet.
    call.session.heard = call.session.heard.merge(call.shared.keyspace.store.deferred_so_far());
    call.reply.null_array();
}

/// Writes what the commands have changed; false if a watched key was changed meanwhile. If that fails, nothing of it has happened: the
/// refusal stands in place of the replies.
fn write(call: &Call<'_>, pending: Pending) -> Result<bool, Refusal> {
    let shared = call.shared;
    let Some(told) = pending.commit(&shared.keyspace.store)? else { return Ok(false) };
    for Told { change_count, class, event, db, namespace, key } in told {
        accounts::note_changes(change_count, shared, call.session);
        notify::tell_changed(shared, class, event, (db, namespace, &key), call.session.id);
    }
    Ok(true)
}

/// What the transaction rests on; `None` if a watched key was changed, or has expired.
fn premises(call: &Call<'_>) -> Result<Option<Premises>, Refusal> {
    let watching = &call.session.watching;
    if watching.mark.load(Ordering::SeqCst) {
        return Ok(None);
    }
    let raw = |watched: &Watched| call.shared.keyspace.namespace(watched.db).raw(&watched.key).into_owned();
    let keys = watching.keys.iter().map(|watched| (raw(watched), watched.seen));
    let mut premises = Premises::of(keys);
    Ok(premises.hold(&call.shared.keyspace.store)?.then_some(premises))
}

fn execute_all(call: &mut Call<'_>, transaction: &Transaction, pending: &Pending) {
    let requests = &transaction.requests;
    call.reply.array(requests.len());
    for index in 0..requests.len() {
        let (request, reply_start) = (requests.get(index, &[]), call.reply.len_bytes());
        let mut step = Call {
            shared: call.shared,
            session: &mut *call.session,
            request,
            reply: call.reply.reborrow(),
            tally: &mut *call.tally,
            pending: Some(pending),
        };
        let outcome =
            permission::admit_kept(&request, step.session).and_then(|entry| Execution::new(entry, &mut step).run());
        if let Err(refusal) = outcome {
            permission::note_refused(&refusal, call.session, call.shared);
            call.tally.add_error(Kind::Transaction);
            let text = refusal.text();
            call.shared.telemetry.errors.note(&text);
            call.reply.truncate(reply_start);
            call.reply.error(&text);
        }
        // It may have been changed by HELLO.
        call.reply.switch_to(call.session.protocol);
    }
}

/// Runs alone, so that no change of the key is half way.
fn watch(call: &mut Call<'_>) -> Result<(), Refusal> {
    if call.session.transaction.is_some() {
        return Err(Sentence::WatchInMulti.into());
    }
    let (db, namespace) = (call.session.db, call.namespace());
    for key in call.request.arguments() {
        let is_watched = call.session.watching.keys.iter().any(|watched| watched.db == db && watched.key == key);
        if !is_watched {
            let seen = Seen::of(&call.shared.keyspace.store, &namespace.raw(key))?;
            call.session.watch(Watched { db, key: key.to_vec(), seen }, &call.shared.observers.watches);
        }
    }
    call.ok();
    Ok(())
}

fn unwatch(call: &mut Call<'_>) -> Result<(), Refusal> {
    call.session.unwatch(&call.shared.observers.watches);
    call.ok();
    Ok(())
}
