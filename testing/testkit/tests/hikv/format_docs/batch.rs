//! Compares `docs/format/batch.md` with a store in the middle of a batch.

use std::sync::Arc;

use engine::BatchOp;
use engine::prelude::*;
use heap::layout::{BATCH_WORD_COUNT, BATCH_WORDS, SUPERBLOCK_COPIES};
use heap::{BatchState, BatchWord, FEATURE_BATCHES};
use index::partitioned_hash::batch::record::{HEADER_BYTES, OPERATION_BYTES};
use parking_lot::Mutex;
use pmem::{Bytes, LINE_BYTES, Offset, crc32c};
use pmem_sim::Sim;

use crate::format_docs::fields::Fields;
use crate::format_docs::pages::table;
use crate::format_docs::region::{head, payload};
use crate::format_docs::segment::position;
use crate::format_docs::store::{PARAMETERS, Store};

const PAGE: &str = "batch";

fn word() -> Fields {
    Fields::bits(PAGE, "Batch word").named(&["state", "record", "check"])
}

fn record() -> Fields {
    Fields::bytes(PAGE, "Record", HEADER_BYTES).named(&["count", "checksum"])
}

fn operation() -> Fields {
    Fields::bytes(PAGE, "Operation", OPERATION_BYTES).named(&["entry", "before", "after"])
}

fn state_name(word_now: u64) -> String {
    let states = table(PAGE, "Batch states");
    let state = states.iter().find(|row| row.number("value") == word().of_word(word_now, "state"));
    state.expect("the state is documented").text("name").to_owned()
}

#[test]
fn batch_words() {
    for (state, name) in [(BatchState::Prepared, "prepared"), (BatchState::Committed, "committed")] {
        let written = BatchWord { record: Offset(0x12_3450), state }.word();
        payload(written);
        assert_eq!((state_name(written).as_str(), word().of_word(written, "record")), (name, 0x1_2345));
    }
    assert_eq!(
        (head().start("batch words"), head().length("batch words")),
        (BATCH_WORDS.0, BATCH_WORD_COUNT as u64 * LINE_BYTES)
    );
}

/// The batch in a region at one moment, read only by the documented offsets.
#[derive(Clone, PartialEq, Debug)]
struct BatchWords {
    state: String,
    operations: Vec<Operation>,
}

#[derive(Clone, Copy, PartialEq, Debug)]
struct Operation {
    before: u64,
    after: u64,
    /// The entry's word.
    now: u64,
}

impl Operation {
    fn read(sim: &Sim, bytes: &[u8]) -> Operation {
        let [entry, before, after] = ["entry", "before", "after"].map(|name| operation().number(bytes, name));
        Operation { before, after, now: number(sim, entry) }
    }

    fn is_marked(&self) -> bool {
        position().of_word(self.now, "batch") == 1
    }

    /// Checks that a marked entry has the documented form.
    fn assert_marked_as_documented(&self) {
        let fields = position();
        let named = ["batch", "overflow", "deleted"].into_iter().fold(self.now, |word, name| word & !fields.mask(name));
        let is_deleted = fields.of_word(self.now, "deleted") == 1;
        assert_eq!((is_deleted, named), if self.after == 0 { (true, self.before) } else { (false, self.after) });
    }
}

fn bytes(sim: &Sim, at: u64, len_bytes: u64) -> &[u8] {
    // SAFETY: the observed step is over, and no thread stores while the bytes are read.
    unsafe { sim.bytes(Offset(at).span(len_bytes)) }.expect("it is in the region")
}

fn number(sim: &Sim, at: u64) -> u64 {
    u64::from_le_bytes(bytes(sim, at, 8).try_into().expect("eight bytes"))
}

/// Returns the batch of the first word, if any.
fn read_batch_words(sim: &Sim) -> Option<BatchWords> {
    let word_now = number(sim, head().start("batch words"));
    if word_now == 0 {
        return None;
    }
    payload(word_now);
    assert_eq!(number(sim, SUPERBLOCK_COPIES[0].0 + 52) as u32 & FEATURE_BATCHES, FEATURE_BATCHES, "the flag is first");
    let at = word().of_word(word_now, "record") * 16;
    let header = bytes(sim, at, HEADER_BYTES);
    let body = bytes(sim, at + HEADER_BYTES, record().number(header, "count") * OPERATION_BYTES);
    assert_eq!(record().number(header, "checksum"), u64::from(crc32c(0, &[&header[..4], body].concat())));
    let operations: Vec<_> = body.chunks(OPERATION_BYTES as usize).map(|bytes| Operation::read(sim, bytes)).collect();
    operations.iter().filter(|operation| operation.is_marked()).for_each(Operation::assert_marked_as_documented);
    Some(BatchWords { state: state_name(word_now), operations })
}

/// Returns the batch after each step, without repetitions.
fn steps_of(store: &Store, batch: &[BatchOp<'_>]) -> Vec<Option<BatchWords>> {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&seen);
    store.0.medium().observe(Box::new(move |sim, _| noted.lock().push(read_batch_words(sim))));
    store.0.write_batch(batch).expect("there is space");
    store.0.medium().unobserve();
    let mut seen = std::mem::take(&mut *seen.lock());
    seen.dedup();
    seen
}

#[test]
fn batch_under_way() {
    let store = Store::new(&PARAMETERS);
    store.put(b"replaced", b"old");
    store.put(b"deleted", b"old");
    let put = |key| BatchOp::Put { key, value: b"new" };
    let seen = steps_of(&store, &[put(b"replaced"), BatchOp::Delete { key: b"deleted" }, put(b"new")]);
    assert!(seen.first() == Some(&None) && seen.last() == Some(&None));
    let seen: Vec<BatchWords> = seen.into_iter().flatten().collect();
    let marked_counts = |state: &str| {
        let of_state = seen.iter().filter(|seen| seen.state == state);
        of_state
            .map(|seen| seen.operations.iter().filter(|operation| operation.is_marked()).count())
            .collect::<Vec<_>>()
    };
    assert_eq!((marked_counts("prepared"), marked_counts("committed")), (vec![0, 1, 2, 3], vec![3, 2, 1, 0]));
    let operations = &seen.last().expect("the batch was seen").operations;
    let offset = |word| position().of_word(word, "offset");
    assert!(operations.iter().all(|operation| offset(operation.after) == offset(operation.now)));
    let count = |of: fn(&&Operation) -> bool| operations.iter().filter(of).count();
    assert_eq!((operations.len(), count(|op| op.before == 0), count(|op| op.after == 0)), (3, 1, 1));
}
