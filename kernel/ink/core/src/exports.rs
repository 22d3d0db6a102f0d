//! What C calls (`core.h`). Each function checks nothing that C has promised: the addresses and lengths of kernel memory.

use core::ops::Bound;
use core::ptr::NonNull;
use core::slice;

use pmem::Bytes as _;

use crate::errno::{self, EINVAL, EMSGSIZE};
use crate::host;
use crate::medium::Region;
use crate::requests::{Room, When};
use crate::scan::Scanned;
use crate::store::{New, Store};

/// Bytes of kernel memory, as C tells them.
#[repr(C)]
pub struct Bytes {
    start: *const u8,
    len: usize,
}

impl Bytes {
    /// # Safety
    /// As many bytes are there, and nobody changes them while they are used.
    unsafe fn get<'a>(&self) -> &'a [u8] {
        // SAFETY: the caller's promise; a slice of nothing needs a pointer that is not null.
        if self.len == 0 { &[] } else { unsafe { slice::from_raw_parts(self.start, self.len) } }
    }
}

/// An answer's memory; and what became of it.
#[repr(C)]
pub struct Answer {
    start: *mut u8,
    room: usize,
    /// Bytes of the answer, whether they had room or not.
    len: u64,
    count: u64,
    used: u64,
}

impl Answer {
    /// # Safety
    /// As many bytes are writable, and nobody else uses them.
    unsafe fn room(&self) -> Room {
        // SAFETY: the caller's promise; no byte is written to a room of none.
        unsafe { Room::new(NonNull::new(self.start).unwrap_or(NonNull::dangling()), self.room) }
    }
}

/// The figures of `struct ink_stat`; its last field, the durability, is C's.
#[repr(C)]
pub struct Stat {
    region_bytes: u64,
    used_bytes: u64,
    live_bytes: u64,
    free_bytes: u64,
    dram_bytes: u64,
    lanes: u64,
    swept: u64,
    undone: u64,
    merged: u64,
}

fn code(done: Result<(), i64>) -> i64 {
    done.err().unwrap_or(0)
}

/// Opens the store of a range, or makes one where the range was never written to.
///
/// # Safety
/// The range is as for [`Region::new`], until [`ink_core_close`] has returned; `uuid` has 16 bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ink_core_open(
    base: *mut u8,
    len: u64,
    lanes: u32,
    uuid: *const [u8; 16],
    store: *mut *mut Store,
) -> i64 {
    let Some(base) = NonNull::new(base) else { return EINVAL };
    // SAFETY: the caller's promise.
    let (region, uuid) = unsafe { (Region::new(base, len), *uuid) };
    match Store::open(region, &New { lane_count: lanes, uuid }) {
        Ok(opened) => {
            // SAFETY: a place for a pointer, as C promises.
            unsafe { *store = opened.as_ptr() };
            0
        }
        Err(error) => {
            host::say(&error);
            errno::of_heap(error)
        }
    }
}

/// Closes a store.
///
/// # Safety
/// It was opened, and nobody uses it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ink_core_close(store: *mut Store) {
    if let Some(store) = NonNull::new(store) {
        // SAFETY: the caller's promise.
        unsafe { Store::close(store) }
    }
}

/// Puts a value: `when` is 0, 1 if absent, 2 if present.
///
/// # Safety
/// The store is open, and both are bytes of kernel memory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ink_core_put(store: &Store, agent: u32, key: Bytes, value: Bytes, when: u32) -> i64 {
    let Some(when) = When::of(when) else { return EINVAL };
    // SAFETY: the caller's promise.
    let (key, value) = unsafe { (key.get(), value.get()) };
    code(store.put(agent as usize, key, value, when))
}

/// Copies a key's value.
///
/// # Safety
/// The store is open, the key is bytes of kernel memory, and so is the answer's room.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ink_core_get(store: &Store, key: Bytes, answer: &mut Answer) -> i64 {
    // SAFETY: the caller's promise.
    let (key, mut room) = unsafe { (key.get(), answer.room()) };
    match store.get(key, &mut room) {
        Ok((len, 0)) => {
            (answer.len, answer.used) = (len, len);
            0
        }
        Ok((len, error)) => {
            answer.len = len;
            error
        }
        Err(error) => error,
    }
}

/// Deletes a key.
///
/// # Safety
/// The store is open, and the key is bytes of kernel memory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ink_core_remove(store: &Store, agent: u32, key: Bytes) -> i64 {
    // SAFETY: the caller's promise.
    code(store.remove(agent as usize, unsafe { key.get() }))
}

/// Copies items from a key on, or from behind it.
///
/// # Safety
/// As for [`ink_core_get`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ink_core_scan(store: &Store, from: Bytes, is_behind: bool, answer: &mut Answer) -> i64 {
    // SAFETY: the caller's promise.
    let (from, mut room) = unsafe { (from.get(), answer.room()) };
    let from = if is_behind { Bound::Excluded(from) } else { Bound::Included(from) };
    match store.scan(from, &mut room) {
        Ok(Scanned { count: 0, has_more: true, wanted_bytes, .. }) => {
            answer.len = wanted_bytes as u64;
            EMSGSIZE
        }
        Ok(found) => {
            (answer.used, answer.count) = (found.used_bytes as u64, found.count);
            answer.len = answer.used + found.wanted_bytes as u64;
            0
        }
        Err(error) => error,
    }
}

/// Deletes every key.
///
/// # Safety
/// The store is open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ink_core_clear(store: &Store, agent: u32) -> i64 {
    code(store.tree.clear(agent as usize).map_err(errno::of))
}

/// Finds the space that is free. Takes as long as it takes to walk the tree; others read and write meanwhile.
///
/// # Safety
/// The store is open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ink_core_sweep(store: &Store) -> i64 {
    let swept = store.tree.sweep().map_err(errno::of);
    store.expect_merges();
    code(swept)
}

/// Merges nodes that deletes have left low, as long as enough was deleted for another pass. Others read and write meanwhile.
///
/// # Safety
/// The store is open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ink_core_merge(store: &Store, agent: u32) -> i64 {
    code(store.merge(agent as usize))
}

/// Reads everything: how many keys there are, and how often something contradicts itself.
///
/// # Safety
/// The store is open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ink_core_check(store: &Store, answer: &mut Answer) -> i64 {
    match store.check() {
        Ok((figures, damage_count)) => {
            (answer.count, answer.len) = (figures.key_count, damage_count);
            0
        }
        Err(error) => error,
    }
}

/// Figures.
///
/// # Safety
/// The store is open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ink_core_stat(store: &Store, stat: &mut Stat) {
    let heap = store.tree.heap().stats();
    *stat = Stat {
        region_bytes: store.tree.medium().len_bytes(),
        used_bytes: heap.mark_bytes,
        live_bytes: heap.live_bytes,
        free_bytes: heap.free_bytes + store.tree.medium().len_bytes() - heap.region_bytes,
        dram_bytes: heap.dram_bytes + store.tree.dram_bytes(),
        lanes: u64::from(store.tree.heap().superblock().partition_count),
        swept: u64::from(store.tree.heap().is_swept()),
        undone: store.tree.recovered().undone_count as u64,
        merged: store.merging.merged_count(),
    };
}

/// Power cuts: breaks a step.
///
/// # Safety
/// The name is bytes of kernel memory.
#[cfg(feature = "trace")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ink_core_break(name: Bytes) -> bool {
    // SAFETY: the caller's promise.
    crate::store::break_step(unsafe { name.get() })
}

/// Power cuts: a new store has nodes of so many pairs.
#[cfg(feature = "trace")]
#[unsafe(no_mangle)]
pub extern "C" fn ink_core_order(order: u32) {
    crate::store::ORDER.store(order as usize, core::sync::atomic::Ordering::Relaxed);
}
