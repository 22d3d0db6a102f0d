//! `hikv dump`.

mod rdb;

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use hikv::dump::DumpWriter;
use hikv::{Damage, Error, Expiry, Options, ReadView};

use super::listing::Listing;
use crate::failure::{Failure, warn, with_sources};
use crate::formats::{FileFormat, UNKNOWN_FORMAT};
use crate::in_tree::InTree;
use crate::memory::Memory;
use crate::opening;
use crate::output::Output;
use crate::skipped::Skipped;

/// Write all items as text, as a binary dump or as a dump.rdb of Redis, in no particular order
///
/// Verifies every checksum, and that a lookup of each key finds its item. FILE is replaced only once the dump is
/// complete: after an error or a signal the previous file is unchanged. Text begins and ends with a line by which
/// `load` detects missing parts.
#[derive(Args)]
pub(crate) struct Dump {
    /// The store: a directory or a DAX device
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// The file to write [default: standard output]
    file: Option<PathBuf>,
    #[command(flatten)]
    tree: InTree,
    /// Format of the dump [default: by the extension of FILE; tsv for standard output]
    #[arg(long, value_enum)]
    format: Option<FileFormat>,
    /// Skip, report and count damaged items instead of stopping at the first; the exit code is then 1
    #[arg(long)]
    skip_damaged: bool,
    /// Write text without the first and the last line of a dump, for other programs
    #[arg(long)]
    bare: bool,
    /// Seconds between progress lines if stderr is not a terminal
    #[arg(long, value_name = "SECONDS", default_value_t = 5)]
    progress_every: u64,
    #[command(flatten)]
    memory: Memory,
}

impl Dump {
    pub(super) fn run(self) -> Result<(), Failure> {
        let format = self.format()?;
        self.refuse_with(format)?;
        let options = Options::new().read_only(true).tuning(|tuning| tuning.skip_damaged(self.skip_damaged));
        let store = opening::open(&self.memory.options(options), &self.dir)?;
        // Some engines count items by a walk, which fails at damage. The dump then reports the damage.
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
            FileFormat::Rdb => {
                self.write_rdb(&store, listing)?;
                Skipped::default()
            }
            FileFormat::Text(format) => {
                if !self.bare {
                    listing.write(|out| format.begin(out));
                }
                let view = self.tree.view(&store, &self.dir)?;
                let tree_count = store.trees().map_err(|error| self.stopped_by(&error))?.len();
                if tree_count > 0 && !self.tree.is_named() {
                    let advice = "--tree NAME dumps one, and --format hikv all";
                    warn(&format!("{}: {tree_count} named trees are not in this dump; {advice}", self.dir.display()));
                }
                let skipped = self.show_all(&view, &mut listing, |out, key, value, _| format.write(key, value, out))?;
                let items = listing.items();
                // Last: an incomplete dump must have no last line.
                listing.finish_with(|mut out| match self.bare {
                    true => Ok(out),
                    false => format.end(items, &mut out).map(|()| out),
                })?;
                skipped
            }
            FileFormat::Hikv => {
                let view = store.read_view().map_err(|error| self.stopped_by(&error))?.stored();
                let begin = if hikv::FrontEnd::of(&store).has_trees() { DumpWriter::of_trees } else { DumpWriter::new };
                let mut listing = listing.wrapped(|out| begin(out, store.uuid()))?;
                let skipped = self.show_all(&view, &mut listing, |dump, key, value, expiry| {
                    dump.put(key, value, (!expiry.is_never()).then(|| expiry.ms()))
                })?;
                // Last: an incomplete dump must have no last line.
                listing.finish_with(DumpWriter::finish)?;
                skipped
            }
        };
        skipped.verdict(&self.dir)
    }

    /// Writes all items; returns the damaged items that were skipped.
    fn show_all<S>(
        &self,
        view: &ReadView,
        listing: &mut Listing<S>,
        mut write: impl FnMut(&mut S, &[u8], &[u8], Expiry) -> io::Result<()>,
    ) -> Result<Skipped, Failure> {
        let mut skipped = Skipped::default();
        let each = |key: &[u8], value: &[u8], expiry| listing.show(|out| write(out, key, value, expiry));
        let damaged = |damage: Damage| skipped.skip(&damage);
        let shown = match self.skip_damaged {
            true => view.for_each_skipping_damage(each, damaged),
            false => view.for_each(each),
        };
        shown.map_err(|error| self.stopped_by(&error))?;
        Ok(skipped)
    }

    /// Refuses options that the format does not have.
    fn refuse_with(&self, format: FileFormat) -> Result<(), Failure> {
        let what = match format {
            FileFormat::Hikv if self.tree.is_named() => {
                "a dump of format hikv has all trees; give --format tsv, csv or jsonl with --tree"
            }
            FileFormat::Rdb if self.tree.is_named() => {
                "a dump of format rdb has the databases of hikv serve; give --format tsv, csv or jsonl with --tree"
            }
            FileFormat::Rdb if self.skip_damaged => {
                "a dump of format rdb skips nothing; repair the store first, or give another format with --skip-damaged"
            }
            _ => return Ok(()),
        };
        Err(Failure::Error(what.into()))
    }

    fn stopped_by(&self, error: &Error) -> Failure {
        let advice = match error {
            Error::Corrupt { .. } => "; --skip-damaged skips damaged items",
            _ => "",
        };
        Failure::at(self.dir.display(), format!("{}{advice}", with_sources(error)))
    }

    fn format(&self) -> Result<FileFormat, Failure> {
        match (self.format, &self.file) {
            (Some(format), _) => Ok(format),
            (None, Some(file)) => FileFormat::of_file(file).ok_or_else(|| Failure::at(file.display(), UNKNOWN_FORMAT)),
            (None, None) => Ok(FileFormat::TSV),
        }
    }
}
