//! The smallest engine that persists: an array of slots in one extent, changed in place under an undo log, with a
//! copy of everything in DRAM, from which readers read. It is an example of the parts of an engine and not meant for
//! real data.
//!
//! ```text
//! engine area   +0   place of the array, sealed      +64  undo word, sealed: 0, or the slot's number + 1
//!               +128 undo image: SLOT_BYTES
//! extent        slot after slot, an item each (`items`); its epoch is the store's generation + 1, or the slot is empty
//! ```
//!
//! # Invariants
//! - While the undo word is 0, every slot holds an intact item or none, and no key occurs twice.
//! - The copy in DRAM changes after the commit was requested, and stores the commit's ticket: readers wait for it.
//!
//! # A write, under the lock of writers
//! | step | a crash after it leaves |
//! |---|---|
//! | 1 the slot's bytes are copied to the undo image; ordered | the old item, and an image that nothing names |
//! | 2 the undo word names the slot; ordered | the old item, restored by opening |
//! | 3 the slot is changed; ordered | the same |
//! | 4 the undo word is 0; its commit is requested | the old item, restored by opening, or the new one |
//! | 5 the copy in DRAM changes; the lock is released | the same |
//! | 6 the writer waits for the commit | the new item |
//!
//! Clearing is one word: the next generation, which no item has (`heap`).
//!
//! # Lock order
//! The writers' lock, then the copy's. No thread waits for the medium while holding either.

mod ops;
mod slots;

use engine::{Clock, OpenError};
use heap::{EngineNumber, Heap, HeapError, Parameters};
use items::Item;
use parking_lot::{Mutex, RwLock};
use pmem::{Dram, Medium, Ticket};

use slots::Slots;

/// Broken variants of the rules (`docs/decisions/0005-prove-the-crash-explorer-with-broken-variants.md`).
pub mod canary {
    use pmem::Canary;

    /// The image that an undo word refers to is flushed, but not ordered before the word.
    pub const IMAGE_NOT_ORDERED: Canary = Canary("ImageNotOrdered");
    /// The undo word is flushed, but not ordered before the change.
    pub const LOG_NOT_ORDERED: Canary = Canary("LogNotOrdered");
}

/// The number of slots of a store.
pub const SLOT_COUNT: u64 = 512;
/// The capacity of a slot: one item including its header.
pub const SLOT_BYTES: u64 = 256;

/// The copy in DRAM: each slot's key and value, and the ticket of the last commit.
struct Contents {
    items: Vec<Option<(Vec<u8>, Vec<u8>)>>,
    ticket: Ticket,
}

/// The toy engine over a medium.
pub struct Toy<M, D: Dram> {
    medium: M,
    heap: Heap<D>,
    slots: Slots,
    writers: Mutex<()>,
    contents: RwLock<Contents>,
    clock: Clock,
}

impl<M: Medium, D: Dram> Toy<M, D> {
    /// Creates a store in an empty region. The region is a store once its array is named.
    ///
    /// # Errors
    /// Those of the heap.
    pub fn format(medium: M, dram: D, parameters: &Parameters) -> Result<Toy<M, D>, OpenError> {
        let heap = Heap::format(&medium, EngineNumber::TOY, parameters, dram)?;
        let slots = Slots::make(&medium, heap.reserve_extent(&medium, SLOT_COUNT * SLOT_BYTES)?.publish());
        heap.region().finish_format(&medium)?;
        Toy::of(medium, heap, slots)
    }

    /// Opens the store in a region. A write that was in progress is undone.
    ///
    /// # Errors
    /// Those of the heap; damage to the array.
    pub fn open(medium: M, dram: D) -> Result<Toy<M, D>, OpenError> {
        let heap = Heap::open(&medium, EngineNumber::TOY, dram)?;
        let slots = Slots::find(&medium)?;
        heap.sweep().mark_reached(slots.place()).map_err(HeapError::from)?;
        slots.undo(&medium)?;
        heap.sweep().finish(&medium);
        Toy::of(medium, heap, slots)
    }

    fn of(medium: M, heap: Heap<D>, slots: Slots) -> Result<Toy<M, D>, OpenError> {
        let copied = |item: Item<'_>| (item.key.to_vec(), item.value.to_vec());
        let copy = |slot| slots.item(&medium, slot, stamp(&heap)).map(|item| item.map(copied));
        let items = (0..SLOT_COUNT).map(copy).collect::<Result<_, _>>()?;
        let (writers, contents) = (Mutex::default(), RwLock::new(Contents { items, ticket: Ticket::default() }));
        Ok(Toy { medium, heap, slots, writers, contents, clock: Clock::default() })
    }
}

/// Returns the stamp of items of the heap's generation.
fn stamp<D: Dram>(heap: &Heap<D>) -> u32 {
    u32::from(heap.region().generation()) + 1
}
