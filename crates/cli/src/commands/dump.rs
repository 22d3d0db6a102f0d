//! `hikv dump`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use hikv::Store;

use super::listing::Listing;
use crate::failure::Failure;
use crate::formats::{Format, UNKNOWN_FORMAT};

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
        let total = store.len().map_err(Failure::at_path(&self.dir))?;
        let every = Duration::from_secs(self.progress_every);
        let mut listing = Listing::begin("dumped", self.file.as_deref(), Some(total), every)?;
        let each = |key: &[u8], value: &[u8]| listing.show(|out| format.write(key, value, out));
        store.for_each(each).map_err(Failure::at_path(&self.dir))?;
        listing.finish()
    }

    fn format(&self) -> Result<Format, Failure> {
        match (self.format, &self.file) {
            (Some(format), _) => Ok(format),
            (None, Some(file)) => Format::of_file(file).ok_or_else(|| Failure::at(file.display(), UNKNOWN_FORMAT)),
            (None, None) => Ok(Format::Tsv),
        }
    }
}
