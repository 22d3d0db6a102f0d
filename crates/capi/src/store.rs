//! The whole store: opening, closing, batches, tickets.

use std::ffi::{OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use hikv::{Error, Ticket, Tree};

use crate::batch::batch_of;
use crate::failure::Failure;
use crate::handle::{hikv_store, hikv_tree, store_of};
use crate::memory::{Out, Place, array};
use crate::options::{hikv_options, options_of};
use crate::{call, code};

/// Returns the path of a call.
///
/// # Safety
/// `path` is null or valid for `len` bytes.
unsafe fn path_of<'a>(path: *const c_char, len: usize) -> Result<&'a Path, Failure> {
    // SAFETY: as this function's.
    let bytes = unsafe { array(path.cast::<u8>(), len, "path")? };
    if bytes.is_empty() || bytes.contains(&0) {
        return Err(Failure::option(format!("'{}' is no path", bytes.escape_ascii())));
    }
    Ok(Path::new(OsStr::from_bytes(bytes)))
}

/// Opens a store.
///
/// # Safety
/// [That of the crate](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hikv_open(
    path: *const c_char,
    path_len: usize,
    options: *const hikv_options,
    out: *mut *mut hikv_store,
) -> c_int {
    call::run(|| {
        // SAFETY: the caller's rules.
        let (out, path, options) =
            unsafe { (Place::new(out, "place of the store")?, path_of(path, path_len)?, options_of(options)?) };
        let store = options.open(path)?;
        out.set(Arc::into_raw(Arc::new(hikv_store::new(store))).cast_mut());
        Ok(code::OK)
    })
}

/// Closes a store without live children.
///
/// # Safety
/// [That of the crate](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hikv_close(store: *mut hikv_store) -> c_int {
    if store.is_null() {
        return code::OK;
    }
    call::run(|| {
        // SAFETY: the handle is live, and holds one count of the `Arc`, which the caller gives back.
        match Arc::try_unwrap(unsafe { Arc::from_raw(store.cast_const()) }) {
            Ok(handle) => match handle.store.close() {
                // In a child process there is nothing to close.
                Ok(()) | Err(Error::Forked) => Ok(code::OK),
                Err(error) => Err(error.into()),
            },
            Err(shared) => {
                let others = Arc::strong_count(&shared) - 1;
                // The handle stays live.
                let _ = Arc::into_raw(shared);
                Err(Failure::new(code::BUSY, format!("{others} trees, snapshots, iterators or transactions are open")))
            }
        }
    })
}

/// Makes earlier writes durable.
///
/// # Safety
/// [That of the crate](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hikv_sync(store: *mut hikv_store) -> c_int {
    // SAFETY: the caller's rules.
    call::on(unsafe { store_of(store) }, |handle| {
        handle.store.sync()?;
        Ok(code::OK)
    })
}

/// Writes the store's figures as JSON.
///
/// # Safety
/// [That of the crate](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hikv_stats(store: *mut hikv_store, out: *mut c_void, cap: usize, len: *mut usize) -> c_int {
    // SAFETY: the caller's rules.
    call::on_own(unsafe { store_of(store) }, |handle| {
        // SAFETY: the caller's rules.
        let out = unsafe { Out::new(out, cap, len)? };
        let json = serde_json::to_vec(&handle.store.stats());
        Ok(out.set(&json.map_err(|error| Failure::new(code::ERROR, error.to_string()))?))
    })
}

/// Copies a store in use.
///
/// # Safety
/// [That of the crate](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hikv_backup(store: *mut hikv_store, place: *const c_char, place_len: usize) -> c_int {
    // SAFETY: the caller's rules.
    call::on_own(unsafe { store_of(store) }, |handle| {
        // SAFETY: the caller's rules.
        let place = unsafe { path_of(place, place_len)? };
        handle.store.backup(place, |_| {})?;
        Ok(code::OK)
    })
}

/// Writes the batch of a buffer.
fn write(handle: &hikv_store, tree: &Tree, ops: &[u8], unmet: Option<&Place<usize>>) -> Result<c_int, Failure> {
    let batch = batch_of(&handle.store, ops)?;
    tree.write(&batch).inspect_err(|error| {
        if let (Error::ConditionFailed { condition }, Some(unmet)) = (error, unmet) {
            unmet.set(*condition);
        }
    })?;
    Ok(code::OK)
}

/// Applies a buffer of operations as one step.
///
/// # Safety
/// [That of the crate](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hikv_write(
    store: *mut hikv_store,
    tree: *mut hikv_tree,
    ops: *const c_void,
    len: usize,
    unmet: *mut usize,
) -> c_int {
    // SAFETY: the caller's rules.
    call::on_own(unsafe { store_of(store) }, |handle| {
        // SAFETY: the caller's rules.
        let (tree, ops, unmet) =
            unsafe { (handle.tree(tree)?, array(ops.cast::<u8>(), len, "buffer")?, Place::optional(unmet)) };
        write(handle, tree, ops, Some(&unmet))
    })
}

/// Applies a buffer of operations without a wait for the disk.
///
/// # Safety
/// [That of the crate](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hikv_deferred_write(
    store: *mut hikv_store,
    tree: *mut hikv_tree,
    ops: *const c_void,
    len: usize,
    ticket: *mut u64,
) -> c_int {
    // SAFETY: the caller's rules.
    call::on_own(unsafe { store_of(store) }, |handle| {
        // SAFETY: the caller's rules.
        let (tree, ops, place) = unsafe {
            (handle.tree(tree)?, array(ops.cast::<u8>(), len, "buffer")?, Place::new(ticket, "place of the ticket")?)
        };
        let (written, ticket) = handle.store.deferred(|_| write(handle, tree, ops, None));
        place.set(ticket.to_number());
        written
    })
}

/// Returns `HIKV_OK` if a ticket is durable.
///
/// # Safety
/// [That of the crate](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hikv_is_durable(store: *mut hikv_store, ticket: u64) -> c_int {
    // SAFETY: the caller's rules.
    call::on_own(unsafe { store_of(store) }, |handle| {
        let is_durable = handle.store.is_durable(Ticket::from_number(ticket))?;
        Ok(if is_durable { code::OK } else { code::PENDING })
    })
}

/// Waits until a ticket is durable.
///
/// # Safety
/// [That of the crate](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hikv_wait(store: *mut hikv_store, ticket: u64) -> c_int {
    // SAFETY: the caller's rules.
    call::on(unsafe { store_of(store) }, |handle| {
        handle.store.wait(Ticket::from_number(ticket))?;
        Ok(code::OK)
    })
}

#[cfg(test)]
mod tests {
    use std::ptr;
    use std::sync::Arc;

    use hikv::Store;

    use super::{hikv_close, hikv_is_durable, hikv_store, hikv_wait};
    use crate::code;

    #[test]
    fn invalid_ticket_does_not_wait_forever() {
        // On a disk, if the source is on one: in memory, all tickets are durable.
        let dir = tempfile::tempdir_in(".").expect("a directory");
        let opened = Store::open(dir.path()).expect("it opens");
        let expected = if opened.stats().journal.is_some() { code::PENDING } else { code::OK };
        let store = Arc::into_raw(Arc::new(hikv_store::new(opened))).cast_mut();
        // SAFETY: the handle is live until it is closed.
        unsafe {
            for number in [u64::MAX, u64::MAX - 1, 1 << 40] {
                assert_eq!(hikv_is_durable(store, number), expected);
                assert_eq!(hikv_wait(store, number), code::OK);
            }
            assert_eq!(hikv_is_durable(ptr::null_mut(), 0), code::OPTION);
            assert_eq!(hikv_close(store), code::OK);
        }
    }
}
