//! The data that the space lock protects: the high-water mark, the free runs, and the chunks of slots without an
//! owner.

use core::alloc::Layout;
use core::ptr::NonNull;

use pmem::Dram;

use crate::HeapError;
use crate::dram_allocator::{DramAllocator, Zeroed};
use crate::record::SlabRef;
use crate::runs::Runs;
use crate::slab::State;
use crate::slot_kind::SlotKind;

/// Chunks of which a caller that does not want every roomy one checks that many.
const CHECKED_COUNT: usize = 32;

/// The state above the mark at one moment.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Above {
    pub(crate) holed_from: u32,
    given_back_count: u64,
}

/// Space that belongs to no lane.
pub(crate) struct Space {
    /// Units below the high-water mark, the head included.
    pub(crate) mark: u32,
    /// The first unit above the mark from which there may be holes.
    pub(crate) holed_from: u32,
    /// The number of times that space above the mark was returned to the file system.
    pub(crate) above_count: u64,
    pub(crate) runs: Runs,
    /// True if a run may follow another one, because the background has filled the holes of the first
    /// (`holes`).
    pub(crate) has_split_runs: bool,
    pub(crate) away: DetachedRuns,
    /// Allocated, because it does not fit on a kernel's stack.
    slabs: NonNull<Slabs>,
}

/// Runs that threads have taken off the lists while the file system frees or allocates their space. A thread that
/// finds no space waits for them: otherwise an empty region could seem full.
#[derive(Clone, Copy, Default)]
pub(crate) struct DetachedRuns {
    pub(crate) count: u64,
    /// The number of runs that have come back.
    pub(crate) returned_count: u64,
}

impl DetachedRuns {
    pub(crate) fn leave(&mut self) {
        self.count += 1;
    }

    pub(crate) fn come_back(&mut self) {
        self.count -= 1;
        self.returned_count += 1;
    }
}

/// Lists of records.
struct Slabs {
    /// For each kind of slots, the chunks worth taking: state Listed.
    roomy: [Option<SlabRef>; SlotKind::COUNT],
    /// For each kind of slots, records without a chunk: state Pooled.
    pool: [Option<SlabRef>; SlotKind::COUNT],
}

// SAFETY: a record is a pointer that is not null, so zero bytes are empty lists.
unsafe impl Zeroed for Slabs {}

// SAFETY: the space owns the lists that it points at, and accesses them only through a borrow of itself.
unsafe impl Send for Space {}

impl Space {
    /// Creates a space whose holes above the mark are not known yet.
    pub(crate) fn new<D: Dram>(mark: u32, allocator: &DramAllocator<D>) -> Result<Space, HeapError> {
        let runs = Runs::new(allocator)?;
        let slabs = allocator.allocate_zeroed().inspect_err(|_| {
            // SAFETY: no other thread has a reference to the runs.
            unsafe { runs.deallocate(allocator) }
        })?;
        Ok(Space {
            mark,
            holed_from: mark,
            above_count: 0,
            runs,
            has_split_runs: false,
            away: DetachedRuns::default(),
            slabs,
        })
    }

    /// Frees its memory.
    ///
    /// # Safety
    /// The space is no longer used.
    pub(crate) unsafe fn deallocate<D: Dram>(&self, allocator: &DramAllocator<D>) {
        // SAFETY: the caller gives up its use; the lists were allocated by `new` with this layout.
        unsafe {
            self.runs.deallocate(allocator);
            allocator.deallocate(self.slabs.cast(), Layout::new::<Slabs>());
        }
    }

    fn slabs(&mut self) -> &mut Slabs {
        // SAFETY: allocated by `new`, zeroed (which is an empty list), valid until `deallocate`; borrowed as `self`
        // is.
        unsafe { self.slabs.as_mut() }
    }

    /// Returns the present state above the mark.
    pub(crate) fn above(&self) -> Above {
        Above { holed_from: self.holed_from, given_back_count: self.above_count }
    }

    /// Returns a record for a chunk of `slot_kind`, from the pool or newly allocated.
    pub(crate) fn record<D: Dram>(
        &mut self,
        allocator: &DramAllocator<D>,
        slot_kind: SlotKind,
    ) -> Result<SlabRef, HeapError> {
        pop(&mut self.slabs().pool[slot_kind.index()]).map_or_else(|| SlabRef::allocate(allocator, slot_kind), Ok)
    }

    /// Puts a record without a chunk into the pool.
    pub(crate) fn pool(&mut self, slab: SlabRef) {
        slab.set_state(State::Pooled);
        push(&mut self.slabs().pool[slab.slot_kind().index()], slab);
    }

    /// Empties the pool and iterates over its records.
    pub(crate) fn drain_pool(&mut self) -> impl Iterator<Item = SlabRef> {
        self.slabs().pool.iter_mut().flat_map(|list| core::iter::from_fn(move || pop(list)))
    }

    /// Lists an idle chunk if it is roomy. Returns true if it was listed now.
    pub(crate) fn list_if_roomy(&mut self, slab: SlabRef) -> bool {
        let is_worth_it = slab.state() == State::Idle && slab.is_roomy();
        if is_worth_it {
            slab.set_state(State::Listed);
            push(&mut self.slabs().roomy[slab.slot_kind().index()], slab);
        }
        is_worth_it
    }

    /// Takes a roomy chunk of `slot_kind` off its list, for an owner.
    pub(crate) fn take_roomy(&mut self, slot_kind: SlotKind) -> Option<SlabRef> {
        let slab = pop(&mut self.slabs().roomy[slot_kind.index()])?;
        slab.set_state(State::Owned);
        Some(slab)
    }

    /// Takes a roomy chunk that is `wanted`. Checks some chunks of the list, which the next call does not check first.
    pub(crate) fn take_roomy_if(&mut self, slot_kind: SlotKind, wanted: impl Fn(SlabRef) -> bool) -> Option<SlabRef> {
        for _ in 0..CHECKED_COUNT {
            let list = &mut self.slabs().roomy[slot_kind.index()];
            let slab = (*list)?;
            if wanted(slab) {
                return self.take_roomy(slot_kind);
            }
            *list = slab.next.get();
        }
        None
    }

    /// Takes a listed chunk off its list.
    pub(crate) fn unlist(&mut self, slab: SlabRef) {
        if slab.state() == State::Listed {
            remove(&mut self.slabs().roomy[slab.slot_kind().index()], slab);
            slab.set_state(State::Idle);
        }
    }
}

/// Adds a record to a list, which is a ring, as its first one.
fn push(list: &mut Option<SlabRef>, slab: SlabRef) {
    let next = list.unwrap_or(slab);
    let previous = list.and_then(|head| head.previous.get()).unwrap_or(slab);
    slab.next.set(Some(next));
    slab.previous.set(Some(previous));
    previous.next.set(Some(slab));
    next.previous.set(Some(slab));
    *list = Some(slab);
}

fn pop(list: &mut Option<SlabRef>) -> Option<SlabRef> {
    let head = (*list)?;
    remove(list, head);
    Some(head)
}

fn remove(list: &mut Option<SlabRef>, slab: SlabRef) {
    let others = slab.next.get().zip(slab.previous.get()).filter(|&(next, _)| next != slab);
    if let Some((next, previous)) = others {
        next.previous.set(Some(previous));
        previous.next.set(Some(next));
    }
    if *list == Some(slab) {
        *list = others.map(|(next, _)| next);
    }
}
