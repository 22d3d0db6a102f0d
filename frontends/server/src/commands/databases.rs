//! Entire databases: DBSIZE, FLUSHALL, FLUSHDB, SWAPDB.

use std::ops::Bound;

use hikv::{Error, Limits, Order, Ordered};

use super::moving::database_of;
use crate::errors::{FixedError, Refusal};
use crate::execution::call::{Call, Function};
use crate::keyspace::collections::{Changes, View};
use crate::keyspace::database::Database;
use crate::keyspace::items::Items;
use crate::keyspace::namespace::Namespace;
use crate::shared::Shared;

/// Functions of these commands, by the names of their table rows.
pub(super) const FUNCTIONS: &[(&str, Function)] = functions![dbsize, flushall, flushdb, swapdb];

/// A batch has not more keys than this.
const BATCH_KEY_COUNT_MAX: u64 = Limits::BATCH_BYTES_MAX / 512;

fn dbsize(call: &mut Call<'_>) -> Result<(), Refusal> {
    let count = key_count(call.shared, call.store(), call.namespace())?;
    call.reply.integer(count as i64);
    Ok(())
}

/// Returns the number of keys of a namespace. If only the first namespace has ever been used, this is the store's
/// count; otherwise the keys of the other namespaces are counted in the ordered index.
pub(crate) fn key_count(shared: &Shared, items: Items<'_>, namespace: Namespace) -> Result<u64, Refusal> {
    let collections = shared.keyspace.view(items, namespace).map_or(Ok(0), View::count)?;
    Ok(string_count(shared, items, namespace)? + collections)
}

fn string_count(shared: &Shared, items: Items<'_>, namespace: Namespace) -> Result<u64, Refusal> {
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
    call.touch_where(|db, key| has(call, db, key));
    flush(call, &Database::all().collect::<Vec<_>>())?;
    call.invalidate_all();
    call.ok();
    Ok(())
}

fn flushdb(call: &mut Call<'_>) -> Result<(), Refusal> {
    check_options(call)?;
    call.touch_where(|db, key| db == call.session.db && has(call, db, key));
    flush(call, &[call.session.db])?;
    call.invalidate_all();
    call.ok();
    Ok(())
}

/// Empties databases in one step. Exception: keys of the store's own tree that are too many for one batch, or for the
/// space that is left, are deleted one by one before it.
fn flush(call: &Call<'_>, emptied: &[Database]) -> Result<(), Refusal> {
    let (items, databases) = (call.store(), &call.shared.keyspace.databases);
    let is_used = |db: Database| databases.is_used(databases.namespace(db));
    if !databases.has_catalog() && !Database::all().any(|db| !emptied.contains(&db) && is_used(db)) {
        match databases.clear(items) {
            // The snapshot of a backup, for example, needs the keys.
            Err(Refusal::Store(Error::SnapshotLive { .. })) => {}
            cleared => return cleared,
        }
    }
    let used = || emptied.iter().copied().filter(|db| is_used(*db));
    let is_first = |db: &Database| databases.namespace(*db).is_first();
    if !items.are_pending() && !used().all(|db| is_first(&db)) && databases.begin_catalog(items.store())? {
        call.invalidate_all();
    }
    let (renewed, others): (Vec<_>, Vec<_>) = used().partition(|db| databases.has_catalog() && !is_first(db));
    if !items.are_pending() && items.len()? > BATCH_KEY_COUNT_MAX {
        others.iter().try_for_each(|db| delete_one_by_one(call, *db))?;
    }
    match flush_at_once(call, &renewed, &others) {
        Err(Refusal::Store(error))
            if !items.are_pending() && (error.is_full() || matches!(error, Error::BatchTooLong { .. })) =>
        {
            others.iter().try_for_each(|db| delete_one_by_one(call, *db))?;
            flush_at_once(call, &renewed, &others)
        }
        flushed => flushed,
    }
}

/// Gives databases new namespaces, and deletes the keys of others, in one step.
fn flush_at_once(call: &Call<'_>, renewed: &[Database], emptied: &[Database]) -> Result<(), Refusal> {
    let (shared, items, mut changes) = (call.shared, call.store(), Changes::default());
    let databases = &shared.keyspace.databases;
    for db in emptied {
        each_key_by_order(shared, items, databases.namespace(*db), |raw| changes.delete(raw.to_vec()))?;
        if let Some(view) = call.view_of(*db) {
            view.delete_all(&mut changes)?;
        }
    }
    renewed.iter().filter_map(|db| call.view_of(*db)).for_each(|view| view.note_flushed(&mut changes));
    if databases.has_catalog() {
        return databases.renew(items, renewed, &changes.as_batch());
    }
    items.change_all(&changes.as_batch())
}

fn delete_one_by_one(call: &Call<'_>, db: Database) -> Result<(), Refusal> {
    let (items, namespace) = (call.store(), call.shared.keyspace.namespace(db));
    let (mut cursor, mut keys) = (0, Vec::new());
    loop {
        cursor = items.walk(cursor, |raw| keys.extend(namespace.key_of(raw).map(|_| raw.to_vec())))?;
        keys.drain(..).try_for_each(|key| items.delete(key).map(drop))?;
        if cursor == 0 {
            break;
        }
    }
    while call.view_of(db).map_or(Ok(false), View::delete_some)? {}
    Ok(())
}

/// Like [`each_key`], by the order of keys if there are other databases and the engine has an order.
fn each_key_by_order(
    shared: &Shared,
    items: Items<'_>,
    namespace: Namespace,
    mut each: impl FnMut(&[u8]),
) -> Result<(), Refusal> {
    if namespace.is_first() || shared.keyspace.features.order == Order::No {
        return each_key(items, namespace, each);
    }
    for range in namespace.ranges(Bound::Unbounded, Bound::Unbounded) {
        for item in items.range(ordered(shared)?, range, false)? {
            each(&item?.0);
        }
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
    call.contains_key(db, key).unwrap_or(true)
}

/// Changes only the table of databases, or the catalog.
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
