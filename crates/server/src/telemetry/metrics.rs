//! Metrics for Prometheus (OpenMetrics text). `docs/watching.md` lists them.

use std::fmt;

use hikv::{Figure, FigureKind};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};

use super::cpu::Role;
use super::{Kind, Reading, SAMPLED};

/// The media type.
pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

pub(crate) fn exposition(reading: &Reading) -> String {
    let mut registry = Registry::with_prefix("hikv");
    registry.register_collector(Box::new(reading.clone()));
    let mut text = String::new();
    text::encode(&mut text, &registry).expect("a string takes all that is written to it");
    text
}

impl Collector for Reading {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut out = Out(encoder);
        self.write_health(&mut out)?;
        self.write_requests(&mut out)?;
        self.write_clients(&mut out)?;
        self.write_threads(&mut out)?;
        self.write_store(&mut out)?;
        self.write_order(&mut out)?;
        self.write_snapshots(&mut out)?;
        self.write_log(&mut out)
    }
}

/// A label with its value.
type Label = [(&'static str, &'static str); 1];

struct Out<'a>(DescriptorEncoder<'a>);

impl Out<'_> {
    fn gauge(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        self.0.encode_descriptor(name, help, None, MetricType::Gauge)?.encode_gauge(&(value as f64))
    }

    fn seconds(&mut self, name: &str, help: &str, value: f64) -> fmt::Result {
        self.0.encode_descriptor(name, help, Some(&Unit::Seconds), MetricType::Gauge)?.encode_gauge(&value)
    }

    fn bytes(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        self.0.encode_descriptor(name, help, Some(&Unit::Bytes), MetricType::Gauge)?.encode_gauge(&(value as f64))
    }

    fn figure(&mut self, figure: &Figure) -> fmt::Result {
        let Figure { name, help, kind, value } = *figure;
        if kind == FigureKind::Counter {
            return self.counter(name.trim_end_matches("_count"), help, value as u64);
        }
        // The suffix _count is reserved for histograms, so `segment_count` becomes `segments`.
        let name = name.strip_suffix("_count").map_or_else(|| name.to_owned(), |thing| format!("{thing}s"));
        self.0.encode_descriptor(&name, help, None, MetricType::Gauge)?.encode_gauge(&value)
    }

    fn counter(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        let mut metric = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        metric.encode_counter::<NoLabelSet, _, u64>(&value, None)
    }

    fn bytes_counter(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        let mut metric = self.0.encode_descriptor(name, help, Some(&Unit::Bytes), MetricType::Counter)?;
        metric.encode_counter::<NoLabelSet, _, u64>(&value, None)
    }
}

fn of_kind(kind: Kind) -> Label {
    [("kind", kind.name())]
}

impl Reading {
    fn write_health(&self, out: &mut Out<'_>) -> fmt::Result {
        let stats = &self.stats;
        let version = [("version", env!("CARGO_PKG_VERSION"))];
        out.0.encode_descriptor("build", "The program's version", None, MetricType::Info)?.encode_info(&version)?;
        let durability = [("level", stats.durability), ("why", stats.durability_why), ("medium", stats.medium)];
        out.0
            .encode_descriptor("durability", "What an acknowledged write survives, and why", None, MetricType::Info)?
            .encode_info(&durability)?;
        out.gauge("healthy", "1 where /health answers 200", self.health.is_serving().into())?;
        out.gauge(
            "accepts_requests",
            "1 where single keys can be read and written",
            self.health.accepts_requests().into(),
        )?;
        out.seconds("uptime", "Time since the server was bound", self.uptime.as_secs_f64())
    }

    fn write_requests(&self, out: &mut Out<'_>) -> fmt::Result {
        let help = "Requests executed";
        let mut metric = out.0.encode_descriptor("requests", help, None, MetricType::Counter)?;
        for kind in Kind::ALL {
            let count = self.counted.latencies[kind as usize].count();
            metric.encode_family(&of_kind(kind))?.encode_counter::<NoLabelSet, _, u64>(&count, None)?;
        }
        let help = "Requests answered with an error";
        let mut metric = out.0.encode_descriptor("errors", help, None, MetricType::Counter)?;
        for kind in Kind::ALL {
            let count = self.counted.errors[kind as usize];
            metric.encode_family(&of_kind(kind))?.encode_counter::<NoLabelSet, _, u64>(&count, None)?;
        }
        let help = "From when requests were reported by the poller to when their replies might be sent";
        let mut metric = out.0.encode_descriptor("latency", help, Some(&Unit::Seconds), MetricType::Histogram)?;
        for kind in Kind::ALL {
            let latencies = &self.counted.latencies[kind as usize];
            let sum = latencies.total_ns as f64 / 1e9;
            let buckets = latencies.octaves_seconds();
            metric.encode_family(&of_kind(kind))?.encode_histogram::<NoLabelSet>(
                sum,
                latencies.count(),
                &buckets,
                None,
            )?;
        }
        out.counter("panics", "Requests that panicked; each has ended its client's connection", self.panics)?;
        out.counter("hits", "Keys that were read and were there", self.totals.hits)?;
        out.counter("misses", "Keys that were read and were not there", self.totals.misses)?;
        out.counter("slow_requests", "Requests that took longer than slowlog-log-slower-than", self.slow_count)
    }

    fn write_clients(&self, out: &mut Out<'_>) -> fmt::Result {
        out.gauge("clients", "Clients connected", self.clients as u64)?;
        out.counter("connections", "Clients that have connected", self.totals.connections)?;
        out.counter("refused_connections", "Clients turned away since there were too many", self.refused_clients)?;
        let waiting_bytes = self.messages_waiting_bytes as u64;
        out.bytes(
            "messages_waiting",
            "Messages published that wait for the event loops of their receivers",
            waiting_bytes,
        )?;
        out.bytes(
            "unread_replies",
            "Replies that clients have not read, of those with more than 256 KiB",
            self.unread_replies_bytes as u64,
        )?;
        let [evicted, over_limit] = self.disconnected_counts;
        out.counter("evicted_clients", "Clients disconnected to make room for replies to others", evicted)?;
        out.counter("output_limit_disconnections", "Clients disconnected at client-output-buffer-limit", over_limit)?;
        out.bytes_counter("input", "Read from clients", self.counted.input_bytes)?;
        out.bytes_counter("output", "Sent to clients", self.counted.output_bytes)
    }

    fn write_threads(&self, out: &mut Out<'_>) -> fmt::Result {
        let help = "Processor time of threads by what they do";
        let mut metric = out.0.encode_descriptor("cpu", help, Some(&Unit::Seconds), MetricType::Counter)?;
        for role in Role::ALL {
            let seconds = self.cpu[role as usize].as_secs_f64();
            let label: Label = [("role", role.name())];
            metric.encode_family(&label)?.encode_counter::<NoLabelSet, _, f64>(&seconds, None)?;
        }
        let threads = &self.threads;
        let split = [("split", threads.split.to_string())];
        // Not `split`, which is the counter of split segments.
        out.0
            .encode_descriptor("thread_split", "How threads share the work", None, MetricType::Info)?
            .encode_info(&split)?;
        let help =
            "Event loops by what the split has them do: serve alone, or apply changes to the ordered index as well";
        let mut metric = out.0.encode_descriptor("loops", help, None, MetricType::Gauge)?;
        for (role, count) in ["serving", "backend"].into_iter().zip(threads.loops()) {
            metric.encode_family(&[("role", role)])?.encode_gauge(&(count as f64))?;
        }
        out.gauge(
            "backend_loops_awake",
            "Loops in the backend's role that do not sleep",
            threads.backend_count() as u64,
        )?;
        out.gauge("workers", "The store's background threads", self.stats.worker_count)?;
        out.gauge("workers_awake", "Those of them that have something to do", self.stats.awake_worker_count)?;
        self.write_samples(out)
    }

    /// Writes the samples on which the split is based.
    fn write_samples(&self, out: &mut Out<'_>) -> fmt::Result {
        let threads = &self.threads;
        out.counter("sampled_windows", "Windows of operations that were sampled", threads.window_count())?;
        let help = "Operations of the last window, and changes that were applied in it";
        let mut metric = out.0.encode_descriptor("sampled_operations", help, None, MetricType::Gauge)?;
        for (kind, count) in SAMPLED.into_iter().zip(threads.counts()) {
            metric.encode_family(&[("kind", kind)])?.encode_gauge(&(count as f64))?;
        }
        let help = "How long each took of its thread";
        let mut metric = out.0.encode_descriptor("sampled_time", help, Some(&Unit::Seconds), MetricType::Gauge)?;
        for (kind, us) in SAMPLED.into_iter().zip(threads.means_us()) {
            metric.encode_family(&[("kind", kind)])?.encode_gauge(&(us.unwrap_or(0.0) / 1e6))?;
        }
        let [left, updates, queued] = threads.changes();
        out.gauge("sampled_changes_left", "Changes that the window's writes left to be applied", left)?;
        out.gauge("sampled_updates", "Updates among those that were applied in it", updates)?;
        out.gauge("sampled_queue_items", "Changes that waited at its end", queued)
    }

    fn write_store(&self, out: &mut Out<'_>) -> fmt::Result {
        let stats = &self.stats;
        out.gauge("counted", "0 while keys and free space are still counted after open", stats.counted.into())?;
        out.gauge("items", "Keys, those that expired and were not reaped yet among them", stats.items)?;
        out.gauge("files_in_place", "1 where the store's path leads to its files", (stats.files == "in place").into())?;
        if let Some(free_bytes) = self.disk_free_bytes {
            out.bytes("disk_free", "What is free on the store's file system", free_bytes)?;
        }
        out.bytes("region", "The region's length", stats.region_bytes)?;
        out.bytes("region_live", "What items and index occupy of it", stats.live_bytes)?;
        out.bytes("region_free", "What is free of it", stats.free_bytes)?;
        out.bytes("region_allocated", "Space that it takes on its medium", stats.allocated_bytes)?;
        out.bytes("dram", "Volatile memory of index and allocator", stats.dram_bytes)?;
        stats.figures.iter().try_for_each(|figure| out.figure(figure))?;
        out.gauge("garbage_items", "Replaced items that wait for readers to move on", stats.garbage_count)?;
        out.bytes("garbage", "What those and replaced parts of the index occupy of the region", stats.garbage_bytes)?;
        out.counter("held_up_writes", "Writes held up since open, as garbage was at its bound", stats.held_up_count)?;
        out.seconds(
            "oldest_pin",
            "How long some reader or callback has kept garbage",
            stats.oldest_pin_ms as f64 / 1e3,
        )?;
        out.counter("expired_keys", "Keys reaped since open", stats.reaped_count)
    }

    fn write_order(&self, out: &mut Out<'_>) -> fmt::Result {
        let stats = &self.stats;
        out.gauge("order_ready", "1 where ranges are answered", (stats.order == "ready").into())?;
        out.gauge("order_queue_items", "Changes that wait in queues for the ordered index", stats.queued_count)?;
        out.gauge("order_delta_items", "Changes that wait until the ordered index is built", stats.delta_count)?;
        out.counter(
            "order_applied_changes",
            "Changes applied to the ordered index since open",
            stats.order_applied_count,
        )?;
        out.counter("order_applied_updates", "How many of those were updates", stats.order_updated_count)?;
        out.bytes("order_dram", "Volatile memory of the ordered index", stats.order_dram_bytes)
    }

    fn write_snapshots(&self, out: &mut Out<'_>) -> fmt::Result {
        let stats = &self.stats;
        out.gauge("snapshots", "Live snapshots", stats.snapshot_count)?;
        out.seconds("oldest_snapshot_age", "Age of the oldest", stats.oldest_snapshot_seconds)?;
        out.gauge("snapshot_kept_items", "Old items that snapshots keep", stats.kept_count)?;
        out.bytes("snapshot_kept", "What those occupy of the region", stats.kept_bytes)
    }

    /// Writes nothing if the store is not journaled.
    fn write_log(&self, out: &mut Out<'_>) -> fmt::Result {
        let Some(journal) = self.stats.journal else { return Ok(()) };
        out.counter("log_syncs", "Syncs of the log since open", journal.log_sync_count)?;
        out.bytes_counter("log_written", "Written to the log since open", journal.log_written_bytes)?;
        out.bytes("log", "The log's length", journal.log_bytes)?;
        out.bytes("log_max", "The most that the log may have", journal.log_max_bytes)?;
        out.bytes("log_unapplied", "What opening would replay now", journal.log_unapplied_bytes)?;
        out.bytes("log_unsynced", "What is not durable at this moment", journal.log_unsynced_bytes)
    }
}
