//! `hikv dump`.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use hikv::dump::DumpWriter;
use hikv::{Damage, Error, Expiry, Options, Store};

use super::listing::Listing;
use crate::failure::Failure;
use crate::formats::{FileFormat, UNKNOWN_FORMAT};
use crate::opening;
use crate::output::Output;
use crate::skipped::Skipped;

/// Write all items as text or as a binary dump, in no particular order
///
/// Every checksum is compared, and that a search for the key would find the item. FILE has its name once it is whole: an error or
/// a signal leaves the file that was there. Text begins and ends with a line by which `load` notices a missing part.
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
    /// Write the items alone, for other programs: text without the first and the last line of a dump
    #[arg(long)]
    bare: bool,
    /// Seconds between two lines of progress, where stderr is no terminal
    #[arg(long, value_name = "SECONDS", default_value_t = 5)]
    progress_every: u64,
}

impl Dump {
    pub(super) fn run(self) -> Result<(), Failure> {
        let format = self.format()?;
        let options = Options::new().read_only(true).skip_damaged(self.skip_damaged);
        let store = opening::open(&options, &self.dir)?;
        // Some engines count by a walk over what may be damaged, and the dump says where.
        let total = match store.len() {
            Err(Error::Corrupt { .. }) => None,
            counted => Some(counted.map_err(Failure::at_path(&self.dir))?),
        };
        let every = Duration::from_secs(self.progress_every);
        let mut listing = match self.file.as_deref() {
            Some(file) => Listing::begin_file("dumped", (Output::create(file, &self.dir)?, file), total, every)?,
            None => Listing::begin("dumped", total, every)?,
        };
        let skipped = match format {
            FileFormat::Text(format) => {
                if !self.bare {
                    listing.write(|out| format.begin(out));
                }
                let skipped =
                    self.show_all(&store, &mut listing, |out, key, value, _| format.write(key, value, out))?;
                let items = listing.items();
                // Only now: a dump of a part has no end.
                listing.finish_with(|mut out| match self.bare {
                    true => Ok(out),
                    false => format.end(items, &mut out).map(|()| out),
                })?;
                skipped
            }
            FileFormat::Hikv => {
                let mut listing = listing.wrapped(|out| DumpWriter::new(out, store.uuid()))?;
                let skipped = self.show_all(&store, &mut listing, |dump, key, value, expiry| {
                    dump.put(key, value, (!expiry.is_never()).then(|| expiry.ms()))
                })?;
                // Only now: a dump of a part has no end.
                listing.finish_with(DumpWriter::finish)?;
                skipped
            }
        };
        skipped.verdict(&self.dir)
    }

    /// Shows all items; what was left out because it is damaged.
    fn show_all<S>(
        &self,
        store: &Store,
        listing: &mut Listing<S>,
        mut write: impl FnMut(&mut S, &[u8], &[u8], Expiry) -> io::Result<()>,
    ) -> Result<Skipped, Failure> {
        let mut skipped = Skipped::default();
        let each = |key: &[u8], value: &[u8], expiry| listing.show(|out| write(out, key, value, expiry));
        let damaged = |damage: Damage| skipped.skip(&damage);
        let shown = store.read_view().and_then(|view| match self.skip_damaged {
            true => view.for_each_skipping_damage(each, damaged),
            false => view.for_each(each),
        });
        shown.map_err(|error| self.stopped_by(&error))?;
        Ok(skipped)
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
