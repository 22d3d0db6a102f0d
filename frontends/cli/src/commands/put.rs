//! `hikv put`.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use hikv::{Limits, PutOptions, Tree};

use crate::durable::Durable;
use crate::failure::Failure;
use crate::in_tree::InTree;
use crate::input::{Input, Interruptible};
use crate::interrupt::Interrupt;
use crate::kept::Kept;
use crate::memory::Memory;
use crate::{opening, ttl_seconds};

/// Store a value under a key, replacing an earlier one
///
/// Creates the store if it does not exist.
#[derive(Args)]
pub(crate) struct Put {
    /// The store: a directory or a DAX device
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// The key: any bytes, may be empty
    key: OsString,
    /// The value: any bytes, may be empty; - reads it from standard input
    #[arg(required_unless_present = "value_file")]
    value: Option<OsString>,
    /// Read the value from FILE; - is standard input
    #[arg(long, value_name = "FILE", conflicts_with = "value")]
    value_file: Option<PathBuf>,
    /// Time until the key expires [default: never]
    #[arg(long, value_name = "SECONDS", value_parser = ttl_seconds::of_text, allow_negative_numbers = true)]
    ttl: Option<Duration>,
    #[command(flatten)]
    tree: InTree,
    #[command(flatten)]
    kept: Kept,
    #[command(flatten)]
    durable: Durable,
    #[command(flatten)]
    memory: Memory,
}

impl Put {
    pub(super) fn run(self) -> Result<(), Failure> {
        let interrupt = Interrupt::install()?;
        let source = match (&self.value, &self.value_file) {
            (Some(value), _) if value != "-" => Ok(Source::Given(value.as_bytes())),
            (_, Some(file)) => Source::open(file, &interrupt),
            (_, None) => Source::open(Path::new("-"), &interrupt),
        };
        let source = interrupt.check(|| "nothing was stored".to_owned()).and(source)?;
        let store = opening::open(&self.kept.options(self.memory.options(self.durable.options())), &self.dir)?;
        source
            .put(&self.tree.made(&store, &self.dir)?, self.key.as_bytes(), self.ttl)
            .map_err(Failure::at_path(&self.dir))?;
        store.close().map_err(Failure::at_path(&self.dir))
    }
}

/// The source of the value.
enum Source<'a> {
    Given(&'a [u8]),
    File { file: Input, len_bytes: u64 },
    Spooled { file: File, len_bytes: u64 },
}

impl<'a> Source<'a> {
    /// Opens the source. The length must be known before the value is stored, so an input of unknown length is first
    /// copied to an unnamed temporary file.
    fn open(path: &Path, interrupt: &Interrupt) -> Result<Source<'a>, Failure> {
        let open = || {
            let mut file = Input::open(path)?;
            match file.len_bytes()? {
                Some(len_bytes) => Ok(Source::File { file, len_bytes }),
                None => spool(file.interruptible(interrupt)),
            }
        };
        open().map_err(Failure::at_path(path))
    }

    fn put(self, tree: &Tree, key: &[u8], ttl: Option<Duration>) -> Result<(), hikv::Error> {
        let options = ttl.map_or(PutOptions::new(), |ttl| PutOptions::new().ttl(ttl));
        match self {
            Source::Given(value) => tree.put_with(key, value, options),
            Source::File { file, len_bytes } => tree.put_from_with(key, len_bytes, file, options),
            Source::Spooled { file, len_bytes } => tree.put_from_with(key, len_bytes, file, options),
        }
    }
}

/// Copies the input to a temporary file, at most one byte more than a value may have: enough for the store to refuse
/// it.
fn spool<'a>(input: Interruptible<'_>) -> io::Result<Source<'a>> {
    let mut file = tempfile::tempfile()?;
    let len_bytes = io::copy(&mut input.take(Limits::VALUE_BYTES_MAX + 1), &mut file)?;
    file.rewind()?;
    Ok(Source::Spooled { file, len_bytes })
}
