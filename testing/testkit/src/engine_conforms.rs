//! The conformance suite for an engine, limited to the features that the engine declares.

use std::io;
use std::ops::Range;

use engine::prelude::*;
use engine::{BatchOp, Clock, Condition, Decision, Error, Expiry, Required};
use pmem::MediumError;
use pmem_sim::{Crashable, Model, Sim};

use crate::conformance::{Mismatch, conformance};
use crate::crashed::{Crashed, Made};
use crate::shape::Shape;
use crate::subject::{Operations, Subject};

/// Compares all operations that the engine offers with the answers of a map: `op_count` operations for each seed, on a
/// new store on `medium`. Returns the features that the engine lacks, so that a test states which features were not
/// tested.
///
/// # Errors
/// The first difference.
///
/// # Panics
/// If no store can be made; and as for [`rules_hold`].
pub fn engine_conforms<K: Made>(
    medium: impl Fn() -> K::Medium,
    op_count: usize,
    seeds: Range<u64>,
) -> Result<Vec<&'static str>, Mismatch> {
    let everything = Shape {
        multi_puts: true,
        multi_deletes: true,
        swaps: true,
        batches: true,
        conditions: true,
        scans: true,
        clears: true,
        ..Shape::small(op_count)
    };
    rules_hold::<K>(&medium);
    let features = K::format(medium(), Clock::default()).expect("there is space").features();
    let (shape, lacks) = everything.offered_by(&features);
    let open = || Box::new(Crashed::<K>::format(medium()).expect("there is space")) as Box<dyn Operations>;
    conformance(open, &shape, seeds).map(|_| lacks)
}

/// Compares operations of `shape`, without those that a map lacks, with the answers of a map, for each seed.
///
/// # Panics
/// At the first difference.
pub fn answers_like_a_map<K: Made<Medium = Sim>>(shape: Shape, seeds: Range<u64>) {
    let new = || Crashed::<K>::format(Sim::new(0, Model::Line)).expect("there is space");
    let op_count = shape.op_count as u64 * (seeds.end - seeds.start);
    let compared = conformance(|| Box::new(new()), &Shape { reopens: false, ..shape }, seeds);
    assert!(compared.unwrap_or_else(|mismatch| panic!("{mismatch}")) >= op_count);
}

/// Checks the rules of the engine contract that do not apply to a map: limits, and stores opened for reading.
///
/// # Panics
/// If the engine breaks one.
pub fn rules_hold<K: Made>(medium: &impl Fn() -> K::Medium) {
    refuses_long_keys(&K::format(medium(), Clock::default()).expect("there is space"));
    refuses_to_write_what_it_reads::<K>(&medium());
}

/// A key longer than the engine's limit is an error in every operation; it is not reported as absent.
fn refuses_long_keys(store: &dyn Engine) {
    let (long, features) = (vec![b'k'; store.limits().key_bytes_max + 1], store.features());
    let mut answers = vec![
        ("get", store.get(&long, &mut |_, _, _| {}).map(drop)),
        ("put", store.put(&long, b"")),
        ("delete", store.delete(&long).map(drop)),
        ("multi_get", store.multi_get(&[b"short", &long], &mut |_, _| {})),
        ("multi_put", store.multi_put(&[(b"short", b""), (&long, b"")])),
    ];
    store.multi_delete_each(&[&long], &mut |_, done| answers.push(("multi_delete", done.map(drop))));
    if features.expiry {
        answers.push(("expiry", store.expiry(&long).map(drop)));
        answers.push(("expire", store.expire(&long, Expiry::at_ms(1)).map(drop)));
        answers.push(("put_until", store.put_until(&long, b"", Expiry::at_ms(u64::MAX >> 1))));
        // Before the length of the value is judged, and before the empty source is read.
        for len_bytes in [1, u64::MAX] {
            answers.push(("put_from", store.put_from_until(&long, len_bytes, &mut io::empty(), Expiry::NEVER)));
        }
    }
    if features.conditional {
        answers.push(("update", store.update(&long, &mut |_| Decision::Keep).map(drop)));
    }
    if features.batch {
        let (put, condition) =
            (BatchOp::Put { key: &long, value: b"" }, Condition { key: &long, required: Required::Absent });
        answers.push(("write_batch", store.write_batch(&[put])));
        answers.push(("write_batch_if", store.write_batch_if(&[condition], &[])));
    }
    for (operation, answer) in answers {
        let len_bytes = long.len();
        let is_refused =
            matches!(answer, Err(Error::KeyTooLong { len_bytes: acknowledged }) if acknowledged == len_bytes);
        assert!(is_refused, "{}: {operation} of a key of {len_bytes} bytes answered {answer:?}", store.name());
    }
}

/// A store opened for reading refuses every write, including those that would change nothing.
fn refuses_to_write_what_it_reads<K: Made>(on: &K::Medium) {
    let store = K::format(on.clone(), Clock::default()).expect("there is space");
    store.put(b"key", b"value").expect("there is space");
    store.close().expect("it closes");
    drop(store);
    on.freeze();
    let store = K::open(on.clone(), Clock::default()).expect("it opens");
    let features = store.features();
    let mut answers = vec![
        ("put", store.put(b"key", b"value")),
        ("delete", store.delete(b"absent").map(drop)),
        ("clear", store.clear()),
    ];
    if features.batch {
        answers.push(("an empty batch", store.write_batch(&[])));
        answers.push(("a batch", store.write_batch(&[BatchOp::Delete { key: b"absent" }])));
    }
    if features.expiry {
        answers.push(("expire", store.expire(b"key", Expiry::at_ms(u64::MAX >> 1)).map(drop)));
        answers.push(("put_from", store.put_from_until(b"key", 1, &mut io::empty(), Expiry::NEVER)));
    }
    if features.conditional {
        let mut put = |_: Option<engine::CurrentItem<'_>>| Decision::Put(b"other"[..].into());
        answers.push(("update", store.update(b"key", &mut put).map(drop)));
    }
    for (operation, answer) in answers {
        let is_refused = matches!(answer, Err(Error::Medium(MediumError::ReadOnly)));
        assert!(is_refused, "{}: {operation} of a store that is open for reading answered {answer:?}", store.name());
    }
    let mut found = Vec::new();
    store.get(b"key", &mut |_, _, value| found = value.to_vec()).expect("it is complete");
    assert_eq!(found, b"value");
}
