//! Entire databases: DBSIZE, FLUSHALL, FLUSHDB, SWAPDB.

use std::ops::Bound;

use hikv::{Order, Ordered};

use super::moving::database_of;
use crate::errors::{FixedError, Refusal};
use crate::execution::call::{Call, Function};
use crate::keyspace::database::Database;
use crate::keyspace::items::Items;
use crate::keyspace::namespace::Namespace;
use crate::shared::Shared;

/// Functions of these commands, by the names of their table rows.
pub(super) const FUNCTIONS: &[(&str, Function)] = functions![dbsize, flushall, flushdb, swapdb];

fn dbsize(call: &mut Call<'_>) -> Result<(), Refusal> {
    let count = key_count(call.shared, call.store(), call.namespace())?;
    call.reply.integer(count as i64);
    Ok(())
}

/// Returns the number of keys of a namespace. If only the first namespace has ever been used, this is the store's
/// count; otherwise the keys of the other namespaces are counted in the ordered index.
pub(crate) fn key_count(shared: &Shared, items: Items<'_>, namespace: Namespace) -> Result<u64, Refusal> {
    let databases = &shared.keyspace.databases;
    if !namespace.is_first() || databases.has_catalog() {
        return if databases.is_used(namespace) { counted(shared, items, namespace) } else { Ok(0) };
    }
    let mut count = items.len()?.saturating_sub(databases.is_stored().into());
    for other in databases.used_beyond_first() {
        count = count.saturating_sub(counted(shared, items, other)?);
    }
    Ok(count)
}

fn counted(shared: &Shared, items: Items<'_>, namespace: Namespace) -> Result<u64, Refusal> {
    if shared.keyspace.features.order == Order::No && shared.keyspace.databases.has_catalog() {
        let mut count = 0;
        each_key(items, namespace, |_| count += 1)?;
        return Ok(count);
    }
    let (ordered, mut count) = (ordered(shared)?, 0);
    for range in namespace.ranges(Bound::Unbounded, Bound::Unbounded) {
        count += items.count(ordered, range)?;
    }
    Ok(count)
}

fn ordered(shared: &Shared) -> Result<&Ordered, Refusal> {
    Ok(&shared.keyspace.ordered()?.waiting)
}

/// `ASYNC` and `SYNC` are accepted, without effect.
fn check_options(call: &Call<'_>) -> Result<(), Refusal> {
    let known = |option: &[u8]| option.eq_ignore_ascii_case(b"async") || option.eq_ignore_ascii_case(b"sync");
    if call.request.len() > 2 || !call.request.arguments().all(known) { Err(Refusal::Syntax) } else { Ok(()) }
}

fn flushall(call: &mut Call<'_>) -> Result<(), Refusal> {
    check_options(call)?;
    let shared = call.shared;
    call.touch_where(|db, key| has(call, db, key));
    let databases = &shared.keyspace.databases;
    if databases.has_catalog() {
        // Other trees stay.
        for db in Database::all() {
            delete_all(call, databases.namespace(db))?;
        }
    } else {
        databases.clear(call.store())?;
    }
    call.invalidate_all();
    call.ok();
    Ok(())
}

/// A single step if no other database has keys, or in a transaction. Otherwise the keys are deleted one by one, and a
/// crash may leave some.
fn flushdb(call: &mut Call<'_>) -> Result<(), Refusal> {
    check_options(call)?;
    let (shared, namespace) = (call.shared, call.namespace());
    call.touch_where(|db, key| db == call.session.db && has(call, db, key));
    let databases = &shared.keyspace.databases;
    if namespace.is_first() && !databases.has_catalog() && databases.used_beyond_first().next().is_none() {
        databases.clear_first(call.store())?;
    } else if databases.is_used(namespace) {
        delete_all(call, namespace)?;
    }
    call.invalidate_all();
    call.ok();
    Ok(())
}

/// Deletes the keys of a namespace one by one.
fn delete_all(call: &Call<'_>, namespace: Namespace) -> Result<(), Refusal> {
    let (shared, items) = (call.shared, call.store());
    if shared.keyspace.features.order == Order::No && shared.keyspace.databases.has_catalog() {
        let mut keys = Vec::new();
        each_key(items, namespace, |raw| keys.push(raw.to_vec()))?;
        return keys.iter().try_for_each(|key| items.delete(key).map(drop));
    }
    for range in namespace.ranges(Bound::Unbounded, Bound::Unbounded) {
        items.delete_range(ordered(shared)?, range)?;
    }
    Ok(())
}

/// Calls `each` with the keys of a namespace, as the store names them, in no order.
fn each_key(items: Items<'_>, namespace: Namespace, mut each: impl FnMut(&[u8])) -> Result<(), Refusal> {
    let mut cursor = 0;
    loop {
        cursor = items.walk(cursor, |raw| namespace.key_of(raw).into_iter().for_each(|_| each(raw)))?;
        if cursor == 0 {
            return Ok(());
        }
    }
}

/// Returns whether the database has the key, including uncommitted changes of the request's transaction.
fn has(call: &Call<'_>, db: Database, key: &[u8]) -> bool {
    call.store().contains(call.shared.keyspace.namespace(db).raw(key)).unwrap_or(true)
}

/// Changes only the table of databases.
fn swapdb(call: &mut Call<'_>) -> Result<(), Refusal> {
    for (at, sentence) in [(1, FixedError::FirstDb), (2, FixedError::SecondDb)] {
        call.integer(at).map_err(|_| sentence)?;
    }
    let (a, b) = (database_of(call.argument(1))?, database_of(call.argument(2))?);
    if a == b {
        call.ok();
        return Ok(());
    }
    let shared = call.shared;
    let is_touched = |key: &[u8]| has(call, a, key) || has(call, b, key);
    call.touch_where(|db, key| (db == a || db == b) && is_touched(key));
    shared.keyspace.databases.swap(call.store(), a, b)?;
    call.invalidate_all();
    call.ok();
    Ok(())
}
