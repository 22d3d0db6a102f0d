//! The commands, a file each.

mod bench;
mod check;
mod del;
mod dump;
mod get;
mod load;
mod put;
mod serve;
mod stats;

use std::path::Path;

use clap::Subcommand;
use hikv::{OpenError, Options, Store};

use crate::failure::Failure;
use crate::formats::Escaped;

/// What to do.
#[derive(Subcommand)]
pub(crate) enum Command {
    Put(put::Put),
    Get(get::Get),
    Del(del::Del),
    Load(load::Load),
    Dump(dump::Dump),
    Check(check::Check),
    Stats(stats::Stats),
    Bench(bench::Bench),
    Serve(serve::Serve),
}

impl Command {
    /// Does it.
    pub(crate) fn run(self) -> Result<(), Failure> {
        match self {
            Command::Put(put) => put.run(),
            Command::Get(get) => get.run(),
            Command::Del(del) => del.run(),
            Command::Load(load) => load.run(),
            Command::Dump(dump) => dump.run(),
            Command::Check(check) => check.run(),
            Command::Stats(stats) => stats.run(),
            Command::Bench(bench) => bench.run(),
            Command::Serve(serve) => serve.run(),
        }
    }
}

/// Opens a store that must be there: a mistyped path makes no store.
fn open_existing(path: &Path) -> Result<Store, OpenError> {
    Options::new().create(false).open(path)
}

fn not_found(store: &Path, key: &[u8]) -> String {
    format!("{}: there is no key '{}'", store.display(), Escaped(key))
}
