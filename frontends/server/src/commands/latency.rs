//! LATENCY.

use std::time::{SystemTime, UNIX_EPOCH};

use resp::Reply;

use crate::commands::sparkline;
use crate::errors::Refusal;
use crate::execution::call::{Call, Function};
use crate::telemetry::latency::Sample;
use crate::telemetry::{CommandTotal, Latencies};
use command_table as table;

/// Functions of these commands, by the names of their table rows.
pub(super) const FUNCTIONS: &[(&str, Function)] = functions!["latency|": [
    doctor, graph, histogram, history, latest, reset,
]];

/// Columns of a graph.
const GRAPH_COLUMNS: usize = 80;
const GRAPH_ROWS: usize = 4;

fn latest(call: &mut Call<'_>) -> Result<(), Refusal> {
    let events = call.shared.telemetry.latency.all();
    call.reply.array(events.len());
    for (name, event) in &events {
        let last = event.samples.back().map_or((0, 0), |sample| (sample.unix_seconds, sample.ms));
        call.reply.array(4);
        call.reply.bulk(name.as_bytes());
        for number in [last.0, last.1, event.worst_ms] {
            call.reply.integer(number as i64);
        }
    }
    Ok(())
}

fn history(call: &mut Call<'_>) -> Result<(), Refusal> {
    let event = call.shared.telemetry.latency.event(call.argument(2)).unwrap_or_default();
    call.reply.array(event.samples.len());
    for sample in &event.samples {
        call.reply.array(2);
        call.reply.integer(sample.unix_seconds as i64);
        call.reply.integer(sample.ms as i64);
    }
    Ok(())
}

fn reset(call: &mut Call<'_>) -> Result<(), Refusal> {
    let names: Vec<&[u8]> = call.request.arguments().skip(1).collect();
    let count = call.shared.telemetry.latency.forget(&names);
    call.reply.integer(count as i64);
    Ok(())
}

fn doctor(call: &mut Call<'_>) -> Result<(), Refusal> {
    let limit_ms = call.shared.administration.settings.latency_ms_min();
    let events = call.shared.telemetry.latency.all();
    let mut text = match limit_ms {
        0 => "Latency monitoring is off; enable it by setting latency-monitor-threshold to a number of milliseconds.\n"
            .to_owned(),
        _ => format!("Events of at least {limit_ms} ms: {}.\n", events.len()),
    };
    for (name, event) in &events {
        text.push_str(&format!(
            "{name}: the longest took {} ms, in {} samples of one second.\n",
            event.worst_ms,
            event.samples.len()
        ));
    }
    call.reply.text(&text);
    Ok(())
}

fn graph(call: &mut Call<'_>) -> Result<(), Refusal> {
    let name = String::from_utf8_lossy(call.argument(2)).into_owned();
    let event = call.shared.telemetry.latency.event(call.argument(2)).unwrap_or_default();
    let milliseconds = || event.samples.iter().map(|sample| sample.ms);
    let (Some(high), Some(low)) = (milliseconds().max(), milliseconds().min()) else {
        return Err(Refusal::Message(format!("No samples available for event '{name}'")));
    };
    let now_s = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let samples: Vec<(u64, String)> = event.samples.iter().map(|sample| (sample.ms, age(sample, now_s))).collect();
    let text = format!(
        "{name} - high {high} ms, low {low} ms (all time high {} ms)\n{}\n{}",
        event.worst_ms,
        "-".repeat(GRAPH_COLUMNS),
        sparkline::drawn(&samples, GRAPH_COLUMNS, GRAPH_ROWS)
    );
    call.reply.text(&text);
    Ok(())
}

/// Formats the age in the largest unit that fits.
fn age(sample: &Sample, now_s: u64) -> String {
    match now_s.saturating_sub(sample.unix_seconds) {
        seconds @ ..60 => format!("{seconds}s"),
        seconds @ ..3_600 => format!("{}m", seconds / 60),
        seconds @ ..86_400 => format!("{}h", seconds / 3_600),
        seconds => format!("{}d", seconds / 86_400),
    }
}

/// Shows the named commands with their subcommands, or all, if they were called; unknown names are skipped.
fn histogram(call: &mut Call<'_>) -> Result<(), Refusal> {
    let totals = call.shared.telemetry.totals(&call.shared.keyspace.store).commands;
    let names: Vec<&[u8]> = call.request.arguments().skip(1).collect();
    let wanted = if names.is_empty() { table::entries().to_vec() } else { named(&names) };
    let called: Vec<(table::Entry, &Latencies)> = wanted
        .into_iter()
        .filter_map(|entry| Some((entry, totals.get(entry.number).and_then(CommandTotal::latencies)?)))
        .collect();
    call.reply.map(called.len());
    for (entry, latencies) in called {
        call.reply.bulk(entry.command.name.as_bytes());
        write_distribution(latencies, &mut call.reply);
    }
    Ok(())
}

/// Returns each of the named commands, followed by its subcommands.
fn named(names: &[&[u8]]) -> Vec<table::Entry> {
    let found = names.iter().filter_map(|name| table::by_name(name));
    let with_subcommands = |entry: table::Entry| {
        let subcommands = entry.command.subcommands.iter();
        [entry].into_iter().chain(subcommands.filter_map(|subcommand| table::by_name(subcommand.name.as_bytes())))
    };
    found.flat_map(with_subcommands).collect()
}

/// Writes the number of calls, and how many of them took up to each bucket's limit; empty buckets are omitted.
fn write_distribution(latencies: &Latencies, reply: &mut Reply<'_>) {
    let filled: Vec<(u32, u64)> = latencies.octaves().filter(|(_, count)| *count > 0).collect();
    reply.map(2);
    reply.bulk(b"calls");
    reply.integer(latencies.count() as i64);
    reply.bulk(b"histogram_usec");
    reply.map(filled.len());
    let mut sum = 0;
    for (power, count) in filled {
        sum += count;
        reply.integer(limit_us(power));
        reply.integer(sum as i64);
    }
}

/// Returns Redis' label of the bucket that ends at 2 to this power ns. Redis' bucket ends are 1/128 larger, rounded
/// down: 1, 2, 4, 8, 16, 33, 66, 132, …
fn limit_us(power: u32) -> i64 {
    ((129 << (power - 7)) - 1) / 1_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_called_as_in_redis() {
        let names: Vec<i64> = (10..22).map(limit_us).collect();
        assert_eq!(names, [1, 2, 4, 8, 16, 33, 66, 132, 264, 528, 1056, 2113]);
    }

    #[test]
    fn ages_have_one_unit() {
        let of = |now_s| age(&Sample { unix_seconds: 1_000, ms: 1 }, now_s);
        assert_eq!(
            [900, 1_059, 1_060, 4_599, 4_600, 87_399, 87_400].map(of),
            ["0s", "59s", "1m", "59m", "1h", "23h", "1d"]
        );
    }
}
