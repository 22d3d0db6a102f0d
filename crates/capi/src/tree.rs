//! Named trees.

use std::ffi::{c_int, c_void};

use crate::batch::no_such_tree;
use crate::failure::Failure;
use crate::handle::{hikv_store, hikv_tree, store_of};
use crate::memory::{Out, Place, hikv_slice};
use crate::{call, code};

/// Opens a tree.
///
/// # Safety
/// [That of the crate](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hikv_tree_open(
    store: *mut hikv_store,
    name: hikv_slice,
    flags: u32,
    out: *mut *mut hikv_tree,
) -> c_int {
    // SAFETY: the caller's rules.
    call::on(unsafe { store_of(store) }, |handle| {
        // SAFETY: the caller's rules.
        let (name, out) = unsafe { (name.text()?, Place::new(out, "place of the tree")?) };
        let tree = match flags {
            0 => handle.store.existing_tree(name)?.ok_or_else(|| no_such_tree(name))?,
            code::CREATE => handle.store.tree(name)?,
            other => return Err(Failure::option(format!("a tree has no flags {other:#x}"))),
        };
        // SAFETY: the store's handle is live.
        let store = unsafe { hikv_store::shared(store) };
        out.set(Box::into_raw(Box::new(hikv_tree { tree, store })));
        Ok(code::OK)
    })
}

/// Frees a tree's handle.
///
/// # Safety
/// [That of the crate](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hikv_tree_close(tree: *mut hikv_tree) {
    // SAFETY: the handle comes from `hikv_tree_open`.
    unsafe { call::free(tree) }
}

/// Writes the names of all trees.
///
/// # Safety
/// [That of the crate](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hikv_tree_list(
    store: *mut hikv_store,
    out: *mut c_void,
    cap: usize,
    len: *mut usize,
    items: *mut u32,
) -> c_int {
    // SAFETY: the caller's rules.
    call::on(unsafe { store_of(store) }, |handle| {
        // SAFETY: the caller's rules.
        let (out, items) = unsafe { (Out::new(out, cap, len)?, Place::new(items, "place of the count")?) };
        let (page, trees) = (out.page(), handle.store.trees()?);
        trees.iter().for_each(|tree| page.push(tree.name.as_bytes(), &[]));
        items.set(trees.len() as u32);
        Ok(page.finish())
    })
}

/// Gives a tree another name.
///
/// # Safety
/// [That of the crate](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hikv_tree_rename(store: *mut hikv_store, from: hikv_slice, to: hikv_slice) -> c_int {
    // SAFETY: the caller's rules.
    call::on(unsafe { store_of(store) }, |handle| {
        // SAFETY: the caller's rules.
        let (from, to) = unsafe { (from.text()?, to.text()?) };
        handle.store.rename_tree(from, to)?;
        Ok(code::OK)
    })
}

/// Exchanges the keys of two trees.
///
/// # Safety
/// [That of the crate](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hikv_tree_swap(store: *mut hikv_store, a: hikv_slice, b: hikv_slice) -> c_int {
    // SAFETY: the caller's rules.
    call::on(unsafe { store_of(store) }, |handle| {
        // SAFETY: the caller's rules.
        let (a, b) = unsafe { (a.text()?, b.text()?) };
        handle.store.swap_trees(a, b)?;
        Ok(code::OK)
    })
}

/// Removes a tree with its keys.
///
/// # Safety
/// [That of the crate](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hikv_tree_drop(store: *mut hikv_store, name: hikv_slice) -> c_int {
    // SAFETY: the caller's rules.
    call::on(unsafe { store_of(store) }, |handle| {
        // SAFETY: the caller's rules.
        handle.store.drop_tree(unsafe { name.text()? })?;
        Ok(code::OK)
    })
}
