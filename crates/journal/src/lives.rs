//! The journal's lives: what is appended becomes durable, segments of the log come and go, checkpoints bring the base up to the log,
//! and all of it ends. (The fourth, loading what the base has, is `loading`'s.)

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64};

use parking_lot::{Condvar, Mutex};
use pmem::MediumError;

use crate::buffer::Buffer;
use crate::checkpoint::Checkpoint;
use crate::discards::Discards;
use crate::log::FIRST_POSITION;
use crate::published::Published;
use crate::slots::Slots;
use crate::turns::Turns;
use crate::writer::Writer;

/// What is appended, and how far it is written and durable.
#[derive(Debug)]
pub(crate) struct Append {
    /// What was appended and not taken by a writer.
    pub(crate) buffer: Mutex<Buffer>,
    /// Up to where entries were appended; changes under the buffer's lock.
    pub(crate) appended: AtomicU64,
    /// Its holder writes frames.
    pub(crate) writer: Mutex<Writer>,
    /// Up to where entries are in the operating system's hands.
    pub(crate) written: AtomicU64,
    /// Which of the waiting threads syncs for all of them.
    pub(crate) turns: Turns,
    /// Up to where entries are durable.
    pub(crate) synced: AtomicU64,
    /// All frames before this number are durable.
    pub(crate) mark: AtomicU64,
    /// The region's length with all frames before that number, at least.
    pub(crate) synced_region_bytes: AtomicU64,
    /// Up to where a frame that is durable itself says that entries are.
    pub(crate) proved: AtomicU64,
    /// Up to where callers went on without waiting, at most.
    pub(crate) deferred: AtomicU64,
    /// Where words were published that may not be durable.
    pub(crate) published: Published,
    /// Bytes written to the log, and its syncs, so far.
    pub(crate) synced_bytes: AtomicU64,
    pub(crate) sync_count: AtomicU64,
}

/// The segments of the log: their room, and which of them are free, ready and sealed.
#[derive(Debug)]
pub(crate) struct Segments {
    /// How much of each segment has space, and may be written.
    pub(crate) capacity_bytes: AtomicU64,
    /// Once the segment is filled so far something is to be done before it is full (`ahead`).
    pub(crate) ahead_at: AtomicU64,
    /// Its holder makes room for what comes next.
    pub(crate) ahead: Mutex<()>,
    pub(crate) slots: Mutex<Slots>,
    /// Whether one is free; changes with them.
    pub(crate) has_spare: AtomicBool,
    /// A segment was sealed, or can be used again, or it is time to stop.
    pub(crate) slots_changed: Condvar,
}

/// Bringing the base up to the log.
#[derive(Debug)]
pub(crate) struct Checkpoints {
    /// Replay begins at this position or behind it, by the newest header.
    pub(crate) replayed_from: AtomicU64,
    /// Space of the base that is to be given back.
    pub(crate) discards: Mutex<Discards>,
    /// One checkpoint at a time.
    pub(crate) work: Mutex<Checkpoint>,
}

/// How the journal ends: by a failure, or by being closed.
#[derive(Debug, Default)]
pub(crate) struct Ending {
    /// The error number of the failure that ended writing, or 0.
    pub(crate) poison: AtomicI32,
    pub(crate) is_closing: AtomicBool,
    /// How the end went, once it has come.
    pub(crate) closed: OnceLock<Result<(), MediumError>>,
}

impl Append {
    /// Nothing yet, behind what `writer` says.
    pub(crate) fn new(writer: Writer, buffer: Buffer) -> Append {
        Append {
            mark: AtomicU64::new(0),
            synced_region_bytes: AtomicU64::new(writer.region_bytes),
            proved: AtomicU64::new(FIRST_POSITION),
            buffer: Mutex::new(buffer),
            appended: AtomicU64::new(FIRST_POSITION),
            writer: Mutex::new(writer),
            written: AtomicU64::new(FIRST_POSITION),
            turns: Turns::default(),
            synced: AtomicU64::new(FIRST_POSITION),
            deferred: AtomicU64::new(0),
            published: Published::new(),
            synced_bytes: AtomicU64::new(0),
            sync_count: AtomicU64::new(0),
        }
    }
}

impl Segments {
    pub(crate) fn new(slots: Slots, capacity_bytes: u64) -> Segments {
        Segments {
            capacity_bytes: AtomicU64::new(capacity_bytes),
            ahead_at: AtomicU64::new(0),
            ahead: Mutex::default(),
            has_spare: AtomicBool::new(slots.has_spare()),
            slots: Mutex::new(slots),
            slots_changed: Condvar::new(),
        }
    }
}

impl Checkpoints {
    /// None yet, of a log that is replayed from this position.
    pub(crate) fn new(replayed_from: u64) -> Checkpoints {
        Checkpoints { replayed_from: AtomicU64::new(replayed_from), discards: Mutex::default(), work: Mutex::default() }
    }
}
