//! `hikv load`.

use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use hikv::Store;

use crate::failure::{Failure, complain};
use crate::formats::{Format, Item, ReadError, Reader, UNKNOWN_FORMAT};
use crate::input::{Input, Interruptible, is_stdin};
use crate::interrupt::Interrupt;
use crate::progress::Progress;

/// What is read at once: large beside a system call, small beside a cache.
const READ_BYTES: usize = 256 << 10;

/// Store the items of a file
///
/// Makes the store if there is none. Each item is durable as the store's medium allows before the next is read. What
/// was stored before an error, or before an interruption, stays.
#[derive(Args)]
pub(crate) struct Load {
    /// The store: a directory, or a DAX device
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// One item a line; - is standard input
    file: PathBuf,
    /// By default what the extension of FILE says; TSV from standard input
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Go on after lines that are no items, and count them
    #[arg(long)]
    skip_bad: bool,
    /// Seconds between two lines of progress, where stderr is no terminal
    #[arg(long, value_name = "SECONDS", default_value_t = 5)]
    progress_every: u64,
}

impl Load {
    pub(super) fn run(self) -> Result<(), Failure> {
        let format = self.format()?;
        let mut input = Input::open(&self.file).map_err(Failure::at_path(&self.file))?;
        let total_bytes = input.len_bytes().map_err(Failure::at_path(&self.file))?;
        let store = Store::open(&self.dir)?;
        let interrupt = Interrupt::install().map_err(Failure::at_signals)?;
        let mut loading = Loading {
            reader: Reader::new(BufReader::with_capacity(READ_BYTES, input.interruptible(&interrupt)), format),
            store: &store,
            interrupt: &interrupt,
            progress: Progress::new("loaded", total_bytes, Duration::from_secs(self.progress_every)),
            arguments: &self,
            bad: 0,
        };
        let outcome = loading.all();
        let (progress, bad) = (loading.progress, loading.bad);
        store.close().map_err(Failure::at_path(&self.dir))?;
        conclude(outcome, progress, bad)
    }

    fn format(&self) -> Result<Format, Failure> {
        let from_stdin = || is_stdin(&self.file).then_some(Format::Tsv);
        let guess = || from_stdin().or_else(|| Format::of_file(&self.file));
        self.format.or_else(guess).ok_or_else(|| Failure::at(self.file.display(), UNKNOWN_FORMAT))
    }

    fn name(&self) -> &Path {
        if is_stdin(&self.file) { Path::new("standard input") } else { &self.file }
    }
}

/// Why loading ended before the input did.
enum Stop {
    Signal(u8),
    Failed(Failure),
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Stop {
        Stop::Failed(failure)
    }
}

struct Loading<'a> {
    reader: Reader<BufReader<Interruptible<'a>>>,
    store: &'a Store,
    interrupt: &'a Interrupt,
    progress: Progress,
    arguments: &'a Load,
    /// Lines that were no items.
    bad: u64,
}

impl Loading<'_> {
    fn all(&mut self) -> Result<(), Stop> {
        let mut item = Item::default();
        loop {
            let read = self.reader.read(&mut item);
            if let Some(signal) = self.interrupt.signal() {
                return Err(Stop::Signal(signal));
            }
            match read {
                Ok(true) => self.put(&item)?,
                Ok(false) => return Ok(()),
                Err(ReadError::Malformed { line, what }) => self.malformed(line, &what)?,
                Err(ReadError::Input(error)) => return Err(Failure::at(self.arguments.name().display(), error).into()),
            }
        }
    }

    fn put(&mut self, item: &Item) -> Result<(), Failure> {
        match self.store.put(&item.key, &item.value) {
            Ok(()) => self.progress.set(self.progress.items() + 1, self.reader.done_bytes()),
            Err(error @ (hikv::Error::KeyTooLong { .. } | hikv::Error::ValueTooLong { .. })) => {
                self.malformed(self.reader.item_line(), &error.to_string())?;
            }
            Err(error) => return Err(Failure::at(self.arguments.dir.display(), error)),
        }
        Ok(())
    }

    fn malformed(&mut self, line: u64, what: &str) -> Result<(), Failure> {
        let message = format!("{}:{line}: {what}", self.arguments.name().display());
        if !self.arguments.skip_bad {
            return Err(Failure::Error(message));
        }
        complain(&message);
        self.bad += 1;
        Ok(())
    }
}

fn conclude(outcome: Result<(), Stop>, progress: Progress, bad: u64) -> Result<(), Failure> {
    if let Err(Stop::Signal(signal)) = outcome {
        return Err(Failure::Interrupted { signal, done: progress.end() });
    }
    progress.finish();
    if bad > 0 {
        complain(&format!("skipped {bad} items that could not be stored"));
    }
    match outcome {
        Err(Stop::Failed(failure)) => Err(failure),
        _ => Ok(()),
    }
}
