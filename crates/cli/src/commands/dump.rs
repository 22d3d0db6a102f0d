//! `hikv dump`.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use hikv::Store;

use crate::failure::Failure;
use crate::formats::{Format, UNKNOWN_FORMAT};
use crate::interrupt::Interrupt;
use crate::progress::Progress;

const VERB: &str = "dumped";

/// Write all items as text, in no particular order
#[derive(Args)]
pub(crate) struct Dump {
    /// The store: a directory, or a DAX device
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// Standard output if none is given
    file: Option<PathBuf>,
    /// By default what the extension of FILE says; TSV to standard output
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Seconds between two lines of progress, where stderr is no terminal
    #[arg(long, value_name = "SECONDS", default_value_t = 5)]
    progress_every: u64,
}

impl Dump {
    pub(super) fn run(self) -> Result<(), Failure> {
        let format = self.format()?;
        let store = Store::open_read_only(&self.dir)?;
        let interrupt = Interrupt::install().map_err(Failure::at_signals)?;
        let mut progress = self.progress(store.len().map_err(Failure::at_path(&self.dir))?);
        let mut out = BufWriter::new(self.output()?);
        let mut written = Ok(());
        let each = |key: &[u8], value: &[u8]| {
            written = format.write(key, value, &mut out);
            let items = progress.items() + 1;
            progress.set(items, items);
            let stop = written.is_err() || interrupt.signal().is_some();
            if stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        store.for_each(each).map_err(Failure::at_path(&self.dir))?;
        written.and_then(|()| out.flush()).map_err(Failure::output(self.name()))?;
        if let Some(signal) = interrupt.signal() {
            return Err(Failure::Interrupted { signal, done: progress.end() });
        }
        progress.finish();
        Ok(())
    }

    fn format(&self) -> Result<Format, Failure> {
        match (self.format, &self.file) {
            (Some(format), _) => Ok(format),
            (None, Some(file)) => Format::of_file(file).ok_or_else(|| Failure::at(file.display(), UNKNOWN_FORMAT)),
            (None, None) => Ok(Format::Tsv),
        }
    }

    fn output(&self) -> Result<Box<dyn Write>, Failure> {
        match &self.file {
            Some(file) => Ok(Box::new(File::create(file).map_err(Failure::at_path(file))?)),
            None => Ok(Box::new(io::stdout().lock())),
        }
    }

    /// None beside items on the same terminal.
    fn progress(&self, items: u64) -> Progress {
        match self.file.is_none() && io::stdout().is_terminal() {
            true => Progress::silent(VERB),
            false => Progress::new(VERB, Some(items), Duration::from_secs(self.progress_every)),
        }
    }

    fn name(&self) -> impl std::fmt::Display {
        self.file.as_deref().unwrap_or(Path::new("standard output")).display()
    }
}
