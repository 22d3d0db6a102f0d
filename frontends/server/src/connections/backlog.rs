//! Unread replies: how much memory they may use in total, and which clients have to wait.
//!
//! Many clients send an entire pipeline before they read the first reply. While such a client sends, its replies are
//! held, because otherwise neither side would make progress. Each client may leave [`FULL_BYTES`] unread in any case.
//! Replies beyond that are the client's *backlog* and are counted here.
//!
//! # Which client may hold more
//! All backlogs together may use `maxmemory-clients` bytes. A client's backlog may grow while it is smaller than the
//! unused part of that limit. So a single client gets half of the limit, two clients get a third each, and some memory
//! is always left for a later client. A client whose backlog may not grow is *held back*: its requests are neither
//! executed nor read until this client, or another one, has read replies. A client that is not logged in gets no
//! backlog.
//!
//! A single reply may be longer than that: replies that list a collection, or those of `EXEC` and scripts. So many
//! clients with one such reply each can exceed the limit together.
//!
//! # Which client is disconnected
//! A client is *stuck* if its backlog has neither shrunk nor grown for [`STUCK_MIN`]. A client that is held back and
//! stuck may wait forever. In that case, or while the limit is exceeded, the stuck client with the largest backlog is
//! disconnected: one per second for each loop that has such clients.
//!
//! If the backlogs exceed twice the limit, the client with the largest one is disconnected immediately, and the next
//! one once its memory is free. Exception: the only client with a backlog stays. So all backlogs together use at most
//! twice the limit, and one reply for each thread that executes requests.
//!
//! [`FULL_BYTES`]: super::output::FULL_BYTES

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use crate::clients::{Clients, Place, Record};

/// Longer than a reading client takes between two reads, unless its process is stopped.
const STUCK_MIN: Duration = Duration::from_secs(5);

/// The backlogs of all clients.
#[derive(Default)]
pub(crate) struct Backlogs {
    len_bytes: AtomicUsize,
    evicted_count: AtomicU64,
}

impl Backlogs {
    /// Returns their total length.
    pub(crate) fn len_bytes(&self) -> usize {
        self.len_bytes.load(Ordering::Relaxed)
    }

    /// Returns the number of clients that were disconnected to free memory.
    pub(crate) fn evicted_count(&self) -> u64 {
        self.evicted_count.load(Ordering::Relaxed)
    }

    /// Returns whether a client's backlog of `own_bytes` may grow; a limit of 0 means no limit.
    pub(crate) fn allow(&self, own_bytes: usize, bytes_max: u64) -> bool {
        bytes_max == 0 || (own_bytes as u64) < bytes_max.saturating_sub(self.len_bytes() as u64)
    }

    /// Returns whether long replies use more than `factor` times the limit; a limit of 0 means no limit.
    pub(crate) fn exceed(&self, factor: u64, bytes_max: u64) -> bool {
        bytes_max != 0 && self.len_bytes() as u64 > bytes_max.saturating_mul(factor)
    }

    /// Chooses the client to disconnect when a client has been held back for too long, or long replies use too much.
    /// Nothing more is executed for it.
    pub(crate) fn choose(&self, clients: &Clients) -> Option<Place> {
        self.choose_largest(clients.all().into_iter().filter(|record| is_stuck(record)))
    }

    /// Chooses the client to disconnect at once, if several have a backlog and none of them is being disconnected.
    pub(crate) fn choose_at_once(&self, clients: &Clients) -> Option<Place> {
        let mut records = clients.all();
        records.retain(|record| record.backlog_bytes.load(Ordering::Relaxed) > 0);
        if records.len() < 2 || records.iter().any(|record| record.is_killed()) {
            return None;
        }
        self.choose_largest(records.into_iter())
    }

    fn choose_largest(&self, records: impl Iterator<Item = Arc<Record>>) -> Option<Place> {
        let largest = records.max_by_key(|record| record.backlog_bytes.load(Ordering::Relaxed))?;
        largest.kill();
        self.evicted_count.fetch_add(1, Ordering::Relaxed);
        Some(largest.place)
    }
}

/// Returns whether the client has a backlog that has not changed for a long time.
pub(crate) fn is_stuck(record: &Record) -> bool {
    let now_ms = record.connected.elapsed().as_millis() as u64;
    record.backlog_bytes.load(Ordering::Relaxed) > 0
        && now_ms.saturating_sub(record.progress_ms.load(Ordering::Relaxed)) >= STUCK_MIN.as_millis() as u64
}

/// Records progress: bytes of a client with a backlog were sent, or its backlog began or may grow.
pub(crate) fn note_progress(record: &Record) {
    record.progress_ms.store(record.connected.elapsed().as_millis() as u64, Ordering::Relaxed);
}

/// One connection's part of all backlogs.
#[derive(Default)]
pub(crate) struct Share {
    len_bytes: usize,
}

impl Share {
    /// Sets the length of the connection's backlog.
    pub(crate) fn set(&mut self, len_bytes: usize, record: &Record, all: &Backlogs) {
        if len_bytes == self.len_bytes {
            return;
        }
        if self.len_bytes == 0 {
            note_progress(record);
        }
        all.len_bytes.fetch_add(len_bytes, Ordering::Relaxed);
        all.len_bytes.fetch_sub(self.len_bytes, Ordering::Relaxed);
        self.len_bytes = len_bytes;
        record.backlog_bytes.store(len_bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;
    use crate::clients::Peer;

    fn record(client_id: u64, backlog_bytes: usize) -> Arc<Record> {
        let addr = Peer::Ip(SocketAddr::from(([127, 0, 0, 1], 1)));
        let record = Record::new(Place { loop_index: 0, key: 0, client_id }, addr.clone(), addr);
        record.backlog_bytes.store(backlog_bytes, Ordering::Relaxed);
        Arc::new(record)
    }

    #[test]
    fn clients_share_the_limit_with_reserve() {
        let (all, bytes_max, step) = (Backlogs::default(), 1_000, 10);
        let clients: Vec<Arc<Record>> = (0..4).map(|id| record(id, 0)).collect();
        let mut shares: Vec<(Share, usize)> = clients.iter().map(|_| (Share::default(), 0)).collect();
        for _ in 0..100 {
            for ((share, own_bytes), record) in shares.iter_mut().zip(&clients) {
                if all.allow(*own_bytes, bytes_max) {
                    *own_bytes += step;
                    share.set(*own_bytes, record, &all);
                }
            }
        }
        assert!(shares.iter().all(|(_, own_bytes)| (190..=210).contains(own_bytes)), "a fifth each");
        assert!(all.allow(100, bytes_max), "another client finds room");
        shares.iter_mut().zip(&clients).for_each(|((share, _), record)| share.set(0, record, &all));
        assert_eq!(all.len_bytes(), 0);
        assert!(all.allow(usize::MAX, 0), "without a bound");
    }

    #[test]
    fn largest_unread_client_is_closed() {
        let (all, clients) = (Backlogs::default(), Clients::default());
        for (id, backlog_bytes) in [(1, 10), (2, 30), (3, 20), (4, 0)] {
            clients.add(&record(id, backlog_bytes));
        }
        assert_eq!(all.choose(&clients), None, "each has just come");
        for (id, backlog_bytes) in [(1, 10), (3, 20), (4, 0)] {
            let mut old = Arc::into_inner(record(id, backlog_bytes)).expect("the only handle");
            old.connected = old.connected.checked_sub(2 * STUCK_MIN).expect("the machine has run for as long");
            clients.add(&Arc::new(old));
        }
        assert_eq!(all.choose(&clients).map(|place| place.client_id), Some(3), "the second has been sent something");
        assert_eq!(all.evicted_count(), 1);
    }

    #[test]
    fn larger_of_two_long_replies_closes() {
        let (all, clients, one, other) = (Backlogs::default(), Clients::default(), record(1, 30), record(2, 20));
        clients.add(&one);
        assert_eq!(all.choose_at_once(&clients), None, "it is the only one");
        clients.add(&other);
        assert_eq!(all.choose_at_once(&clients), Some(one.place));
        assert_eq!(all.choose_at_once(&clients), None, "its memory is about to be free");
        one.backlog_bytes.store(0, Ordering::Relaxed);
        let third = record(3, 10);
        clients.add(&third);
        assert_eq!(all.choose_at_once(&clients), Some(other.place));
        Share::default().set(21, &third, &all);
        assert!(all.exceed(2, 10) && !all.exceed(3, 10) && !all.exceed(2, 0));
    }
}
