//! `--durability`: what the commands that write ask of the medium.

use clap::{Args, ValueEnum};
use hikv::{Durability, Options};

/// What an acknowledged write survives.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Level {
    /// Loss of power
    Power,
    /// The death of the process; loss of power takes the last tenth of a second at most
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
}

impl Durable {
    /// The options of a store to be opened.
    pub(crate) fn options(&self) -> Options {
        let level = self.durability.map(|level| match level {
            Level::Power => Durability::Power,
            Level::Buffered => Durability::Buffered,
            Level::Process => Durability::Process,
        });
        level.map_or_else(Options::new, |level| Options::new().durability(level))
    }
}
