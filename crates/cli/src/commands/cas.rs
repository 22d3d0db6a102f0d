//! `hikv cas`.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use clap::Args;

use crate::durable::Durable;
use crate::failure::Failure;
use crate::formats::Escaped;
use crate::opening;

/// Replace the value of a key if it is the expected one
///
/// Ends with 1, and changes nothing, if the key holds another value.
#[derive(Args)]
pub(crate) struct Cas {
    /// The store: a directory, or a DAX device
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// Any bytes, also none
    key: OsString,
    /// The value that the key has to hold
    #[arg(value_name = "OLD", required = true)]
    first: OsString,
    /// The new value
    #[arg(value_name = "NEW", required_unless_present_any = ["absent", "delete"], conflicts_with_all = ["absent", "delete"])]
    second: Option<OsString>,
    /// In place of OLD: the key has to be absent
    #[arg(long, conflicts_with = "delete")]
    absent: bool,
    /// In place of NEW: delete the key
    #[arg(long)]
    delete: bool,
    #[command(flatten)]
    durable: Durable,
}

impl Cas {
    pub(super) fn run(self) -> Result<(), Failure> {
        let store = opening::open(&self.durable.options().create(self.absent), &self.dir)?;
        let (first, second) = (self.first.as_bytes(), self.second.as_deref().map(OsStrExt::as_bytes));
        let (expected, new) = if self.absent { (None, Some(first)) } else { (Some(first), second) };
        let key = self.key.as_bytes();
        let is_swapped = store.compare_and_swap(key, expected, new).map_err(Failure::at_path(&self.dir))?;
        store.close().map_err(Failure::at_path(&self.dir))?;
        if is_swapped { Ok(()) } else { Err(Failure::Negative(self.refusal())) }
    }

    fn refusal(&self) -> String {
        let what = if self.absent { "is there already" } else { "does not hold the expected value" };
        format!("{}: the key '{}' {what}", self.dir.display(), Escaped(self.key.as_bytes()))
    }
}
