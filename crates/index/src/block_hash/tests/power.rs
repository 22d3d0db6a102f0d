//! Cuts the power after every step of a write, or of an operation that makes space for one. The result is opened,
//! and must show the complete old or the complete new contents, including everything that a reader has found
//! before.

use std::sync::Arc;

use parking_lot::Mutex;
use pmem_sim::Model;

use super::crash::{Wrong, as_another, crashed, crowded, examine, named_record, settled, some, store, use_again, with};
use super::rig::{Change, Contents, Name, Rig, mixed};

/// A signature that no mixed key has.
const ALIKE: u64 = 0x1234_5678_9ABC_DEF0;

const MODELS: [Model; 2] = [Model::Line, Model::Span];

#[test]
fn put_replace_remove_are_atomic() {
    for model in MODELS {
        let (rig, new, old) = (store(model, &some()), mixed(1000), mixed(0));
        let inserted = with(&some(), &[(new, Some(1))]);
        assert_eq!(crashed(&rig, &inserted, |rig| rig.put(new, 1)), [""; 0], "{model:?}");
        let replaced = with(&inserted, &[(old, Some(9))]);
        assert_eq!(crashed(&rig, &replaced, |rig| rig.put(old, 9)), [""; 0], "{model:?}");
        let removed = with(&replaced, &[(old, None)]);
        assert_eq!(crashed(&rig, &removed, |rig| rig.remove(old)), [""; 0], "{model:?}");
    }
}

fn batch() -> Vec<Change> {
    let new = (1000..1004).map(|number| (mixed(number), Some(number)));
    let changed = [(mixed(0), None), (mixed(1), Some(9)), (mixed(2000), None)];
    new.chain(changed).collect()
}

#[test]
fn batch_is_atomic() {
    for model in MODELS {
        let rig = store(model, &some());
        assert_eq!(crashed(&rig, &with(&some(), &batch()), |rig| rig.batch(&batch())), [""; 0], "{model:?}");
    }
}

/// The record's space is free when the batch is over: nothing found after a crash names it.
#[test]
fn no_word_names_a_finished_batch() {
    let (rig, record) = (store(Model::Line, &some()), Arc::new(Mutex::new(None)));
    let noted = Arc::clone(&record);
    rig.medium.observe(Box::new(move |medium, _| {
        named_record(medium).into_iter().for_each(|record| *noted.lock() = Some(record));
    }));
    rig.batch(&batch());
    rig.medium.unobserve();
    let record = record.lock().expect("there was one");
    use_again(&rig, record);
    let wrong = Wrong::default();
    examine(&rig.medium, &[with(&some(), &batch())], &wrong);
    assert_eq!(*wrong.lock(), [""; 0]);
}

#[test]
fn split_loses_nothing() {
    for model in MODELS {
        let contents: Contents = (0..150).map(|number| (mixed(number), number)).collect();
        let rig = store(model, &contents);
        assert_eq!(crashed(&rig, &contents, |rig| rig.split(mixed(0).0)), [""; 0], "{model:?}");
        assert_eq!(rig.table.split_counts(), (1, 0));
    }
}

#[test]
fn clear_removes_everything_or_nothing() {
    for model in MODELS {
        let rig = store(model, &some());
        assert_eq!(crashed(&rig, &Contents::new(), Rig::clear), [""; 0], "{model:?}");
    }
}

/// Returns a store with as many keys of one signature as its segment can hold, and the next key.
fn alike(model: Model) -> (Arc<Rig>, Contents, Name) {
    let (rig, mut contents) = (store(model, &some()), some());
    let mut names = (0..).map(|number| (ALIKE, number));
    let next = loop {
        let next = names.next().expect("there are many");
        if rig.try_put(next, 5).is_err() {
            break next;
        }
        contents.insert(next, 5);
    };
    (settled(&rig), contents, next)
}

#[test]
fn chained_segment_is_complete_before_linked() {
    for model in MODELS {
        let (rig, mut contents, next) = alike(model);
        assert_eq!(crashed(&rig, &contents, |rig| rig.split(next.0)), [""; 0], "{model:?}");
        assert_eq!(rig.table.split_counts(), (0, 1));
        as_another(&rig, move |rig| rig.put(next, 5));
        contents.insert(next, 5);
        let wrong = Wrong::default();
        examine(&rig.medium, &[contents], &wrong);
        assert_eq!(*wrong.lock(), [""; 0], "{model:?}");
    }
}

/// One half of a split gets more keys of one signature than its buckets hold.
#[test]
fn split_of_chain_keeps_its_parts() {
    let (rig, mut contents, next) = alike(Model::Line);
    (0..20).for_each(|number| rig.put((ALIKE, next.1 + number), 6));
    contents.extend((0..20).map(|number| ((ALIKE, next.1 + number), 6)));
    // Its buckets are the same.
    let other = ALIKE ^ 1 << 63;
    assert_eq!(crashed(&rig, &contents, |rig| rig.split(other)), [""; 0]);
    assert_eq!(rig.table.split_counts().0, 1);
}

#[test]
fn insert_with_move_loses_no_key() {
    for model in MODELS {
        let (rig, contents, next) = crowded(model);
        let after = with(&contents, &[(next, Some(5))]);
        assert_eq!(crashed(&rig, &after, |rig| rig.put(next, 5)), [""; 0], "{model:?}");
        assert_eq!(rig.table.move_count(), 1);
    }
}

#[test]
fn moves_ahead_of_inserts_lose_nothing() {
    for model in MODELS {
        let (rig, contents, _) = crowded(model);
        assert_eq!(crashed(&rig, &contents, |rig| assert!(rig.pre_evict() > 0)), [""; 0], "{model:?}");
    }
}
