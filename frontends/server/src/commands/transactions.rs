//! MULTI, EXEC, DISCARD, WATCH, UNWATCH.
//!
//! EXEC has exclusive access, and writes the changes as one batch after its last command: neither a client nor a crash
//! can see only some of them (`items/pending.rs`).

use std::sync::atomic::Ordering;

use crate::clients::session::Transaction;
use crate::errors::{FixedError, Refusal};
use crate::execution::call::{Call, Function, REPLY_BYTES_MAX};
use crate::execution::permission;
use crate::keyspace::Table;
use crate::keyspace::items::{KeyState, Pending, WatchedKeys};
use crate::observers::announcements::Announcements;
use crate::observers::watch::WatchedStates;
use crate::shared::Shared;
use command_table::Kind;

/// Functions of these commands, by the names of their table rows.
pub(super) const FUNCTIONS: &[(&str, Function)] = functions![discard, exec, multi, unwatch, watch];

fn multi(call: &mut Call<'_>) -> Result<(), Refusal> {
    if call.session.transaction.is_some() {
        return Err(FixedError::NestedMulti.into());
    }
    call.session.transaction = Some(Box::default());
    call.ok();
    Ok(())
}

fn discard(call: &mut Call<'_>) -> Result<(), Refusal> {
    call.session.transaction.take().ok_or(FixedError::DiscardWithoutMulti)?;
    call.session.unwatch(&call.shared.observers.watches);
    call.ok();
    Ok(())
}

fn exec(call: &mut Call<'_>) -> Result<(), Refusal> {
    let transaction = call.session.transaction.take().ok_or(FixedError::ExecWithoutMulti)?;
    let watched_keys = watched_keys(call)?;
    call.session.unwatch(&call.shared.observers.watches);
    if transaction.is_broken {
        return Err(FixedError::ExecAbort.into());
    }
    let Some(watched_keys) = watched_keys else {
        overtaken(call);
        return Ok(());
    };
    let (pending, start) = (Pending::depending_on(watched_keys), call.reply.len_bytes());
    let mut databases = UntilWritten::begin(call.shared);
    call.session.is_executing = true;
    let announcements = Announcements::default();
    let executed = execute_all(call, &transaction, (&pending, &announcements));
    call.session.is_executing = false;
    executed?;
    databases.is_written = write(call, pending, announcements)?;
    if !databases.is_written {
        call.reply.truncate(start);
        overtaken(call);
    }
    Ok(())
}

/// Restores the table of databases unless the transaction is written. So a transaction that is refused or panics leaves
/// no change of the table.
pub(super) struct UntilWritten<'a> {
    shared: &'a Shared,
    before: Table,
    pub(super) is_written: bool,
}

impl UntilWritten<'_> {
    pub(super) fn begin(shared: &Shared) -> UntilWritten<'_> {
        UntilWritten { shared, before: shared.keyspace.databases.now(), is_written: false }
    }
}

impl Drop for UntilWritten<'_> {
    fn drop(&mut self) {
        if !self.is_written {
            self.shared.keyspace.databases.reload(&self.shared.keyspace.store, &self.before);
        }
    }
}

/// Replies that a watched key was changed.
fn overtaken(call: &mut Call<'_>) {
    // The reply reveals another client's write, which was not read here and may not be durable yet.
    call.session.observed =
        call.session.observed.merge(hikv::FrontEnd::of(&call.shared.keyspace.store).deferred_so_far());
    if !call.session.is_silent() {
        call.reply.null_array();
    }
}

/// Writes the transaction's changes, then sends its announcements; returns false if a watched key was changed. If
/// writing fails, no change has been made, nothing is sent, and the refusal replaces the replies.
pub(super) fn write(call: &Call<'_>, pending: Pending, announcements: Announcements) -> Result<bool, Refusal> {
    let shared = call.shared;
    if !pending.commit(&shared.keyspace.store, &shared.keyspace.databases.ids())? {
        return Ok(false);
    }
    announcements.send(shared, call.session);
    Ok(true)
}

/// Returns the watched keys with their states; `None` if one was changed or has expired.
fn watched_keys(call: &Call<'_>) -> Result<Option<WatchedKeys>, Refusal> {
    let watching = &call.session.watching;
    if watching.mark.load(Ordering::SeqCst) {
        return Ok(None);
    }
    let strings = watching
        .keys
        .iter()
        .map(|((db, key), states)| (call.shared.keyspace.namespace(*db).raw(key).into_owned(), states.string));
    let records = watching
        .keys
        .iter()
        .filter_map(|((db, key), states)| call.view_of(*db).map(|view| (view.record_key(key), states.record)));
    let keys = strings.chain(records);
    let mut watched_keys = WatchedKeys::of(keys);
    Ok(watched_keys.hold(&call.shared.keyspace.store)?.then_some(watched_keys))
}

/// Executes the commands and writes their replies. A client that wants no replies still gets the messages that confirm
/// its subscriptions, as in Redis.
///
/// # Errors
/// [`Refusal::ExecAbort`] if the replies together become too long, [`Refusal::Stopped`] if a script was stopped; the
/// transaction is then not written.
fn execute_all(
    call: &mut Call<'_>,
    transaction: &Transaction,
    (pending, announcements): (&Pending, &Announcements),
) -> Result<(), Refusal> {
    let (requests, start, is_silent) = (&transaction.requests, call.reply.len_bytes(), call.session.is_silent());
    if !is_silent {
        call.reply.array(requests.len());
    }
    for index in 0..requests.len() {
        let (request, reply_start) = (requests.get(index, &[]), call.reply.len_bytes());
        let acl = &call.shared.administration.acl;
        let executed = permission::admit_queued(&request, acl, call.session).and_then(|entry| {
            let mut step = Call {
                shared: call.shared,
                session: &mut *call.session,
                entry,
                request,
                reply: call.reply.reborrow(),
                event_counts: &mut *call.event_counts,
                pending: Some(pending),
                announcements: Some(announcements),
            };
            step.run().map(|()| entry.command.pushes())
        });
        if let Err(refusal @ Refusal::Stopped(_)) = executed {
            return Err(refusal);
        }
        let is_message = executed.unwrap_or_else(|refusal| {
            call.client().note_refused(&refusal);
            let text = refusal.text();
            if !refusal.is_counted() {
                call.event_counts.add_error(Kind::Transaction);
                call.shared.telemetry.errors.note(&text);
            }
            call.reply.truncate(reply_start);
            call.reply.error(&text);
            false
        });
        // CLIENT REPLY may have ended the silence.
        if is_silent && call.session.is_silent() && !is_message {
            call.reply.truncate(reply_start);
        }
        // HELLO may have changed it.
        call.reply.switch_to(call.session.protocol);
        if call.is_reply_too_long(start) {
            return Err(Refusal::ExecAbort(format!("replies exceed {REPLY_BYTES_MAX} bytes")));
        }
    }
    Ok(())
}

/// Has exclusive access, so that no change of the key is in progress.
fn watch(call: &mut Call<'_>) -> Result<(), Refusal> {
    if call.session.transaction.is_some() {
        return Err(FixedError::WatchInMulti.into());
    }
    let (db, namespace) = (call.session.db, call.namespace());
    for key in call.request.arguments() {
        let name = (db, key.to_vec());
        if !call.session.watching.keys.contains_key(&name) {
            let store = &call.shared.keyspace.store;
            let string = KeyState::of(store, &namespace.raw(key))?;
            let record = call.view().map_or(Ok(None), |view| KeyState::of(store, &view.record_key(key)))?;
            call.session.watch(name, WatchedStates { string, record }, &call.shared.observers.watches);
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
