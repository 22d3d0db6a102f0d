//! The journaled medium: a region in memory that is durable on any disk.
//!
//! Programs load from and store to memory of this process ([`Journaled`] is a [`pmem::Medium`]). Flushed and
//! published data is appended to a *log*; a wait returns once the data is in the log and the log is synced. A
//! *checkpoint* brings the *base*, a file with the layout of the region, up to date with the log; then the log's
//! space is reused. Opening reads the log. Blocks of the base are read later, when they are needed and by a
//! background thread, and the log's entries are applied to each block.
//!
//! # Invariants
//! - For all stores under the rules of `Medium`, the log has the records in the order of the stores (`buffer`). So
//!   the prefix of the log that survives a crash is a state that memory once had.
//! - The base contains nothing that was published and is not durable in the log. So the base equals a prefix of the
//!   log, once that prefix is replayed over it. No part of the log is overwritten before the base has it durably
//!   (`checkpoint`).
//! - While anything is appended, one segment is free in addition to the one that is written, so that everything
//!   appended can always be synced (`buffer`).
//! - After a failed sync, neither its caller nor any later caller reports durability (`guarded`, `health`).
//! - No thread sees a block of memory, stores to the block or appends from the block before it has the base's bytes
//!   and, over those, all replayed entries (`loading`, `redo`).
//! - With a limit of memory, no page is freed that differs from the synced base, or that a pinned thread may have found
//!   in memory (`loading`).
//! - Readers append nothing. A reader waits only for the durability of a word that was found before its writer has
//!   waited.
//! - A caller that does not wait immediately leaves the word as it is, and has a receipt (`receipt`).
//!
//! The write orders, and the state after a crash at each step, are in `writer` and `ahead` for the log,
//! `checkpoint` for the base, `recover` for opening, and `loading` for a block. `frame` and `segment` contain the
//! byte layouts.
//!
//! # Modules
//! Each type owns its fields, and uses only types below it:
//!
//! ```text
//! medium, residency        the medium                                -> journaled
//! journaled                creating and opening                      -> journal, recover, threads, receipt
//! close, receipt, threads  closing; callers that wait later          -> journal
//! journal                  the composition                           -> log, checkpoint, loading
//! checkpoint: Checkpointer the base is brought up to date            -> log, loading, discards, pace
//! log: Log                 waits, group commit                       -> writer, buffer, turns, requests
//! writer: LogWriter        frames                                    -> ahead, buffer, durable, tail
//! ahead: Segments          headers and space of segments             -> durable, guarded, slots
//! loading: Loader          the region's memory, eviction             -> blocks, redo, region, guarded
//! buffer: Appender         entries that no writer has taken          -> slots, published, dirty
//! guarded, health          a file; its first failure ends writing    -> slots, requests
//! ```
//!
//! # Lock order
//! checkpoint -> discards, a lane -> writer -> ahead -> slots, buffer; below all of them a file's handle for
//! syncing. A thread that holds none of them may wait for a checkpoint. `buffer` is a leaf: under it, no other lock
//! is taken and no file is used; so a thread that is about to take this lock first makes sure that the memory it
//! will read or store to is loaded. Loading holds no lock while reading, and its own locks are leaves; it marks a
//! block that cannot be read in the slots.

mod ahead;
mod blocks;
mod broken;
mod buffer;
pub mod canary;
mod checkpoint;
mod close;
mod dirty;
mod discards;
mod durable;
mod error;
mod figures;
mod file;
mod frame;
mod guarded;
mod health;
mod journal;
mod journaled;
mod loading;
mod log;
mod medium;
mod notifier;
mod opened;
mod options;
mod os_file;
mod pace;
mod pages;
mod published;
mod receipt;
mod recover;
mod redo;
mod region;
mod requests;
mod residency;
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
pub use figures::Figures;
pub use file::{File, Files};
pub use journaled::{Journaled, OpenProgress};
pub use loading::{Loaded, PageFigures};
pub use notifier::Notifier;
pub use opened::Opening;
pub use options::JournalOptions;
pub use os_file::OsFile;
pub use receipt::{Acknowledger, Receipt};

/// The constants of the format.
pub mod layout {
    pub use crate::frame::{ENTRY_HEADER_BYTES, FRAME_HEADER_BYTES};
    pub use crate::segment::{FRAMES_START_BYTES, HEADER_BYTES, MAGIC, VERSION};
}
