//! Functions that C calls (`core.h`). They rely on C's promises about the addresses and lengths of kernel memory.

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

/// Bytes of kernel memory, as C passes them.
#[repr(C)]
pub struct Bytes {
    start: *const u8,
    len: usize,
}

impl Bytes {
    /// # Safety
    /// There are this many bytes, and no thread changes them while they are used.
    unsafe fn get<'a>(&self) -> &'a [u8] {
        // SAFETY: the caller's promise; a slice of nothing needs a pointer that is not null.
        if self.len == 0 { &[] } else { unsafe { slice::from_raw_parts(self.start, self.len) } }
    }
}

/// An answer's buffer and its contents.
#[repr(C)]
pub struct Answer {
    start: *mut u8,
    room: usize,
    /// The answer's length, whether it fits or not.
    len: u64,
    count: u64,
    used: u64,
}

impl Answer {
    /// # Safety
    /// This many bytes are writable, and only the caller uses them.
    unsafe fn room(&self) -> Room {
        // SAFETY: the caller's promise; nothing is written to an empty buffer.
        unsafe { Room::new(NonNull::new(self.start).unwrap_or(NonNull::dangling()), self.room) }
    }
}

/// The statistics of `struct ink_stat`, without its last field, the durability, which C fills in.
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

/// Opens the store of a range, or creates one if the range was never written to.
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
            // SAFETY: a valid location for a pointer, as C promises.
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
/// It was opened and is no longer used.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ink_core_close(store: *mut Store) {
    if let Some(store) = NonNull::new(store) {
        // SAFETY: the caller's promise.
        unsafe { Store::close(store) }
    }
}

/// Puts a value. `when` is 0 for always, 1 if absent, 2 if present.
///
/// # Safety
/// The store is open, and key and value are bytes of kernel memory.
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
/// The store is open, and the key and the answer's buffer are bytes of kernel memory.
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

/// Copies items, starting at a key or behind it.
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

/// Finds the free space by walking the entire tree; other tasks read and write at the same time.
///
/// # Safety
/// The store is open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ink_core_sweep(store: &Store) -> i64 {
    let swept = store.tree.sweep().map_err(errno::of);
    store.expect_merges();
    code(swept)
}

/// Merges sparse nodes while enough keys were deleted for another pass. Other tasks read and write at the same time.
///
/// # Safety
/// The store is open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ink_core_merge(store: &Store, agent: u32) -> i64 {
    code(store.merge(agent as usize))
}

/// Checks the entire store, and returns the number of keys and the number of contradictions.
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

/// Returns statistics.
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
        lanes: u64::from(store.tree.heap().region().superblock().partition_count),
        swept: u64::from(store.tree.heap().is_swept()),
        undone: store.tree.recovered().undone_count as u64,
        merged: store.merging.merged_count(),
    };
}

/// Breaks a step, for tests of power cuts.
///
/// # Safety
/// The name is bytes of kernel memory.
#[cfg(feature = "trace")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ink_core_break(name: Bytes) -> bool {
    // SAFETY: the caller's promise.
    crate::store::break_step(unsafe { name.get() })
}

/// Sets the number of pairs per node of a new store, for tests of power cuts.
#[cfg(feature = "trace")]
#[unsafe(no_mangle)]
pub extern "C" fn ink_core_order(order: u32) {
    crate::store::ORDER.store(order as usize, core::sync::atomic::Ordering::Relaxed);
}
