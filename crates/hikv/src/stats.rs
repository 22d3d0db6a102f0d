//! What can be told about an open store.

use std::time::Duration;

use journal::{Figures, Journaled, OsFile};
use pmem::{Durability, Medium, Persist, arch};
use pmem_os::Mapped;
#[cfg(feature = "serde")]
use serde::ser::SerializeMap;
#[cfg(feature = "serde")]
use serde::{Serialize, Serializer};
use uuid::Uuid;

use engine::{Engine, Figure, Worker};

use crate::files_status::FilesStatus;

/// What does not change while a store is open.
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
    /// The length of the log's file.
    pub log_bytes: u64,
    /// The most that it may have ([`crate::Options::log_bytes_max`]).
    pub log_max_bytes: u64,
    /// Bytes of the log that the base lacks: what opening would replay now.
    pub log_unapplied_bytes: u64,
    /// Bytes of the log that are not durable at this moment.
    pub log_unsynced_bytes: u64,
    /// Bytes that were written to the log since open: what syncs made durable, sooner or later.
    pub log_written_bytes: u64,
    /// Syncs of the log since open.
    pub log_sync_count: u64,
    /// With durability `buffered`: how long after a write a sync begins, at most, in milliseconds. Once a write has waited for two of
    /// these, later ones wait with it.
    pub sync_interval_ms: u64,
    /// Bytes of the base that are to be read into memory, in the background or when they are needed.
    pub base_bytes: u64,
    /// How many of them are there: reads and writes of others wait for the disk.
    pub loaded_bytes: u64,
    /// How long that took, in seconds, or has taken so far.
    pub load_seconds: f64,
    /// Bytes of the log that opening read: what it replays.
    pub replayed_bytes: u64,
    /// How long that took, in seconds.
    pub replay_seconds: f64,
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
    /// What the region lies on: `tmpfs`, `ext4`, `dax`, …
    pub medium: &'static str,
    /// What an acknowledged write survives: `process`, `buffered` or `power`.
    pub durability: &'static str,
    /// Why that is so.
    pub durability_why: &'static str,
    /// The store's identity.
    pub uuid: String,
    /// The place of the store's files, as it was last seen: `in place`, `moved` or `removed`.
    pub files: &'static str,
    /// Keys, those among them that expired and whose room was not taken back yet.
    pub items: u64,
    /// Bytes of the region, which is the file's length.
    pub region_bytes: u64,
    /// Bytes of the region that were used at least once.
    pub used_bytes: u64,
    /// Bytes that items and index occupy.
    pub live_bytes: u64,
    /// Bytes of the region that are free.
    pub free_bytes: u64,
    /// Space that the region takes: its length without the holes in it. Where nobody knows, what may take space.
    pub allocated_bytes: u64,
    /// Items that compaction has moved since open.
    pub moved_count: u64,
    /// Space that compaction has given back since open.
    pub freed_bytes: u64,
    /// Volatile memory of index and allocator.
    pub dram_bytes: u64,
    /// Items that were replaced or deleted and wait for readers to move on.
    pub garbage_count: u64,
    /// Bytes of the region that those occupy, and parts of the index that were replaced.
    pub garbage_bytes: u64,
    /// Writes since open that were slowed because garbage was above its bound: some thread is slow to end a callback.
    pub held_up_count: u64,
    /// Milliseconds for which some thread of this process, at this store or another, has been reading, or inside of a callback
    /// that a reading store called; as far as it was noticed.
    pub oldest_pin_ms: u64,
    /// That thread, as its name and the operating system's number for it.
    pub oldest_pin_thread: Option<String>,
    /// Keys that expired and whose room was taken back since open.
    pub reaped_count: u64,
    /// What only the store's engine has, by name.
    #[cfg_attr(feature = "serde", serde(flatten, serialize_with = "by_name"))]
    pub figures: Vec<Figure>,
    /// Lines flushed since open, with [`crate::Options::count_persists`].
    pub flushed_lines: Option<u64>,
    /// Fences since open, with [`crate::Options::count_persists`].
    pub fences: Option<u64>,
    /// False while free space and keys are still being counted after open: the figures are too small until then.
    pub counted: bool,
    /// The ordered index: `none` where the store was opened without, else `off` until a caller asks for order, `building`, `ready`.
    pub order: &'static str,
    /// Steps of its last build that are done: two for each key, or one where a clean image had them in order.
    pub order_done: u64,
    /// Steps of its last build.
    pub order_total: u64,
    /// Volatile memory of the ordered index; part of `dram_bytes`.
    pub order_dram_bytes: u64,
    /// Changes that wait in queues for the ordered index.
    pub queued_count: u64,
    /// Changes that wait until the ordered index is built.
    pub delta_count: u64,
    /// Changes that were applied to the ordered index since open.
    pub order_applied_count: u64,
    /// How many of those were updates.
    pub order_updated_count: u64,
    /// The store's background threads ([`crate::Options::background_threads`]).
    pub worker_count: u64,
    /// How many of them have something to do at this moment, or look out for it; the others sleep.
    pub awake_worker_count: u64,
    /// Live snapshots.
    pub snapshot_count: u64,
    /// Seconds that the oldest of them has lived.
    pub oldest_snapshot_seconds: f64,
    /// Items that were replaced or deleted, and that snapshots keep.
    pub kept_count: u64,
    /// Bytes of those items, whose room is not free.
    pub kept_bytes: u64,
    /// The journal, where there is one.
    #[cfg_attr(feature = "serde", serde(flatten))]
    pub journal: Option<JournalStats>,
    /// The instruction that writes lines back.
    pub flush_instruction: &'static str,
    /// True where readers execute no fence (`membarrier` was granted).
    pub fence_free_readers: bool,
}

impl Stats {
    pub(crate) fn gather(
        engine: &dyn Engine,
        identity: &Identity,
        journal: Option<JournalStats>,
        workers: &[Worker],
        files: FilesStatus,
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
            journal,
            flush_instruction: arch::flush_instruction(),
            fence_free_readers: epoch::readers_are_fence_free(),
        }
    }
}

impl Stats {
    /// The engine's own figure of this name, if it has one.
    #[must_use]
    pub fn figure(&self, name: &str) -> Option<f64> {
        self.figures.iter().find(|figure| figure.name == name).map(|figure| figure.value)
    }
}

/// Whole numbers as such.
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

/// A thread of this process, for a person who looks for it.
fn thread_name(id: u32) -> String {
    let name = std::fs::read_to_string(format!("/proc/self/task/{id}/comm")).unwrap_or_default();
    format!("{} ({id})", name.trim_end())
}
