//! What was counted since the start, or since `CONFIG RESETSTAT`.

use super::{Lines, lines};
use crate::clients::TRACKS;
use crate::errors::Refusal;
use crate::pubsub::Kind;
use crate::shared::Shared;
use crate::table;
use crate::telemetry::CommandTotal;

pub(super) fn stats(shared: &Shared) -> Result<Lines, Refusal> {
    let totals = shared.baseline.totals(shared);
    let names = |kind| shared.pubsub.name_count(kind).to_string();
    Ok(lines([
        ("total_connections_received", totals.tally.connections.to_string()),
        ("total_commands_processed", totals.tally.commands.to_string()),
        ("total_net_input_bytes", totals.input_bytes.to_string()),
        ("total_net_output_bytes", totals.output_bytes.to_string()),
        ("keyspace_hits", totals.tally.hits.to_string()),
        ("keyspace_misses", totals.tally.misses.to_string()),
        ("expired_keys", totals.expired.to_string()),
        ("evicted_keys", "0".into()),
        ("rejected_connections", totals.refused_clients.to_string()),
        ("total_error_replies", totals.tally.errors.to_string()),
        ("pubsub_channels", names(Kind::Channel)),
        ("pubsub_patterns", names(Kind::Pattern)),
        ("pubsubshard_channels", names(Kind::Shard)),
        ("tracking_clients", shared.clients.count_with(TRACKS).to_string()),
    ]))
}

/// A line for each command that was asked for.
pub(super) fn commandstats(shared: &Shared) -> Result<Lines, Refusal> {
    let totals = shared.baseline.totals(shared).commands;
    let asked = table::entries().iter().zip(totals).filter(|(_, total)| *total != CommandTotal::default());
    let line = |(entry, total): (&table::Entry, CommandTotal)| {
        let usec = total.took_ns as f64 / 1e3;
        let per_call = if total.calls == 0 { 0.0 } else { usec / total.calls as f64 };
        let CommandTotal { calls, rejected, failed, .. } = total;
        (
            format!("cmdstat_{}", entry.command.name).into(),
            format!(
                "calls={calls},usec={usec:.0},usec_per_call={per_call:.2},rejected_calls={rejected},failed_calls={failed}"
            ),
        )
    };
    Ok(asked.map(line).collect())
}

/// A line for each first word of errors that clients got.
pub(super) fn errorstats(shared: &Shared) -> Result<Lines, Refusal> {
    let counts = shared.errors.all().into_iter();
    Ok(counts.map(|(word, count)| (format!("errorstat_{word}").into(), format!("count={count}"))).collect())
}

/// Nothing, as in Redis where `latency-tracking` is off: the HTTP port tells of latencies.
pub(super) fn latencystats(_: &Shared) -> Result<Lines, Refusal> {
    Ok(Lines::new())
}
