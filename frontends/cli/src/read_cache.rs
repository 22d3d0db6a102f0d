//! `--read-cache`: copies of frequently read items in DRAM; `--read-cache-threads`: threads that write the copies.

use clap::Args;
use hikv::Options;
use server::Parameters;

use crate::failure::Failure;
use crate::given;

/// The options of `serve` and `bench`.
#[derive(Args)]
pub(crate) struct ReadCache {
    /// DRAM for copies of frequently read items, for regions in slower memory [default: none]; stores of engines other
    /// than hikv and rewo-hash do not open with it
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u64).range(..=1 << 37))]
    read_cache: Option<u64>,
    /// Threads that write the copies, for the engine rewo-hash [default: the writers of the items do]; they sleep while
    /// nothing is written
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(..=16))]
    read_cache_threads: Option<u64>,
}

impl ReadCache {
    /// Adds the requested memory and threads to the options.
    pub(crate) fn options(&self, options: Options) -> Options {
        let thread_count = self.read_cache_threads.unwrap_or(0) as usize;
        options.read_cache_bytes(self.read_cache.unwrap_or(0)).tuning(|tuning| tuning.read_cache_threads(thread_count))
    }

    /// Sets the options in a server's parameters.
    pub(crate) fn give(&self, parameters: &mut Parameters) -> Result<(), Failure> {
        let text = |number: Option<u64>| number.map(|number| number.to_string());
        given::text(parameters, "read-cache", text(self.read_cache).as_deref())?;
        given::text(parameters, "read-cache-threads", text(self.read_cache_threads).as_deref())
    }

    /// Reads the options from a server's parameters.
    pub(crate) fn of(parameters: &Parameters) -> ReadCache {
        let number = |name| parameters.value(name).and_then(|number| number.parse().ok());
        ReadCache { read_cache: number("read-cache"), read_cache_threads: number("read-cache-threads") }
    }
}
