//! `hikv dump`.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use hikv::dump::DumpWriter;
use hikv::{Damage, Error, Expiry, Store};

use super::listing::Listing;
use crate::failure::{Failure, warn};
use crate::formats::{FileFormat, UNKNOWN_FORMAT};
use crate::opening;
use crate::output;
use crate::plural::s;

/// Write all items as text or as a binary dump, in no particular order
///
/// Every checksum is compared, and that a search for the key would find the item.
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
    /// Leave out items that are damaged, rather than stop at the first: each is said, they are counted, and the exit code is 1
    #[arg(long)]
    skip_damaged: bool,
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
        let mut listing = match self.file.as_deref() {
            Some(file) => Listing::begin_file("dumped", (output::create(file, &self.dir)?, file), Some(total), every)?,
            None => Listing::begin("dumped", Some(total), every)?,
        };
        let damaged = match format {
            FileFormat::Text(format) => {
                let damaged =
                    self.show_all(&store, &mut listing, |out, key, value, _| format.write(key, value, out))?;
                listing.finish()?;
                damaged
            }
            FileFormat::Hikv => {
                let mut listing = listing.wrapped(|out| DumpWriter::new(out, store.uuid()))?;
                let damaged = self.show_all(&store, &mut listing, |dump, key, value, expiry| {
                    dump.put(key, value, (!expiry.is_never()).then(|| expiry.ms()))
                })?;
                // Only now: a dump of a part has no end.
                listing.finish_with(|dump| dump.finish().map(drop))?;
                damaged
            }
        };
        match damaged {
            0 => Ok(()),
            _ => {
                let what = format!("{}: {damaged} damaged item{} left out", self.dir.display(), s(damaged));
                Err(Failure::Negative(what))
            }
        }
    }

    /// Shows all items; how many were left out because they are damaged.
    fn show_all<S>(
        &self,
        store: &Store,
        listing: &mut Listing<S>,
        mut write: impl FnMut(&mut S, &[u8], &[u8], Expiry) -> io::Result<()>,
    ) -> Result<u64, Failure> {
        let mut damaged_count = 0;
        let each = |key: &[u8], value: &[u8], expiry| listing.show(|out| write(out, key, value, expiry));
        let damaged = |damage: Damage| {
            damaged_count += 1;
            warn(&format!("skipped at offset {:#x}: {}", damage.offset, damage.what));
        };
        let shown = store.frozen().and_then(|frozen| match self.skip_damaged {
            true => frozen.for_each_whole(each, damaged),
            false => frozen.for_each(each),
        });
        shown.map_err(|error| self.stopped_by(&error))?;
        Ok(damaged_count)
    }

    fn stopped_by(&self, error: &Error) -> Failure {
        let advice = match error {
            Error::Corrupt { .. } => "; --skip-damaged leaves such items out",
            _ => "",
        };
        Failure::at(self.dir.display(), format!("{error}{advice}"))
    }

    fn format(&self) -> Result<FileFormat, Failure> {
        match (self.format, &self.file) {
            (Some(format), _) => Ok(format),
            (None, Some(file)) => FileFormat::of_file(file).ok_or_else(|| Failure::at(file.display(), UNKNOWN_FORMAT)),
            (None, None) => Ok(FileFormat::TSV),
        }
    }
}
