//! The clients that are connected, as the others see them.

pub(crate) mod session;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

use parking_lot::Mutex;

use crate::clients::session::Session;
use crate::mail::Place;

/// What is told of a client. Its event loop writes the figures after each turn; a reader may see the last turn's.
pub(crate) struct Record {
    pub(crate) place: Place,
    pub(crate) addr: SocketAddr,
    pub(crate) laddr: SocketAddr,
    pub(crate) connected: Instant,
    pub(crate) names: Mutex<Names>,
    pub(crate) db: AtomicU8,
    pub(crate) resp: AtomicU8,
    /// Milliseconds from `connected` to its last request.
    pub(crate) active_ms: AtomicU64,
    /// The number of its last command in the table.
    pub(crate) command: AtomicUsize,
    pub(crate) channel_count: AtomicUsize,
    pub(crate) pattern_count: AtomicUsize,
    pub(crate) shard_count: AtomicUsize,
    /// Requests of its transaction; -1 without.
    pub(crate) queued_count: AtomicI64,
    pub(crate) queued_bytes: AtomicUsize,
    pub(crate) watch_count: AtomicUsize,
    pub(crate) input_bytes: AtomicUsize,
    pub(crate) input_room_bytes: AtomicUsize,
    pub(crate) output_bytes: AtomicUsize,
    pub(crate) flags: AtomicU32,
    pub(crate) is_evictable: AtomicBool,
}

/// What a client says of itself.
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

impl Record {
    pub(crate) fn new(place: Place, addr: SocketAddr, laddr: SocketAddr) -> Record {
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
            input_room_bytes: AtomicUsize::new(0),
            output_bytes: AtomicUsize::new(0),
            flags: AtomicU32::new(0),
            is_evictable: AtomicBool::new(true),
        }
    }

    /// Whether it has one of these flags, as far as its last turn told.
    pub(crate) fn has(&self, flags: u32) -> bool {
        self.flags.load(Ordering::Relaxed) & flags != 0
    }

    /// `normal` or `pubsub`.
    pub(crate) fn kind(&self) -> &'static str {
        if self.has(SUBSCRIBED) { "pubsub" } else { "normal" }
    }

    /// The line that `CLIENT LIST` shows.
    pub(crate) fn line(&self) -> Vec<u8> {
        let names = self.names.lock().clone();
        let get = |figure: &AtomicUsize| figure.load(Ordering::Relaxed);
        let age_ms = self.connected.elapsed().as_millis() as u64;
        let command = crate::table::entries().get(get(&self.command)).map_or("NULL", |entry| entry.command.name);
        let (input_bytes, room_bytes) = (get(&self.input_bytes), get(&self.input_room_bytes));
        // What each client takes whatever it does, and its buffers.
        let own_bytes = size_of::<Record>() + size_of::<Session>();
        let memory_bytes = own_bytes + input_bytes + room_bytes + get(&self.output_bytes) + get(&self.queued_bytes);
        let mut line =
            format!("id={} addr={} laddr={} fd={} name=", self.place.client_id, self.addr, self.laddr, self.place.key)
                .into_bytes();
        line.extend_from_slice(&names.name);
        line.extend_from_slice(
            format!(
                " age={} idle={} flags={} db={} sub={} psub={} ssub={} multi={} qbuf={} qbuf-free={} argv-mem=0 multi-mem={} rbs=0 rbp=0 obl={} oll=0 omem=0 tot-mem={} events=r cmd={} user={} redir=-1 resp={} lib-name=",
                age_ms / 1000,
                age_ms.saturating_sub(self.active_ms.load(Ordering::Relaxed)) / 1000,
                self.letters(),
                self.db.load(Ordering::Relaxed),
                get(&self.channel_count),
                get(&self.pattern_count),
                get(&self.shard_count),
                self.queued_count.load(Ordering::Relaxed),
                input_bytes,
                room_bytes,
                get(&self.queued_bytes),
                get(&self.output_bytes),
                memory_bytes,
                command,
                names.user,
                self.resp.load(Ordering::Relaxed),
            )
            .as_bytes(),
        );
        line.extend_from_slice(&names.library);
        line.extend_from_slice(b" lib-ver=");
        line.extend_from_slice(&names.library_version);
        line
    }

    fn letters(&self) -> String {
        let flags = self.flags.load(Ordering::Relaxed);
        let known =
            [(MONITORS, 'O'), (SUBSCRIBED, 'P'), (IN_TRANSACTION, 'x'), (DIRTY, 'd'), (CLOSING, 'c'), (TRACKS, 't')];
        let mut letters: String =
            known.iter().filter(|(flag, _)| flags & flag != 0).map(|(_, letter)| *letter).collect();
        if !self.is_evictable.load(Ordering::Relaxed) {
            letters.push('e');
        }
        if letters.is_empty() { "N".into() } else { letters }
    }
}

/// Every client, by its number.
#[derive(Default)]
pub(crate) struct Clients {
    records: Mutex<BTreeMap<u64, Arc<Record>>>,
}

impl Clients {
    pub(crate) fn add(&self, record: &Arc<Record>) {
        self.records.lock().insert(record.place.client_id, Arc::clone(record));
    }

    pub(crate) fn remove(&self, client_id: u64) {
        self.records.lock().remove(&client_id);
    }

    /// How many have this flag, as far as their last turn told.
    pub(crate) fn count_with(&self, flag: u32) -> usize {
        self.records.lock().values().filter(|record| record.has(flag)).count()
    }

    /// All of them, in the order in which they came.
    pub(crate) fn all(&self) -> Vec<Arc<Record>> {
        self.records.lock().values().cloned().collect()
    }
}
