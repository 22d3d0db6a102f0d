//! `--read-cache`: copies of hot items in volatile memory.

use clap::Args;
use hikv::Options;
use server::Parameters;

use crate::failure::Failure;
use crate::given;

/// The option, as commands take it that read much.
#[derive(Args)]
pub(crate) struct ReadCache {
    /// Keep copies of items that are read often in so much volatile memory, for a region whose memory is slower than the host's; by
    /// default none. Stores of the engines hikv and rewo-hash have them; others are not opened with it
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u64).range(..=1 << 37))]
    read_cache: Option<u64>,
}

impl ReadCache {
    /// The options, with the memory that is asked for.
    pub(crate) fn options(&self, options: Options) -> Options {
        options.read_cache_bytes(self.read_cache.unwrap_or(0))
    }

    /// Gives the option to a server's parameters.
    pub(crate) fn give(&self, parameters: &mut Parameters) -> Result<(), Failure> {
        given::text(parameters, "read-cache", self.read_cache.map(|bytes| bytes.to_string()).as_deref())
    }

    /// What a server's parameters ask for.
    pub(crate) fn of(parameters: &Parameters) -> ReadCache {
        ReadCache { read_cache: parameters.value("read-cache").and_then(|bytes| bytes.parse().ok()) }
    }
}
