//! A store that is open, in memory that the kernel has lent.

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

/// What C has a pointer to.
pub(crate) struct Store {
    pub(crate) tree: Tree<Region, Kernel, FreeImmediately>,
    pub(crate) merging: Merging,
}

/// What a new region gets, if the region is to be made.
pub(crate) struct New {
    pub(crate) lane_count: u32,
    pub(crate) uuid: [u8; 16],
}

const LAYOUT: Layout = Layout::new::<Store>();

impl Store {
    /// Opens the region's store, or makes one where there is nothing.
    pub(crate) fn open(region: Region, new: &New) -> Result<NonNull<Store>, HeapError> {
        pmem::relax_by(host::relax);
        let memory = Kernel.allocate(LAYOUT).ok_or(HeapError::NoDram { wanted_bytes: LAYOUT.size() })?.cast::<Store>();
        let opened = match HeapRegion::probe(&region) {
            Ok(Found::Formatted) => open_in(memory, region),
            Ok(Found::Fresh) => make_in(memory, region, new),
            Err(error) => Err(error),
        };
        if opened.is_err() {
            // SAFETY: lent with this layout just now, and nobody uses it.
            unsafe { Kernel.deallocate(memory.cast(), LAYOUT) };
        }
        opened.map(|()| memory)
    }

    /// Lets go of a store.
    ///
    /// # Safety
    /// It came from [`Store::open`], and nobody uses it any more.
    pub(crate) unsafe fn close(store: NonNull<Store>) {
        // SAFETY: the caller's promise.
        unsafe {
            store.drop_in_place();
            Kernel.deallocate(store.cast(), LAYOUT);
        }
    }

    /// Does `work`; where the region seems full, again once all free space is known.
    pub(crate) fn with_room<T>(&self, mut work: impl FnMut() -> Result<T, Error>) -> Result<T, i64> {
        // Before the work: the sweep may end between its failure and a look at it.
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

// A kernel's stack has 16 KiB: each of these two has a frame of its own, which is gone before the next is there.

#[inline(never)]
fn open_in(memory: NonNull<Store>, region: Region) -> Result<(), HeapError> {
    let tree = Tree::open(region, Options::default(), Kernel, FreeImmediately)?;
    let merging = Merging::of(tree.options().order);
    // SAFETY: the memory was lent for a store.
    unsafe { memory.write(Store { tree, merging }) };
    Ok(())
}

#[inline(never)]
fn make_in(memory: NonNull<Store>, region: Region, new: &New) -> Result<(), HeapError> {
    let region_bytes = Parameters::REGION_BYTES_DEFAULT.min(region.len_bytes());
    let parameters = Parameters { uuid: new.uuid, hash_seed: 0, partition_count: new.lane_count, region_bytes };
    let tree = Tree::format(region, &parameters, options(), Kernel, FreeImmediately)?;
    let merging = Merging::of(tree.options().order);
    // SAFETY: the memory was lent for a store.
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

/// Pairs of a node of a new store; 0 for as many as any store has.
#[cfg(feature = "trace")]
pub(crate) static ORDER: core::sync::atomic::AtomicUsize = core::sync::atomic::AtomicUsize::new(0);

/// Whether a value whose expiry this is counts as absent.
pub(crate) fn is_past(expiry: Option<u64>) -> bool {
    expiry.is_some_and(|expiry| expiry <= host::now_ms())
}

/// Which step is left out: its canary's name.
#[cfg(feature = "trace")]
static TWIN: core::sync::atomic::AtomicPtr<&'static str> = core::sync::atomic::AtomicPtr::new(core::ptr::null_mut());

/// Whether this step is left out.
#[cfg(feature = "trace")]
pub(crate) fn is_twin(name: &str) -> bool {
    let twin = TWIN.load(Ordering::Acquire);
    // SAFETY: null, or one of the names below, which are never gone.
    unsafe { twin.as_ref() }.is_some_and(|twin| *twin == name)
}

/// The twins that the module's parameter may name.
#[cfg(feature = "trace")]
static TWINS: [&str; 6] = [
    "NothingFlushed",
    "DeleteNotFlushed",
    "CountBeforePair",
    "NodeNotFlushed",
    "NumberBeforeChange",
    "MergeHalfLogged",
];

/// Breaks the step of this name; false if there is no such twin.
#[cfg(feature = "trace")]
pub(crate) fn break_step(name: &[u8]) -> bool {
    let twin = TWINS.iter().find(|twin| twin.as_bytes() == name);
    twin.inspect(|twin| TWIN.store((&raw const **twin).cast_mut(), Ordering::Release)).is_some()
}
