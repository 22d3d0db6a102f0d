//! `hikv cas`.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use clap::Args;

use crate::durable::Durable;
use crate::failure::Failure;
use crate::formats::Escaped;
use crate::kept::Kept;
use crate::opening;

/// Replace the value of a key if it is the expected one
///
/// Ends with 1, and changes nothing, if the key holds another value.
#[derive(Args)]
#[command(override_usage = "hikv cas [OPTIONS] <DIR> <KEY> <OLD> <NEW>
       hikv cas [OPTIONS] --absent <DIR> <KEY> <NEW>
       hikv cas [OPTIONS] --delete <DIR> <KEY> <OLD>")]
pub(crate) struct Cas {
    /// The store: a directory, or a DAX device
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// Any bytes, also none
    key: OsString,
    /// OLD, which the key has to hold, and NEW; with --absent NEW alone, with --delete OLD alone
    #[arg(value_name = "VALUE", num_args = 0..=2)]
    values: Vec<OsString>,
    /// In place of OLD: the key has to be absent
    #[arg(long, conflicts_with = "delete")]
    absent: bool,
    /// In place of NEW: delete the key
    #[arg(long)]
    delete: bool,
    #[command(flatten)]
    kept: Kept,
    #[command(flatten)]
    durable: Durable,
}

/// The expected value and the new one, where there are such.
type Swap<'a> = (Option<&'a [u8]>, Option<&'a [u8]>);

impl Cas {
    pub(super) fn run(self) -> Result<(), Failure> {
        let (expected, new) = self.expected_and_new()?;
        let store = opening::open(&self.kept.options(self.durable.options()).create(self.absent), &self.dir)?;
        let key = self.key.as_bytes();
        let is_swapped = store.compare_and_swap(key, expected, new).map_err(Failure::at_path(&self.dir))?;
        store.close().map_err(Failure::at_path(&self.dir))?;
        if is_swapped { Ok(()) } else { Err(Failure::Negative(self.refusal())) }
    }

    fn expected_and_new(&self) -> Result<Swap<'_>, Failure> {
        let values: Vec<&[u8]> = self.values.iter().map(|value| value.as_bytes()).collect();
        match (self.absent, self.delete, values.as_slice()) {
            (false, false, [old, new]) => Ok((Some(old), Some(new))),
            (true, _, [new]) => Ok((None, Some(new))),
            (_, true, [old]) => Ok((Some(old), None)),
            (true, ..) => Err(Failure::Error("cas --absent takes one value: NEW".into())),
            (_, true, _) => Err(Failure::Error("cas --delete takes one value: OLD".into())),
            _ => Err(Failure::Error("cas takes two values: OLD and NEW".into())),
        }
    }

    fn refusal(&self) -> String {
        let what = if self.absent { "is there already" } else { "does not hold the expected value" };
        format!("{}: the key '{}' {what}", self.dir.display(), Escaped(self.key.as_bytes()))
    }
}
