//! The PMEKV engine, after 'A New Embedded Key-Value Store for NVM Device Simulator' (2020): an ordered index in DRAM,
//! keys and values in persistent memory, and a log that acknowledges a write with one fence.
//!
//! - *Records* hold keys with their values (`items`). A record does not change while anything names it.
//! - A *lane* holds a share of the keys, by hash, and has a log of their changes (`lanes/`, `entry.rs`). A log entry
//!   names the record that begins and the record that ends.
//! - A *checkpoint* holds the records of all keys, in key order, packed into nodes. For each lane it has a *cut*: the
//!   nodes include the lane's log up to there (`checkpoint/`, `node.rs`).
//! - The *tree* in DRAM (`index::BPlusTree`) holds the record of every key. Readers use only the tree.
//!
//! # Invariants
//! - Within a lane, the entries about one place alternately begin and end a record. So a place holds a record of the
//!   lane exactly if the last entry about the place begins one, or if no entry after the cut is about the place and the
//!   nodes have the record. Keys need not be compared, and a record that was there before a reuse does not matter.
//! - A record's slot is free for another record when the entry that ends the record is durable, and no reader is left
//!   that may have found the record.
//! - The tree matches the committed entries of the lanes. The holder of a lane's lock sees the current state of the
//!   lane's keys.
//!
//! # A write
//! | step | a crash after it leaves |
//! |---|---|
//! | 1 reserve a slot; lock the lane; write the record (before locking if long); flush | the old state of the key |
//! | 2 check conditions; begin a segment if the log needs one | the same |
//! | 3 write the entry; flush | the old or the new state: the entry is valid if entry and record are intact |
//! | 4 commit: the one fence. *The write is acknowledged from here* | the new state |
//! | 5 update the tree; unlock the lane | the same |
//! | 6 retire the old record | the same |
//!
//! A delete is the same without a record. One fence is enough for record and entry because each has a checksum: an
//! entry that is durable without its record is not valid. Recovery can detect that as long as the record's slot was not
//! reused, which needs a later durable entry of the lane (`recover/`). On a log (`Persist::commit` does not wait), step
//! 5 comes before the change is durable: readers wait for durability (`tickets.rs`), and so does the writer after
//! unlocking.
//!
//! Puts or deletes of several keys share step 4: `writer/group.rs`. Batches: `writer/batch.rs`. Clearing:
//! `writer/clear.rs`. The journal, and the space that a store needs: `checkpoint/space.rs`. Slots kept for the next
//! checkpoint: `reserve.rs`.
//!
//! # Parts
//! A type owns the fields in its row, and the type of each row holds the types of the rows that are indented below it.
//!
//! | type | fields | job |
//! |---|---|---|
//! | [`Pmekv`] | compaction, skipped damage | implements the engine's traits; opens (`open.rs`) |
//! | · `Writer` | reaper, number of batches | changes keys (`writer/`); `GroupWrite` and `Batch` live as long as the write |
//! | · · `Checkpointer` | current checkpoint, bound of the log | makes checkpoints, and space by them (`checkpoint/`) |
//! | · · · `Lanes` | logs, count of entries | provides logs with space, and cuts them (`lanes/`) |
//! | · · · · `Reserve` | slots, promised keys | keeps slots for nodes (`reserve.rs`) |
//! | · · · `Reader` | published batch, tickets, hasher | finds keys and waits for their durability (`reader/`) |
//! | · · · · `Contents` | tree, clock, checks of reads | reads and checks records (`contents/`) |
//! | · · · · · `Region` | medium, heap, retired records | reserves and frees slots (`region.rs`) |
//!
//! A module uses only modules after it: `ops`, `compact`, `open`; `writer`; `checkpoint`; `recover`; `root`; `lanes`;
//! `reserve`; `reader`; `contents`; `prepared`; `region`; `tickets`, `record`, `node`, `entry`, `shown`; `layout`,
//! `bytes`.
//!
//! # Lock order
//! The checkpoint, lanes in ascending order, the batch's table, the tree, the heap. No other lock is taken under the
//! reserve's lock. No thread waits for the medium under a lane's lock, and readers take no lock.

mod broken;
mod bytes;
pub mod canary;
mod checkpoint;
mod compact;
mod contents;
mod entry;
mod lanes;
pub mod layout;
mod node;
mod open;
mod ops;
mod prepared;
mod reader;
mod record;
mod recover;
mod region;
mod reserve;
mod root;
mod shown;
mod tickets;
mod writer;

use engine::{Clock, Compaction, Error, Verify};
use pmem::{Dram, Medium};

use contents::Contents;
use reader::Reader;
use recover::Damage;
use writer::Writer;

/// The name in stats and options.
pub const NAME: &str = "pmekv";

/// Runtime options. They are not part of the format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// A checkpoint starts before the log has more entries than this, or than a quarter of the store's keys, whichever
    /// is larger.
    pub log_entry_count_max: u64,
    /// Entries per segment: at most the capacity of a segment. Tests use fewer.
    pub segment_entry_count: u64,
}

impl Default for Options {
    /// A log of 64 MiB.
    fn default() -> Options {
        Options { log_entry_count_max: 1 << 20, segment_entry_count: layout::SEGMENT_ENTRY_COUNT }
    }
}

/// The PMEKV engine over a medium.
pub struct Pmekv<M: Medium, D: Dram> {
    writer: Writer<M, D>,
    compaction: Compaction<Vec<u8>>,
    /// Damage that the opening skipped ([`Pmekv::open_skipping_damage`]).
    lost: Vec<Damage>,
}

impl<M: Medium, D: Dram> Pmekv<M, D> {
    /// Returns the store with this clock.
    #[must_use]
    pub fn by_clock(self, clock: Clock) -> Pmekv<M, D> {
        self.with_contents(|contents| contents.by_clock(clock))
    }

    /// Returns the store with reads that verify this much.
    #[must_use]
    pub fn verifying(self, verify: Verify) -> Pmekv<M, D> {
        self.with_contents(|contents| contents.verifying(verify))
    }

    /// Returns the store with background compaction ([`engine::Maintenance::step`]) while it takes more than `above`
    /// times the bytes of records, nodes and log. `None` turns compaction off.
    #[must_use]
    pub fn compacting_above(self, above: Option<f64>) -> Pmekv<M, D> {
        Pmekv { compaction: Compaction::above(above), ..self }
    }

    /// Returns the medium under the store.
    pub fn medium(&self) -> &M {
        self.reader().region().medium()
    }

    /// Makes a checkpoint, and shortens the log.
    ///
    /// # Errors
    /// The region is full, or the medium fails; then the previous checkpoint stays current.
    pub fn checkpoint(&self) -> Result<(), Error> {
        self.writer.checkpointer().make()
    }

    /// Returns the bytes of the region that records, log and nodes occupy: all used bytes, once nothing is retired.
    ///
    /// # Errors
    /// Damage to a record.
    pub fn needed_bytes(&self) -> Result<u64, Error> {
        self.writer.checkpointer().needed_bytes()
    }

    fn with_contents(self, with: impl FnOnce(Contents<M, D>) -> Contents<M, D>) -> Pmekv<M, D> {
        Pmekv { writer: self.writer.with_reader(|reader| reader.with_contents(with)), ..self }
    }

    fn reader(&self) -> &Reader<M, D> {
        self.writer.reader()
    }
}
