//! The content of a region, copied while it stays in memory, and waits for its durability.

use journal::Journaled;
use pmem::{Acknowledge, Bytes, Durability, Level, MediumError, Offset, Persist, Residency, Span};
use pmem_sim::SimFile;

/// Returns all bytes.
pub(crate) fn whole(journal: &Journaled<SimFile>) -> Result<Vec<u8>, MediumError> {
    // SAFETY: only one thread uses the region, and it stores nothing while it reads.
    journal.held(|| unsafe { journal.bytes(Offset(0).span(journal.len_bytes())) }.map(<[u8]>::to_vec))
}

/// Returns zeros if the bytes cannot be read: then none of them will become durable.
pub(crate) fn bytes_of(journal: &Journaled<SimFile>, span: Span) -> Vec<u8> {
    // SAFETY: as above.
    let copied = journal.held(|| unsafe { journal.bytes(span) }.map(<[u8]>::to_vec));
    copied.unwrap_or_else(|_| vec![0; span.len_bytes as usize])
}

/// Waits at `level` for everything appended so far.
pub(crate) fn wait_at(journal: &Journaled<SimFile>, level: Durability) -> Result<(), MediumError> {
    let commit = || journal.acknowledge(journal.commit(Level::Strongest)).map(|_| ());
    let (committed, durable) = journal.acknowledger().at(level, commit);
    committed.and(durable)
}
