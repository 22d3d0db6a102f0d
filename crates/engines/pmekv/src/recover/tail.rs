//! Decides which entries are valid: see the head of `recover`.

use std::collections::HashMap;

use heap::{Heap, HeapError};
use pmem::{Dram, Medium, Span};

use super::logs::FoundLog;
use super::threads::{each_part, thread_count};
use crate::entry::{Entry, Kind};
use crate::record::Records;
use crate::{broken, canary};

/// Decides for every entry.
pub(super) fn decide<M: Medium, D: Dram>(medium: &M, heap: &Heap<D>, logs: &mut [FoundLog]) -> Result<(), HeapError> {
    let ends = ends(logs)?;
    let threads = thread_count(logs.iter().map(|log| log.entries.len()).sum());
    let decided = each_part(threads, logs.len(), |lane| decide_log(medium, heap, &logs[lane], &ends));
    for (log, decided) in logs.iter_mut().zip(decided) {
        (log.counts, log.records) = decided;
    }
    Ok(())
}

/// Returns which of a log's entries are valid, and the records of those in its tail.
fn decide_log<M: Medium, D: Dram>(
    medium: &M,
    heap: &Heap<D>,
    log: &FoundLog,
    ends: &HashMap<u64, u64>,
) -> (Vec<bool>, Vec<Span>) {
    let (mut counted, mut records, mut is_ended) = (Vec::with_capacity(log.entries.len()), Vec::new(), false);
    for number in 0..log.entries.len() {
        let is_tail = log.sequence(number) > log.mark;
        let counts = match log.entries[number] {
            None => false,
            Some(entry) => match entry.kind {
                Kind::Void => false,
                Kind::Delete | Kind::Put | Kind::BatchEnd if entry.batch != 0 => {
                    ends.contains_key(&entry.batch) || medium.breaks(canary::BATCH_WITHOUT_LINE)
                }
                Kind::Put if medium.breaks(canary::ENDED_BY_BAD_RECORD) => {
                    broken::end_at_bad_record(record(medium, heap, &entry), &mut is_ended)
                }
                Kind::Put if is_tail && !medium.breaks(canary::RECORD_BELIEVED) => {
                    let found = record(medium, heap, &entry);
                    records.extend(found);
                    found.is_some()
                }
                Kind::Put | Kind::Delete | Kind::BatchEnd => true,
            },
        };
        counted.push(counts && !is_ended);
    }
    (counted, records)
}

/// Returns the batches that have their end. All of their entries are present: they were durable before the end was
/// written.
fn ends(logs: &[FoundLog]) -> Result<HashMap<u64, u64>, HeapError> {
    let ends = logs.iter().flat_map(|log| &log.ends);
    let ends: HashMap<u64, u64> = ends.map(|end| (end.batch, end.hash)).collect();
    if ends.is_empty() {
        return Ok(ends);
    }
    let mut found: HashMap<u64, u64> = ends.keys().map(|&batch| (batch, 0)).collect();
    let entries = logs.iter().flat_map(|log| log.entries.iter().flatten());
    for entry in entries.filter(|entry| entry.kind != Kind::BatchEnd) {
        found.get_mut(&entry.batch).into_iter().for_each(|count| *count += 1);
    }
    if found == ends {
        return Ok(ends);
    }
    Err(HeapError::Damaged { offset: 0, what: "the log lacks entries of a batch" })
}

/// Returns the span of the entry's record, if the record is intact.
fn record<M: Medium, D: Dram>(medium: &M, heap: &Heap<D>, entry: &Entry) -> Option<Span> {
    heap.table().check_place(entry.new.place()?).ok()?;
    let item = Records(medium).read(entry.new).ok()?;
    let fits = item.header.checksum == entry.checksum && item.is_intact();
    fits.then(|| entry.new.offset().span(item.header.item_bytes()))
}
