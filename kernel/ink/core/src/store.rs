//! An open store, in memory allocated by the kernel.

use core::alloc::Layout;
use core::ptr::NonNull;
#[cfg(feature = "trace")]
use core::sync::atomic::Ordering;

use heap::{Found, HeapError, Parameters, Region as HeapRegion};
use pbtree::{Error, FreeImmediately, Options, Tree};
use pmem::{Bytes, Dram};

use crate::errno;
use crate::host::{self, Kernel};
use crate::medium::Region;
use crate::merging::Merging;

/// The store to which C has a pointer.
pub(crate) struct Store {
    pub(crate) tree: Tree<Region, Kernel, FreeImmediately>,
    pub(crate) merging: Merging,
}

/// The parameters of a new region.
pub(crate) struct New {
    pub(crate) lane_count: u32,
    pub(crate) uuid: [u8; 16],
}

const LAYOUT: Layout = Layout::new::<Store>();

impl Store {
    /// Opens the region's store, or creates one in an empty region.
    pub(crate) fn open(region: Region, new: &New) -> Result<NonNull<Store>, HeapError> {
        pmem::relax_by(host::relax);
        let memory = Kernel.allocate(LAYOUT).ok_or(HeapError::NoDram { wanted_bytes: LAYOUT.size() })?.cast::<Store>();
        let opened = match HeapRegion::probe(&region) {
            Ok(Found::Formatted) => open_in(memory, region),
            Ok(Found::Fresh) => make_in(memory, region, new),
            Err(error) => Err(error),
        };
        if opened.is_err() {
            // SAFETY: just allocated with this layout, and not used.
            unsafe { Kernel.deallocate(memory.cast(), LAYOUT) };
        }
        opened.map(|()| memory)
    }

    /// Closes a store.
    ///
    /// # Safety
    /// It came from [`Store::open`] and is no longer used.
    pub(crate) unsafe fn close(store: NonNull<Store>) {
        // SAFETY: the caller's promise.
        unsafe {
            store.drop_in_place();
            Kernel.deallocate(store.cast(), LAYOUT);
        }
    }

    /// Calls `work`. If the region seems full, calls it again once all free space is known.
    pub(crate) fn with_room<T>(&self, mut work: impl FnMut() -> Result<T, Error>) -> Result<T, i64> {
        // Read before the work: the sweep may end between the work's failure and a check.
        let was_swept = self.tree.heap().is_swept();
        match work() {
            Err(error) if errno::is_full(&error) && !was_swept => {
                self.tree.sweep().map_err(errno::of)?;
                work().map_err(errno::of)
            }
            done => done.map_err(errno::of),
        }
    }
}

// A kernel's stack has 16 KiB: each of these two functions has a separate frame, which is gone before the next one
// exists.

#[inline(never)]
fn open_in(memory: NonNull<Store>, region: Region) -> Result<(), HeapError> {
    let tree = Tree::open(region, Options::default(), Kernel, FreeImmediately)?;
    let merging = Merging::of(tree.options().order);
    // SAFETY: the memory was allocated for a store.
    unsafe { memory.write(Store { tree, merging }) };
    Ok(())
}

#[inline(never)]
fn make_in(memory: NonNull<Store>, region: Region, new: &New) -> Result<(), HeapError> {
    let region_bytes = Parameters::REGION_BYTES_DEFAULT.min(region.len_bytes());
    let parameters = Parameters { uuid: new.uuid, hash_seed: 0, partition_count: new.lane_count, region_bytes };
    let tree = Tree::format(region, &parameters, options(), Kernel, FreeImmediately)?;
    let merging = Merging::of(tree.options().order);
    // SAFETY: the memory was allocated for a store.
    unsafe { memory.write(Store { tree, merging }) };
    Ok(())
}

#[cfg(not(feature = "trace"))]
fn options() -> Options {
    Options::default()
}

#[cfg(feature = "trace")]
fn options() -> Options {
    match ORDER.load(Ordering::Relaxed) {
        0 => Options::default(),
        order => Options { order, ..Options::default() },
    }
}

/// The number of pairs per node of a new store; 0 for the default.
#[cfg(feature = "trace")]
pub(crate) static ORDER: core::sync::atomic::AtomicUsize = core::sync::atomic::AtomicUsize::new(0);

/// Returns true if this expiry has passed, which makes the key absent.
pub(crate) fn is_past(expiry: Option<u64>) -> bool {
    expiry.is_some_and(|expiry| expiry <= host::now_ms())
}

/// The canary name of the step that is left out.
#[cfg(feature = "trace")]
static VARIANT: core::sync::atomic::AtomicPtr<&'static str> = core::sync::atomic::AtomicPtr::new(core::ptr::null_mut());

/// Returns true if this step is left out.
#[cfg(feature = "trace")]
pub(crate) fn is_broken(name: &str) -> bool {
    let variant = VARIANT.load(Ordering::Acquire);
    // SAFETY: null, or one of the names below, which are static.
    unsafe { variant.as_ref() }.is_some_and(|variant| *variant == name)
}

/// The broken variants that the module's parameter may name.
#[cfg(feature = "trace")]
static VARIANTS: [&str; 6] = [
    "NothingFlushed",
    "DeleteNotFlushed",
    "CountBeforePair",
    "NodeNotFlushed",
    "NumberBeforeChange",
    "MergeHalfLogged",
];

/// Breaks the step of this name. Returns false if there is no such variant.
#[cfg(feature = "trace")]
pub(crate) fn break_step(name: &[u8]) -> bool {
    let variant = VARIANTS.iter().find(|variant| variant.as_bytes() == name);
    variant.inspect(|variant| VARIANT.store((&raw const **variant).cast_mut(), Ordering::Release)).is_some()
}
