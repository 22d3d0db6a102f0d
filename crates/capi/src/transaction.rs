//! Transactions.
//!
//! A transaction of the library borrows its store, and a handle cannot. So a handle owns a count of the store's `Arc`,
//! and a transaction whose lifetime is declared `'static`. This is sound because the count is dropped last: fields are
//! dropped in their order, and no part of the transaction leaves the handle but the ranges of its iterators, which
//! [`Live::end`] takes away first. The same holds for the handle that a body of [`hikv_transact`] gets: it is gone when
//! the body has returned.

use std::cell::RefCell;
use std::ffi::{c_int, c_void};
use std::mem;
use std::rc::{Rc, Weak};
use std::sync::Arc;

use hikv::{Error, Store, Transaction, TxRange, TxTree};

use crate::failure::Failure;
use crate::handle::{OfStore, hikv_store, hikv_tree, store_of};
use crate::iter::{Flags, Source, TxSource, bounds, handle_of, hikv_iter};
use crate::memory::{Out, Place, hikv_slice, value};
use crate::options::{hikv_transact_options, transact_of};
use crate::{call, code};

/// A transaction.
#[allow(non_camel_case_types)]
pub struct hikv_tx {
    live: RefCell<Live>,
    store: Arc<hikv_store>,
}

impl OfStore for hikv_tx {
    fn store(&self) -> &hikv_store {
        &self.store
    }
}

/// The parts of a handle that borrow its store.
struct Live {
    /// The ranges of its iterators.
    ranges: Vec<Weak<RefCell<Option<TxRange<'static>>>>>,
    /// The store's own keys, as the transaction sees them.
    keys: TxTree<'static>,
    /// `None` for the handle of a body.
    owned: Option<Transaction<'static>>,
}

impl Live {
    /// Ends the iterators.
    fn end(&mut self) {
        self.ranges.drain(..).filter_map(|range| range.upgrade()).for_each(|range| *range.borrow_mut() = None);
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.end();
    }
}

impl hikv_tx {
    /// Returns the keys of a tree, as the transaction sees them.
    ///
    /// # Safety
    /// `tree` is null or a live handle.
    unsafe fn keys(&self, tree: *mut hikv_tree) -> Result<TxTree<'static>, Failure> {
        let live = self.live.borrow();
        if tree.is_null() {
            return Ok(live.keys.clone());
        }
        // SAFETY: as this function's.
        Ok(live.keys.tree(unsafe { self.store.tree(tree)? })?)
    }

    /// Returns the handle that a body gets.
    ///
    /// # Safety
    /// The handle is dropped before the transaction.
    unsafe fn lent(store: Arc<hikv_store>, tx: &Transaction<'_>) -> hikv_tx {
        // SAFETY: the clone is dropped with the handle.
        let keys = unsafe { mem::transmute::<TxTree<'_>, TxTree<'static>>((**tx).clone()) };
        hikv_tx { live: RefCell::new(Live { ranges: Vec::new(), keys, owned: None }), store }
    }

    /// Returns the transaction of a handle that is freed. The handle of a body stays.
    ///
    /// # Safety
    /// `tx` is a live handle.
    unsafe fn ended(tx: *mut hikv_tx) -> Result<Box<hikv_tx>, Failure> {
        // SAFETY: as this function's.
        if unsafe { value(tx, "transaction")? }.live.borrow().owned.is_none() {
            return Err(Failure::option("the transaction of hikv_transact ends with its body"));
        }
        // SAFETY: an owned transaction comes from `hikv_begin`.
        Ok(unsafe { Box::from_raw(tx) })
    }
}

/// Begins a transaction.
///
/// # Safety
/// [That of the crate](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hikv_begin(store: *mut hikv_store, out: *mut *mut hikv_tx) -> c_int {
    // SAFETY: the caller's rules.
    call::on(unsafe { store_of(store) }, |_| {
        // SAFETY: the caller's rules; the store's handle is live.
        let (out, store) = unsafe { (Place::new(out, "place of the transaction")?, hikv_store::shared(store)) };
        let tx = store.store.begin()?;
        // SAFETY: the content of the `Arc` does not move, and the handle drops its count after the transaction.
        let tx = unsafe { mem::transmute::<Transaction<'_>, Transaction<'static>>(tx) };
        let live = Live { ranges: Vec::new(), keys: (*tx).clone(), owned: Some(tx) };
        out.set(Box::into_raw(Box::new(hikv_tx { live: RefCell::new(live), store })));
        Ok(code::OK)
    })
}

/// Copies a value.
///
/// # Safety
/// [That of the crate](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hikv_tx_get(
    tx: *mut hikv_tx,
    tree: *mut hikv_tree,
    key: hikv_slice,
    out: *mut c_void,
    cap: usize,
    len: *mut usize,
) -> c_int {
    // SAFETY: the caller's rules.
    call::on_own(unsafe { value(tx, "transaction") }, |tx: &hikv_tx| {
        // SAFETY: the caller's rules.
        let (keys, key, out) = unsafe { (tx.keys(tree)?, key.bytes()?, Out::new(out, cap, len)?) };
        Ok(keys.get(key)?.map_or(code::ABSENT, |value| out.set(&value)))
    })
}

/// Puts a key.
///
/// # Safety
/// [That of the crate](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hikv_tx_put(
    tx: *mut hikv_tx,
    tree: *mut hikv_tree,
    key: hikv_slice,
    value: hikv_slice,
) -> c_int {
    // SAFETY: the caller's rules.
    call::on_own(unsafe { crate::memory::value(tx, "transaction") }, |tx: &hikv_tx| {
        // SAFETY: the caller's rules.
        let (keys, key, value) = unsafe { (tx.keys(tree)?, key.bytes()?, value.bytes()?) };
        keys.put(key, value)?;
        Ok(code::OK)
    })
}

/// Deletes a key.
///
/// # Safety
/// [That of the crate](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hikv_tx_delete(tx: *mut hikv_tx, tree: *mut hikv_tree, key: hikv_slice) -> c_int {
    // SAFETY: the caller's rules.
    call::on_own(unsafe { value(tx, "transaction") }, |tx: &hikv_tx| {
        // SAFETY: the caller's rules.
        let (keys, key) = unsafe { (tx.keys(tree)?, key.bytes()?) };
        keys.delete(key)?;
        Ok(code::OK)
    })
}

/// Begins an iterator of a transaction.
///
/// # Safety
/// [That of the crate](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hikv_tx_range(
    tx: *mut hikv_tx,
    tree: *mut hikv_tree,
    lo: hikv_slice,
    lo_kind: c_int,
    hi: hikv_slice,
    hi_kind: c_int,
    flags: u32,
    out: *mut *mut hikv_iter,
) -> c_int {
    // SAFETY: the caller's rules.
    call::on_own(unsafe { value(tx, "transaction") }, |tx: &hikv_tx| {
        // SAFETY: the caller's rules.
        let (keys, bounds, out) =
            unsafe { (tx.keys(tree)?, bounds(lo, lo_kind, hi, hi_kind)?, Place::new(out, "place of the iterator")?) };
        let flags = Flags::of(flags)?;
        let range: TxSource = Rc::new(RefCell::new(Some(keys.range(bounds)?)));
        let mut live = tx.live.borrow_mut();
        live.ranges.retain(|range| range.strong_count() > 0);
        live.ranges.push(Rc::downgrade(&range));
        out.set(handle_of(Source::Tx(range), flags, Arc::clone(&tx.store)));
        Ok(code::OK)
    })
}

/// Looks whether a transaction can still commit.
///
/// # Safety
/// [That of the crate](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hikv_tx_check(tx: *mut hikv_tx) -> c_int {
    // SAFETY: the caller's rules.
    call::on_own(unsafe { value(tx, "transaction") }, |tx: &hikv_tx| {
        tx.live.borrow().keys.check()?;
        Ok(code::OK)
    })
}

/// Commits a transaction, and frees it.
///
/// # Safety
/// [That of the crate](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hikv_tx_commit(tx: *mut hikv_tx) -> c_int {
    call::run(|| {
        // SAFETY: the caller's rules.
        let tx = unsafe { hikv_tx::ended(tx)? };
        let store = Arc::clone(&tx.store);
        let committed = call::on_own(Ok(&*store), |_| {
            let owned = {
                let mut live = tx.live.borrow_mut();
                live.end();
                live.owned.take()
            };
            owned.map_or(Ok(()), Transaction::commit)?;
            Ok(code::OK)
        });
        drop(tx);
        Ok(committed)
    })
}

/// Ends a transaction without a change, and frees it.
///
/// # Safety
/// [That of the crate](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hikv_tx_abort(tx: *mut hikv_tx) -> c_int {
    if tx.is_null() {
        return code::OK;
    }
    call::run(|| {
        // SAFETY: the caller's rules.
        drop(unsafe { hikv_tx::ended(tx)? });
        Ok(code::OK)
    })
}

/// The end of a body.
enum BodyEnd {
    /// Its result, if not 0.
    Returned(c_int),
    Failed(Failure),
}

impl From<Error> for BodyEnd {
    fn from(error: Error) -> BodyEnd {
        BodyEnd::Failed(error.into())
    }
}

/// Runs a body in a transaction.
///
/// # Safety
/// [That of the crate](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hikv_transact(
    store: *mut hikv_store,
    options: *const hikv_transact_options,
    body: Option<unsafe extern "C" fn(tx: *mut hikv_tx, context: *mut c_void) -> c_int>,
    context: *mut c_void,
) -> c_int {
    // SAFETY: the caller's rules.
    call::on(unsafe { store_of(store) }, |handle| {
        // SAFETY: the caller's rules; the store's handle is live.
        let (options, shared) = unsafe { (transact_of(options)?, hikv_store::shared(store)) };
        let body = body.ok_or_else(|| Failure::option("the body is null"))?;
        let done = Store::transact_with(&handle.store, options, |tx| {
            // SAFETY: the handle ends with this call.
            let mut lent = unsafe { hikv_tx::lent(Arc::clone(&shared), tx) };
            // SAFETY: the caller's function and context. The handle lives until it returns.
            match unsafe { body(&raw mut lent, context) } {
                // A call of the body may have panicked.
                code::OK => handle.check().map_err(BodyEnd::Failed),
                code => Err(BodyEnd::Returned(code)),
            }
        });
        match done {
            Ok(()) => Ok(code::OK),
            Err(BodyEnd::Returned(code)) => Ok(code),
            Err(BodyEnd::Failed(failure)) => Err(failure),
        }
    })
}
