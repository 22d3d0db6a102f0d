//! `hikv dump`.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use hikv::dump::DumpWriter;
use hikv::{Expiry, Store};

use super::listing::Listing;
use crate::failure::Failure;
use crate::formats::{FileFormat, UNKNOWN_FORMAT};
use crate::opening;

/// Write all items as text or as a binary dump, in no particular order
#[derive(Args)]
pub(crate) struct Dump {
    /// The store: a directory, or a DAX device
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// Standard output if none is given
    file: Option<PathBuf>,
    /// By default what the extension of FILE says; TSV to standard output
    #[arg(long, value_enum)]
    format: Option<FileFormat>,
    /// Seconds between two lines of progress, where stderr is no terminal
    #[arg(long, value_name = "SECONDS", default_value_t = 5)]
    progress_every: u64,
}

impl Dump {
    pub(super) fn run(self) -> Result<(), Failure> {
        let format = self.format()?;
        let store = opening::read_only(&self.dir)?;
        let total = store.len().map_err(Failure::at_path(&self.dir))?;
        let every = Duration::from_secs(self.progress_every);
        let mut listing = Listing::begin("dumped", self.file.as_deref(), Some(total), every)?;
        match format {
            FileFormat::Text(format) => {
                self.show_all(&store, &mut listing, |out, key, value, _| format.write(key, value, out))?;
                listing.finish()
            }
            FileFormat::Hikv => {
                let mut listing = listing.wrapped(|out| DumpWriter::new(out, store.uuid()))?;
                self.show_all(&store, &mut listing, |dump, key, value, expiry| {
                    dump.put(key, value, (!expiry.is_never()).then(|| expiry.ms()))
                })?;
                // Only now: a dump of a part has no end.
                listing.finish_with(|dump| dump.finish().map(drop))
            }
        }
    }

    fn show_all<S>(
        &self,
        store: &Store,
        listing: &mut Listing<S>,
        mut write: impl FnMut(&mut S, &[u8], &[u8], Expiry) -> io::Result<()>,
    ) -> Result<(), Failure> {
        let each = |key: &[u8], value: &[u8], expiry| listing.show(|out| write(out, key, value, expiry));
        let shown = store.snapshot().and_then(|snapshot| snapshot.for_each_with_expiry(each));
        shown.map_err(Failure::at_path(&self.dir))
    }

    fn format(&self) -> Result<FileFormat, Failure> {
        match (self.format, &self.file) {
            (Some(format), _) => Ok(format),
            (None, Some(file)) => FileFormat::of_file(file).ok_or_else(|| Failure::at(file.display(), UNKNOWN_FORMAT)),
            (None, None) => Ok(FileFormat::TSV),
        }
    }
}
