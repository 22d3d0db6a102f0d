//! `--memory`: a limit, so that a store may be larger than memory.

use clap::Args;
use hikv::Options;
use server::Parameters;

use crate::failure::Failure;
use crate::given;

/// The option of every command that opens a store, except `repair`.
#[derive(Args)]
pub(crate) struct Memory {
    /// Limit of the store's memory, for a store on an ordinary disk that is larger than memory [default: the whole
    /// store is kept in memory]; at least 67108864
    #[arg(long, value_name = "BYTES")]
    memory: Option<u64>,
}

impl Memory {
    /// Adds the limit to the options.
    pub(crate) fn options(&self, options: Options) -> Options {
        match self.memory {
            Some(bytes) => options.memory_bytes_max(bytes),
            None => options,
        }
    }

    /// Sets the option in a server's parameters.
    pub(crate) fn give(&self, parameters: &mut Parameters) -> Result<(), Failure> {
        given::text(parameters, "memory", self.memory.map(|bytes| bytes.to_string()).as_deref())
    }

    /// Reads the option from a server's parameters; 0 is no limit.
    pub(crate) fn of(parameters: &Parameters) -> Memory {
        let bytes = parameters.value("memory").and_then(|number| number.parse().ok());
        Memory { memory: bytes.filter(|&bytes| bytes > 0) }
    }
}
