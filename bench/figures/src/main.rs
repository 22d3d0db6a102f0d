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
mod page;
mod paper;
mod plot;
mod pmekv;
mod point;
mod records;
mod rewo;
#[cfg(feature = "rocksdb")]
mod rocksdb;
#[cfg(test)]
mod tests;
mod work;

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use clap::builder::RangedU64ValueParser;

use machine::Machine;
use paper::Paper;
use point::Points;

/// Any error of a system or of the operating system.
type Error = Box<dyn std::error::Error + Send + Sync>;

/// Measure the figures of a paper on which one of hikv's engines is based
///
/// Writes a table to standard output, and a page and all measurements into a directory. The exit code is 1 if a value
/// was wrong.
#[derive(Parser, Clone, Debug)]
struct Arguments {
    /// The paper; see --list. 'all' measures every paper of which DIR has no measurements
    paper: Option<String>,
    /// The figures to measure [default: all]
    figures: Vec<String>,
    /// List the papers and their figures
    #[arg(long)]
    list: bool,
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
    /// machine's memory, which makes it 2.8x slower]; 0 adds nothing
    #[arg(long)]
    read_block_ns: Option<u64>,
    /// Added nanoseconds for each fence in Rewo-Hash's figures
    #[arg(long, default_value_t = 0)]
    persist_ns: u64,
    /// Bytes of the emulated processor cache in Rewo-Hash's figures; 0 for none [default: 1/1024 of the table, as in
    /// the paper]
    #[arg(long)]
    cache_bytes: Option<u64>,
}

/// Stands for all papers on the command line.
const ALL: &str = "all";

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
        Some(ALL) => {
            let is_measured = |paper: &&&Paper| arguments.path(paper, "json").exists();
            let papers = paper::PAPERS.iter().filter(|paper| !is_measured(paper));
            papers.map(|paper| measure(paper, arguments)).sum::<Result<u64, Error>>()?
        }
        Some(name) => measure(Paper::named(name)?, arguments)?,
        None if arguments.evaluate.is_some() => 0,
        None => {
            paper::list(&mut io::stdout())?;
            return Ok(0);
        }
    };
    arguments.evaluate.iter().try_for_each(|page| evaluation::write(page, &arguments.out))?;
    Ok(wrong)
}

fn measure(paper: &Paper, arguments: &Arguments) -> Result<u64, Error> {
    let figures = paper.chosen(&arguments.figures)?;
    paper.expect_systems(&arguments.settings.systems)?;
    let machine = Machine::probe(&arguments.settings.dir)?;
    let mut points = Points::default();
    (paper.run)(&figures, &arguments.settings, &machine, &mut |point| points.add(point))?;
    points.print(&mut io::stdout())?;
    for why in paper.absences() {
        writeln!(io::stdout(), "{why}")?;
    }
    fs::create_dir_all(&arguments.out)?;
    points.write_json(&machine, &mut fs::File::create(arguments.path(paper, "json"))?)?;
    let page = arguments.path(paper, "html");
    fs::write(&page, page::page(paper, &figures, &machine, &points)?)?;
    writeln!(io::stdout(), "{}", page.display())?;
    Ok(points.wrong_count())
}
