//! Whether the store is out of space: from a write that was refused for lack of space until enough space is free.

use std::time::{Duration, Instant};

use hikv::{Error, MediumError, Stats, Store};
use parking_lot::Mutex;

/// A refusal counts for at least this long, because a quota is not visible in the free space of its file system.
const COUNTS_FOR: Duration = Duration::from_secs(2);

/// The minimum by which a region grows.
const NEEDED_BYTES_MIN: u64 = 64 << 10;

/// The last refused write.
struct Refused {
    at: Instant,
    reason: String,
    /// The space that the file system lacked; `None` if the region reached its own limit.
    needed_bytes: Option<u64>,
    region_bytes: u64,
    /// Free bytes of the region at that time.
    free_bytes: u64,
}

#[derive(Default)]
pub(crate) struct Space(Mutex<Option<Refused>>);

impl Space {
    /// Records an error reply.
    #[cold]
    pub(crate) fn note(&self, error: &Error, store: &Store) {
        let Some(stats) = hikv::FrontEnd::of(store).stats_now().ok().filter(|_| error.is_full()) else { return };
        let mut refused = self.0.lock();
        if refused.is_none() {
            tracing::warn!(%error, disk_free_bytes = store.disk_free_bytes(), "out of space: writes that need space are refused");
        }
        let needed_bytes = match error {
            Error::Medium(MediumError::Limit { .. }) => None,
            Error::Medium(MediumError::Full { wanted_bytes }) => {
                Some(wanted_bytes.saturating_sub(stats.region_bytes).max(NEEDED_BYTES_MIN))
            }
            _ => Some(NEEDED_BYTES_MIN),
        };
        *refused = Some(Refused {
            at: Instant::now(),
            reason: error.to_string(),
            needed_bytes,
            region_bytes: stats.region_bytes,
            free_bytes: stats.free_bytes,
        });
    }

    /// Returns the reason why writes that need space are refused, if they are.
    pub(super) fn out_of_space(&self, stats: &Stats, disk_free_bytes: Option<u64>) -> Option<String> {
        let mut refused = self.0.lock();
        let last = refused.as_ref()?;
        if last.at.elapsed() < COUNTS_FOR || !last.has_space(stats, disk_free_bytes) {
            return Some(last.reason.clone());
        }
        *refused = None;
        tracing::info!(disk_free_bytes, "space is available again");
        None
    }
}

impl Refused {
    fn has_space(&self, stats: &Stats, disk_free_bytes: Option<u64>) -> bool {
        let is_longer = stats.region_bytes > self.region_bytes;
        let is_freer = stats.free_bytes > self.free_bytes;
        let has_disk = self.needed_bytes.zip(disk_free_bytes).is_some_and(|(needed, free)| free >= needed);
        is_longer || is_freer || has_disk
    }
}
