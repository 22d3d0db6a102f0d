//! The data of the live page: the current state, and the samples that the page does not have yet.

use serde::Serialize;

use super::cpu::Role;
use super::health::Health;
use super::history::{History, Sample};
use super::{Reading, SAMPLED};
use crate::shared::Shared;
use command_table::Kind;

/// Number of slow commands shown.
const SLOW_COUNT: usize = 20;

#[derive(Serialize)]
struct Live<'a> {
    kinds: [&'static str; Kind::COUNT],
    roles: [&'static str; Role::COUNT],
    version: &'static str,
    /// The store's directory as given to the server.
    store: String,
    /// The port for Redis clients, if there is one.
    port: Option<u16>,
    uptime_seconds: u64,
    health: &'a Health,
    medium: &'static str,
    durability: &'static str,
    durability_why: &'static str,
    order: &'static str,
    /// How threads share the work, and the sampled kinds of operations.
    split: String,
    sampled: [&'static str; SAMPLED.len()],
    clients: usize,
    /// Maximum bytes of items and index; 0 means no limit.
    memory_bytes_max: u64,
    /// On the store's file system.
    disk_free_bytes: Option<u64>,
    /// By kind, since the start.
    requests: Vec<u64>,
    errors: [u64; Kind::COUNT],
    hits: u64,
    misses: u64,
    expired: u64,
    snapshots: u64,
    kept_bytes: u64,
    slow_count: u64,
    slow: Vec<Slow>,
    samples: Vec<&'a Sample>,
}

/// A slow command, without its arguments, which are client data.
#[derive(Serialize)]
struct Slow {
    name: String,
    took_us: u64,
    unix_seconds: u64,
}

/// Returns the JSON text, with the samples after number `after`.
pub(crate) fn live(shared: &Shared, reading: &Reading, history: &History, after: u64) -> String {
    let (stats, totals) = (&reading.stats, reading.totals);
    let live = Live {
        kinds: Kind::ALL.map(Kind::name),
        roles: Role::ALL.map(Role::name),
        version: env!("CARGO_PKG_VERSION"),
        store: shared.keyspace.store.path().display().to_string(),
        port: shared.administration.port,
        uptime_seconds: reading.uptime.as_secs(),
        health: &reading.health,
        medium: stats.medium,
        durability: stats.durability,
        durability_why: stats.durability_why,
        order: stats.order,
        split: reading.threads.split.to_string(),
        sampled: SAMPLED,
        clients: reading.clients,
        memory_bytes_max: shared.administration.settings.memory_bytes_max(),
        disk_free_bytes: reading.disk_free_bytes,
        requests: reading.counted.latencies.iter().map(|latencies| latencies.count()).collect(),
        errors: reading.counted.errors,
        hits: totals.hits,
        misses: totals.misses,
        expired: stats.reaped_count,
        snapshots: stats.snapshot_count,
        kept_bytes: stats.kept_bytes,
        slow_count: reading.slow_count,
        slow: slow(shared),
        samples: history.after(after).collect(),
    };
    serde_json::to_string(&live).expect("numbers and texts have a form in JSON")
}

fn slow(shared: &Shared) -> Vec<Slow> {
    let newest = shared.telemetry.slowlog.newest(SLOW_COUNT).into_iter();
    newest
        .map(|slow| Slow {
            name: slow.command.to_uppercase(),
            took_us: slow.took.as_micros() as u64,
            unix_seconds: slow.unix_seconds,
        })
        .collect()
}
