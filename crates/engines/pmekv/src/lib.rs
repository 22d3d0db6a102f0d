//! The PMEKV engine, after 'A New Embedded Key-Value Store for NVM Device Simulator' (2020): an ordered index in volatile memory,
//! keys and values in persistent memory, and a log between them that acknowledges a write with one fence.
//!
//! - *Records* are keys with their values (`items`). Nothing changes a record that something names.
//! - A *lane* is a part of the keys, by hash, and a log of what happened to them (`lane.rs`, `entry.rs`). An entry names the
//!   record that begins and the one that ends.
//! - A *checkpoint* is all keys' records, in the order of their keys, packed into nodes, and a cut for each lane: what its log says
//!   up to there is in the nodes (`checkpoint.rs`, `node.rs`).
//! - The *tree* in volatile memory (`index::BPlusTree`) has every key's record. It alone is asked by readers.
//!
//! # Invariants
//! - Within a lane a place begins and ends by turns. So a place holds a record of the lane exactly if the last entry about that
//!   place begins one, or there is none after the cut and the nodes have it. Keys need not be compared, and what a record was
//!   before its room was used anew does not matter.
//! - A record's room is free for another when the entry that ends the record is durable, and no reader is left that may have found
//!   it.
//! - The tree has what the lanes' committed entries say; the holder of a lane's lock sees the lane's keys as they are.
//!
//! # A write
//! | step | a crash after it leaves |
//! |---|---|
//! | 1 room is reserved; the lane is locked; the record is written to the room (a long one before the lock); flushed | the key as it was |
//! | 2 conditions are decided; a segment begins, if the log needs one | the same |
//! | 3 the entry is written; flushed | the key as it was, or changed: the entry counts if entry and record are whole |
//! | 4 commit: the one fence. *The write is acknowledged from here* | the key changed |
//! | 5 the tree changes; the lane is unlocked | the same |
//! | 6 the old record is retired | the same |
//!
//! A delete is the same without a record. One fence suffices for a record and an entry since both prove themselves by checksums: an
//! entry that is durable without its record does not count, and recovery can tell as long as the record's room has not been used
//! for anything else, which is until a later entry of the lane is durable (`recover/`). On a log (`Persist::commit` that does not
//! wait) step 5 comes before the change is durable: readers wait for it (`tickets.rs`), the writer after unlocking.
//!
//! Puts or deletes of several keys, which share step 4: `group.rs`. Batches: `batch.rs`. Clearing: `clear.rs`. The journal, and what a store needs of room: `space.rs`; what is kept for the next checkpoint: `reserve.rs`.
//!
//! # Lock order
//! The checkpoint, lanes in ascending order, the batch's table, the tree, the heap. The reserve's is held while nothing else is taken. Nobody waits for the medium under a lane's lock,
//! and readers take no lock.

mod batch;
mod bytes;
pub mod canary;
mod check;
mod checkpoint;
mod clear;
mod compact;
mod entry;
mod group;
mod lane;
pub mod layout;
mod node;
mod open;
mod ops;
mod ordered;
mod prepared;
mod read;
mod reaper;
mod record;
mod recover;
mod reserve;
mod shown;
mod space;
mod tickets;
mod update;
mod write;

use engine::{Clock, Compaction, Error, Hasher, Reaper, Verify, WriteThrottle};
use epoch::Limbo;
use heap::Heap;
use index::{BPlusTree, Position};
use parking_lot::Mutex;
use pmem::{Dram, Medium};

use batch::Batches;
use checkpoint::{Checkpoint, LastCheckpoint};
use lane::Lanes;
use record::Records;
use recover::Damage;
use reserve::Reserve;
use space::CheckpointDamage;
use tickets::Tickets;

/// The name in stats and options.
pub const NAME: &str = "pmekv";

/// How a store is used. Nothing of it is part of the format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// A checkpoint comes before the log has more entries than this, or than a quarter of the store's keys, whichever is more.
    pub log_entry_count_max: u64,
    /// Entries that a segment gets: at most what it has room for. Fewer are for tests.
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
    medium: M,
    heap: Heap<D>,
    hasher: Hasher,
    options: Options,
    lanes: Lanes,
    tree: BPlusTree<D>,
    tickets: Tickets,
    batches: Batches,
    /// Replaced records that readers may still look at.
    limbo: Limbo<Position>,
    held_up: WriteThrottle,
    checkpoint: Mutex<Checkpoint>,
    checkpoint_damage: CheckpointDamage,
    reserve: Reserve,
    last_checkpoint: LastCheckpoint,
    clock: Clock,
    verify: Verify,
    reaper: Reaper,
    compaction: Compaction<Vec<u8>>,
    /// What the opening left out ([`Pmekv::open_past_damage`]).
    lost: Vec<Damage>,
}

impl<M: Medium, D: Dram> Pmekv<M, D> {
    /// The same store, by this clock.
    #[must_use]
    pub fn by_clock(self, clock: Clock) -> Pmekv<M, D> {
        Pmekv { clock, ..self }
    }

    /// The same store, whose reads compare this much.
    #[must_use]
    pub fn verifying(self, verify: Verify) -> Pmekv<M, D> {
        Pmekv { verify, ..self }
    }

    /// The same store, which gives space back in the background ([`engine::Engine::step`]) while it takes more than `above` times what records,
    /// nodes and log occupy; never if there is no such limit.
    #[must_use]
    pub fn compacting_above(self, above: Option<f64>) -> Pmekv<M, D> {
        Pmekv { compaction: Compaction::above(above), ..self }
    }

    /// What the store lies on.
    pub fn medium(&self) -> &M {
        &self.medium
    }

    fn records(&self) -> Records<'_, M> {
        Records(&self.medium)
    }

    fn may_write(&self) -> Result<(), Error> {
        if !self.medium.is_writable() {
            return Err(pmem::MediumError::ReadOnly.into());
        }
        Ok(self.medium.health()?)
    }
}
