//! One client as seen by other threads.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

use parking_lot::Mutex;

use super::peer::Peer;
use super::place::Place;

/// The public data of a client. Its event loop updates the figures after each turn, so readers may see the previous
/// turn's figures.
pub(crate) struct Record {
    pub(crate) place: Place,
    pub(crate) addr: Peer,
    pub(crate) laddr: Peer,
    pub(crate) connected: Instant,
    pub(crate) names: Mutex<Names>,
    pub(crate) db: AtomicU8,
    pub(crate) resp: AtomicU8,
    /// Milliseconds from `connected` to its last request.
    pub(crate) active_ms: AtomicU64,
    /// The index of its last command in the command table.
    pub(crate) command: AtomicUsize,
    pub(crate) channel_count: AtomicUsize,
    pub(crate) pattern_count: AtomicUsize,
    pub(crate) shard_count: AtomicUsize,
    /// Number of queued requests in its transaction; -1 without a transaction.
    pub(crate) queued_count: AtomicI64,
    pub(crate) queued_bytes: AtomicUsize,
    pub(crate) watch_count: AtomicUsize,
    pub(crate) input_bytes: AtomicUsize,
    pub(crate) input_unused_bytes: AtomicUsize,
    pub(crate) output_bytes: AtomicUsize,
    /// Unread reply bytes beyond those that every client may have (`connections/backlog.rs`).
    pub(crate) backlog_bytes: AtomicUsize,
    /// Milliseconds from `connected` to the last time that backlog was sent or allowed to grow.
    pub(crate) progress_ms: AtomicU64,
    pub(crate) flags: AtomicU32,
    pub(crate) is_evictable: AtomicBool,
    /// The client that receives its tracking messages; 0 for itself, and -1 if it tracks none.
    pub(crate) redirect: AtomicI64,
    /// That client was gone when the last message was due.
    pub(crate) is_redirect_broken: AtomicBool,
    is_killed: AtomicBool,
}

/// Information that a client gives about itself.
#[derive(Default, Clone)]
pub(crate) struct Names {
    pub(crate) name: Vec<u8>,
    pub(crate) library: Vec<u8>,
    pub(crate) library_version: Vec<u8>,
    pub(crate) user: String,
}

pub(crate) const IN_TRANSACTION: u32 = 1;
pub(crate) const SUBSCRIBED: u32 = 1 << 1;
pub(crate) const MONITORS: u32 = 1 << 2;
pub(crate) const DIRTY: u32 = 1 << 3;
pub(crate) const CLOSING: u32 = 1 << 4;
pub(crate) const TRACKS: u32 = 1 << 5;
pub(crate) const BROADCASTS: u32 = 1 << 6;
/// Its next request waits for the end of a pause.
pub(crate) const POSTPONED: u32 = 1 << 7;
/// It waits for an element.
pub(crate) const BLOCKED: u32 = 1 << 8;

impl Record {
    pub(crate) fn new(place: Place, addr: Peer, laddr: Peer) -> Record {
        Record {
            place,
            addr,
            laddr,
            connected: Instant::now(),
            names: Mutex::default(),
            db: AtomicU8::new(0),
            resp: AtomicU8::new(2),
            active_ms: AtomicU64::new(0),
            command: AtomicUsize::new(usize::MAX),
            channel_count: AtomicUsize::new(0),
            pattern_count: AtomicUsize::new(0),
            shard_count: AtomicUsize::new(0),
            queued_count: AtomicI64::new(-1),
            queued_bytes: AtomicUsize::new(0),
            watch_count: AtomicUsize::new(0),
            input_bytes: AtomicUsize::new(0),
            input_unused_bytes: AtomicUsize::new(0),
            output_bytes: AtomicUsize::new(0),
            backlog_bytes: AtomicUsize::new(0),
            progress_ms: AtomicU64::new(0),
            flags: AtomicU32::new(0),
            is_evictable: AtomicBool::new(true),
            redirect: AtomicI64::new(-1),
            is_redirect_broken: AtomicBool::new(false),
            is_killed: AtomicBool::new(false),
        }
    }

    /// Returns whether it had one of these flags at the end of its last turn.
    pub(crate) fn has(&self, flags: u32) -> bool {
        self.flags.load(Ordering::Relaxed) & flags != 0
    }

    /// Marks the client as killed: no further request is executed once each loop has finished its current turn.
    pub(crate) fn kill(&self) {
        self.is_killed.store(true, Ordering::Relaxed);
    }

    /// Returns whether the client was killed. A thread that has locked a lane of the gate after the kill sees it.
    #[inline]
    pub(crate) fn is_killed(&self) -> bool {
        self.is_killed.load(Ordering::Relaxed)
    }

    /// Returns `normal` or `pubsub`.
    pub(crate) fn kind(&self) -> &'static str {
        if self.has(SUBSCRIBED) { "pubsub" } else { "normal" }
    }
}
