//! The persistent heap of hikv: a region's superblock, the chunks and their owners, growth, and the sweep.
//!
//! # Durable state
//! The superblock, the high-water mark, the generation, and one word for each chunk (its kind and length) are
//! durable. Nothing of the allocator within a chunk is: *free is what nothing reaches*. So an allocation costs no
//! persist, and a crash leaks nothing: after a crash, [`Heap::open`] finds the chunks, the index marks everything
//! that it reaches, and [`Sweep::finish`] frees everything else
//! (`docs/decisions/0003-record-no-allocations.md`).
//!
//! # Invariants
//! - Chunks are end to end from unit 1 to the high-water mark, and the mark is within the region.
//! - A place is handed out only after the chunk's header and a mark above it are durable.
//! - A chunk changes kind or length with one store of the header, ordered before any use of the change.
//! - Every header is in a page that has space, and so is everything outside free runs.
//! - Nothing below the mark that [`Heap::open`] found is handed out before the sweep has ended or a clean image was
//!   adopted instead.
//!
//! The head of each module describes the write order of its protocol: `format` (a new region), `region` (growth,
//! opening), `chunks` (new and freed chunks), `gather` (chunks freed for other classes), `holes` (space returned to
//! the file system), `sweep`, `image` (the record of a clean close).
//!
//! # Lock order
//! First a lane's cursor (`lane`; a thread holds at most one), then either the superblock (`region`: growth) or the
//! space lock (`space`): these two are never held together. Freeing a slot takes no lock unless its chunk becomes
//! roomy or empty.
//!
//! # Modules
//! Each type owns its fields, and uses only types below it:
//!
//! ```text
//! heap: Heap                         the composition; reservations  -> all below
//! sweep: Sweep  evacuation           unswept and sparse chunks      -> chunks, lane
//! image: Image  prepare: Preparation the clean image; growth ahead  -> chunks
//! gather, lane: Lanes                slots that threads reserve     -> chunks
//! chunks, open, holes, free: Chunks  the space lock                 -> supply, table, region, space
//! supply: Supply                     lengths read without a lock    -> region, space
//! space, runs, table, record         the records in DRAM            -> slab, slot_kind
//! region: Region                     superblock and state words     -> superblock, state, layout
//! ```
//!
//! This crate uses only `core`. The host allocates memory for it through [`pmem::Dram`], and [`Heap`] frees that
//! memory when dropped.
#![no_std]

#[cfg(test)]
extern crate std;

mod ahead;
mod batch_word;
pub mod canary;
mod chunks;
mod class;
mod dram_allocator;
mod engine_number;
mod error;
mod evacuation;
mod format;
mod free;
mod free_words;
mod gather;
mod header;
mod heap;
mod holes;
mod image;
mod lane;
pub mod layout;
mod lock;
mod open;
mod place;
mod prepare;
mod record;
mod region;
mod reservation;
mod runs;
pub mod salvage;
mod slab;
mod slot_kind;
mod space;
mod state;
mod stats;
mod steps;
mod superblock;
mod superblock_repair;
mod supply;
mod sweep;
mod table;

pub use batch_word::{BatchState, BatchWord};
pub use chunks::Chunks;
pub use class::Class;
pub use engine_number::EngineNumber;
pub use error::{HeapError, InvalidPlace};
pub use evacuation::{ChunkUse, Evacuation};
pub use format::Parameters;
pub use heap::Heap;
pub use image::{Image, NamedImage};
pub use lane::LANE_COUNT;
pub use place::{Place, PlaceKind};
pub use region::{Found, Region};
pub use reservation::Reservation;
pub use stats::HeapStats;
pub use superblock::{
    FEATURE_BATCHES, FEATURE_EXPIRY, FEATURE_IMAGE, FEATURE_JOURNAL, FEATURE_KEYS_IN_NODES, FEATURE_TAGGED_VALUES,
    FEATURE_TREES, FEATURES_KNOWN, FORMAT_MAJOR, FORMAT_MINOR, MAGIC, Superblock,
};
pub use supply::Supply;
pub use sweep::{Mark, Sweep};
pub use table::Table;
