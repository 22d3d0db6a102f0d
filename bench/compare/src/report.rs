//! The report: a line of JSON per measurement as it is made, and a table of medians at the end.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Mutex;

use bench::{Records, Row};
use serde::Serialize;

use crate::cell::Cell;
use crate::counters::Counters;
use crate::error::Error;
use crate::system::System;

/// A turn of a system.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Measurement {
    system: String,
    level: String,
    round: u32,
    #[serde(flatten)]
    row: Row,
    /// Bytes of keys and values that the throughput pass put.
    item_bytes: u64,
    /// The same for both passes and for restoring the records afterwards.
    all_item_bytes: u64,
    /// Counters of the throughput pass.
    working: Counters,
    /// Counters from the start of that pass until the store was closed.
    until_closed: Counters,
    #[serde(skip)]
    place: (Cell, System),
}

impl Measurement {
    pub(crate) fn new(
        system: System,
        cell: Cell,
        round: u32,
        records: Records,
        row: Row,
        working: Counters,
        until_closed: Counters,
    ) -> Measurement {
        Measurement {
            system: system.to_string(),
            level: cell.level.to_string(),
            round,
            item_bytes: row.put_count * records.item_bytes(),
            all_item_bytes: row.all_put_count * records.item_bytes(),
            row,
            working,
            until_closed,
            place: (cell, system),
        }
    }

    fn per_put(&self, count: u64) -> f64 {
        count as f64 / self.row.put_count.max(1) as f64
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

    /// Prints progress to standard error.
    pub(crate) fn note(&self, what: &str) -> Result<(), Error> {
        Ok(writeln!(io::stderr(), "{what}")?)
    }

    pub(crate) fn add(&mut self, measured: Measurement) -> Result<(), Error> {
        if let Some(lines) = &mut self.lines {
            let lines = lines.get_mut().expect("no thread panicked while holding the lock");
            writeln!(lines, "{}", serde_json::to_string(&measured)?)?;
        }
        let (cell, system) = measured.place;
        self.note(&format!("round {} {cell} {system}: {:.0}/s", measured.round, measured.row.ops_per_sec))?;
        self.measured.entry((cell, system)).or_default().push(measured);
        Ok(())
    }

    /// Returns the number of wrong values.
    pub(crate) fn wrong_count(&self) -> u64 {
        self.measured.values().flatten().map(|measured| measured.row.errors).sum()
    }

    /// Prints the table: for each cell and system, the turn with the median rate.
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

const HEADER: &str = "cell                  system         ops/s (    least to      most)    p50 us    p99 us  p99.9 us   bytes/put  x item till closed  syncs/put";

fn print_row(out: &mut impl Write, cell: Cell, system: System, turns: &[Measurement]) -> io::Result<()> {
    let mut turns: Vec<&Measurement> = turns.iter().collect();
    turns.sort_by(|one, other| one.row.ops_per_sec.total_cmp(&other.row.ops_per_sec));
    let (least, most) = (turns[0].row.ops_per_sec, turns[turns.len() - 1].row.ops_per_sec);
    let median = turns[(turns.len() - 1) / 2];
    let (cell, system) = (cell.to_string(), system.to_string());
    write!(out, "{cell:<21} {system:<10} {:>9.0} ({least:>9.0} to {most:>9.0})", median.row.ops_per_sec)?;
    for us in [median.row.p50_us, median.row.p99_us, median.row.p999_us] {
        write!(out, " {:>9.2}", us.unwrap_or(f64::NAN))?;
    }
    if median.row.put_count == 0 {
        return writeln!(out);
    }
    let times = |counters: Counters, item_bytes: u64| counters.device_bytes as f64 / item_bytes.max(1) as f64;
    writeln!(
        out,
        " {:>11.0} {:>7.2} {:>11.2} {:>10.4}",
        median.per_put(median.working.device_bytes),
        times(median.working, median.item_bytes),
        times(median.until_closed, median.all_item_bytes),
        median.per_put(median.working.device_flushes),
    )
}
