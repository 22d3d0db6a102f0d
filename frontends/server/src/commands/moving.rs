//! Commands that give an item another key or database: RENAME, COPY, MOVE. They have exclusive access, and are atomic
//! for a crash.

use crate::errors::{FixedError, Refusal};
use crate::execution::call::{Call, Function};
use crate::keyspace::database::Database;
use crate::keyspace::items::Change;
use crate::observers::events::GENERIC;

/// Functions of these commands, by the names of their table rows.
pub(super) const FUNCTIONS: &[(&str, Function)] = functions![copy, "move" => move_key, rename, renamenx];

fn rename(call: &mut Call<'_>) -> Result<(), Refusal> {
    rename_if(call, true)?;
    call.ok();
    Ok(())
}

fn renamenx(call: &mut Call<'_>) -> Result<(), Refusal> {
    let is_renamed = rename_if(call, false)?;
    call.reply.integer(is_renamed.into());
    Ok(())
}

/// Returns false if the new key exists and must not be replaced.
fn rename_if(call: &mut Call<'_>, replaces: bool) -> Result<bool, Refusal> {
    let (from, to) = (call.key(1), call.key(2));
    if !call.store().contains(&from)? {
        return Err(FixedError::NoSuchKey.into());
    }
    if from == to || !replaces && call.store().contains(&to)? {
        return Ok(replaces);
    }
    move_item(call, &from, &to)?;
    call.changed(GENERIC, "rename_from", 1);
    call.report(GENERIC, "rename_to", 2);
    Ok(true)
}

/// Moves an item to another key, replacing any item there; its expiry is kept.
fn move_item(call: &Call<'_>, from: &[u8], to: &[u8]) -> Result<bool, Refusal> {
    let Some((value, expiry)) = call.store().held(from)? else { return Ok(false) };
    call.store().change_all(&[(to, Change::Put(&value, expiry)), (from, Change::Delete)])?;
    Ok(true)
}

/// Copies an item with its expiry to another key, replacing any item there; returns false if there is no such item.
fn copy_item(call: &Call<'_>, from: &[u8], to: &[u8]) -> Result<bool, Refusal> {
    let Some((value, expiry)) = call.store().held(from)? else { return Ok(false) };
    call.store().change_all(&[(to, Change::Put(&value, expiry))])?;
    Ok(true)
}

/// Parses a database number.
pub(super) fn database_of(argument: &[u8]) -> Result<Database, Refusal> {
    let number = resp::parse_integer(argument).ok_or(Refusal::NotAnInteger)?;
    Database::of(number).ok_or(Refusal::DbIndex)
}

fn copy(call: &mut Call<'_>) -> Result<(), Refusal> {
    let (mut db, mut replaces) = (call.session.db, false);
    let mut arguments = call.request.arguments().skip(2);
    while let Some(name) = arguments.next() {
        match name.to_ascii_lowercase().as_slice() {
            b"replace" => replaces = true,
            b"db" => db = database_of(arguments.next().ok_or(Refusal::Syntax)?)?,
            _ => return Err(Refusal::Syntax),
        }
    }
    let to = call.shared.keyspace.namespace(db).raw(call.argument(2));
    let is_copied = copy_unless_there(call, &to, replaces)?;
    if is_copied {
        call.changed_key(1, GENERIC, "copy_to", db, call.argument(2));
    }
    call.reply.integer(is_copied.into());
    Ok(())
}

fn copy_unless_there(call: &Call<'_>, to: &[u8], replaces: bool) -> Result<bool, Refusal> {
    if *call.key(1) == *to {
        return Err(FixedError::SameObject.into());
    }
    if !replaces && call.store().contains(to)? {
        return Ok(false);
    }
    copy_item(call, &call.key(1), to)
}

fn move_key(call: &mut Call<'_>) -> Result<(), Refusal> {
    let db = database_of(call.argument(2))?;
    let to = call.shared.keyspace.namespace(db).raw(call.argument(1));
    if call.key(1) == to {
        return Err(FixedError::SameObject.into());
    }
    let is_moved = !call.store().contains(&to)? && move_item(call, &call.key(1), &to)?;
    if is_moved {
        call.changed(GENERIC, "move_from", 1);
        call.changed_key(0, GENERIC, "move_to", db, call.argument(1));
    }
    call.reply.integer(is_moved.into());
    Ok(())
}
