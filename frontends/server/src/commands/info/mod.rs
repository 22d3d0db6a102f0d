//! INFO: the server's state, in sections of `name:value` lines.

pub(super) mod memory;
mod process;
mod stats;

use std::borrow::Cow;
use std::fmt::Write;

use hikv::{JournalStats, PageStats};

use super::databases;
use super::hello::REDIS_VERSION;
use crate::administration::start::ConfigFile;
use crate::clients::{BLOCKED, POSTPONED, TRACKS};
use crate::errors::Refusal;
use crate::execution::call::{Call, Function};
use crate::keyspace::database::Database;
use crate::shared::Shared;
use crate::telemetry::{NamedTree, NamedTrees, SAMPLED, Threads};

/// Functions of these commands, by the names of their table rows.
pub(super) const FUNCTIONS: &[(&str, Function)] = functions![info];

type Lines = Vec<(Cow<'static, str>, String)>;

struct Section {
    title: &'static str,
    lines: fn(&Shared) -> Result<Lines, Refusal>,
    /// Shown unless specific sections are requested.
    is_default: bool,
}

const fn section(title: &'static str, lines: fn(&Shared) -> Result<Lines, Refusal>) -> Section {
    Section { title, lines, is_default: true }
}

static SECTIONS: [Section; 17] = [
    section("Server", server),
    section("Clients", clients),
    section("Memory", memory::memory),
    section("Persistence", persistence),
    section("Order", order),
    section("Threads", threads),
    section("Snapshots", snapshots),
    section("Stats", stats::stats),
    section("Replication", replication),
    section("CPU", process::cpu),
    section("Modules", |_| Ok(Lines::new())),
    Section { is_default: false, ..section("Commandstats", stats::commandstats) },
    section("Errorstats", stats::errorstats),
    Section { is_default: false, ..section("Latencystats", stats::latencystats) },
    section("Cluster", cluster),
    section("Keyspace", keyspace),
    Section { is_default: false, ..section("Trees", trees) },
];

/// Returns the named sections, or all, in the order of the table.
fn info(call: &mut Call<'_>) -> Result<(), Refusal> {
    let mut text = String::new();
    for section in SECTIONS.iter().filter(|section| is_wanted(section, call)) {
        if !text.is_empty() {
            text.push_str("\r\n");
        }
        section.write(call.shared, &mut text)?;
    }
    call.reply.text(&text);
    Ok(())
}

fn is_wanted(section: &Section, call: &Call<'_>) -> bool {
    let default = section.is_default.then_some("default");
    let names = [section.title, "all", "everything"].into_iter().chain(default);
    let is_name = |wanted: &[u8]| names.clone().any(|name| name.as_bytes().eq_ignore_ascii_case(wanted));
    if call.request.len() == 1 { section.is_default } else { call.request.arguments().any(is_name) }
}

impl Section {
    fn write(&self, shared: &Shared, text: &mut String) -> Result<(), Refusal> {
        let _ = write!(text, "# {}\r\n", self.title);
        for (name, value) in (self.lines)(shared)? {
            let _ = write!(text, "{name}:{value}\r\n");
        }
        Ok(())
    }
}

fn server(shared: &Shared) -> Result<Lines, Refusal> {
    let uptime = shared.telemetry.started.elapsed().as_secs();
    let config_file = shared.administration.config_file.as_ref().map(ConfigFile::path);
    Ok(lines([
        ("redis_version", REDIS_VERSION.into()),
        ("redis_git_sha1", "00000000".into()),
        ("redis_git_dirty", "0".into()),
        ("redis_mode", "standalone".into()),
        ("os", process::system()),
        ("arch_bits", usize::BITS.to_string()),
        ("multiplexing_api", "epoll".into()),
        ("hikv_version", env!("CARGO_PKG_VERSION").into()),
        ("process_id", std::process::id().to_string()),
        ("process_supervised", "no".into()),
        ("run_id", shared.telemetry.figures.run_id.clone()),
        ("tcp_port", shared.administration.port.unwrap_or(0).to_string()),
        ("executable", std::env::current_exe().map(|path| path.display().to_string()).unwrap_or_default()),
        ("config_file", config_file.map(|path| path.display().to_string()).unwrap_or_default()),
        ("uptime_in_seconds", uptime.to_string()),
        ("uptime_in_days", (uptime / 86_400).to_string()),
        ("server_time_usec", process::unix_us().to_string()),
        ("hz", "10".into()),
        ("configured_hz", "10".into()),
        ("lru_clock", "0".into()),
        ("io_threads", shared.telemetry.loops.len().to_string()),
        ("io_threads_active", u8::from(shared.telemetry.loops.len() > 1).to_string()),
    ]))
}

fn clients(shared: &Shared) -> Result<Lines, Refusal> {
    Ok(lines([
        ("connected_clients", shared.telemetry.loops.clients().to_string()),
        ("cluster_connections", "0".into()),
        ("blocked_clients", shared.clients.count_with(POSTPONED | BLOCKED).to_string()),
        ("tracking_clients", shared.clients.count_with(TRACKS).to_string()),
        ("clients_in_timeout_table", "0".into()),
        ("maxclients", shared.administration.settings.clients_max().to_string()),
    ]))
}

fn persistence(shared: &Shared) -> Result<Lines, Refusal> {
    let stats = shared.keyspace.store.stats();
    let mut fields = lines([
        ("loading", "0".into()),
        ("async_loading", "0".into()),
        ("rdb_changes_since_last_save", unsaved_count(shared).to_string()),
        ("rdb_bgsave_in_progress", u8::from(shared.keyspace.saves.is_running()).to_string()),
        ("rdb_last_save_time", shared.keyspace.saves.last_s().to_string()),
        ("rdb_last_bgsave_status", if shared.keyspace.saves.has_failed() { "err" } else { "ok" }.into()),
        ("rdb_last_bgsave_time_sec", shared.keyspace.saves.took_s().to_string()),
        ("aof_enabled", "0".into()),
        ("aof_rewrite_in_progress", "0".into()),
        ("aof_rewrite_scheduled", "0".into()),
        ("aof_last_rewrite_time_sec", "-1".into()),
        ("aof_current_rewrite_time_sec", "-1".into()),
        ("aof_last_bgrewrite_status", "ok".into()),
        ("aof_last_write_status", if shared.keyspace.store.health().is_ok() { "ok" } else { "err" }.into()),
        ("files", stats.files.into()),
        ("engine", stats.engine.into()),
        ("medium", stats.medium.into()),
        ("durability", stats.durability.into()),
        ("durability_why", stats.durability_why.into()),
    ]);
    let page_stats = stats.journal.and_then(|journal| journal.pages);
    fields.extend(stats.journal.map(journal).into_iter().flatten());
    fields.extend(page_stats.map(pages).into_iter().flatten());
    fields.extend(stats.figures.iter().map(|figure| (figure.name.into(), figure.value.to_string())));
    Ok(fields)
}

fn unsaved_count(shared: &Shared) -> u64 {
    let telemetry = &shared.telemetry;
    telemetry.figures.unsaved_count(telemetry.change_count(), shared.keyspace.saves.has_failed())
}

fn journal(stats: JournalStats) -> Lines {
    lines([
        ("log_bytes", stats.log_bytes.to_string()),
        ("log_max_bytes", stats.log_max_bytes.to_string()),
        ("log_unapplied_bytes", stats.log_unapplied_bytes.to_string()),
        ("log_unsynced_bytes", stats.log_unsynced_bytes.to_string()),
        ("log_written_bytes", stats.log_written_bytes.to_string()),
        ("log_sync_count", stats.log_sync_count.to_string()),
        ("sync_interval_ms", stats.sync_interval_ms.to_string()),
        ("base_bytes", stats.base_bytes.to_string()),
        ("loaded_bytes", stats.loaded_bytes.to_string()),
        ("load_seconds", format!("{:.3}", stats.load_seconds)),
        ("replayed_bytes", stats.replayed_bytes.to_string()),
        ("replay_seconds", format!("{:.3}", stats.replay_seconds)),
    ])
}

fn pages(stats: PageStats) -> Lines {
    lines([
        ("page_memory_max_bytes", stats.page_memory_max_bytes.to_string()),
        ("page_resident_bytes", stats.page_resident_bytes.to_string()),
        ("page_dirty_bytes", stats.page_dirty_bytes.to_string()),
        ("page_kept_bytes", stats.page_kept_bytes.to_string()),
        ("page_index_bytes", stats.page_index_bytes.to_string()),
        ("page_load_count", stats.page_load_count.to_string()),
        ("page_eviction_count", stats.page_eviction_count.to_string()),
        ("page_rescue_count", stats.page_rescue_count.to_string()),
    ])
}

fn order(shared: &Shared) -> Result<Lines, Refusal> {
    let stats = shared.keyspace.store.stats();
    Ok(lines([
        ("order", stats.order.into()),
        ("order_done", stats.order_done.to_string()),
        ("order_total", stats.order_total.to_string()),
        ("order_dram_bytes", stats.order_dram_bytes.to_string()),
        ("queued_count", stats.queued_count.to_string()),
        ("delta_count", stats.delta_count.to_string()),
        ("order_applied_count", stats.order_applied_count.to_string()),
        ("order_updated_count", stats.order_updated_count.to_string()),
    ]))
}

/// Lists the threads that serve and that apply changes, and the samples of the last window of operations for that
/// decision.
fn threads(shared: &Shared) -> Result<Lines, Refusal> {
    let threads = Threads::of(shared);
    let stats = hikv::FrontEnd::of(&shared.keyspace.store).stats_now()?;
    let ([serving, backend], [left, updates, queued]) = (threads.loops(), threads.changes());
    let mut fields = lines([
        ("split", threads.split.to_string()),
        ("serving_loop_count", serving.to_string()),
        ("backend_loop_count", backend.to_string()),
        ("awake_backend_loop_count", threads.backend_count().to_string()),
        ("worker_count", stats.worker_count.to_string()),
        ("awake_worker_count", stats.awake_worker_count.to_string()),
        ("sampled_window_count", threads.window_count().to_string()),
        ("sampled_left_count", left.to_string()),
        ("sampled_update_count", updates.to_string()),
        ("sampled_queued_count", queued.to_string()),
    ]);
    for (kind, (count, us)) in SAMPLED.into_iter().zip(threads.counts().into_iter().zip(threads.means_us())) {
        let each = us.map_or_else(|| "none".to_owned(), |us| format!("{us:.3}"));
        fields.push((format!("sampled_{kind}").into(), format!("count={count},usec_per_op={each}")));
    }
    Ok(fields)
}

fn snapshots(shared: &Shared) -> Result<Lines, Refusal> {
    let stats = shared.keyspace.store.stats();
    Ok(lines([
        ("snapshot_count", stats.snapshot_count.to_string()),
        ("oldest_snapshot_seconds", format!("{:.3}", stats.oldest_snapshot_seconds)),
        ("kept_count", stats.kept_count.to_string()),
        ("kept_bytes", stats.kept_bytes.to_string()),
        ("garbage_bytes", stats.garbage_bytes.to_string()),
        ("held_up_count", stats.held_up_count.to_string()),
        ("oldest_pin_ms", stats.oldest_pin_ms.to_string()),
        ("oldest_pin_thread", stats.oldest_pin_thread.unwrap_or_default()),
    ]))
}

/// There is none.
fn replication(shared: &Shared) -> Result<Lines, Refusal> {
    Ok(lines([
        ("role", "master".into()),
        ("connected_slaves", "0".into()),
        ("master_failover_state", "no-failover".into()),
        ("master_replid", shared.telemetry.figures.replication_id.clone()),
        ("master_replid2", "0".repeat(40)),
        ("master_repl_offset", "0".into()),
        ("second_repl_offset", "-1".into()),
        ("repl_backlog_active", "0".into()),
        ("repl_backlog_size", "0".into()),
        ("repl_backlog_first_byte_offset", "0".into()),
        ("repl_backlog_histlen", "0".into()),
    ]))
}

fn cluster(_: &Shared) -> Result<Lines, Refusal> {
    Ok(lines([("cluster_enabled", "0".into())]))
}

/// As in Redis, a database without keys is omitted; it is also omitted if its count is unavailable after a failed sync.
/// Keys with an expiry are not counted.
fn keyspace(shared: &Shared) -> Result<Lines, Refusal> {
    let mut lines = Lines::new();
    for db in Database::all() {
        let count =
            databases::key_count(shared, shared.keyspace.items(None), shared.keyspace.namespace(db)).unwrap_or(0);
        if count > 0 {
            lines.push((format!("db{db}").into(), format!("keys={count},expires=0,avg_ttl=0")));
        }
    }
    Ok(lines)
}

/// Named trees, which no database shows. A name may have any characters; those that would end a line are escaped.
fn trees(shared: &Shared) -> Result<Lines, Refusal> {
    let trees = NamedTrees::of(shared)?;
    let of_tree = |NamedTree { name, items }: NamedTree| {
        let items = items.map_or_else(|| "not counted".into(), |items| items.to_string());
        (format!("tree_{}", name.escape_debug()).into(), format!("keys={items}"))
    };
    let total = ("trees".into(), trees.count.to_string());
    Ok([total].into_iter().chain(trees.shown.into_iter().map(of_tree)).collect())
}

fn lines<const N: usize>(lines: [(&'static str, String); N]) -> Lines {
    lines.map(|(name, value)| (name.into(), value)).into()
}
