//! The seam between hikv and byte-addressable persistent memory.
//!
//! Everything that becomes durable passes through a [`Medium`]: stores, write-backs, fences. What the medium does not
//! see can be neither counted, delayed, journaled nor crashed, so no other crate stores to persistent memory.
//!
//! Vocabulary: a *region* is the whole persistent address range; a *line* is the 64 bytes that a cache writes back
//! together; to *flush* is to start write-back; to *order* is to make what was flushed durable before what follows.
//!
//! This crate uses `core` alone: it links into a kernel module or a device's firmware unchanged.
#![no_std]

pub mod arch;
mod backoff;
mod canary;
mod checksum;
mod counted;
mod delayed;
mod dram;
mod dram_box;
mod durability;
mod medium;
mod medium_error;
mod offset;
mod probe;
mod probed;
mod sealed;

pub use backoff::{Backoff, Relax, relax_by};
pub use canary::Canary;
pub use checksum::{Checksum, MANY_BYTES, crc32c};
pub use counted::{Counted, Counts, PersistCounts};
pub use delayed::{Delayed, Delays, HELD_BLOCK_COUNT, Latency};
pub use dram::Dram;
pub use dram_box::DramBox;
pub use durability::{Durability, Level, Taken, Ticket, Waited};
pub use medium::{Acknowledge, Bytes, Medium, Persist, Residency, Space};
pub use medium_error::MediumError;
pub use offset::{LINE_BYTES, Offset, Span, lines};
pub use probe::Probe;
pub use probed::Probed;
pub use sealed::{seal, unseal};
