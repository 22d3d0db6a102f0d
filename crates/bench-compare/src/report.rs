//! What was found: an object a line as it comes, and a table of medians in the end.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Mutex;

use serde::Serialize;

use crate::cell::Cell;
use crate::counters::Counters;
use crate::error::Error;
use crate::pass::Pace;
use crate::shape::Shape;
use crate::system::System;

/// One turn of one system.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Measurement {
    system: String,
    level: String,
    operation: String,
    threads: u16,
    round: u32,
    records: u64,
    operations: u64,
    ops_per_sec: f64,
    p50_us: f64,
    p99_us: f64,
    p999_us: f64,
    wrong: u64,
    /// Bytes of keys and values that were put.
    item_bytes: u64,
    /// While the threads worked.
    working: Counters,
    /// The same, and what closing the store added.
    until_closed: Counters,
    #[serde(skip)]
    place: (Cell, System),
}

impl Measurement {
    pub(crate) fn new(
        system: System,
        cell: Cell,
        round: u32,
        shape: Shape,
        pace: &Pace,
        working: Counters,
        until_closed: Counters,
    ) -> Measurement {
        let percentile_us = |percent| pace.latencies.value_at_percentile(percent) as f64 / 1e3;
        Measurement {
            system: system.to_string(),
            level: cell.level.to_string(),
            operation: cell.operation.to_string(),
            threads: cell.threads.get(),
            round,
            records: shape.records,
            operations: pace.operations,
            ops_per_sec: pace.operations as f64 / pace.elapsed.as_secs_f64(),
            p50_us: percentile_us(50.0),
            p99_us: percentile_us(99.0),
            p999_us: percentile_us(99.9),
            wrong: pace.wrong,
            item_bytes: pace.operations * shape.item_bytes(),
            working,
            until_closed,
            place: (cell, system),
        }
    }

    fn per_operation(&self, count: u64) -> f64 {
        count as f64 / self.operations.max(1) as f64
    }

    fn amplification(&self, counters: Counters) -> f64 {
        counters.device_bytes as f64 / self.item_bytes.max(1) as f64
    }
}

/// All measurements; see the module.
pub(crate) struct Report {
    lines: Option<Mutex<File>>,
    measured: BTreeMap<(Cell, System), Vec<Measurement>>,
}

impl Report {
    /// # Errors
    /// If the file cannot be created.
    pub(crate) fn new(lines: Option<&Path>) -> Result<Report, Error> {
        let create =
            |path: &Path| File::create(path).map_err(|error| format!("cannot create {}: {error}", path.display()));
        Ok(Report { lines: lines.map(create).transpose()?.map(Mutex::new), measured: BTreeMap::new() })
    }

    /// Tells whoever watches.
    pub(crate) fn note(&self, what: &str) -> Result<(), Error> {
        Ok(writeln!(io::stderr(), "{what}")?)
    }

    pub(crate) fn add(&mut self, measured: Measurement) -> Result<(), Error> {
        if let Some(lines) = &mut self.lines {
            let lines = lines.get_mut().expect("nobody panicked with it");
            writeln!(lines, "{}", serde_json::to_string(&measured)?)?;
        }
        let (cell, system) = measured.place;
        self.note(&format!("round {} {cell} {system}: {:.0}/s", measured.round, measured.ops_per_sec))?;
        self.measured.entry((cell, system)).or_default().push(measured);
        Ok(())
    }

    /// Values that were not the expected ones.
    pub(crate) fn wrong_count(&self) -> u64 {
        self.measured.values().flatten().map(|measured| measured.wrong).sum()
    }

    /// The table: of each system the turn of the median rate, in each cell.
    pub(crate) fn print(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(out, "{HEADER}")?;
        let mut last = None;
        for ((cell, system), turns) in &self.measured {
            if last.replace(cell).is_some_and(|last| last != cell) {
                writeln!(out)?;
            }
            print_row(out, *cell, *system, turns)?;
        }
        Ok(())
    }
}

const HEADER: &str = "cell            system         ops/s (    least to      most)    p50 us    p99 us  p99.9 us   bytes/put  x item till closed  syncs/put";

fn print_row(out: &mut impl Write, cell: Cell, system: System, turns: &[Measurement]) -> io::Result<()> {
    let mut turns: Vec<&Measurement> = turns.iter().collect();
    turns.sort_by(|one, other| one.ops_per_sec.total_cmp(&other.ops_per_sec));
    let (least, most) = (turns[0].ops_per_sec, turns[turns.len() - 1].ops_per_sec);
    let median = turns[(turns.len() - 1) / 2];
    write!(
        out,
        "{:<15} {:<10} {:>9.0} ({least:>9.0} to {most:>9.0}) {:>9.2} {:>9.2} {:>9.2}",
        cell.to_string(),
        system.to_string(),
        median.ops_per_sec,
        median.p50_us,
        median.p99_us,
        median.p999_us,
    )?;
    if cell.operation == crate::cell::Operation::Get {
        return writeln!(out);
    }
    writeln!(
        out,
        " {:>11.0} {:>7.2} {:>11.2} {:>10.4}",
        median.per_operation(median.working.device_bytes),
        median.amplification(median.working),
        median.amplification(median.until_closed),
        median.per_operation(median.working.device_flushes),
    )
}
