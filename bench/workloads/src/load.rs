//! Loading: each thread puts its share of the records, many at a time.

use crate::pass::Until;
use crate::records::stamp;
use crate::subject::{Error, Subject};
use crate::worker::Worker;

/// Bytes per call: small compared with any cache, and few enough to check the clock between two calls.
const GROUP_BYTES: u64 = 256 << 10;

/// Puts the worker's share of the records; returns their number.
pub(crate) fn load<S: Subject>(subject: &S, worker: &Worker, until: Until<'_>) -> Result<u64, Error> {
    let records = worker.records;
    let (share, group) = (worker.share(records.count), (GROUP_BYTES / records.item_bytes()).max(1));
    let mut keys = vec![0; group as usize * records.key_bytes];
    let mut values = vec![b'v'; group as usize * records.value_bytes];
    let mut done = 0;
    while done < share && !until.is_stopped() {
        let count = group.min(share - done) as usize;
        let items = keys.chunks_exact_mut(records.key_bytes).zip(values.chunks_exact_mut(records.value_bytes));
        for (number, (key, value)) in (done..).zip(items.take(count)) {
            records.write_key(worker.nth(number), key);
            stamp(worker.nth(number), 0, value);
        }
        let items = keys.chunks_exact(records.key_bytes).zip(values.chunks_exact(records.value_bytes));
        subject.load(&items.take(count).collect::<Vec<_>>())?;
        done += count as u64;
    }
    Ok(done)
}
