//! Operations on keys.

use std::ffi::{c_int, c_void};

use crate::batch::ttl;
use crate::failure::Failure;
use crate::handle::{hikv_store, hikv_tree, store_of};
use crate::memory::{Out, Place, array, hikv_slice};
use crate::{call, code};

/// Counts the keys of a tree.
///
/// # Safety
/// [That of the crate](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hikv_len(store: *mut hikv_store, tree: *mut hikv_tree, out: *mut u64) -> c_int {
    // SAFETY: the caller's rules.
    call::on(unsafe { store_of(store) }, |handle| {
        // SAFETY: the caller's rules.
        let (tree, out) = unsafe { (handle.tree(tree)?, Place::new(out, "place of the count")?) };
        out.set(tree.len()?);
        Ok(code::OK)
    })
}

/// Copies a value.
///
/// # Safety
/// [That of the crate](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hikv_get(
    store: *mut hikv_store,
    tree: *mut hikv_tree,
    key: hikv_slice,
    out: *mut c_void,
    cap: usize,
    len: *mut usize,
) -> c_int {
    // SAFETY: the caller's rules.
    call::on(unsafe { store_of(store) }, |handle| {
        // SAFETY: the caller's rules.
        let (tree, key, out) = unsafe { (handle.tree(tree)?, key.bytes()?, Out::new(out, cap, len)?) };
        Ok(tree.in_place().get(key, |value| out.set(value))?.unwrap_or(code::ABSENT))
    })
}

/// Copies a value, and returns its version.
///
/// # Safety
/// [That of the crate](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hikv_get_version(
    store: *mut hikv_store,
    tree: *mut hikv_tree,
    key: hikv_slice,
    version: *mut u64,
    out: *mut c_void,
    cap: usize,
    len: *mut usize,
) -> c_int {
    // SAFETY: the caller's rules.
    call::on(unsafe { store_of(store) }, |handle| {
        // SAFETY: the caller's rules; there are two words.
        let (tree, key, out, place) = unsafe {
            let place = Place::new(version.cast::<[u64; 2]>(), "place of the version")?;
            (handle.tree(tree)?, key.bytes()?, Out::new(out, cap, len)?, place)
        };
        let found = tree.in_place().get_item(key, |item| {
            place.set(item.version().words());
            out.set(item.value())
        })?;
        Ok(found.unwrap_or(code::ABSENT))
    })
}

/// Passes a value in place.
///
/// # Safety
/// [That of the crate](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hikv_get_with(
    store: *mut hikv_store,
    tree: *mut hikv_tree,
    key: hikv_slice,
    read: Option<unsafe extern "C" fn(context: *mut c_void, value: *const c_void, len: usize)>,
    context: *mut c_void,
) -> c_int {
    // SAFETY: the caller's rules.
    call::on(unsafe { store_of(store) }, |handle| {
        // SAFETY: the caller's rules.
        let (tree, key) = unsafe { (handle.tree(tree)?, key.bytes()?) };
        let read = read.ok_or_else(|| Failure::option("the callback is null"))?;
        let found = tree.in_place().get(key, |value| {
            // SAFETY: the caller's function and context; the value lives until it returns.
            call::reading(|| unsafe { read(context, value.as_ptr().cast(), value.len()) });
        })?;
        Ok(if found.is_some() { code::OK } else { code::ABSENT })
    })
}

/// Copies several values into a page.
///
/// # Safety
/// [That of the crate](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hikv_multi_get(
    store: *mut hikv_store,
    tree: *mut hikv_tree,
    keys: *const hikv_slice,
    n: usize,
    out: *mut c_void,
    cap: usize,
    len: *mut usize,
) -> c_int {
    // SAFETY: the caller's rules.
    call::on(unsafe { store_of(store) }, |handle| {
        // SAFETY: the caller's rules.
        let (tree, keys, out) =
            unsafe { (handle.tree(tree)?, array(keys, n, "array of keys")?, Out::new(out, cap, len)?) };
        // SAFETY: the caller's rules.
        let keys: Vec<&[u8]> = keys.iter().map(|key| unsafe { key.bytes() }).collect::<Result<_, _>>()?;
        let page = out.page();
        tree.in_place().multi_get(&keys, |_, value| match value {
            Some(value) => page.push(&[], value),
            None => page.push_absent(),
        })?;
        Ok(page.finish())
    })
}

/// Looks for a key.
///
/// # Safety
/// [That of the crate](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hikv_contains(store: *mut hikv_store, tree: *mut hikv_tree, key: hikv_slice) -> c_int {
    // SAFETY: the caller's rules.
    call::on(unsafe { store_of(store) }, |handle| {
        // SAFETY: the caller's rules.
        let (tree, key) = unsafe { (handle.tree(tree)?, key.bytes()?) };
        Ok(if tree.contains(key)? { code::OK } else { code::ABSENT })
    })
}

/// Puts a key.
///
/// # Safety
/// [That of the crate](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hikv_put(
    store: *mut hikv_store,
    tree: *mut hikv_tree,
    key: hikv_slice,
    value: hikv_slice,
) -> c_int {
    // SAFETY: the caller's rules.
    call::on(unsafe { store_of(store) }, |handle| {
        // SAFETY: the caller's rules.
        let (tree, key, value) = unsafe { (handle.tree(tree)?, key.bytes()?, value.bytes()?) };
        tree.put(key, value)?;
        Ok(code::OK)
    })
}

/// Puts a key that expires.
///
/// # Safety
/// [That of the crate](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hikv_put_ttl(
    store: *mut hikv_store,
    tree: *mut hikv_tree,
    key: hikv_slice,
    value: hikv_slice,
    ttl_ms: u64,
) -> c_int {
    // SAFETY: the caller's rules.
    call::on(unsafe { store_of(store) }, |handle| {
        // SAFETY: the caller's rules.
        let (tree, key, value) = unsafe { (handle.tree(tree)?, key.bytes()?, value.bytes()?) };
        tree.put_with(key, value, ttl(ttl_ms))?;
        Ok(code::OK)
    })
}

/// Puts a key that is absent.
///
/// # Safety
/// [That of the crate](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hikv_insert(
    store: *mut hikv_store,
    tree: *mut hikv_tree,
    key: hikv_slice,
    value: hikv_slice,
) -> c_int {
    // SAFETY: the caller's rules.
    call::on(unsafe { store_of(store) }, |handle| {
        // SAFETY: the caller's rules.
        let (tree, key, value) = unsafe { (handle.tree(tree)?, key.bytes()?, value.bytes()?) };
        Ok(if tree.insert_if_absent(key, value)? { code::OK } else { code::EXISTS })
    })
}

/// Deletes a key.
///
/// # Safety
/// [That of the crate](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hikv_delete(store: *mut hikv_store, tree: *mut hikv_tree, key: hikv_slice) -> c_int {
    // SAFETY: the caller's rules.
    call::on(unsafe { store_of(store) }, |handle| {
        // SAFETY: the caller's rules.
        let (tree, key) = unsafe { (handle.tree(tree)?, key.bytes()?) };
        Ok(if tree.delete(key)? { code::OK } else { code::ABSENT })
    })
}

/// Adds to a number.
///
/// # Safety
/// [That of the crate](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hikv_increment(
    store: *mut hikv_store,
    tree: *mut hikv_tree,
    key: hikv_slice,
    by: i64,
    out: *mut i64,
) -> c_int {
    // SAFETY: the caller's rules.
    call::on(unsafe { store_of(store) }, |handle| {
        // SAFETY: the caller's rules.
        let (tree, key, out) = unsafe { (handle.tree(tree)?, key.bytes()?, Place::optional(out)) };
        out.set(tree.increment(key, by)?);
        Ok(code::OK)
    })
}

/// Deletes all keys of a tree.
///
/// # Safety
/// [That of the crate](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hikv_clear(store: *mut hikv_store, tree: *mut hikv_tree) -> c_int {
    // SAFETY: the caller's rules.
    call::on(unsafe { store_of(store) }, |handle| {
        // SAFETY: the caller's rules.
        unsafe { handle.tree(tree)? }.clear()?;
        Ok(code::OK)
    })
}

/// Deletes the keys of a range.
///
/// # Safety
/// [That of the crate](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hikv_delete_range(
    store: *mut hikv_store,
    tree: *mut hikv_tree,
    lo: hikv_slice,
    hi: hikv_slice,
    out: *mut u64,
) -> c_int {
    // SAFETY: the caller's rules.
    call::on(unsafe { store_of(store) }, |handle| {
        // SAFETY: the caller's rules.
        let (tree, lo, hi, out) = unsafe { (handle.tree(tree)?, lo.bytes()?, hi.bytes()?, Place::optional(out)) };
        out.set(tree.ordered()?.delete_range(lo..hi)?);
        Ok(code::OK)
    })
}
