//! Access control: whether a client may send a request, and the reply if it may not.
//!
//! A request is checked again if it has waited between check and execution: for exclusive access, or in the queue of
//! background jobs. Another client may have killed the sender or reduced the user's rights in that time.

use std::time::Instant;

use resp::{Protocol, Request};

use crate::administration::acl::{LogEntry, Reason};
use crate::clients::session::Session;
use crate::connections::output::Output;
use crate::errors::{FixedError, Refusal};
use crate::execution::accounts;
use crate::shared::Shared;
use crate::table::{self, Entry, flag};
use crate::telemetry::{EventCounts, Kind};

/// Returns whether the client is still served, that is, neither killed nor without its user; refreshes its rights.
#[inline]
pub(crate) fn is_still_served(session: &mut Session, shared: &Shared) -> bool {
    let is_still_served = !session.record.is_killed() && shared.administration.acl.refresh(&mut session.login);
    if !is_still_served {
        session.closing = true;
    }
    is_still_served
}

/// Returns the command that the request names, if the client may use it now.
#[inline]
pub(crate) fn admit(request: &Request<'_>, session: &Session) -> Result<Entry, Refusal> {
    let entry = table::find(request)?;
    if session.subscriptions.count() > 0
        && session.protocol == Protocol::Resp2
        && !entry.command.policy.when.serves_subscribers()
    {
        return Err(Refusal::Message(format!(
            "Can't execute '{}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context",
            entry.command.name
        )));
    }
    permit(entry, request, session)
}

/// Returns the command of a queued request, if the client may still use it. As in Redis, a transaction proceeds if its
/// client has subscribed after MULTI.
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
        None => Err(FixedError::NoAuth.into()),
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

/// Records a refusal: it breaks a transaction, and may be added to the ACL log.
pub(crate) fn note_refused(refusal: &Refusal, session: &mut Session, shared: &Shared) {
    if let Some(transaction) = &mut session.transaction {
        transaction.is_broken = true;
    }
    if let Refusal::Denied { reason, object, .. } = refusal {
        log_denied(shared, session, *reason, object.clone(), session.login.name().to_owned());
    }
}

/// Answers a request that its client may not send.
pub(crate) fn refuse(
    refusal: Refusal,
    request: &Request<'_>,
    session: &mut Session,
    shared: &Shared,
    output: &mut Output,
    event_counts: &mut EventCounts,
) {
    accounts::note_rejected(request, session, shared);
    let refusal = end_refused(refusal, request, session, shared);
    event_counts.batch.add_requests(Kind::Other, 1);
    event_counts.add_error(Kind::Other);
    note_refused(&refusal, session, shared);
    session.forget_caching();
    let text = refusal.text();
    shared.telemetry.errors.note(&text);
    if session.wants_reply() {
        output.reply(session.protocol).error(&text);
    }
}

/// Adapts the refusal of an EXEC, which also discards the transaction, as in Redis. Any other refusal is returned
/// unchanged.
fn end_refused(refusal: Refusal, request: &Request<'_>, session: &mut Session, shared: &Shared) -> Refusal {
    let Some(entry) = table::by_name(request.name()).filter(|entry| entry.command.executes()) else { return refusal };
    note_refused(&refusal, session, shared);
    session.transaction = None;
    session.unwatch(&shared.observers.watches);
    accounts::show_to_monitors(entry, session, request, shared);
    let text = refusal.text();
    let why = String::from_utf8_lossy(text.strip_prefix(b"ERR ").unwrap_or(&text)).into_owned();
    Refusal::ExecAbort(why)
}

pub(crate) fn log_denied(shared: &Shared, session: &Session, reason: Reason, object: Vec<u8>, user: String) {
    shared.administration.acl.log.add(LogEntry {
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
