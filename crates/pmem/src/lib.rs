//! The interface between hikv and byte-addressable persistent memory.
//!
//! Every access that makes data durable goes through a [`Medium`]: stores, write-backs, fences. A test can count,
//! delay, journal or crash only the accesses that the medium sees, so no other crate stores to persistent memory
//! directly.
//!
//! Vocabulary: a *region* is the entire persistent address range; a *line* is the 64 bytes that a cache writes back
//! together; to *flush* is to start write-back; to *order* is to make everything flushed durable before later
//! stores.
//!
//! This crate uses only `core`: it links into a kernel module or a device's firmware unchanged.
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
pub use delayed::{Delayed, Delays, DrivenClock, HELD_BLOCK_COUNT, Latency, TickClock, TimeStamps};
pub use dram::Dram;
pub use dram_box::DramBox;
pub use durability::{Durability, Level, Taken, Ticket, Waited};
pub use medium::{Acknowledge, Bytes, Medium, Persist, Residency, Space};
pub use medium_error::{MediumError, TRUNCATED_ERRNO};
pub use offset::{LINE_BYTES, Offset, Span, lines};
pub use probe::Probe;
pub use probed::Probed;
pub use sealed::{seal, unseal};
