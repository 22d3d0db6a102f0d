//! `hikv scan`.

use std::ffi::OsString;
use std::io::{self, Write};
use std::ops::Bound;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use hikv::{Error, Item, Ordered, Range, Tree, prefix_range};

use super::listing::{Listing, Out};
use super::order::put_in_order;
use crate::failure::Failure;
use crate::formats::{Escaped, Format};
use crate::in_tree::InTree;
use crate::memory::Memory;
use crate::opening;
use crate::verified::Verified;

/// The largest limit for which items are found without a key order ([`hikv::Tree::first_items`]).
const FEW_MAX: usize = 1_000;

/// Print items in key order
///
/// Keys are ordered by their bytes. The engine hikv first builds the order in memory; with a --limit of at most 1,000,
/// one pass over the store finds the items instead.
#[derive(Args)]
pub(crate) struct Scan {
    /// The store: a directory or a DAX device
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// Only keys that begin with P
    #[arg(long, value_name = "P", conflicts_with_all = ["from", "to"])]
    prefix: Option<OsString>,
    /// Only keys from K on, including K
    #[arg(long, value_name = "K")]
    from: Option<OsString>,
    /// Only keys before K
    #[arg(long, value_name = "K")]
    to: Option<OsString>,
    /// Stop after N items
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Start with the greatest key
    #[arg(long)]
    reverse: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t = Form::Tsv)]
    format: Form,
    #[command(flatten)]
    tree: InTree,
    #[command(flatten)]
    verified: Verified,
    #[command(flatten)]
    memory: Memory,
    /// Seconds between progress lines if stderr is not a terminal
    #[arg(long, value_name = "SECONDS", default_value_t = 5)]
    progress_every: u64,
}

/// An output format: one of `dump`, or unescaped bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Form {
    /// Key, tab, value, with escapes
    Tsv,
    /// Two columns as in RFC 4180, without a header
    Csv,
    /// One object {"key":…,"value":…} per line
    Jsonl,
    /// Key, tab, value, line feed, without escapes
    Raw,
}

impl Scan {
    pub(super) fn run(self) -> Result<(), Failure> {
        self.check()?;
        let store = opening::verified(&self.dir, self.verified.level(), &self.memory)?;
        let every = Duration::from_secs(self.progress_every);
        let items = self.items(&self.tree.existing(&store, &self.dir)?, every).map_err(Failure::at_path(&self.dir))?;
        let mut listing = Listing::begin("scanned", None, every)?;
        for item in items {
            let (key, value) = item.map_err(Failure::at_path(&self.dir))?;
            if listing.show(|out| self.format.write(&key, &value, out)).is_break() {
                break;
            }
        }
        listing.finish()
    }

    fn check(&self) -> Result<(), Failure> {
        match (&self.from, &self.to) {
            (Some(from), Some(to)) if from > to => {
                let [from, to] = [from, to].map(|key| Escaped(key.as_bytes()));
                Err(Failure::Error(format!(
                    "--from '{from}' is greater than --to '{to}'; give the lesser key as --from, also with --reverse"
                )))
            }
            _ => Ok(()),
        }
    }

    fn items(&self, tree: &Tree, every: Duration) -> Result<Box<dyn Iterator<Item = Result<Item, Error>>>, Error> {
        if let Some(limit) = self.limit.filter(|&limit| limit <= FEW_MAX) {
            let few = if self.reverse { Tree::last_items } else { Tree::first_items };
            return Ok(Box::new(few(tree, self.ends(), limit)?.into_iter().map(Ok)));
        }
        let range = self.range(&put_in_order(tree, every)?)?;
        let limit = self.limit.unwrap_or(usize::MAX);
        Ok(if self.reverse { Box::new(range.rev().take(limit)) } else { Box::new(range.take(limit)) })
    }

    fn range(&self, ordered: &Ordered) -> Result<Range, Error> {
        ordered.range(self.ends())
    }

    fn ends(&self) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
        if let Some(prefix) = &self.prefix {
            return prefix_range(prefix.as_bytes());
        }
        let [from, to] = [&self.from, &self.to].map(|end| end.as_ref().map(|key| key.as_bytes().to_vec()));
        (from.map_or(Bound::Unbounded, Bound::Included), to.map_or(Bound::Unbounded, Bound::Excluded))
    }
}

impl Form {
    fn write(self, key: &[u8], value: &[u8], out: &mut Out) -> io::Result<()> {
        match self {
            Form::Tsv => Format::Tsv.write(key, value, out),
            Form::Csv => Format::Csv.write(key, value, out),
            Form::Jsonl => Format::Jsonl.write(key, value, out),
            Form::Raw => [key, b"\t", value, b"\n"].iter().try_for_each(|part| out.write_all(part)),
        }
    }
}
