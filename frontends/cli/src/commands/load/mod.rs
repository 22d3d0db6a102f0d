//! `hikv load`.

mod dump;
mod rdb;
mod text;

use std::collections::HashMap;
use std::io::{BufReader, Cursor, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use hikv::dump::layout::MAGIC;
use hikv::{Store, Tree};

use crate::durable::Durable;
use crate::failure::{Failure, print_error, warn};
use crate::formats::{FileFormat, UNKNOWN_FORMAT};
use crate::in_tree::InTree;
use crate::input::{Input, Interruptible, is_stdin};
use crate::interrupt::Interrupt;
use crate::kept::Kept;
use crate::memory::Memory;
use crate::opening;
use crate::plural::s;
use crate::progress::Progress;

/// The size of a read: large enough to hide the cost of a system call, small enough for the processor's cache.
const READ_BYTES: usize = 256 << 10;

/// The warning for text without the last line of a dump.
const UNMARKED: &str = "this text does not end with the last line of a dump, so missing parts cannot be detected";

/// Store the items in a file
///
/// Creates the store if it does not exist. Each item survives a crash of the process before the next one is read. The
/// items counted in a progress line are as durable as the storage allows. Items stored before an error or a signal
/// remain.
#[derive(Args)]
pub(crate) struct Load {
    /// The store: a directory or a DAX device
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// One item per line, a binary dump, or a dump.rdb of Redis; - is standard input
    file: PathBuf,
    /// Format of FILE [default: by its first bytes or its extension; tsv for text from standard input]
    #[arg(long, value_enum)]
    format: Option<FileFormat>,
    /// Skip, report and count lines that are not items, and keys of a dump.rdb that cannot be stored
    #[arg(long)]
    skip_bad: bool,
    /// Seconds between progress lines if stderr is not a terminal
    #[arg(long, value_name = "SECONDS", default_value_t = 5)]
    progress_every: u64,
    #[command(flatten)]
    tree: InTree,
    #[command(flatten)]
    kept: Kept,
    #[command(flatten)]
    memory: Memory,
    #[command(flatten)]
    durable: Durable,
}

/// The input, from its first byte on.
type Source<'a> = BufReader<std::io::Chain<Cursor<Vec<u8>>, Interruptible<'a>>>;

impl Load {
    pub(super) fn run(self) -> Result<(), Failure> {
        let interrupt = Interrupt::install()?;
        let mut input = Input::open(&self.file).map_err(Failure::at_path(&self.file))?;
        let total_bytes = input.len_bytes().map_err(Failure::at_path(&self.file))?;
        let mut input = input.interruptible(&interrupt);
        let first_bytes = first_bytes(&mut input).map_err(|error| self.unread(&interrupt, &error))?;
        let format = self.format(&first_bytes)?;
        let source = BufReader::with_capacity(READ_BYTES, Cursor::new(first_bytes).chain(input));
        let options = self.memory.options(self.kept.options(self.durable.options()));
        let store = opening::open(&options.tuning(|tuning| tuning.sync_on_request(true)), &self.dir)?;
        let mut loading = Loading {
            store: &store,
            tree: self.tree.made(&store, &self.dir)?,
            named: HashMap::new(),
            interrupt: &interrupt,
            progress: Progress::new("loaded", total_bytes, Duration::from_secs(self.progress_every)),
            arguments: &self,
            bad: 0,
            is_unmarked: false,
        };
        let outcome = match format {
            FileFormat::Text(format) => loading.all_lines(source, format),
            FileFormat::Hikv => loading.all_of_dump(source),
            FileFormat::Rdb => loading.all_of_rdb(source),
        };
        let outcome = outcome.and(loading.sync().map_err(Stop::from));
        let Loading { progress, bad, is_unmarked, tree, named, .. } = loading;
        drop((tree, named));
        store.close().map_err(Failure::at_path(&self.dir))?;
        conclude(outcome, progress, bad)?;
        if is_unmarked {
            warn(&format!("{}: {UNMARKED}", self.name().display()));
        }
        Ok(())
    }

    fn format(&self, first_bytes: &[u8]) -> Result<FileFormat, Failure> {
        let by_magic = || match first_bytes.strip_prefix(::rdb::MAGIC) {
            Some(version) if version.iter().all(u8::is_ascii_digit) => Some(FileFormat::Rdb),
            _ => (first_bytes == MAGIC).then_some(FileFormat::Hikv),
        };
        let by_name = || FileFormat::of_file(&self.file);
        let by_default = || is_stdin(&self.file).then_some(FileFormat::TSV);
        let found = self.format.or_else(by_magic).or_else(by_default).or_else(by_name);
        found.ok_or_else(|| Failure::at(self.file.display(), UNKNOWN_FORMAT))
    }

    fn name(&self) -> &Path {
        if is_stdin(&self.file) { Path::new("standard input") } else { &self.file }
    }

    /// Returns the failure for an error or a signal before the first item was stored.
    fn unread(&self, interrupt: &Interrupt, error: &std::io::Error) -> Failure {
        match interrupt.signal() {
            Some(signal) => Failure::Interrupted { signal, done: Progress::silent("loaded").end() },
            None => Failure::at(self.name().display(), error),
        }
    }
}

/// Reads as many bytes as the magic of a dump has, or the entire input if it is shorter.
fn first_bytes(input: &mut impl Read) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(MAGIC.len());
    input.take(MAGIC.len() as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The reason why loading ended before the input did.
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
    store: &'a Store,
    /// The tree of the items that name none.
    tree: Tree,
    /// The trees that items have named.
    named: HashMap<String, Tree>,
    interrupt: &'a Interrupt,
    progress: Progress,
    arguments: &'a Load,
    /// Lines that were not items.
    bad: u64,
    /// The text does not end with the last line of a dump.
    is_unmarked: bool,
}

impl Loading<'_> {
    /// Counts a stored item; `done_bytes` of the input are now stored. Syncs before a progress line is shown.
    fn stored(&mut self, done_bytes: u64) -> Result<(), Failure> {
        if self.progress.is_due() {
            self.sync()?;
        }
        self.progress.set(self.progress.items() + 1, done_bytes);
        Ok(())
    }

    fn sync(&self) -> Result<(), Failure> {
        self.store.sync().map_err(Failure::at_path(&self.arguments.dir))
    }
}

fn conclude(outcome: Result<(), Stop>, progress: Progress, bad: u64) -> Result<(), Failure> {
    if let Err(Stop::Signal(signal)) = outcome {
        return Err(Failure::Interrupted { signal, done: progress.end() });
    }
    progress.finish();
    if bad > 0 {
        print_error(&format!("skipped {bad} item{} that could not be stored", s(bad)));
    }
    match outcome {
        Err(Stop::Failed(failure)) => Err(failure),
        _ => Ok(()),
    }
}
