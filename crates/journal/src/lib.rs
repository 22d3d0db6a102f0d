//! The journaled medium: a region in memory, durable on any disk.
//!
//! Programs load from and store to memory of this process ([`Journaled`] is a [`pmem::Medium`]). What they flush or publish
//! is appended to a *log*; what they wait for is in the log, and the log synced. A *checkpoint* brings the
//! *base*, a file that looks like the region, up to the log, and then the log's room is used again. Opening reads the log; the base is
//! read, and the log's entries are applied, block by block: when they are needed, and by a thread.
//!
//! # Invariants
//! - Of whatever is stored under the rules of `Medium` the log has the records in the order of the stores (`buffer`). So
//!   what a crash leaves of the log, a prefix, is a state in which memory was.
//! - The base shows nothing that was published and is not durable in the log; so the base is a prefix of the log, once that
//!   prefix is replayed over it. No part of the log is overwritten before the base has it durably (`checkpoint`).
//! - While anything is appended a segment is free beside the one that is written, so that what was appended can always be
//!   synced (`buffer`).
//! - After a sync that failed neither its caller nor any later one tells of durability (`journal`).
//! - No thread sees a block of memory, stores to the block or appends any of it before the block has the base's bytes and, over
//!   those, all entries that were replayed (`loading`, `redo`).
//! - Readers append nothing and wait for nothing but the durability of a word that was met before its writer has waited.
//! - A caller that does not wait at once leaves the word as it is, and has a receipt (`receipt`).
//!
//! The write orders and what a crash after each step leaves: `writer` and `ahead` for the log, `checkpoint` for the base, `recover` for
//! opening, `loading` for a block. The bytes are drawn in `frame` and `segment`.
//!
//! # Lock order
//! checkpoint -> discards, a lane -> writer -> ahead -> slots, buffer; below all of them a file's handle to sync with.
//! A thread that holds none of them may wait for a checkpoint. `buffer` is a leaf: no other lock is taken, nor any file used, under
//! it; so a thread that is to take this lock first makes sure that what is read or stored under the lock is in memory. Loading
//! holds no lock while reading, and its own locks are leaves; of a block that cannot be read it tells the slots.

mod ahead;
mod blocks;
mod buffer;
pub mod canary;
mod checkpoint;
mod close;
mod dirty;
mod discards;
mod error;
mod figures;
mod file;
mod frame;
mod group;
mod journal;
mod journaled;
mod lives;
mod loading;
mod log;
mod medium;
mod notifier;
mod options;
mod os_file;
mod pages;
mod published;
mod receipt;
mod recover;
mod redo;
mod region;
mod requests;
mod scan;
mod segment;
mod slots;
mod tail;
#[cfg(test)]
mod test_file;
mod threads;
mod turns;
mod writer;

pub use error::{JournalError, Which};
pub use figures::{Figures, Loaded};
pub use file::{File, Files};
pub use journaled::{Journaled, OpenProgress};
pub use log::Opening;
pub use notifier::Notifier;
pub use options::JournalOptions;
pub use os_file::OsFile;
pub use receipt::{Acknowledger, Receipt};

/// The numbers of the format.
pub mod layout {
    pub use crate::frame::{ENTRY_HEADER_BYTES, FRAME_HEADER_BYTES};
    pub use crate::segment::{FRAMES_START_BYTES, HEADER_BYTES, MAGIC, VERSION};
}
