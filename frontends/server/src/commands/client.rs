//! CLIENT: the connections.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use crate::clients::session::Replies;
use crate::clients::{Record, SUBSCRIBED};
use crate::errors::{FixedError, Refusal};
use crate::execution::call::{Call, Function};
use crate::messages::LoopMessage;

/// Functions of these commands, by the names of their table rows.
pub(super) const FUNCTIONS: &[(&str, Function)] = functions!["client|": [
    getname, id, info, kill, list, "no-evict" => no_evict, "no-touch" => no_touch, reply, setinfo, setname,
]];

fn id(call: &mut Call<'_>) -> Result<(), Refusal> {
    call.reply.integer(call.session.id as i64);
    Ok(())
}

/// Returns the name if it is valid: it must fit in a line of `CLIENT LIST`.
pub(super) fn checked_name(name: &[u8]) -> Result<&[u8], Refusal> {
    if is_line_word(name) { Ok(name) } else { Err(FixedError::ClientName.into()) }
}

fn is_line_word(word: &[u8]) -> bool {
    word.iter().all(|byte| (b'!'..=b'~').contains(byte))
}

fn setname(call: &mut Call<'_>) -> Result<(), Refusal> {
    call.session.record.names.lock().name = checked_name(call.argument(2))?.to_vec();
    call.ok();
    Ok(())
}

fn getname(call: &mut Call<'_>) -> Result<(), Refusal> {
    let name = call.session.record.names.lock().name.clone();
    match name.is_empty() {
        true => call.reply.null_bulk(),
        false => call.reply.bulk(&name),
    }
    Ok(())
}

/// Introduced in Redis 7.2; clients send it without checking the version.
fn setinfo(call: &mut Call<'_>) -> Result<(), Refusal> {
    let (attribute, value) = (call.argument(2).to_ascii_lowercase(), call.argument(3));
    if !is_line_word(value) {
        return Err(FixedError::ClientInfoValue.into());
    }
    let mut names = call.session.record.names.lock();
    match attribute.as_slice() {
        b"lib-name" => names.library = value.to_vec(),
        b"lib-ver" => names.library_version = value.to_vec(),
        other => {
            return Err(Refusal::Message(format!("Unrecognized option '{}'", String::from_utf8_lossy(other))));
        }
    }
    drop(names);
    call.ok();
    Ok(())
}

fn info(call: &mut Call<'_>) -> Result<(), Refusal> {
    call.session.show(Instant::now());
    let mut line = call.session.record.line();
    line.push(b'\n');
    call.reply.verbatim(&line);
    Ok(())
}

fn list(call: &mut Call<'_>) -> Result<(), Refusal> {
    call.session.show(Instant::now());
    let mut records = call.shared.clients.all();
    if call.request.len() > 2 {
        let option = call.argument(2).to_ascii_lowercase();
        match option.as_slice() {
            b"type" if call.request.len() == 4 => {
                let kind = kind_of(call.argument(3))?;
                records.retain(|record| record.kind() == kind);
            }
            b"id" if call.request.len() > 3 => {
                let ids: Vec<u64> = call.request.arguments().skip(2).map(client_id_of).collect::<Result<_, _>>()?;
                records.retain(|record| ids.contains(&record.place.client_id));
            }
            _ => return Err(Refusal::Syntax),
        }
    }
    let mut lines = Vec::new();
    for record in records {
        lines.extend_from_slice(&record.line());
        lines.push(b'\n');
    }
    call.reply.verbatim(&lines);
    Ok(())
}

fn client_id_of(argument: &[u8]) -> Result<u64, Refusal> {
    let id = resp::parse_integer(argument).filter(|id| *id >= 0);
    id.map(|id| id as u64).ok_or_else(|| FixedError::InvalidClientId.into())
}

fn kind_of(argument: &[u8]) -> Result<&'static str, Refusal> {
    let kinds = ["normal", "master", "replica", "slave", "pubsub"];
    kinds
        .into_iter()
        .find(|kind| kind.as_bytes().eq_ignore_ascii_case(argument))
        .ok_or_else(|| Refusal::Message(format!("Unknown client type '{}'", String::from_utf8_lossy(argument))))
}

/// The clients selected by `CLIENT KILL`.
#[derive(Default)]
struct Wanted {
    id: Option<u64>,
    addr: Option<String>,
    laddr: Option<String>,
    user: Option<String>,
    kind: Option<&'static str>,
    spares_me: bool,
}

impl Wanted {
    fn of(call: &Call<'_>) -> Result<Wanted, Refusal> {
        let mut wanted = Wanted { spares_me: true, ..Wanted::default() };
        let mut arguments = call.request.arguments().skip(1);
        while let Some(option) = arguments.next() {
            let value = arguments.next().ok_or(Refusal::Syntax)?;
            let text = || Some(String::from_utf8_lossy(value).into_owned());
            match option.to_ascii_lowercase().as_slice() {
                b"id" => {
                    let id = resp::parse_integer(value).filter(|id| *id > 0).ok_or(FixedError::UnknownClient)?;
                    wanted.id = Some(id as u64);
                }
                b"addr" => wanted.addr = text(),
                b"laddr" => wanted.laddr = text(),
                b"type" => wanted.kind = Some(kind_of(value)?),
                b"user" => {
                    wanted.user = text();
                    let name = wanted.user.as_deref().unwrap_or_default();
                    if call.shared.administration.acl.user(name).is_none() {
                        return Err(Refusal::Message(format!("No such user '{name}'")));
                    }
                }
                b"skipme" => {
                    wanted.spares_me = match value.to_ascii_lowercase().as_slice() {
                        b"yes" => true,
                        b"no" => false,
                        _ => return Err(Refusal::Syntax),
                    }
                }
                _ => return Err(Refusal::Syntax),
            }
        }
        Ok(wanted)
    }

    fn means(&self, record: &Record, me: u64) -> bool {
        !(self.spares_me && record.place.client_id == me)
            && self.id.is_none_or(|id| record.place.client_id == id)
            && self.addr.as_ref().is_none_or(|addr| record.addr.to_string() == *addr)
            && self.laddr.as_ref().is_none_or(|laddr| record.laddr.to_string() == *laddr)
            && self.user.as_ref().is_none_or(|user| record.names.lock().user == *user)
            && self.kind.is_none_or(|kind| record.kind() == kind)
    }
}

fn kill(call: &mut Call<'_>) -> Result<(), Refusal> {
    let is_old_form = call.request.len() == 3;
    let wanted = match is_old_form {
        true => Wanted { addr: Some(String::from_utf8_lossy(call.argument(2)).into_owned()), ..Wanted::default() },
        false => Wanted::of(call)?,
    };
    let meant: Vec<Arc<Record>> =
        call.shared.clients.all().into_iter().filter(|record| wanted.means(record, call.session.id)).collect();
    if is_old_form && meant.is_empty() {
        return Err(FixedError::NoSuchClient.into());
    }
    disconnect(call, &meant);
    match is_old_form {
        true => call.ok(),
        false => call.reply.integer(meant.len() as i64),
    }
    Ok(())
}

/// Disconnects clients. After this has returned, none of their requests is executed, not even one that the server has
/// already read, and no command counts or lists them. The caller has exclusive access and runs after any running
/// background job; the calling client itself gets its reply first.
pub(super) fn disconnect(call: &mut Call<'_>, records: &[Arc<Record>]) {
    let mut subscribers = HashSet::new();
    for record in records {
        if record.place.client_id == call.session.id {
            call.session.closing = true;
            continue;
        }
        record.kill();
        subscribers.extend(record.has(SUBSCRIBED).then_some(record.place.client_id));
        call.shared.mailboxes.send_to_loop(record.place.loop_index, LoopMessage::Close(record.place));
    }
    if !subscribers.is_empty() {
        call.shared.observers.pubsub.remove_clients(&subscribers);
    }
    call.await_turns_if_background();
}

/// Accepted: reads do not affect keys in any case.
fn no_touch(call: &mut Call<'_>) -> Result<(), Refusal> {
    on_or_off(call.argument(2), b"on", b"off")?;
    call.ok();
    Ok(())
}

fn on_or_off(argument: &[u8], on: &[u8], off: &[u8]) -> Result<bool, Refusal> {
    let is_on = argument.eq_ignore_ascii_case(on);
    if is_on || argument.eq_ignore_ascii_case(off) { Ok(is_on) } else { Err(Refusal::Syntax) }
}

/// Recorded and shown by `CLIENT LIST`, without effect.
fn no_evict(call: &mut Call<'_>) -> Result<(), Refusal> {
    let is_evictable = !on_or_off(call.argument(2), b"on", b"off")?;
    call.session.record.is_evictable.store(is_evictable, Ordering::Relaxed);
    call.ok();
    Ok(())
}

fn reply(call: &mut Call<'_>) -> Result<(), Refusal> {
    call.session.replies = match call.argument(2).to_ascii_lowercase().as_slice() {
        b"on" => Replies::On,
        b"off" => Replies::Off,
        b"skip" if call.session.replies == Replies::Off => Replies::Off,
        b"skip" => Replies::SkipThis,
        _ => return Err(Refusal::Syntax),
    };
    call.ok();
    Ok(())
}
