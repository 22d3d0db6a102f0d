//! Metrics for Prometheus (OpenMetrics text). `docs/watching.md` lists them.

use std::fmt;

use hikv::{Figure, FigureKind};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};

use super::cpu::Role;
use super::{NamedTree, NamedTrees, Reading, SAMPLED};
use command_table::Kind;

/// The media type.
pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

pub(crate) fn exposition(reading: &Reading, trees: Option<NamedTrees>) -> String {
    let mut registry = Registry::with_prefix("hikv");
    registry.register_collector(Box::new(reading.clone()));
    if let Some(trees) = trees {
        registry.register_collector(Box::new(trees));
    }
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

impl Collector for NamedTrees {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut out = Out(encoder);
        out.gauge("trees", "Named trees of the store, without the databases", self.count as u64)?;
        let help =
            "Keys of a named tree, including expired ones that are not removed yet; none until they were counted";
        let mut metric = out.0.encode_descriptor("tree_items", help, None, MetricType::Gauge)?;
        for NamedTree { name, items } in &self.shown {
            if let Some(items) = items {
                metric.encode_family(&[("tree", &**name)])?.encode_gauge(&(*items as f64))?;
            }
        }
        Ok(())
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
        out.0.encode_descriptor("build", "Program version", None, MetricType::Info)?.encode_info(&version)?;
        let durability = [("level", stats.durability), ("why", stats.durability_why), ("medium", stats.medium)];
        out.0
            .encode_descriptor(
                "durability",
                "Durability level of acknowledged writes, with the reason and the medium",
                None,
                MetricType::Info,
            )?
            .encode_info(&durability)?;
        out.gauge("healthy", "1 if /health returns 200", self.health.is_serving().into())?;
        out.gauge(
            "accepts_requests",
            "1 if single keys can be read and written",
            self.health.accepts_requests().into(),
        )?;
        out.seconds("uptime", "Time since the server started", self.uptime.as_secs_f64())
    }

    fn write_requests(&self, out: &mut Out<'_>) -> fmt::Result {
        let help = "Requests executed";
        let mut metric = out.0.encode_descriptor("requests", help, None, MetricType::Counter)?;
        for kind in Kind::ALL {
            let count = self.counted.latencies[kind as usize].count();
            metric.encode_family(&of_kind(kind))?.encode_counter::<NoLabelSet, _, u64>(&count, None)?;
        }
        let help = "Requests that returned an error";
        let mut metric = out.0.encode_descriptor("errors", help, None, MetricType::Counter)?;
        for kind in Kind::ALL {
            let count = self.counted.errors[kind as usize];
            metric.encode_family(&of_kind(kind))?.encode_counter::<NoLabelSet, _, u64>(&count, None)?;
        }
        let help = "Time from a request's arrival until its reply may be sent";
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
        out.counter("panics", "Requests that panicked; each closed its client's connection", self.panics)?;
        out.counter("hits", "Reads of keys that existed", self.totals.hits)?;
        out.counter("misses", "Reads of keys that did not exist", self.totals.misses)?;
        out.counter("slow_requests", "Requests slower than slowlog-log-slower-than", self.slow_count)
    }

    fn write_clients(&self, out: &mut Out<'_>) -> fmt::Result {
        out.gauge("clients", "Connected clients", self.clients as u64)?;
        out.counter("connections", "Clients that have connected since the start", self.totals.connections)?;
        out.counter("refused_connections", "Clients refused because of maxclients", self.refused_clients)?;
        let waiting_bytes = self.messages_waiting_bytes as u64;
        out.bytes("messages_waiting", "Published messages that wait for their receivers' event loops", waiting_bytes)?;
        out.bytes(
            "unread_replies",
            "Unread replies of clients that have more than 256 KiB of them",
            self.unread_replies_bytes as u64,
        )?;
        let [evicted, over_limit] = self.disconnected_counts;
        out.counter(
            "evicted_clients",
            "Clients disconnected because unread replies exceeded maxmemory-clients",
            evicted,
        )?;
        out.counter(
            "output_limit_disconnections",
            "Clients disconnected because of client-output-buffer-limit",
            over_limit,
        )?;
        out.bytes_counter("input", "Bytes received from clients", self.counted.input_bytes)?;
        out.bytes_counter("output", "Bytes sent to clients", self.counted.output_bytes)
    }

    fn write_threads(&self, out: &mut Out<'_>) -> fmt::Result {
        let help = "Processor time of threads by role";
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
            .encode_descriptor(
                "thread_split",
                "Configured split of threads between serving clients and applying changes",
                None,
                MetricType::Info,
            )?
            .encode_info(&split)?;
        let help = "Event loops by role: serving only, or also applying changes to the ordered index";
        let mut metric = out.0.encode_descriptor("loops", help, None, MetricType::Gauge)?;
        for (role, count) in ["serving", "backend"].into_iter().zip(threads.loops()) {
            metric.encode_family(&[("role", role)])?.encode_gauge(&(count as f64))?;
        }
        out.gauge("backend_loops_awake", "Awake event loops that also apply changes", threads.backend_count() as u64)?;
        out.gauge("workers", "Background threads of the store", self.stats.worker_count)?;
        out.gauge("workers_awake", "Background threads of the store that have work", self.stats.awake_worker_count)?;
        self.write_samples(out)
    }

    /// Writes the samples on which the split is based.
    fn write_samples(&self, out: &mut Out<'_>) -> fmt::Result {
        let threads = &self.threads;
        out.counter("sampled_windows", "Windows of operations sampled for the thread split", threads.window_count())?;
        let help = "Operations and applied changes in the last sampled window";
        let mut metric = out.0.encode_descriptor("sampled_operations", help, None, MetricType::Gauge)?;
        for (kind, count) in SAMPLED.into_iter().zip(threads.counts()) {
            metric.encode_family(&[("kind", kind)])?.encode_gauge(&(count as f64))?;
        }
        let help = "Mean thread time per operation in the last sampled window";
        let mut metric = out.0.encode_descriptor("sampled_time", help, Some(&Unit::Seconds), MetricType::Gauge)?;
        for (kind, us) in SAMPLED.into_iter().zip(threads.means_us()) {
            metric.encode_family(&[("kind", kind)])?.encode_gauge(&(us.unwrap_or(0.0) / 1e6))?;
        }
        let [left, updates, queued] = threads.changes();
        out.gauge("sampled_changes_left", "Changes queued by writes in the last sampled window", left)?;
        out.gauge("sampled_updates", "Updates among the changes applied in the last sampled window", updates)?;
        out.gauge("sampled_queue_items", "Changes queued at the end of the last sampled window", queued)
    }

    fn write_store(&self, out: &mut Out<'_>) -> fmt::Result {
        let stats = &self.stats;
        out.gauge("counted", "0 while keys and free space are being counted after open", stats.counted.into())?;
        out.gauge("items", "Keys, including expired ones that are not removed yet", stats.items)?;
        out.gauge("files_in_place", "1 if the store's files are at its path", (stats.files == "in place").into())?;
        if let Some(free_bytes) = self.disk_free_bytes {
            out.bytes("disk_free", "Free space on the store's file system", free_bytes)?;
        }
        out.bytes("region", "Length of the region, the store's data file", stats.region_bytes)?;
        out.bytes("region_live", "Part of the region used by items and index", stats.live_bytes)?;
        out.bytes("region_free", "Free part of the region", stats.free_bytes)?;
        out.bytes("region_allocated", "Space that the region occupies on its medium", stats.allocated_bytes)?;
        out.bytes("dram", "DRAM used by index and allocator", stats.dram_bytes)?;
        stats.figures.iter().try_for_each(|figure| out.figure(figure))?;
        out.gauge("garbage_items", "Replaced items that readers may still use", stats.garbage_count)?;
        out.bytes("garbage", "Part of the region used by replaced items and parts of the index", stats.garbage_bytes)?;
        out.counter(
            "held_up_writes",
            "Writes delayed since open because garbage reached its limit",
            stats.held_up_count,
        )?;
        out.seconds(
            "oldest_pin",
            "Age of the oldest reader or callback that retains garbage",
            stats.oldest_pin_ms as f64 / 1e3,
        )?;
        out.counter("expired_keys", "Expired keys removed since open", stats.reaped_count)
    }

    fn write_order(&self, out: &mut Out<'_>) -> fmt::Result {
        let stats = &self.stats;
        out.gauge("order_ready", "1 if range queries are available", (stats.order == "ready").into())?;
        out.gauge("order_queue_items", "Changes queued for the ordered index", stats.queued_count)?;
        out.gauge("order_delta_items", "Changes that wait for the ordered index to be built", stats.delta_count)?;
        out.counter(
            "order_applied_changes",
            "Changes applied to the ordered index since open",
            stats.order_applied_count,
        )?;
        out.counter(
            "order_applied_updates",
            "Updates applied to the ordered index since open",
            stats.order_updated_count,
        )?;
        out.bytes("order_dram", "DRAM used by the ordered index", stats.order_dram_bytes)
    }

    fn write_snapshots(&self, out: &mut Out<'_>) -> fmt::Result {
        let stats = &self.stats;
        out.gauge("snapshots", "Live snapshots", stats.snapshot_count)?;
        out.seconds("oldest_snapshot_age", "Age of the oldest snapshot", stats.oldest_snapshot_seconds)?;
        out.gauge("snapshot_kept_items", "Old items retained by snapshots", stats.kept_count)?;
        out.bytes("snapshot_kept", "Part of the region used by old items that snapshots retain", stats.kept_bytes)
    }

    /// Writes nothing if the store is not journaled.
    fn write_log(&self, out: &mut Out<'_>) -> fmt::Result {
        let Some(journal) = self.stats.journal else { return Ok(()) };
        out.counter("log_syncs", "Syncs of the journal since open", journal.log_sync_count)?;
        out.bytes_counter("log_written", "Bytes written to the journal since open", journal.log_written_bytes)?;
        out.bytes("log", "Length of the journal", journal.log_bytes)?;
        out.bytes("log_max", "Maximum length of the journal", journal.log_max_bytes)?;
        out.bytes("log_unapplied", "Journal bytes that opening would replay", journal.log_unapplied_bytes)?;
        out.bytes("log_unsynced", "Journal bytes that are not durable yet", journal.log_unsynced_bytes)
    }
}
