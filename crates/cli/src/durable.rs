//! `--durability`: what the commands that write ask of the medium.

use std::time::Duration;

use clap::{Args, ValueEnum};
use hikv::{Durability, Options};
use server::Parameters;

use crate::failure::Failure;
use crate::given;

/// What an acknowledged write survives.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Level {
    /// Loss of power
    Power,
    /// The death of the process; loss of power takes the last writes: those of two sync intervals at most
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
    /// With durability 'buffered' on a journal: how long after a write a sync begins, at most, unless others are still running, in
    /// milliseconds; after two of these writers wait for it; by default 100
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..=60_000))]
    sync_interval: Option<u64>,
}

impl Durable {
    /// The options of a store to be opened.
    pub(crate) fn options(&self) -> Options {
        let level = self.durability.map(|level| match level {
            Level::Power => Durability::Power,
            Level::Buffered => Durability::Buffered,
            Level::Process => Durability::Process,
        });
        let options = Options::new();
        let options =
            self.sync_interval.map(Duration::from_millis).map_or(options.clone(), |ms| options.sync_interval(ms));
        level.map_or(options.clone(), |level| options.durability(level))
    }

    /// Gives the options to a server's parameters.
    pub(crate) fn give(&self, parameters: &mut Parameters) -> Result<(), Failure> {
        given::choice(parameters, "durability", self.durability)?;
        given::text(parameters, "sync-interval", self.sync_interval.map(|ms| ms.to_string()).as_deref())
    }

    /// What a server's parameters ask for.
    pub(crate) fn of(parameters: &Parameters) -> Durable {
        let level = |name: &str| Level::from_str(name, false).ok();
        Durable {
            durability: parameters.value("durability").and_then(level),
            sync_interval: parameters.value("sync-interval").and_then(|ms| ms.parse().ok()),
        }
    }
}
