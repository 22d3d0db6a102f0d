//! INFO: what the server tells of itself, in sections of `name:value` lines.

use std::fmt::Write;

use super::{Action, Call, Command, Keys};
use crate::errors::Refusal;
use crate::shared::Shared;

pub(super) static INFO: Command = Command {
    name: "info",
    arity: -1,
    flags: &["loading", "stale"],
    keys: Keys::NONE,
    group: "server",
    summary: "Get information and statistics about the server",
    complexity: "O(1)",
    since: "1.0.0",
    action: Action::Apply(info),
};

/// The version of Redis whose replies are given; clients choose by it what to send.
pub(super) const REDIS_VERSION: &str = "7.0.0";

type Lines = Vec<(&'static str, String)>;

struct Section {
    title: &'static str,
    lines: fn(&Shared) -> Result<Lines, Refusal>,
}

static SECTIONS: [Section; 7] = [
    Section { title: "Server", lines: server },
    Section { title: "Clients", lines: clients },
    Section { title: "Memory", lines: memory },
    Section { title: "Persistence", lines: persistence },
    Section { title: "Order", lines: order },
    Section { title: "Stats", lines: stats },
    Section { title: "Keyspace", lines: keyspace },
];

/// The sections named, or all, in the order of the table.
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
    let names = [section.title, "default", "all", "everything"];
    let is_name = |wanted: &[u8]| names.iter().any(|name| name.as_bytes().eq_ignore_ascii_case(wanted));
    call.request.len() == 1 || call.request.arguments().any(is_name)
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
    let uptime = shared.started.elapsed().as_secs();
    Ok(vec![
        ("redis_version", REDIS_VERSION.into()),
        ("redis_mode", "standalone".into()),
        ("hikv_version", env!("CARGO_PKG_VERSION").into()),
        ("process_id", std::process::id().to_string()),
        ("tcp_port", shared.addr.port().to_string()),
        ("uptime_in_seconds", uptime.to_string()),
        ("uptime_in_days", (uptime / 86_400).to_string()),
        ("io_threads", shared.loops.len().to_string()),
    ])
}

fn clients(shared: &Shared) -> Result<Lines, Refusal> {
    Ok(vec![("connected_clients", shared.clients().to_string()), ("maxclients", shared.max_clients.to_string())])
}

fn memory(shared: &Shared) -> Result<Lines, Refusal> {
    let stats = shared.store.stats();
    Ok(vec![
        ("dram_bytes", stats.dram_bytes.to_string()),
        ("region_bytes", stats.region_bytes.to_string()),
        ("live_bytes", stats.live_bytes.to_string()),
    ])
}

fn persistence(shared: &Shared) -> Result<Lines, Refusal> {
    let stats = shared.store.stats();
    Ok(vec![
        ("loading", "0".into()),
        ("engine", stats.engine.into()),
        ("medium", stats.medium.into()),
        ("durability", stats.durability.into()),
        ("durability_why", stats.durability_why.into()),
    ])
}

fn order(shared: &Shared) -> Result<Lines, Refusal> {
    let stats = shared.store.stats();
    Ok(vec![
        ("order", stats.order.into()),
        ("order_done", stats.order_done.to_string()),
        ("order_total", stats.order_total.to_string()),
        ("order_dram_bytes", stats.order_dram_bytes.to_string()),
        ("queued_count", stats.queued_count.to_string()),
        ("delta_count", stats.delta_count.to_string()),
    ])
}

fn stats(shared: &Shared) -> Result<Lines, Refusal> {
    let totals = shared.totals();
    Ok(vec![
        ("total_connections_received", totals.connections.to_string()),
        ("total_commands_processed", totals.commands.to_string()),
        ("keyspace_hits", totals.hits.to_string()),
        ("keyspace_misses", totals.misses.to_string()),
    ])
}

/// Redis leaves out a database without keys.
fn keyspace(shared: &Shared) -> Result<Lines, Refusal> {
    Ok(match shared.store.len()? {
        0 => vec![],
        count => vec![("db0", format!("keys={count},expires=0,avg_ttl=0"))],
    })
}
