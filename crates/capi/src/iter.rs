//! Iterators, which fill pages.

use std::cell::RefCell;
use std::ffi::{c_int, c_void};
use std::ops::Bound;
use std::ptr;
use std::rc::Rc;
use std::sync::Arc;

use hikv::{Item, Range, TxRange, prefix_range};

use crate::failure::Failure;
use crate::handle::{OfStore, hikv_snapshot, hikv_store, hikv_tree, store_of};
use crate::memory::{Out, Place, hikv_slice, value};
use crate::{call, code};

/// The keys of a range.
pub(crate) type Bounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// The range of a transaction, which takes it away at its end.
pub(crate) type TxSource = Rc<RefCell<Option<TxRange<'static>>>>;

/// An iterator.
#[allow(non_camel_case_types)]
pub struct hikv_iter {
    place: RefCell<Walk>,
    flags: Flags,
    store: Arc<hikv_store>,
}

impl OfStore for hikv_iter {
    fn store(&self) -> &hikv_store {
        &self.store
    }
}

/// The progress of an iterator.
struct Walk {
    source: Source,
    /// An item, or an error, that the next page begins with.
    pending: Option<Result<Item, Failure>>,
}

pub(crate) enum Source {
    Range(Box<Range>),
    Tx(TxSource),
}

impl Source {
    fn has_ended(&self) -> bool {
        matches!(self, Source::Tx(range) if range.borrow().is_none())
    }
}

#[derive(Clone, Copy)]
pub(crate) struct Flags {
    is_back: bool,
    is_keys: bool,
    /// The most items of a page.
    items_max: u32,
}

/// The first bit of the most items of a page, in the flags.
const ITEMS_SHIFT: u32 = 8;

impl Flags {
    pub(crate) fn of(flags: u32) -> Result<Flags, Failure> {
        let items_max = match flags >> ITEMS_SHIFT {
            0 => u32::MAX,
            items => items,
        };
        match flags & ((1 << ITEMS_SHIFT) - 1) & !(code::BACK | code::KEYS) {
            0 => Ok(Flags { is_back: flags & code::BACK != 0, is_keys: flags & code::KEYS != 0, items_max }),
            unknown => Err(Failure::option(format!("an iterator has no flags {unknown:#x}"))),
        }
    }
}

/// Returns the bounds of a call.
///
/// # Safety
/// The caller's rules for slices.
pub(crate) unsafe fn bounds(lo: hikv_slice, lo_kind: c_int, hi: hikv_slice, hi_kind: c_int) -> Result<Bounds, Failure> {
    // SAFETY: as this function's.
    let (lo, hi) = unsafe { (lo.bytes()?, hi.bytes()?) };
    if lo_kind == code::PREFIX {
        return match hi_kind {
            code::UNBOUNDED => Ok(prefix_range(lo)),
            other => Err(Failure::option(format!("hi_kind is {other}; with a prefix it is HIKV_UNBOUNDED"))),
        };
    }
    let bound = |name: &str, kind, key: &[u8]| match kind {
        code::UNBOUNDED => Ok(Bound::Unbounded),
        code::INCLUDED => Ok(Bound::Included(key.to_vec())),
        code::EXCLUDED => Ok(Bound::Excluded(key.to_vec())),
        other => Err(Failure::option(format!("{name} is {other}, which is no kind of a bound"))),
    };
    Ok((bound("lo_kind", lo_kind, lo)?, bound("hi_kind", hi_kind, hi)?))
}

/// Returns a new handle.
pub(crate) fn handle_of(source: Source, flags: Flags, store: Arc<hikv_store>) -> *mut hikv_iter {
    Box::into_raw(Box::new(hikv_iter { place: RefCell::new(Walk { source, pending: None }), flags, store }))
}

impl Walk {
    /// Calls `take` with the next item, until it returns false for one, which the next page then begins with. Returns
    /// false at the end.
    fn next(&mut self, flags: Flags, take: &mut impl FnMut(&[u8], &[u8]) -> bool) -> Result<bool, Failure> {
        // With its transaction, an iterator loses also the item that it has read already.
        if let Some(pending) = self.pending.take().filter(|_| !self.source.has_ended()) {
            let (key, value) = pending?;
            let is_taken = take(&key, &value);
            if !is_taken {
                self.pending = Some(Ok((key, value)));
            }
            return Ok(is_taken);
        }
        match &mut self.source {
            Source::Range(range) => {
                let item = if flags.is_back { range.next_back_ref()? } else { range.next_ref()? };
                let Some((key, value)) = item else { return Ok(false) };
                let value = if flags.is_keys { &[] } else { value };
                let is_taken = take(key, value);
                if !is_taken {
                    self.pending = Some(Ok((key.to_vec(), value.to_vec())));
                }
                Ok(is_taken)
            }
            Source::Tx(range) => {
                let mut range = range.borrow_mut();
                let range = range.as_mut().ok_or_else(|| Failure::option("the iterator's transaction has ended"))?;
                let item = if flags.is_back { range.next_back() } else { range.next() }.transpose()?;
                let Some((key, mut value)) = item else { return Ok(false) };
                if flags.is_keys {
                    value.clear();
                }
                let is_taken = take(&key, &value);
                if !is_taken {
                    self.pending = Some(Ok((key, value)));
                }
                Ok(is_taken)
            }
        }
    }
}

/// Begins an iterator.
///
/// # Safety
/// [That of the crate](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hikv_iter_new(
    store: *mut hikv_store,
    tree: *mut hikv_tree,
    snapshot: *mut hikv_snapshot,
    lo: hikv_slice,
    lo_kind: c_int,
    hi: hikv_slice,
    hi_kind: c_int,
    flags: u32,
    out: *mut *mut hikv_iter,
) -> c_int {
    // SAFETY: the caller's rules.
    call::on_own(unsafe { store_of(store) }, |handle| {
        // SAFETY: the caller's rules.
        let (bounds, out) = unsafe { (bounds(lo, lo_kind, hi, hi_kind)?, Place::new(out, "place of the iterator")?) };
        let flags = Flags::of(flags)?;
        // SAFETY: the caller's rules.
        let range = match unsafe { snapshot.as_ref() } {
            None => {
                // SAFETY: the caller's rules.
                let tree = unsafe { handle.tree(tree)? };
                tree.range(bounds)?
            }
            Some(snapshot) if ptr::eq(handle, &*snapshot.store) => {
                // SAFETY: the caller's rules.
                let view = unsafe { snapshot.view(tree)? };
                view.range(bounds)?
            }
            Some(_) => return Err(Failure::option("the snapshot belongs to another store")),
        };
        // SAFETY: the store's handle is live.
        out.set(handle_of(Source::Range(Box::new(range)), flags, unsafe { hikv_store::shared(store) }));
        Ok(code::OK)
    })
}

/// Fills a page.
///
/// # Safety
/// [That of the crate](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hikv_iter_next(
    iter: *mut hikv_iter,
    out: *mut c_void,
    cap: usize,
    len: *mut usize,
    items: *mut u32,
) -> c_int {
    // SAFETY: the caller's rules.
    call::on_own(unsafe { value(iter, "iterator") }, |iter: &hikv_iter| {
        // SAFETY: the caller's rules.
        let (out, items) = unsafe { (Out::new(out, cap, len)?, Place::new(items, "place of the count")?) };
        items.set(0);
        let (page, mut count, mut is_short) = (out.page(), 0, false);
        let mut walk = iter.place.borrow_mut();
        while count < iter.flags.items_max {
            let next = walk.next(iter.flags, &mut |key, value| {
                let fits = page.has_room(key, value);
                if fits {
                    page.push(key, value);
                    count += 1;
                } else if count == 0 {
                    // Sets the length that it needs.
                    page.push(key, value);
                    is_short = true;
                }
                fits
            });
            match next {
                Ok(true) => {}
                Ok(false) => break,
                Err(failure) if count == 0 => return Err(failure),
                Err(failure) => {
                    walk.pending = Some(Err(failure));
                    break;
                }
            }
        }
        items.set(count);
        let result = page.finish();
        Ok(if count == 0 && !is_short { code::END } else { result })
    })
}

/// Frees an iterator.
///
/// # Safety
/// [That of the crate](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hikv_iter_free(iter: *mut hikv_iter) {
    // SAFETY: the handle comes from this module.
    unsafe { call::free(iter) }
}
