//! `hikv compact`.

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use hikv::{CompactionProgress, CompactionReport, Options};
use indicatif::{HumanBytes, HumanCount};

use crate::failure::{Failure, unless_closed};
use crate::interrupt::Interrupt;
use crate::memory::Memory;
use crate::opening;
use crate::plural::s;
use crate::progress::Progress;

/// Move items together and return free space to the file system
///
/// The file keeps its length and gets holes. The exit code is 1 if there were damaged items; they stay in place.
#[derive(Args)]
pub(crate) struct Compact {
    /// The store: a directory or a DAX device
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// Seconds between progress lines if stderr is not a terminal
    #[arg(long, value_name = "SECONDS", default_value_t = 5)]
    progress_every: u64,
    #[command(flatten)]
    memory: Memory,
}

impl Compact {
    pub(super) fn run(self) -> Result<(), Failure> {
        // Without compaction in the background, every move is counted here.
        let options = Options::new().create(false).tuning(|tuning| tuning.compact_above(None));
        let store = opening::open(&self.memory.options(options), &self.dir)?;
        let interrupt = Interrupt::install()?;
        let every = Duration::from_secs(self.progress_every);
        let mut progress = Progress::new("moved", None, every);
        let show = |at: CompactionProgress| {
            progress.set(at.moved_items, at.moved_items);
            interrupt.flow()
        };
        let compacted = store.compact(show).map_err(Failure::at_path(&self.dir))?;
        progress.set(compacted.moved_items, compacted.moved_items);
        store.close().map_err(Failure::at_path(&self.dir))?;
        if let Some(signal) = interrupt.signal() {
            return Err(Failure::Interrupted { signal, done: progress.end() });
        }
        progress.finish();
        unless_closed(write_report(&compacted)).map_err(Failure::output("standard output"))?;
        match compacted.damaged.len() {
            0 => Ok(()),
            items => {
                let s = s(items as u64);
                Err(Failure::Negative(format!("{}: {items} damaged item{s} left in place", self.dir.display())))
            }
        }
    }
}

fn write_report(compacted: &CompactionReport) -> io::Result<()> {
    let mut out = io::stdout().lock();
    for offset in &compacted.damaged {
        writeln!(out, "damage at offset {offset:#x}: the checksum of an item is wrong")?;
    }
    if compacted.left_items > 0 {
        writeln!(
            out,
            "{} item{} stayed in place: there is no space for copies",
            HumanCount(compacted.left_items),
            s(compacted.left_items)
        )?;
    }
    let (before, after) = (compacted.taken_bytes_before, compacted.taken_bytes_after);
    writeln!(
        out,
        "{before} bytes before, {after} after ({} to {}), {} item{} moved",
        HumanBytes(before),
        HumanBytes(after),
        HumanCount(compacted.moved_items),
        s(compacted.moved_items)
    )
}
