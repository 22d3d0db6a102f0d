//! `--durability`: what the commands that write ask of the medium.

use std::time::Duration;

use clap::{Args, ValueEnum};
use hikv::{Durability, Options};

/// What an acknowledged write survives.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Level {
    /// Loss of power
    Power,
    /// The death of the process; loss of power takes the last writes of one sync interval at most
    Buffered,
    /// The death of the process
    Process,
}

/// The option, as commands take it.
#[derive(Args)]
pub(crate) struct Durable {
    /// What a write survives; by default the most that the medium gives
    #[arg(long, value_enum, value_name = "LEVEL")]
    durability: Option<Level>,
    /// With durability 'buffered' on a journal: the longest that a write stays where loss of power takes it, in milliseconds
    #[arg(long, value_name = "MS", default_value = "100", value_parser = clap::value_parser!(u64).range(1..=60_000))]
    sync_interval: u64,
}

impl Durable {
    /// The options of a store to be opened.
    pub(crate) fn options(&self) -> Options {
        let level = self.durability.map(|level| match level {
            Level::Power => Durability::Power,
            Level::Buffered => Durability::Buffered,
            Level::Process => Durability::Process,
        });
        let options = Options::new().sync_interval(Duration::from_millis(self.sync_interval));
        level.map_or(options.clone(), |level| options.durability(level))
    }
}
