//! The journal's state, by stage: entries become durable, segments of the log are filled and freed, checkpoints
//! bring the base up to date, and the journal ends. (The fourth stage, loading the base, is in `loading`.)

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

/// The entries, and the positions up to which they are written and durable.
#[derive(Debug)]
pub(crate) struct Append {
    /// Entries that no writer has taken.
    pub(crate) buffer: Mutex<Buffer>,
    /// The position up to which entries were appended; changes under the buffer's lock.
    pub(crate) appended: AtomicU64,
    /// Its holder writes frames.
    pub(crate) writer: Mutex<Writer>,
    /// The position up to which the operating system has the entries.
    pub(crate) written: AtomicU64,
    /// Decides which of the waiting threads syncs for all of them.
    pub(crate) turns: Turns,
    /// The position up to which entries are durable.
    pub(crate) synced: AtomicU64,
    /// All frames before this number are durable.
    pub(crate) mark: AtomicU64,
    /// The region's length with all frames before that number, at least.
    pub(crate) synced_region_bytes: AtomicU64,
    /// The position up to which a frame that is itself durable records that entries are durable.
    pub(crate) proved: AtomicU64,
    /// The latest position for which a caller did not wait.
    pub(crate) deferred: AtomicU64,
    /// Positions of published words that may not be durable.
    pub(crate) published: Published,
    /// Bytes written to the log, and its syncs, so far.
    pub(crate) synced_bytes: AtomicU64,
    pub(crate) sync_count: AtomicU64,
}

/// The segments of the log: their usable space, and the free, ready and sealed ones.
#[derive(Debug)]
pub(crate) struct Segments {
    /// The number of bytes of each segment that have space and may be written.
    pub(crate) capacity_bytes: AtomicU64,
    /// The fill level of the segment at which later space has to be prepared (`ahead`).
    pub(crate) ahead_at: AtomicU64,
    /// Its holder makes space for later frames.
    pub(crate) ahead: Mutex<()>,
    pub(crate) slots: Mutex<Slots>,
    /// True if a segment is free; changes together with `slots`.
    pub(crate) has_spare: AtomicBool,
    /// Signals that a segment was sealed or freed, or that it is time to stop.
    pub(crate) slots_changed: Condvar,
}

/// The state of checkpoints.
#[derive(Debug)]
pub(crate) struct Checkpoints {
    /// Replay begins at this position or behind it, by the newest header.
    pub(crate) replayed_from: AtomicU64,
    /// Space of the base that has to be freed.
    pub(crate) discards: Mutex<Discards>,
    /// One checkpoint at a time.
    pub(crate) work: Mutex<Checkpoint>,
}

/// The end of the journal: by a failure, or by being closed.
#[derive(Debug, Default)]
pub(crate) struct Ending {
    /// The error number of the failure that ended writing, or 0.
    pub(crate) poison: AtomicI32,
    pub(crate) is_closing: AtomicBool,
    /// The result of closing, once it is done.
    pub(crate) closed: OnceLock<Result<(), MediumError>>,
}

impl Append {
    /// Creates the state without entries, behind those that `writer` has.
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
    /// Creates the state without checkpoints, for a log that is replayed from this position.
    pub(crate) fn new(replayed_from: u64) -> Checkpoints {
        Checkpoints { replayed_from: AtomicU64::new(replayed_from), discards: Mutex::default(), work: Mutex::default() }
    }
}
