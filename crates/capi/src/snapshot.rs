//! Snapshots.

use std::ffi::{c_int, c_void};

use hikv::Snapshot;

use crate::batch::no_such_tree;
use crate::failure::Failure;
use crate::handle::{hikv_snapshot, hikv_store, hikv_tree, store_of};
use crate::memory::{Out, Place, hikv_slice, value};
use crate::{call, code};

impl hikv_snapshot {
    /// Returns the view of a tree: the store's own keys for null.
    ///
    /// # Safety
    /// `tree` is null or a live handle.
    pub(crate) unsafe fn view(&self, tree: *mut hikv_tree) -> Result<Snapshot, Failure> {
        // SAFETY: as this function's.
        match unsafe { self.store.tree(tree)? }.name() {
            None => Ok(self.snapshot.clone()),
            Some(name) => self.snapshot.tree(&name)?.ok_or_else(|| no_such_tree(&name)),
        }
    }
}

/// Takes a snapshot.
///
/// # Safety
/// [That of the crate](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hikv_snapshot_new(store: *mut hikv_store, out: *mut *mut hikv_snapshot) -> c_int {
    // SAFETY: the caller's rules.
    call::on(unsafe { store_of(store) }, |handle| {
        // SAFETY: the caller's rules.
        let out = unsafe { Place::new(out, "place of the snapshot")? };
        let snapshot = handle.store.snapshot()?;
        // SAFETY: the store's handle is live.
        let store = unsafe { hikv_store::shared(store) };
        out.set(Box::into_raw(Box::new(hikv_snapshot { snapshot, store })));
        Ok(code::OK)
    })
}

/// Frees a snapshot.
///
/// # Safety
/// [That of the crate](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hikv_snapshot_free(snapshot: *mut hikv_snapshot) {
    // SAFETY: the handle comes from `hikv_snapshot_new`.
    unsafe { call::free(snapshot) }
}

/// Copies a value of a snapshot.
///
/// # Safety
/// [That of the crate](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hikv_snapshot_get(
    snapshot: *mut hikv_snapshot,
    tree: *mut hikv_tree,
    key: hikv_slice,
    out: *mut c_void,
    cap: usize,
    len: *mut usize,
) -> c_int {
    // SAFETY: the caller's rules.
    call::on(unsafe { value(snapshot, "snapshot") }, |snapshot: &hikv_snapshot| {
        // SAFETY: the caller's rules.
        let (view, key, out) = unsafe { (snapshot.view(tree)?, key.bytes()?, Out::new(out, cap, len)?) };
        Ok(view.get_in_place(key, |value| out.set(value))?.unwrap_or(code::ABSENT))
    })
}
