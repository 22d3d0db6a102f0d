//! Commands that give an item another key or database: RENAME, COPY, MOVE. They have exclusive access, and are atomic
//! for a crash.

use crate::errors::{FixedError, Refusal};
use crate::execution::call::{Call, Function};
use crate::execution::gathered::Gathered;
use crate::keyspace::collections::Changes;
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
    if !call.contains(1)? {
        return Err(FixedError::NoSuchKey.into());
    }
    if call.key(1) == call.key(2) || !replaces && call.contains(2)? {
        return Ok(replaces);
    }
    transfer(call, (call.session.db, call.argument(2)), true)?;
    call.changed(GENERIC, "rename_from", 1);
    call.report(GENERIC, "rename_to", 2);
    Ok(true)
}

/// Moves or copies the first key with its expiry to another key, replacing any value there; returns false if there is
/// no such key.
fn transfer(call: &Call<'_>, (db, key): (Database, &[u8]), is_moved: bool) -> Result<bool, Refusal> {
    let (items, from, to) = (call.store(), call.key(1), call.shared.keyspace.namespace(db).raw(key));
    let (string, mut changes) = (items.held(&from)?, Changes::default());
    if let Some(view) = call.view_of(db) {
        view.find(key)?.iter().for_each(|replaced| replaced.delete(&mut changes));
        if string.is_none() {
            let Some(found) = call.found(1)? else { return Ok(false) };
            changes.delete(to.into_owned());
            match is_moved {
                true => found.move_to(view, key, &mut changes)?,
                false => {
                    let mut gathered = Gathered::of(call);
                    found.copy_to(view, key, &mut changes, |len_bytes| gathered.read(len_bytes))?;
                }
            }
            return changes.write(items).map(|()| true);
        }
    }
    let Some((value, expiry)) = string else { return Ok(false) };
    let mut batch = changes.as_batch();
    batch.push((&to, Change::Put(&value, expiry)));
    if is_moved {
        batch.push((&from, Change::Delete));
    }
    items.change_all(&batch)?;
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
    let is_copied = copy_unless_there(call, db, replaces)?;
    if is_copied {
        call.changed_key(1, GENERIC, "copy_to", db, call.argument(2));
    }
    call.reply.integer(is_copied.into());
    Ok(())
}

fn copy_unless_there(call: &Call<'_>, db: Database, replaces: bool) -> Result<bool, Refusal> {
    let key = call.argument(2);
    if (call.session.db, call.argument(1)) == (db, key) {
        return Err(FixedError::SameObject.into());
    }
    if !replaces && call.contains_key(db, key)? {
        return Ok(false);
    }
    transfer(call, (db, key), false)
}

fn move_key(call: &mut Call<'_>) -> Result<(), Refusal> {
    let db = database_of(call.argument(2))?;
    if call.session.db == db {
        return Err(FixedError::SameObject.into());
    }
    let key = call.argument(1);
    let is_moved = !call.contains_key(db, key)? && transfer(call, (db, key), true)?;
    if is_moved {
        call.changed(GENERIC, "move_from", 1);
        call.changed_key(0, GENERIC, "move_to", db, call.argument(1));
    }
    call.reply.integer(is_moved.into());
    Ok(())
}
