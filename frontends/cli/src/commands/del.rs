//! `hikv del`.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use clap::Args;

use super::missing::not_found;
use crate::durable::Durable;
use crate::failure::{Failure, print_error};
use crate::in_tree::InTree;
use crate::memory::Memory;
use crate::opening;

/// Remove keys and their values
#[derive(Args)]
pub(crate) struct Del {
    /// The store: a directory or a DAX device
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// The keys: any bytes, may be empty
    #[arg(required = true, value_name = "KEY")]
    keys: Vec<OsString>,
    #[command(flatten)]
    tree: InTree,
    #[command(flatten)]
    durable: Durable,
    #[command(flatten)]
    memory: Memory,
}

impl Del {
    pub(super) fn run(self) -> Result<(), Failure> {
        let store = opening::open(&self.memory.options(self.durable.options()).create(false), &self.dir)?;
        let tree = self.tree.existing(&store, &self.dir)?;
        let mut missing = Vec::new();
        for key in self.keys.iter().map(|key| key.as_bytes()) {
            if !tree.delete(key).map_err(Failure::at_path(&self.dir))? {
                missing.push(not_found(&self.dir, key));
            }
        }
        drop(tree);
        store.close().map_err(Failure::at_path(&self.dir))?;
        let Some(last) = missing.pop() else { return Ok(()) };
        missing.iter().for_each(|message| print_error(message));
        Err(Failure::Negative(last))
    }
}
