//! `--durability` and `--sync-interval`: the options of commands that write.

use std::time::Duration;

use clap::{Args, ValueEnum};
use hikv::{Durability, Options};
use server::Parameters;

use crate::failure::Failure;
use crate::given;

/// A failure that an acknowledged write survives.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Level {
    /// A power loss
    Power,
    /// A crash of the process; a power loss loses the writes of at most two sync intervals
    Buffered,
    /// A crash of the process
    Process,
}

/// The options.
#[derive(Args)]
pub(crate) struct Durable {
    /// Failure that a write survives [default: the strongest level that the storage supports]
    #[arg(long, value_enum, value_name = "LEVEL")]
    durability: Option<Level>,
    /// With --durability buffered: milliseconds from a write to the start of its sync, unless earlier syncs still run
    /// [default: 100]; writers wait if a sync takes longer than two intervals
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..=60_000))]
    sync_interval: Option<u64>,
}

impl Durable {
    /// Returns the options to open a store with.
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

    /// Sets the options in a server's parameters.
    pub(crate) fn give(&self, parameters: &mut Parameters) -> Result<(), Failure> {
        given::choice(parameters, "durability", self.durability)?;
        given::text(parameters, "sync-interval", self.sync_interval.map(|ms| ms.to_string()).as_deref())
    }

    /// Reads the options from a server's parameters.
    pub(crate) fn of(parameters: &Parameters) -> Durable {
        let level = |name: &str| Level::from_str(name, false).ok();
        Durable {
            durability: parameters.value("durability").and_then(level),
            sync_interval: parameters.value("sync-interval").and_then(|ms| ms.parse().ok()),
        }
    }
}
