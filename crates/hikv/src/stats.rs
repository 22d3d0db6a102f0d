//! Figures of an open store.

use std::time::Duration;

use journal::{Figures, Journaled, OsFile, PageFigures};
use pmem::{Durability, Medium, Persist, arch};
use pmem_os::Mapped;
#[cfg(feature = "serde")]
use serde::ser::SerializeMap;
#[cfg(feature = "serde")]
use serde::{Serialize, Serializer};
use uuid::Uuid;

use engine::{Engine, Figure, Worker};

use crate::files_status::FilesStatus;
use crate::trees::ReclaimFigures;

/// Properties that do not change while a store is open.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Identity {
    uuid: Uuid,
    pub(crate) medium: &'static str,
    pub(crate) durability: Durability,
    durability_why: &'static str,
}

impl Identity {
    pub(crate) fn of(medium: &Mapped) -> Identity {
        Identity {
            uuid: Uuid::nil(),
            medium: medium.name(),
            durability: medium.durability(),
            durability_why: medium.explain(),
        }
    }

    pub(crate) fn of_journal(medium: &Journaled<OsFile>) -> Identity {
        Identity {
            uuid: Uuid::nil(),
            medium: medium.name(),
            durability: medium.durability(),
            durability_why: medium.explain(),
        }
    }

    /// Returns the properties of a store whose engine the caller has made.
    pub(crate) fn of_simulation() -> Identity {
        let durability_why = "the medium is simulated";
        Identity { uuid: Uuid::nil(), medium: "simulated", durability: Durability::Process, durability_why }
    }

    pub(crate) fn uuid(&self) -> [u8; 16] {
        self.uuid.into_bytes()
    }

    pub(crate) fn with_uuid(self, uuid: Uuid) -> Identity {
        Identity { uuid, ..self }
    }
}

/// A journal's figures at one moment.
#[derive(Clone, Copy, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(Serialize))]
#[non_exhaustive]
pub struct JournalStats {
    /// The length of the log's file in bytes.
    pub log_bytes: u64,
    /// The limit of that length ([`crate::Tuning::log_bytes_max`]).
    pub log_max_bytes: u64,
    /// Bytes of the log that the base lacks. Opening the store now would replay them.
    pub log_unapplied_bytes: u64,
    /// Bytes of the log that are not durable at this moment.
    pub log_unsynced_bytes: u64,
    /// Bytes written to the log since open.
    pub log_written_bytes: u64,
    /// Syncs of the log since open.
    pub log_sync_count: u64,
    /// With durability `buffered`, the longest time from a write to the start of its sync, in milliseconds. Once a
    /// write has waited for two intervals, later writes wait until they are synced.
    pub sync_interval_ms: u64,
    /// Bytes of the base to read into memory, in the background or when they are needed.
    pub base_bytes: u64,
    /// Bytes of the base read so far. Reads and writes of other parts wait for the disk.
    pub loaded_bytes: u64,
    /// Seconds that this took, or has taken so far.
    pub load_seconds: f64,
    /// Bytes of the log that opening replayed.
    pub replayed_bytes: u64,
    /// Seconds that the replay took.
    pub replay_seconds: f64,
    /// The pages in memory, if that is limited ([`crate::Options::memory_bytes_max`]).
    #[cfg_attr(feature = "serde", serde(flatten))]
    pub pages: Option<PageStats>,
}

/// The pages of a store whose memory is limited, at one moment.
#[derive(Clone, Copy, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(Serialize))]
#[non_exhaustive]
pub struct PageStats {
    /// Memory for pages: the part of the limit that the engine's tables and the journal leave.
    pub page_memory_max_bytes: u64,
    /// Bytes of pages in memory.
    pub page_resident_bytes: u64,
    /// Bytes of pages that a checkpoint has to write before they can be dropped.
    pub page_dirty_bytes: u64,
    /// Bytes of pages that are never dropped.
    pub page_kept_bytes: u64,
    /// Bytes of index pages in memory, counted at intervals: these are kept before others.
    pub page_index_bytes: u64,
    /// Pages read since open.
    pub page_load_count: u64,
    /// Pages dropped since open.
    pub page_eviction_count: u64,
    /// Pages that were needed while they were being dropped, since open.
    pub page_rescue_count: u64,
}

impl PageStats {
    fn of(figures: PageFigures) -> PageStats {
        PageStats {
            page_memory_max_bytes: figures.memory_bytes_max,
            page_resident_bytes: figures.resident_bytes,
            page_dirty_bytes: figures.stored_bytes,
            page_kept_bytes: figures.kept_bytes,
            page_index_bytes: figures.index_bytes,
            page_load_count: figures.loaded_count,
            page_eviction_count: figures.evicted_count,
            page_rescue_count: figures.rescued_count,
        }
    }
}

impl JournalStats {
    pub(crate) fn of(figures: Figures, sync_interval: Duration) -> JournalStats {
        let Figures { opening, loaded, .. } = figures;
        JournalStats {
            log_bytes: figures.log_bytes,
            log_max_bytes: figures.log_bytes_max,
            log_unapplied_bytes: figures.unapplied_bytes,
            log_unsynced_bytes: figures.unsynced_bytes,
            log_written_bytes: figures.written_bytes,
            log_sync_count: figures.sync_count,
            sync_interval_ms: sync_interval.as_millis() as u64,
            base_bytes: loaded.total_bytes,
            loaded_bytes: loaded.done_bytes,
            load_seconds: loaded.time.as_secs_f64(),
            replayed_bytes: opening.replayed_bytes,
            replay_seconds: opening.replay_time.as_secs_f64(),
            pages: figures.pages.map(PageStats::of),
        }
    }
}

/// A store's figures at one moment.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(Serialize))]
#[non_exhaustive]
pub struct Stats {
    /// The engine's name.
    pub engine: &'static str,
    /// The region's medium: `tmpfs`, `ext4`, `dax`, …
    pub medium: &'static str,
    /// The durability of acknowledged writes: `process`, `buffered` or `power`.
    pub durability: &'static str,
    /// The reason for that durability.
    pub durability_why: &'static str,
    /// The store's identity.
    pub uuid: String,
    /// The place of the store's files at the last check: `in place`, `moved` or `removed`.
    pub files: &'static str,
    /// Keys, including expired keys whose space was not freed yet.
    pub items: u64,
    /// Bytes of the region, which is the file's length.
    pub region_bytes: u64,
    /// Bytes of the region that were used at least once.
    pub used_bytes: u64,
    /// Bytes that items and index occupy.
    pub live_bytes: u64,
    /// Free bytes of the region.
    pub free_bytes: u64,
    /// Bytes that the region occupies: its length without holes, or, where holes cannot be counted, an upper bound.
    pub allocated_bytes: u64,
    /// Items that compaction has moved since open.
    pub moved_count: u64,
    /// Bytes that compaction has returned to the file system since open.
    pub freed_bytes: u64,
    /// Volatile memory of index and allocator, in bytes.
    pub dram_bytes: u64,
    /// Replaced or deleted items that wait for readers to finish.
    pub garbage_count: u64,
    /// Bytes of the region that these items and replaced parts of the index occupy.
    pub garbage_bytes: u64,
    /// Writes since open that were slowed because garbage exceeded its limit, usually through a slow callback of some
    /// thread.
    pub held_up_count: u64,
    /// Milliseconds for which a thread of this process has been reading, at this or another store, or has been inside
    /// a reading callback; the longest such time that was noticed.
    pub oldest_pin_ms: u64,
    /// That thread's name and its number in the operating system.
    pub oldest_pin_thread: Option<String>,
    /// Expired keys whose space was freed since open.
    pub reaped_count: u64,
    /// Figures of the store's engine, by name.
    #[cfg_attr(feature = "serde", serde(flatten, serialize_with = "by_name"))]
    pub figures: Vec<Figure>,
    /// Lines flushed since open, with [`crate::Emulation::count_persists`].
    pub flushed_lines: Option<u64>,
    /// Fences since open, with [`crate::Emulation::count_persists`].
    pub fences: Option<u64>,
    /// False while free space and keys are still being counted after open; the figures are too small until then.
    pub counted: bool,
    /// The state of the ordered index: `none` without order, `off` before the first request, `building` or `ready`.
    pub order: &'static str,
    /// Steps done in the last build of the ordered index: two for each key, or one with a clean image.
    pub order_done: u64,
    /// Steps of that build in total.
    pub order_total: u64,
    /// Volatile memory of the ordered index, in bytes; part of `dram_bytes`.
    pub order_dram_bytes: u64,
    /// Changes that wait in queues for the ordered index.
    pub queued_count: u64,
    /// Changes that wait until the ordered index is built.
    pub delta_count: u64,
    /// Changes applied to the ordered index since open.
    pub order_applied_count: u64,
    /// Updates among these changes.
    pub order_updated_count: u64,
    /// The store's background threads ([`crate::Tuning::background_threads`]).
    pub worker_count: u64,
    /// Background threads that are working or polling for work at this moment. The remaining ones sleep.
    pub awake_worker_count: u64,
    /// Live snapshots.
    pub snapshot_count: u64,
    /// Age of the oldest snapshot, in seconds.
    pub oldest_snapshot_seconds: f64,
    /// Replaced or deleted items that snapshots keep.
    pub kept_count: u64,
    /// Bytes of these items, whose space is not free.
    pub kept_bytes: u64,
    /// Dropped or cleared trees whose keys are not all deleted yet.
    pub dead_tree_count: u64,
    /// Keys of such trees, once the keys of trees were counted ([`crate::Tree::len`]).
    pub dead_key_count: Option<u64>,
    /// Keys of such trees that were deleted since open.
    pub reclaimed_count: u64,
    /// The journal's figures, if the store has a journal.
    #[cfg_attr(feature = "serde", serde(flatten))]
    pub journal: Option<JournalStats>,
    /// The instruction that writes cache lines back.
    pub flush_instruction: &'static str,
    /// True if readers execute no fence because the kernel grants `membarrier`.
    pub fence_free_readers: bool,
}

impl Stats {
    pub(crate) fn gather(
        engine: &dyn Engine,
        identity: &Identity,
        journal: Option<JournalStats>,
        workers: &[Worker],
        files: FilesStatus,
        reclaim: ReclaimFigures,
    ) -> Stats {
        let oldest_pin = epoch::oldest_pin().filter(|pin| pin.age >= Duration::from_millis(1));
        let figures = engine.stats();
        let order = figures.order;
        Stats {
            engine: engine.name(),
            medium: identity.medium,
            durability: identity.durability.name(),
            durability_why: identity.durability_why,
            uuid: identity.uuid.to_string(),
            files: files.name(),
            items: figures.items,
            region_bytes: figures.region_bytes,
            used_bytes: figures.used_bytes,
            live_bytes: figures.live_bytes,
            free_bytes: figures.free_bytes,
            allocated_bytes: figures.taken_bytes,
            moved_count: figures.compaction.moved_items,
            freed_bytes: figures.compaction.freed_bytes,
            dram_bytes: figures.dram_bytes + figures.order.map_or(0, |order| order.dram_bytes),
            garbage_count: figures.garbage_count,
            garbage_bytes: figures.garbage_bytes,
            held_up_count: figures.held_up_count,
            oldest_pin_ms: oldest_pin.map_or(0, |pin| pin.age.as_millis() as u64),
            oldest_pin_thread: oldest_pin.map(|pin| thread_name(pin.thread_id)),
            reaped_count: figures.reaped_count,
            figures: figures.figures,
            flushed_lines: figures.counts.map(|counts| counts.flushed_line_count),
            fences: figures.counts.map(|counts| counts.fence_count),
            counted: figures.swept,
            order: order.map_or("none", |order| order.state.name()),
            order_done: order.map_or(0, |order| order.done),
            order_total: order.map_or(0, |order| order.total),
            order_dram_bytes: order.map_or(0, |order| order.dram_bytes),
            queued_count: order.map_or(0, |order| order.queued_count),
            delta_count: order.map_or(0, |order| order.delta_count),
            order_applied_count: order.map_or(0, |order| order.applied_count),
            order_updated_count: order.map_or(0, |order| order.updated_count),
            worker_count: workers.len() as u64,
            awake_worker_count: workers.iter().filter(|worker| worker.is_awake()).count() as u64,
            snapshot_count: figures.snapshots.snapshot_count,
            oldest_snapshot_seconds: figures.snapshots.oldest_age.as_secs_f64(),
            kept_count: figures.snapshots.kept_count,
            kept_bytes: figures.snapshots.kept_bytes,
            dead_tree_count: reclaim.id_count,
            dead_key_count: reclaim.left_count,
            reclaimed_count: reclaim.key_count,
            journal,
            flush_instruction: arch::flush_instruction(),
            fence_free_readers: epoch::readers_are_fence_free(),
        }
    }
}

impl Stats {
    /// Returns the engine's own figure of this name, if it has one.
    #[must_use]
    pub fn figure(&self, name: &str) -> Option<f64> {
        self.figures.iter().find(|figure| figure.name == name).map(|figure| figure.value)
    }
}

/// Serializes figures by name, whole numbers without a decimal point.
#[cfg(feature = "serde")]
fn by_name<S: Serializer>(figures: &[Figure], serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(figures.len()))?;
    for figure in figures {
        match figure.value {
            value if value.fract() == 0.0 && !figure.is_ratio() => map.serialize_entry(figure.name, &(value as u64))?,
            value => map.serialize_entry(figure.name, &value)?,
        }
    }
    map.end()
}

/// Returns the thread's name and number for messages.
fn thread_name(id: u32) -> String {
    let name = std::fs::read_to_string(format!("/proc/self/task/{id}/comm")).unwrap_or_default();
    format!("{} ({id})", name.trim_end())
}
