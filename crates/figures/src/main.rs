//! The figures of the papers that hikv's engines come from, measured on this machine: `cargo xtask figures PAPER [FIG …]`.
//!
//! A paper is data ([`paper::Paper`]: figures, what they claim) and a runner, which measures and tells what was measured, a
//! [`point::Point`] each. The systems of a figure take turns, in another order each round; of each the median round counts. Every read is
//! checked, and one that was wrong ends the program with 1. From the points come a table, JSON, an object a line, and one HTML page with
//! the machine, the command, what the paper claims beside what was found, and plots.

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

/// What may go wrong.
type Error = Box<dyn std::error::Error + Send + Sync>;

/// Measure the figures of a paper that one of hikv's engines comes from
///
/// A table is written to standard output, and a page and all measurements into a directory. The exit code is 1 if a value was wrong.
#[derive(Parser, Clone, Debug)]
struct Arguments {
    /// Whose figures: see --list
    paper: Option<String>,
    /// Which of them; by default all
    figures: Vec<String>,
    /// Say which papers and figures there are
    #[arg(long)]
    list: bool,
    #[command(flatten)]
    settings: Settings,
    /// Where the page and the measurements are written
    #[arg(long, value_name = "DIR", default_value = "target/figures")]
    out: PathBuf,
}

/// How it is measured.
#[derive(clap::Args, Clone, Debug)]
struct Settings {
    /// Where the tables lie while they are measured: their memory, so a directory in tmpfs
    #[arg(long, value_name = "DIR", default_value = "/dev/shm")]
    dir: PathBuf,
    /// Segments of Rewo-Hash's table, a power of two from 2 on; each has 504 slots, and the other tables have as many together
    #[arg(long, default_value_t = 2048, value_parser = RangedU64ValueParser::<u32>::new().range(2..))]
    segments: u32,
    /// Which systems; by default all that the figures show
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    systems: Vec<String>,
    /// Pairs of InK's stores, of which an insert's turn adds a twentieth; and records of our size of PMEKV's figures
    #[arg(long, default_value_t = 1_000_000, value_parser = RangedU64ValueParser::<u64>::new().range(1..=1 << 31))]
    records: u64,
    /// Pairs of the small store of InK's figure 9
    #[arg(long, default_value_t = 450_000, value_parser = RangedU64ValueParser::<u64>::new().range(1..=1 << 31))]
    few_records: u64,
    /// Hundredths of the paper's records and requests that PMEKV's tables 1 to 4 and figures 6 to 9 take
    #[arg(long, default_value_t = 100, value_parser = RangedU64ValueParser::<u64>::new().range(1..=10_000))]
    percent: u64,
    /// Operations of one turn
    #[arg(long, default_value_t = 200_000, value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    operations: usize,
    /// Turns that each system has at each measurement
    #[arg(long, default_value_t = 5, value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    rounds: usize,
    /// Nanoseconds that each 256-byte block costs that is read and that the memory does not hold: by default 1.8 times a read of
    /// this machine's memory, so that it is 2.8 times as slow; 0 for memory as it is
    #[arg(long)]
    read_block_ns: Option<u64>,
}

impl Settings {
    /// Whether this system is to be measured, as far as the figures show it.
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

/// How many results were wrong.
fn run(arguments: &Arguments) -> Result<u64, Error> {
    let Some(name) = arguments.paper.as_ref().filter(|_| !arguments.list) else {
        paper::list(&mut io::stdout())?;
        return Ok(0);
    };
    let paper = Paper::named(name)?;
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
    let path = |ending| arguments.out.join(format!("{name}.{ending}"));
    points.write_json(&machine, &mut fs::File::create(path("json"))?)?;
    fs::write(path("html"), page::page(paper, &figures, &machine, &points)?)?;
    writeln!(io::stdout(), "{}", path("html").display())?;
    Ok(points.wrong_count())
}
