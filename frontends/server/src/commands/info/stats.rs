//! Counters since the start, or since `CONFIG RESETSTAT`.

use std::sync::atomic::Ordering;

use super::{Lines, lines};
use crate::clients::Kind;
use crate::errors::Refusal;
use crate::shared::Shared;
use crate::telemetry::CommandTotal;
use command_table as table;

/// The percentiles of command latencies: the default of Redis' `latency-tracking-info-percentiles`.
const PERCENTILES: [f64; 3] = [50.0, 99.0, 99.9];

pub(super) fn stats(shared: &Shared) -> Result<Lines, Refusal> {
    let totals = shared.telemetry.totals(&shared.keyspace.store);
    let [commands, input_bytes, output_bytes] = shared.telemetry.rates(&shared.keyspace.store);
    let tracked = shared.observers.tracking.sizes();
    let names = |kind| shared.observers.pubsub.name_count(kind).to_string();
    Ok(lines([
        ("total_connections_received", totals.event_counts.connections.to_string()),
        ("total_commands_processed", totals.event_counts.commands.to_string()),
        ("instantaneous_ops_per_sec", format!("{commands:.0}")),
        ("total_net_input_bytes", totals.input_bytes.to_string()),
        ("total_net_output_bytes", totals.output_bytes.to_string()),
        ("instantaneous_input_kbps", format!("{:.2}", input_bytes / 1024.0)),
        ("instantaneous_output_kbps", format!("{:.2}", output_bytes / 1024.0)),
        ("keyspace_hits", totals.event_counts.hits.to_string()),
        ("keyspace_misses", totals.event_counts.misses.to_string()),
        ("sync_full", "0".into()),
        ("sync_partial_ok", "0".into()),
        ("sync_partial_err", "0".into()),
        ("expired_keys", totals.expired.to_string()),
        ("evicted_keys", "0".into()),
        ("rejected_connections", totals.refused_clients.to_string()),
        ("total_error_replies", totals.event_counts.errors.to_string()),
        ("evicted_clients", shared.backlogs.evicted_count().to_string()),
        (
            "client_output_buffer_limit_disconnections",
            shared.telemetry.over_limit_count.load(Ordering::Relaxed).to_string(),
        ),
        ("total_panics", shared.telemetry.panics.load(Ordering::Relaxed).to_string()),
        ("pubsub_channels", names(Kind::Channel)),
        ("pubsub_patterns", names(Kind::Pattern)),
        ("pubsubshard_channels", names(Kind::Shard)),
        ("tracking_total_keys", tracked.key_count.to_string()),
        ("tracking_total_items", tracked.item_count.to_string()),
        ("tracking_total_prefixes", tracked.prefix_count.to_string()),
        ("latest_fork_usec", "0".into()),
        ("total_forks", "0".into()),
    ]))
}

/// Returns a line for each command that was requested.
pub(super) fn commandstats(shared: &Shared) -> Result<Lines, Refusal> {
    let totals = shared.telemetry.totals(&shared.keyspace.store).commands;
    let asked = table::entries().iter().zip(&totals).filter(|(_, total)| !total.is_zero());
    let line = |(entry, total): (&table::Entry, &CommandTotal)| {
        let (calls, took_ns) = total.latencies().map_or((0, 0), |latencies| (latencies.count(), latencies.total_ns));
        let usec = took_ns as f64 / 1e3;
        let per_call = if calls == 0 { 0.0 } else { usec / calls as f64 };
        let CommandTotal { rejected, failed, .. } = total;
        (
            format!("cmdstat_{}", entry.command.name).into(),
            format!(
                "calls={calls},usec={usec:.0},usec_per_call={per_call:.2},rejected_calls={rejected},failed_calls={failed}"
            ),
        )
    };
    Ok(asked.map(line).collect())
}

/// Returns a line for each error prefix that clients received.
pub(super) fn errorstats(shared: &Shared) -> Result<Lines, Refusal> {
    let counts = shared.telemetry.errors.all().into_iter();
    Ok(counts.map(|(word, count)| (format!("errorstat_{word}").into(), format!("count={count}"))).collect())
}

/// Returns a line for each command that was called; none if `latency-tracking` is off.
pub(super) fn latencystats(shared: &Shared) -> Result<Lines, Refusal> {
    if !shared.administration.settings.tracks_latency() {
        return Ok(Lines::new());
    }
    let totals = shared.telemetry.totals(&shared.keyspace.store).commands;
    let line = |(entry, total): (&table::Entry, &CommandTotal)| {
        let latencies = total.latencies()?;
        let percentile = |percent: f64| {
            let usec = latencies.quantile(percent / 100.0)?.as_nanos() as f64 / 1e3;
            Some(format!("p{percent}={usec:.3}"))
        };
        let percentiles: Vec<String> = PERCENTILES.into_iter().filter_map(percentile).collect();
        Some((format!("latency_percentiles_usec_{}", entry.command.name).into(), percentiles.join(",")))
    };
    Ok(table::entries().iter().zip(&totals).filter_map(line).collect())
}
