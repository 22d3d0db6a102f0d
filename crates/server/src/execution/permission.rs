//! Whether a client may send a request, and what comes of one that it may not.
//!
//! A request is checked again whenever it has waited between the check and its execution: for all other loops, or in the queue of
//! background jobs. Another client may have killed the sender or reduced the user's rights in that time.

use std::time::Instant;

use resp::{Protocol, Request};

use crate::administration::acl::{LogEntry, Reason};
use crate::clients::session::Session;
use crate::connections::output::Output;
use crate::errors::{Refusal, Sentence};
use crate::execution::accounts;
use crate::shared::Shared;
use crate::table::{self, Entry, flag};
use crate::telemetry::{Kind, Tally};

/// Whether the client is still served: no other client has killed it or deleted its user. Its rights are up to date then.
#[inline]
pub(crate) fn stays(session: &mut Session, shared: &Shared) -> bool {
    let stays = !session.record.is_killed() && shared.administration.acl.refresh(&mut session.login);
    if !stays {
        session.closing = true;
    }
    stays
}

/// The command that a request names, if the client may use it now.
#[inline]
pub(crate) fn admit(request: &Request<'_>, session: &Session) -> Result<Entry, Refusal> {
    let entry = table::find(request)?;
    if session.subscriptions.count() > 0
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

/// Answers a request that its client may not send.
pub(crate) fn refuse(
    refusal: Refusal,
    request: &Request<'_>,
    session: &mut Session,
    shared: &Shared,
    output: &mut Output,
    tally: &mut Tally,
) {
    accounts::note_rejected(request, session, shared);
    let refusal = end_refused(refusal, request, session, shared);
    tally.batch.add_requests(Kind::Other, 1);
    tally.add_error(Kind::Other);
    note_refused(&refusal, session, shared);
    session.forget_caching();
    let text = refusal.text();
    shared.telemetry.errors.note(&text);
    if session.takes_reply() {
        output.reply(session.protocol).error(&text);
    }
}

/// The refusal of a request by which a transaction would have been executed: that is over, as in Redis. Any other stays as it is.
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
