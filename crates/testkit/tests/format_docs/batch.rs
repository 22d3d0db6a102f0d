//! `docs/format/batch.md` against a store in the midst of a batch.

use std::sync::Arc;

use engine::{BatchOp, Engine, Limits};
use heap::layout::{BATCH_WORD_COUNT, BATCH_WORDS, SUPERBLOCK_COPIES};
use heap::{BatchState, BatchWord, FEATURE_BATCHES};
use index::partitioned_hash::batch::record::{HEADER_BYTES, OPERATION_BYTES};
use parking_lot::Mutex;
use pmem::{LINE_BYTES, Medium, Offset, crc32c};
use pmem_sim::Sim;

use crate::fields::Fields;
use crate::pages::table;
use crate::region::{head, payload};
use crate::segment::position;
use crate::store::{PARAMETERS, Store};

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
    assert_eq!(Limits::BATCH_OP_COUNT_MAX, 1024);
}

/// What a region says of a batch at one moment, read by the documented offsets alone.
#[derive(Clone, PartialEq, Debug)]
struct Seen {
    state: String,
    /// Of each operation: whether its entry is marked, before and after, and where the entry's word leads.
    operations: Vec<(bool, u64, u64, u64)>,
}

fn look(sim: &Sim) -> Option<Seen> {
    // SAFETY: the observed step is over, and nobody stores while it is looked at.
    let bytes = |at: u64, len: u64| unsafe { sim.item(Offset(at).span(len)) }.expect("it lies in the region");
    let number = |at: u64| u64::from_le_bytes(bytes(at, 8).try_into().expect("eight bytes"));
    let word_now = number(head().start("batch words"));
    if word_now == 0 {
        return None;
    }
    payload(word_now);
    assert_eq!(number(SUPERBLOCK_COPIES[0].0 + 52) as u32 & FEATURE_BATCHES, FEATURE_BATCHES, "the flag comes first");
    let at = word().of_word(word_now, "record") * 16;
    let header = bytes(at, HEADER_BYTES);
    let count = record().number(header, "count");
    let body = bytes(at + HEADER_BYTES, count * OPERATION_BYTES);
    assert_eq!(record().number(header, "checksum"), crc32c(0, &[&header[..4], body].concat()).into());
    let operation_of = |bytes: &[u8]| {
        let [entry, before, after] = ["entry", "before", "after"].map(|name| operation().number(bytes, name));
        let now = number(entry);
        let is_marked = position().of_word(now, "batch") == 1;
        if is_marked {
            let is_deleted = position().of_word(now, "deleted") == 1;
            let named = now & !position().mask("batch") & !position().mask("overflow") & !position().mask("deleted");
            assert_eq!((is_deleted, named), if after == 0 { (true, before) } else { (false, after) });
        }
        (is_marked, before, after, position().of_word(now, "offset"))
    };
    let operations = body.chunks(OPERATION_BYTES as usize).map(operation_of).collect();
    Some(Seen { state: state_name(word_now), operations })
}

#[test]
fn a_batch_under_way() {
    let store = Store::new(&PARAMETERS);
    store.put(b"replaced", b"old");
    store.put(b"deleted", b"old");
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&seen);
    store.0.medium().observe(Box::new(move |sim, _| noted.lock().push(look(sim))));
    let put = |key| BatchOp::Put { key, value: b"new" };
    store.0.write_batch(&[put(b"replaced"), BatchOp::Delete { key: b"deleted" }, put(b"new")]).expect("there is room");
    store.0.medium().unobserve();
    let mut seen = std::mem::take(&mut *seen.lock());
    seen.dedup();
    let (first, last) = (seen.first().cloned().flatten(), seen.last().cloned().flatten());
    assert_eq!((first, last), (None, None));
    let seen: Vec<Seen> = seen.into_iter().flatten().collect();
    let marked = |seen: &&Seen| seen.operations.iter().filter(|operation| operation.0).count();
    let of_state =
        |name: &str| seen.iter().filter(|seen| seen.state == name).map(|seen| marked(&seen)).collect::<Vec<_>>();
    assert_eq!((of_state("prepared"), of_state("committed")), (vec![0, 1, 2, 3], vec![3, 2, 1, 0]));
    let operations = &seen.last().expect("the batch was seen").operations;
    assert!(operations.iter().all(|&(_, _, after, now)| position().of_word(after, "offset") == now));
    let (inserted, deleted) = (operations.iter().filter(|op| op.1 == 0), operations.iter().filter(|op| op.2 == 0));
    assert_eq!((operations.len(), inserted.count(), deleted.count()), (3, 1, 1));
}
