//! `hikv incr`.

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use clap::Args;

use crate::durable::Durable;
use crate::failure::Failure;
use crate::in_tree::InTree;
use crate::memory::Memory;
use crate::opening;

/// Add to the decimal number in a key, and print the sum
///
/// A key that does not exist counts as 0.
#[derive(Args)]
pub(crate) struct Incr {
    /// The store: a directory or a DAX device
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// The key: any bytes, may be empty
    key: OsString,
    /// The number to add: a signed 64-bit integer
    #[arg(default_value_t = 1, allow_negative_numbers = true)]
    by: i64,
    #[command(flatten)]
    tree: InTree,
    #[command(flatten)]
    durable: Durable,
    #[command(flatten)]
    memory: Memory,
}

impl Incr {
    pub(super) fn run(self) -> Result<(), Failure> {
        let store = opening::open(&self.memory.options(self.durable.options()).create(false), &self.dir)?;
        let sum = self
            .tree
            .existing(&store, &self.dir)?
            .increment(self.key.as_bytes(), self.by)
            .map_err(Failure::at_path(&self.dir))?;
        store.close().map_err(Failure::at_path(&self.dir))?;
        writeln!(io::stdout(), "{sum}").map_err(Failure::output("the sum"))
    }
}
