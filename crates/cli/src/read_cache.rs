//! `--read-cache`: copies of hot items in volatile memory; `--read-cache-threads`: the threads that write them.

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
    /// Have so many threads write the copies beside the items' writers, for the engine rewo-hash; by default the writers do. They sleep while
    /// nobody writes
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(..=16))]
    read_cache_threads: Option<u64>,
}

impl ReadCache {
    /// The options, with the memory and the threads that are asked for.
    pub(crate) fn options(&self, options: Options) -> Options {
        let thread_count = self.read_cache_threads.unwrap_or(0) as usize;
        options.read_cache_bytes(self.read_cache.unwrap_or(0)).read_cache_threads(thread_count)
    }

    /// Gives the options to a server's parameters.
    pub(crate) fn give(&self, parameters: &mut Parameters) -> Result<(), Failure> {
        let text = |number: Option<u64>| number.map(|number| number.to_string());
        given::text(parameters, "read-cache", text(self.read_cache).as_deref())?;
        given::text(parameters, "read-cache-threads", text(self.read_cache_threads).as_deref())
    }

    /// What a server's parameters ask for.
    pub(crate) fn of(parameters: &Parameters) -> ReadCache {
        let number = |name| parameters.value(name).and_then(|number| number.parse().ok());
        ReadCache { read_cache: number("read-cache"), read_cache_threads: number("read-cache-threads") }
    }
}
