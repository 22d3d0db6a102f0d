//! The memory of a store that may be larger than memory: pages of the region get what everything else leaves.

use std::sync::Weak;

use engine::Engine;
use journal::{Acknowledger, OsFile};

use crate::Options;

/// Memory of the journal: copies of pages that a checkpoint writes, two frames of the log, and the states of pages.
const JOURNAL_BYTES: u64 = 8 << 20;

/// Pages have at least this share of the limit, whatever the engine's tables need.
const PAGES_SHARE: u64 = 4;

/// The log has at most this share of the limit: opening keeps its entries in memory until they are applied.
const LOG_SHARE: u64 = 4;

/// The least length of the log: two segments.
const LOG_BYTES_MIN: u64 = 8 << 20;

/// The limit of one store.
pub(crate) struct MemoryLimit {
    memory_bytes_max: u64,
    journal: Acknowledger<OsFile>,
    engine: Weak<dyn Engine>,
}

impl MemoryLimit {
    /// Returns the limit, if the options set one.
    pub(crate) fn of(
        options: &Options,
        journal: Option<&Acknowledger<OsFile>>,
        engine: Weak<dyn Engine>,
    ) -> Option<MemoryLimit> {
        let (memory_bytes_max, journal) = (options.memory_bytes_max?, journal?.clone());
        Some(MemoryLimit { memory_bytes_max, journal, engine })
    }

    /// Gives pages the memory that the engine's tables leave at this moment.
    pub(crate) fn distribute(&self) {
        if let Some(engine) = self.engine.upgrade() {
            self.journal.set_memory_bytes(page_bytes(self.memory_bytes_max, engine.dram_bytes()));
        }
    }
}

/// Returns the memory for pages next to `dram_bytes` of tables.
pub(crate) fn page_bytes(memory_bytes_max: u64, dram_bytes: u64) -> u64 {
    memory_bytes_max.saturating_sub(JOURNAL_BYTES + dram_bytes).max(memory_bytes_max / PAGES_SHARE)
}

/// Returns the largest length of the log, given the option for it.
pub(crate) fn log_bytes_max(options: &Options) -> u64 {
    let asked_bytes = options.tuning.log_bytes_max;
    options.memory_bytes_max.map_or(asked_bytes, |bytes| asked_bytes.min((bytes / LOG_SHARE).max(LOG_BYTES_MIN)))
}
