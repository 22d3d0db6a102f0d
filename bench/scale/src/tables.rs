//! The tables of `docs/scale.md`, each between a comment with its name and a comment that ends it.

use std::fmt::Write as _;

use crate::assumed;
use crate::measured;
use crate::plan::{Bottleneck, Memory, Plan};
use crate::systems::System;
use crate::year::{Year, simulate};

/// Years of the simulation, for each system.
const YEARS: u32 = 40;
const SEED: u64 = 1;
/// The size that the page is about.
pub const ITEMS: f64 = 1e12;

/// A table with its name in the page.
pub struct Table {
    /// Name in the comment before the table.
    pub name: &'static str,
    /// Markdown.
    pub text: String,
}

impl Table {
    fn new(name: &'static str, head: &[&str]) -> Self {
        let mut table = Self { name, text: String::new() };
        table.row(&head.iter().map(ToString::to_string).collect::<Vec<_>>());
        table.text += &format!("{}|\n", "|---".repeat(head.len()));
        table
    }

    fn row(&mut self, cells: &[String]) {
        writeln!(self.text, "| {} |", cells.join(" | ")).expect("a string accepts all text");
    }

    /// Adds a row with one cell for each system.
    fn systems(&mut self, name: &str, plans: &[Plan], cell: impl Fn(&Plan) -> String) {
        let mut cells = vec![name.to_string()];
        cells.extend(plans.iter().map(cell));
        self.row(&cells);
    }
}

/// Returns all tables.
#[must_use]
pub fn all() -> Vec<Table> {
    let plans = System::ALL.map(|system| Plan::new(system, Memory::Limited, ITEMS));
    vec![inputs(), assumptions(), growth(), sizes(&plans), recovery(&plans), years(&plans)]
}

fn inputs() -> Table {
    let mut table = Table::new("measured", &["measured", "value", "page"]);
    for figure in measured::ALL {
        table.row(&[figure.name.into(), figure.shown.into(), format!("[{0}]({0})", figure.page)]);
    }
    table
}

fn assumptions() -> Table {
    let machine = assumed::MACHINE;
    let mut table = Table::new("assumed", &["assumed", "value"]);
    for (name, value) in [
        ("DRAM for stores, of 256 GiB", bytes(machine.dram_bytes)),
        ("disk for stores, of 4 TB", bytes(machine.disk_bytes)),
        ("network for recovery, half of 10 Gbit/s", format!("{}/s", bytes(machine.network_bytes_per_second))),
        ("a store is filled to", format!("{:.0} %", machine.store_share * 100.0)),
        ("bytes of an item on the network, beyond key and value", format!("{:.0}", assumed::WIRE_BYTES)),
        (
            "Kafka Streams: standby replicas; active and standby tasks of an instance",
            format!("1; {}", assumed::TASKS_PER_MACHINE),
        ),
        ("Kafka Streams: session timeout", seconds(assumed::SESSION_SECONDS)),
        ("Cassandra: replication factor; tokens of a machine, random", format!("3; {}", assumed::TOKENS)),
        ("Cassandra: streams out of a machine", format!("{}/s", bytes(assumed::STREAM_BYTES_PER_SECOND))),
        (
            "fleet: servers of a machine; points of a server on the ring",
            format!("{}; {}", assumed::SHARDS_PER_MACHINE, assumed::RING_POINTS),
        ),
        ("a replacement of a lost machine starts after", seconds(assumed::REACTION_SECONDS)),
        ("process deaths of a machine in a year", format!("{:.0}", assumed::KILLS_PER_YEAR)),
        ("machines lost with their disks", format!("one in {:.0} years", 1.0 / assumed::LOSSES_PER_YEAR)),
    ] {
        table.row(&[name.into(), value]);
    }
    table
}

fn growth() -> Table {
    let mut table = Table::new("growth", &["items", "memory", "Kafka Streams", "Cassandra", "fleet"]);
    for (memory, name) in [(Memory::Whole, "whole stores"), (Memory::Limited, "index and order")] {
        for exponent in 9..=12 {
            let mut cells = vec![format!("10^{exponent}"), name.into()];
            for system in System::ALL {
                let plan = Plan::new(system, memory, 10f64.powi(exponent));
                cells.push(format!(
                    "{}; {}",
                    count(plan.cluster.machines as f64),
                    count(plan.cluster.partitions.len() as f64)
                ));
            }
            table.row(&cells);
        }
    }
    table
}

fn sizes(plans: &[Plan]) -> Table {
    let mut table = Table::new("sizes", &["", "Kafka Streams", "Cassandra", "fleet"]);
    let region = measured::REGION_BYTES.value;
    let tables = measured::INDEX_BYTES.value + measured::ORDER_BYTES.value;
    table.systems("copies of an item in stores", plans, |plan| plan.system.copies().to_string());
    table.systems("machines", plans, |plan| count(plan.cluster.machines as f64));
    table.systems("partitions", plans, |plan| count(plan.cluster.partitions.len() as f64));
    table.systems("items of a partition, mean", plans, |plan| millions(ITEMS / plan.cluster.partitions.len() as f64));
    table.systems("largest partition, relative to the mean", plans, |plan| times(plan.cluster.partition_unevenness()));
    table.systems("fullest machine, relative to the mean", plans, |plan| times(plan.cluster.unevenness()));
    table.systems("items of a machine, mean", plans, |plan| millions(plan.items_of_mean()));
    table.systems("regions of a machine, mean", plans, |plan| bytes(plan.items_of_mean() * region));
    table.systems("regions of the fullest machine", plans, |plan| bytes(plan.items_of_fullest() * region));
    table.systems("stores of a machine", plans, |plan| format!("{:.0}", plan.stores()));
    table.systems("DRAM for index and order, fullest machine", plans, |plan| bytes(plan.items_of_fullest() * tables));
    table
}

fn recovery(plans: &[Plan]) -> Table {
    let mut table = Table::new("recovery", &["", "Kafka Streams", "Cassandra", "fleet"]);
    let moved = |plan: &Plan| plan.cluster.clone().add_machine();
    table.systems("process killed: it answers after", plans, |plan| seconds(plan.opening_seconds()));
    table.systems("process killed: its keys are not served for", plans, |plan| seconds(plan.pause_seconds()));
    table.systems("machine lost: its keys are not served for", plans, |plan| seconds(plan.outage_seconds()));
    table.systems("machine lost: all copies exist again after", plans, |plan| seconds(plan.refill_seconds()));
    table.systems("limited by", plans, |plan| limit(plan.filling(plan.items_of_mean()).1).into());
    table.systems("machine lost: bytes on the network", plans, |plan| bytes(plan.items_of_mean() * plan.wire_bytes()));
    table.systems("machines that send", plans, |plan| match plan.system {
        System::Streams => "Kafka's brokers".into(),
        System::Cassandra => count(plan.cluster.sources(0) as f64),
        System::Fleet => "the backup's".into(),
    });
    table.systems("machine added: share of the copies that moves", plans, |plan| {
        format!("{:.3} %", moved(plan) / plan.system.copies() as f64 * 100.0)
    });
    table.systems("machine added: bytes on the network", plans, |plan| {
        bytes(moved(plan) * plan.items * plan.wire_bytes())
    });
    table.systems("machine added: it is filled after", plans, |plan| seconds(plan.filling(moved(plan) * plan.items).0));
    table
}

fn years(plans: &[Plan]) -> Table {
    let found: Vec<Year> = plans.iter().map(|plan| simulate(plan, YEARS, SEED)).collect();
    let mut table = Table::new("years", &["in a year", "Kafka Streams", "Cassandra", "fleet"]);
    let mut row = |name: &str, cell: fn(&Year) -> String| {
        let mut cells = vec![name.to_string()];
        cells.extend(found.iter().map(cell));
        table.row(&cells);
    };
    row("processes that died", |year| count(year.kills));
    row("machines that were lost", |year| count(year.losses));
    row("a key is not served, mean", |year| seconds(year.unserved_seconds));
    row("bytes on the network to fill machines", |year| bytes(year.network_bytes));
    row("partitions of which all stores were lost", |year| format!("{:.1}", year.lost_partitions));
    table
}

fn limit(bottleneck: Bottleneck) -> &'static str {
    match bottleneck {
        Bottleneck::Network => "network",
        Bottleneck::Puts => "puts",
        Bottleneck::Streams => "streams",
    }
}

fn count(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut shown = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

fn times(value: f64) -> String {
    format!("{value:.2}x")
}

fn millions(value: f64) -> String {
    format!("{} M", count(value / 1e6))
}

fn bytes(value: f64) -> String {
    let units = [(1e15, "PB"), (1e12, "TB"), (1e9, "GB"), (1e6, "MB")];
    let (unit, name) = units.into_iter().find(|(unit, _)| value >= *unit).unwrap_or((1e6, "MB"));
    let scaled = value / unit;
    if scaled < 10.0 { format!("{scaled:.1} {name}") } else { format!("{scaled:.0} {name}") }
}

fn seconds(value: f64) -> String {
    match value {
        0.0 => "0".into(),
        _ if value < 1.0 => format!("{value:.2} s"),
        _ if value < 10.0 => format!("{value:.1} s"),
        _ if value < 120.0 => format!("{value:.0} s"),
        _ if value < 7_200.0 => format!("{:.0} min", value / 60.0),
        _ => format!("{:.1} h", value / 3_600.0),
    }
}
