//! Compares hikv with RocksDB, LMDB, redb and fjall: the same work, at the same durability, on the same disk, in turns.
//!
//! Each system loads the same records once. Then come rounds: for every cell (a workload, a durability level, a number
//! of threads) every system in turn opens its store, works for a few seconds with each value checked, and closes the
//! store. The report shows each system's median round per cell, and the range. The first system changes from round to
//! round, so that no system always follows the same other one.
//!
//! Workloads and passes are those of `hikv bench` (`bench::Session`): a system is a `bench::Subject`.

mod cell;
mod counters;
mod error;
mod place;
mod report;
mod round;
mod system;

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use bench::Records;
use clap::{Parser, value_parser};

use crate::cell::Cell;
use crate::error::Error;
use crate::place::Place;
use crate::report::Report;
use crate::round::Comparison;
use crate::system::{Memory, System};

/// Compare hikv with RocksDB, LMDB, redb and fjall at the same durability on the same disk
///
/// Writes a table to standard output at the end. With --json, also writes each measurement as a line of JSON as soon as
/// it is made. The exit code is 1 if a value was wrong.
#[derive(Parser)]
struct Arguments {
    /// Directory for the stores, on the disk to be measured. The stores are kept, and a later run with the same records
    /// uses them again
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
    /// Directory in tmpfs for the stores of systems whose names end in -tmpfs
    #[arg(long, value_name = "DIR", default_value = "/dev/shm")]
    tmpfs: PathBuf,
    /// Systems, in this order: hikv hikv-tmpfs rocksdb lmdb redb fjall disk; also lmdb-tmpfs, and the other engines
    /// rewo-hash ink pmekv and the same with -tmpfs
    #[arg(long, value_delimiter = ',', default_values_t = System::USUAL.to_vec())]
    systems: Vec<System>,
    /// Cells to measure, each as LEVEL:WORKLOAD:THREADS; the workloads are those of `hikv bench`
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "power:update:1,power:update:4,power:update:16,buffered:update:1,buffered:update:4,buffered:get:1,buffered:get:4"
    )]
    cells: Vec<Cell>,
    /// Items loaded before
    #[arg(long, default_value_t = 1_000_000, value_parser = value_parser!(u64).range(1..=1 << 32))]
    records: u64,
    /// Rounds: turns of each system in each cell
    #[arg(long, default_value_t = 5, value_parser = value_parser!(u32).range(1..))]
    rounds: u32,
    /// Seconds of each of a turn's two passes
    #[arg(long, default_value = "3", value_parser = seconds)]
    seconds: Duration,
    /// Key length in bytes
    #[arg(long, default_value_t = 16, value_parser = value_parser!(u16).range(bench::KEY_BYTES_MIN as i64..=256))]
    key_bytes: u16,
    /// Value length in bytes
    #[arg(long, default_value_t = 256, value_parser = value_parser!(u32).range(bench::VALUE_BYTES_MIN as i64..=1 << 20))]
    value_bytes: u32,
    /// Memory of each store: hikv's `--memory`, half of it as a cache of the others [default: everything is in memory].
    /// Run the program in a control group of a little more memory, so that the page cache counts
    #[arg(long, value_name = "BYTES")]
    memory: Option<u64>,
    /// Part of hikv's memory that is a read cache, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 0, value_parser = value_parser!(u64).range(..=50), requires = "memory")]
    read_cache: u64,
    /// Only load the stores
    #[arg(long, conflicts_with = "memory")]
    load_only: bool,
    /// File for the measurements, one JSON object per line
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(wrong) => print_error(&format!("{wrong} values were wrong")),
        Err(error) => print_error(&error.to_string()),
    }
}

fn print_error(what: &str) -> ExitCode {
    let _ = writeln!(io::stderr(), "bench-compare: {what}");
    ExitCode::FAILURE
}

/// Runs the comparison; returns the number of wrong values.
fn run(arguments: &Arguments) -> Result<u64, Error> {
    let records = Records {
        count: arguments.records,
        key_bytes: usize::from(arguments.key_bytes),
        shared_bytes: 0,
        value_bytes: arguments.value_bytes as usize,
    };
    let place = Place::new(&arguments.dir, &arguments.tmpfs)?;
    let report = Report::new(arguments.json.as_deref())?;
    let memory = arguments.memory.map(|bytes| Memory { bytes, read_cache_bytes: bytes * arguments.read_cache / 100 });
    let mut comparison = Comparison { place, records, pass: arguments.seconds, memory, report };
    comparison.load(&arguments.systems)?;
    if arguments.load_only {
        return Ok(0);
    }
    for round in 0..arguments.rounds {
        for &cell in &arguments.cells {
            comparison.round(round, cell, &arguments.systems)?;
        }
    }
    comparison.report.print(&mut io::stdout().lock())?;
    Ok(comparison.report.wrong_count())
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}
