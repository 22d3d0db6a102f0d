//! Access control: whether a client may send a request.
//!
//! A request is checked again if it has waited between check and execution: for exclusive access, or in the queue of
//! background jobs. Another client may have killed the sender or reduced the user's rights in that time.

use resp::{Protocol, Request};

use crate::clients::session::Session;
use crate::errors::{FixedError, Refusal};
use acl::{Acl, Reason};
use command_table::{self as table, Entry, flag};

/// Returns the command that the request names, if the client may use it now. As in Redis, a missing right is reported
/// before a command that subscribers cannot use.
#[inline]
pub(crate) fn admit(request: &Request<'_>, session: &Session) -> Result<Entry, Refusal> {
    let entry = table::find(request).map_err(|unknown| Refusal::of_unknown(unknown, request))?;
    permit(entry, request, session)?;
    if session.subscriptions.count() > 0
        && session.protocol == Protocol::Resp2
        && !entry.command.policy.when.serves_subscribers()
    {
        return Err(Refusal::Message(format!(
            "Can't execute '{}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context",
            entry.command.name
        )));
    }
    Ok(entry)
}

/// Returns the command of a queued request, if the client may still use it: an earlier command of the transaction may
/// have reduced the user's rights, or deleted the user. As in Redis, a transaction proceeds if its client has
/// subscribed after MULTI.
pub(crate) fn admit_queued(request: &Request<'_>, acl: &Acl, session: &mut Session) -> Result<Entry, Refusal> {
    let entry = table::find(request).map_err(|unknown| Refusal::of_unknown(unknown, request))?;
    if !acl.refresh(&mut session.login) {
        return Err(FixedError::NoAuth.into());
    }
    permit(entry, request, session).map_err(|refusal| match refusal {
        Refusal::Denied { reason, object, .. } => Refusal::Denied { what: queued_denial(reason), reason, object },
        other => other,
    })?;
    Ok(entry)
}

#[inline]
fn permit(entry: Entry, request: &Request<'_>, session: &Session) -> Result<(), Refusal> {
    match session.login.user() {
        Some(user) => user.check(entry, request).map_err(|denied| denial(entry, denied.reason, &denied.object)),
        None if entry.command.has(flag::NO_AUTH) => Ok(()),
        None => Err(FixedError::NoAuth.into()),
    }
}

/// Returns Redis' text of a denial that comes after the request was queued.
fn queued_denial(reason: Reason) -> String {
    let lacks = match reason {
        Reason::Key => "no permission to touch the specified keys",
        Reason::Channel => "no permission to access one of the channels used as arguments",
        Reason::Command | Reason::Auth => "no permission to execute the command or subcommand",
    };
    format!(
        "ACLs rules changed between the moment the transaction was accumulated and the EXEC call. This command is no \
         longer allowed for the following reason: {lacks}"
    )
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
