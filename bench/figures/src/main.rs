//! Measures the figures of the papers on which hikv's engines are based: `cargo xtask figures PAPER [FIG …]`.
//!
//! A paper consists of data ([`paper::Paper`]: figures and their claims) and a runner, which measures and reports a
//! [`point::Point`] per measurement. The systems of a figure take turns, in another order each round, and the median
//! round counts. Every read is checked, and a wrong one makes the exit code 1. The results are a table, lines of JSON,
//! and an HTML page with the machine, the command, the paper's claims next to the measurements, and plots.

mod evaluation;
mod hikv;
mod ink;
mod machine;
mod memory;
mod model;
mod page;
mod paper;
mod plot;
mod pmekv;
mod point;
mod records;
mod rewo;
#[cfg(feature = "rocksdb")]
mod rocksdb;
mod runs;
mod slice;
#[cfg(test)]
mod tests;
mod verdict;
mod work;

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use clap::builder::RangedU64ValueParser;

use machine::Machine;
use paper::{Figure, Paper, Part};
use point::Points;
use runs::{Run, Runs};

/// Any error of a system or of the operating system.
type Error = Box<dyn std::error::Error + Send + Sync>;

/// Measure the figures of a paper on which one of hikv's engines is based
///
/// Writes a table to standard output, and a page and all measurements into a directory. The exit code is 1 if a value
/// was wrong.
#[derive(Parser, Clone, Debug)]
struct Arguments {
    /// The paper; see --list. 'all' measures every figure of which DIR has no measurements. 'slice' checks results and
    /// exact counts of every system at a small size
    paper: Option<String>,
    /// The figures to measure [default: all]
    figures: Vec<String>,
    /// List the papers and their figures
    #[arg(long)]
    list: bool,
    /// With 'slice': write the counts instead of checking them
    #[arg(long)]
    write_counts: bool,
    /// Write the verdicts on all measurements in DIR into this page, without measuring again
    #[arg(long, value_name = "FILE")]
    evaluate: Option<PathBuf>,
    #[command(flatten)]
    settings: Settings,
    /// Directory for the page and the measurements
    #[arg(long, value_name = "DIR", default_value = "target/figures")]
    out: PathBuf,
}

/// The parameters of the measurements.
#[derive(clap::Args, Clone, Debug)]
struct Settings {
    /// Directory for the stores during the measurements; their memory is the directory's, so choose one in tmpfs
    #[arg(long, value_name = "DIR", default_value = "/dev/shm")]
    dir: PathBuf,
    /// Segments of Rewo-Hash's table, a power of two from 2 on. Each has 504 slots; the other tables get the same
    /// number of slots in total
    #[arg(long, default_value_t = 2048, value_parser = RangedU64ValueParser::<u32>::new().range(2..))]
    segments: u32,
    /// The systems to measure [default: all that the figures show]
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    systems: Vec<String>,
    /// Pairs in the stores of HiKV's figures
    #[arg(long, default_value_t = 5_000_000, value_parser = RangedU64ValueParser::<u64>::new().range(100..=1 << 31))]
    pairs: u64,
    /// Pairs in InK's stores, of which a turn of inserts adds 5 %; also the number of records in PMEKV's figures with
    /// values of 256 bytes
    #[arg(long, default_value_t = 1_000_000, value_parser = RangedU64ValueParser::<u64>::new().range(1..=1 << 31))]
    records: u64,
    /// Pairs in the small store of InK's figure 9
    #[arg(long, default_value_t = 450_000, value_parser = RangedU64ValueParser::<u64>::new().range(1..=1 << 31))]
    few_records: u64,
    /// Percentage of the paper's records and requests for PMEKV's tables 1 to 4 and figures 6 to 9
    #[arg(long, default_value_t = 100, value_parser = RangedU64ValueParser::<u64>::new().range(1..=10_000))]
    percent: u64,
    /// Operations per turn
    #[arg(long, default_value_t = 200_000, value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    operations: usize,
    /// Turns of each system at each measurement
    #[arg(long, default_value_t = 5, value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    rounds: usize,
    /// Added nanoseconds for each 256-byte block that is read and not cached [default: 1.8 times a read of this
    /// machine's memory, which makes it 2.8x slower; in InK's figures: none]; 0 adds nothing
    #[arg(long)]
    read_block_ns: Option<u64>,
    /// Added nanoseconds for each fence in Rewo-Hash's figures
    #[arg(long, default_value_t = 0)]
    persist_ns: u64,
    /// Bytes of the emulated processor cache in Rewo-Hash's figures; 0 for none [default: 1/1024 of the table, as in
    /// the paper]
    #[arg(long)]
    cache_bytes: Option<u64>,
    /// Exact counts are wanted, and no times.
    #[arg(skip)]
    is_counting: bool,
}

/// Stands for all papers on the command line.
const ALL: &str = "all";
/// Stands for the check of results and exact counts.
const SLICE: &str = "slice";

impl Arguments {
    /// Returns the place of a paper's results.
    fn path(&self, paper: &Paper, ending: &str) -> PathBuf {
        self.out.join(format!("{}.{ending}", paper.name))
    }
}

impl Settings {
    /// Returns true if this system is to be measured where a figure shows it.
    fn wants(&self, name: &str) -> bool {
        self.systems.is_empty() || self.systems.iter().any(|wanted| wanted == name)
    }
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(wrong) => {
            let _ = writeln!(io::stderr(), "{wrong} results were wrong");
            ExitCode::FAILURE
        }
        Err(error) => {
            let _ = writeln!(io::stderr(), "figures: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the measurements; returns the number of wrong results.
fn run(arguments: &Arguments) -> Result<u64, Error> {
    let wrong = match arguments.paper.as_deref().filter(|_| !arguments.list) {
        Some(ALL) => measure_all(arguments)?,
        Some(SLICE) if arguments.write_counts => slice::write(&arguments.settings.dir)?,
        Some(SLICE) => slice::check(&arguments.settings.dir)?,
        Some(name) => {
            let paper = Paper::named(name)?;
            paper.expect_systems(&arguments.settings.systems)?;
            measure(paper, &paper.chosen(&arguments.figures)?, Machine::probe(&arguments.settings.dir)?, arguments)?
        }
        None if arguments.evaluate.is_some() => 0,
        None => {
            paper::list(&mut io::stdout())?;
            return Ok(0);
        }
    };
    arguments.evaluate.iter().try_for_each(|page| evaluation::write(page, &arguments.out))?;
    Ok(wrong)
}

/// Measures the parts of every paper's plan of which a figure is not measured yet.
fn measure_all(arguments: &Arguments) -> Result<u64, Error> {
    // Later parts would find the load of the earlier ones.
    let machine = Machine::probe(&arguments.settings.dir)?;
    let mut wrong_count = 0;
    for paper in paper::PAPERS {
        for part in paper.plan {
            let points = Runs::open(paper, &arguments.path(paper, "json"))?.points();
            let figures = paper.chosen(&part.figures.iter().map(|&name| name.to_owned()).collect::<Vec<_>>())?;
            if figures.iter().all(|figure| points.are_of(figure)) {
                continue;
            }
            let Part { figures: names, seconds } = part;
            writeln!(io::stdout(), "{} {}, about {seconds} s", paper.name, names.join(" "))?;
            wrong_count += measure(paper, &figures, machine.clone(), arguments)?;
        }
    }
    Ok(wrong_count)
}

/// Measures figures of a paper and saves the points; returns the number of wrong results.
fn measure(paper: &Paper, figures: &[&'static Figure], machine: Machine, arguments: &Arguments) -> Result<u64, Error> {
    let mut points = Points::default();
    (paper.run)(figures, &arguments.settings, &machine, &mut |point| points.add(point))?;
    points.print(&mut io::stdout())?;
    let wrong_count = points.wrong_count();
    for why in paper.absences() {
        writeln!(io::stdout(), "{why}")?;
    }
    fs::create_dir_all(&arguments.out)?;
    let saved = arguments.path(paper, "json");
    let mut runs = Runs::open(paper, &saved)?;
    runs.add(Run { machine, points });
    runs.save(&saved)?;
    let page = arguments.path(paper, "html");
    fs::write(&page, page::page(paper, &runs)?)?;
    writeln!(io::stdout(), "{}", page.display())?;
    Ok(wrong_count)
}
