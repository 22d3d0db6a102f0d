//! `hikv expire` and `hikv persist`.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use hikv::{Error, Expires, Options, Tree};

use super::missing::not_found;
use crate::durable::Durable;
use crate::failure::Failure;
use crate::in_tree::InTree;
use crate::memory::Memory;
use crate::{opening, ttl_seconds};

/// Set the expiry of a key
#[derive(Args)]
pub(crate) struct Expire {
    /// The store: a directory or a DAX device
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// The key: any bytes, may be empty
    key: OsString,
    /// Seconds from now, with up to three decimals; 0 removes the key
    #[arg(value_parser = ttl_seconds::of_text, allow_negative_numbers = true)]
    seconds: Duration,
    #[command(flatten)]
    tree: InTree,
    #[command(flatten)]
    durable: Durable,
    #[command(flatten)]
    memory: Memory,
}

/// Remove the expiry of a key
#[derive(Args)]
pub(crate) struct Persist {
    /// The store: a directory or a DAX device
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// The key: any bytes, may be empty
    key: OsString,
    #[command(flatten)]
    tree: InTree,
    #[command(flatten)]
    durable: Durable,
    #[command(flatten)]
    memory: Memory,
}

impl Expire {
    pub(super) fn run(self) -> Result<(), Failure> {
        let options = self.memory.options(self.durable.options());
        change(&self.dir, &options, &self.tree, self.key.as_bytes(), |tree, key| tree.expire(key, self.seconds))
    }
}

impl Persist {
    pub(super) fn run(self) -> Result<(), Failure> {
        let options = self.memory.options(self.durable.options());
        change(&self.dir, &options, &self.tree, self.key.as_bytes(), |tree, key| tree.expire(key, Expires::Never))
    }
}

fn change(
    dir: &Path,
    options: &Options,
    tree: &InTree,
    key: &[u8],
    change: impl FnOnce(&Tree, &[u8]) -> Result<bool, Error>,
) -> Result<(), Failure> {
    let store = opening::open(&options.clone().create(false), dir)?;
    let was_there = change(&tree.existing(&store, dir)?, key).map_err(Failure::at_path(dir))?;
    store.close().map_err(Failure::at_path(dir))?;
    if was_there { Ok(()) } else { Err(Failure::Negative(not_found(dir, key))) }
}
