//! `hikv cas`.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use clap::Args;

use crate::durable::Durable;
use crate::failure::Failure;
use crate::formats::Escaped;
use crate::in_tree::InTree;
use crate::kept::Kept;
use crate::memory::Memory;
use crate::opening;

/// Replace the value of a key if it is the expected one
///
/// If the key has another value, nothing changes and the exit code is 1.
#[derive(Args)]
#[command(override_usage = "hikv cas [OPTIONS] <DIR> <KEY> <OLD> <NEW>
       hikv cas [OPTIONS] --absent <DIR> <KEY> <NEW>
       hikv cas [OPTIONS] --delete <DIR> <KEY> <OLD>")]
pub(crate) struct Cas {
    /// The store: a directory or a DAX device
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// The key: any bytes, may be empty
    key: OsString,
    /// The expected value OLD and the new value NEW; with --absent only NEW, with --delete only OLD
    #[arg(value_name = "VALUE", num_args = 0..=2)]
    values: Vec<OsString>,
    /// Store NEW only if the key does not exist
    #[arg(long, conflicts_with = "delete")]
    absent: bool,
    /// Remove the key if its value is OLD
    #[arg(long)]
    delete: bool,
    #[command(flatten)]
    tree: InTree,
    #[command(flatten)]
    kept: Kept,
    #[command(flatten)]
    durable: Durable,
    #[command(flatten)]
    memory: Memory,
}

/// The expected and the new value; `None` means that the key is absent.
type Swap<'a> = (Option<&'a [u8]>, Option<&'a [u8]>);

impl Cas {
    pub(super) fn run(self) -> Result<(), Failure> {
        let (expected, new) = self.expected_and_new()?;
        let store = opening::open(
            &self.kept.options(self.memory.options(self.durable.options())).create(self.absent),
            &self.dir,
        )?;
        let key = self.key.as_bytes();
        let tree = if self.absent { self.tree.made(&store, &self.dir) } else { self.tree.existing(&store, &self.dir) }?;
        let is_swapped = tree.compare_and_swap(key, expected, new).map_err(Failure::at_path(&self.dir))?;
        drop(tree);
        store.close().map_err(Failure::at_path(&self.dir))?;
        if is_swapped { Ok(()) } else { Err(Failure::Negative(self.refusal())) }
    }

    fn expected_and_new(&self) -> Result<Swap<'_>, Failure> {
        let values: Vec<&[u8]> = self.values.iter().map(|value| value.as_bytes()).collect();
        match (self.absent, self.delete, values.as_slice()) {
            (false, false, [old, new]) => Ok((Some(old), Some(new))),
            (true, _, [new]) => Ok((None, Some(new))),
            (_, true, [old]) => Ok((Some(old), None)),
            (true, ..) => Err(Failure::Error("cas --absent needs one value: NEW".into())),
            (_, true, _) => Err(Failure::Error("cas --delete needs one value: OLD".into())),
            _ => Err(Failure::Error("cas needs two values: OLD and NEW".into())),
        }
    }

    fn refusal(&self) -> String {
        let what = if self.absent { "exists already" } else { "does not have the expected value" };
        format!("{}: the key '{}' {what}", self.dir.display(), Escaped(self.key.as_bytes()))
    }
}
