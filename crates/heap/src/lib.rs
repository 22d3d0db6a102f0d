//! The persistent heap of hikv: a region's superblock, the chunks and their owners, growth, and the sweep.
//!
//! # What is durable
//! The superblock, the high-water mark, the generation, and one word for each chunk: its kind and length. Within a chunk
//! nothing of the allocator is durable: *free is what nothing reaches*. So an allocation costs no persist, and a crash
//! leaks nothing: after a crash, [`Heap::open`] knows the chunks, the index tells what it reaches, and
//! [`Heap::finish_sweep`] frees the rest (`docs/decisions/0003-record-no-allocations.md`).
//!
//! # Invariants
//! - Chunks lie end to end from unit 1 to the high-water mark, and the mark lies in the region.
//! - A place is handed out only after the chunk's header and a mark above it are durable.
//! - A chunk changes kind or length with one store of its header, ordered before any use of what changed.
//! - Every header lies in a page that has space, and so does what is not in a free run.
//! - Nothing below the mark that [`Heap::open`] found is handed out before the sweep has ended, or a clean image was
//!   adopted in its place.
//!
//! The write order of each protocol stands at the head of its module: `format` (a new region), `region` (growth,
//! opening), `chunks` (new chunks, chunks given back), `gather` (chunks given back for other classes), `holes` (space given back), `sweep`, `image` (what a clean close
//! leaves).
//!
//! # Lock order
//! A lane's cursor (`lane`; a thread holds one at most), then either the superblock (`region`: growth) or the space lock (`space`): these two are
//! never held together. Frees of slots take no lock unless their chunk becomes roomy or empty.
//!
//! This crate uses `core` alone; the host lends it memory through [`pmem::Dram`], which [`Heap`] gives back when
//! dropped.
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
mod place;
mod prepare;
mod record;
mod region;
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
mod sweep;
mod table;

pub use batch_word::{BatchState, BatchWord};
pub use class::Class;
pub use engine_number::EngineNumber;
pub use error::{HeapError, InvalidPlace};
pub use evacuation::ChunkUse;
pub use format::Parameters;
pub use heap::Heap;
pub use image::NamedImage;
pub use lane::LANE_COUNT;
pub use place::{Place, PlaceKind, Reservation};
pub use region::{Found, Region};
pub use stats::HeapStats;
pub use superblock::{
    FEATURE_BATCHES, FEATURE_EXPIRY, FEATURE_IMAGE, FEATURE_JOURNAL, FEATURE_KEYS_IN_NODES, FEATURE_TAGGED_VALUES,
    FEATURES_KNOWN, FORMAT_MAJOR, FORMAT_MINOR, MAGIC, Superblock,
};
pub use sweep::Mark;
