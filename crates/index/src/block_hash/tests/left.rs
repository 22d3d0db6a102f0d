//! The state that a crash or a killed process left, and a second power loss during the work on it.

use std::sync::Arc;

use parking_lot::Mutex;
use pmem_sim::{Model, Sim};

use super::crash::{Wrong, as_another, crashed, crowded, examine, named_record, some, store, use_again, with};
use super::rig::{Name, Rig, bytes_of, mixed};
use crate::block_hash::Content;

/// Returns the number of slots that hold a key.
fn count_of(rig: &Rig, name: Name) -> usize {
    let _pin = epoch::pin();
    let (images, wanted) = (rig.table.segments.of(name.0).images(&rig.medium), bytes_of(name));
    let slots = images.iter().flat_map(|(.., image)| image.slots());
    slots.filter(|(_, slot)| matches!(slot.content(), Content::Whole { key, .. } if key == wanted)).count()
}

/// Returns the stores that crashes in a move leave with a key in two slots, and that key.
fn duplicates() -> Vec<(Arc<Rig>, Name)> {
    let (rig, contents, next) = crowded(Model::Line);
    let images = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&images);
    rig.medium.observe(Box::new(move |medium, _| noted.lock().extend(medium.images(4, medium.step_count()))));
    rig.put(next, 5);
    rig.medium.unobserve();
    let left = std::mem::take(&mut *images.lock());
    let opened = left.iter().map(|image| Arc::new(Rig::opened(Sim::from_image(image, Model::Line))));
    let duplicate = |rig: &Arc<Rig>| contents.keys().copied().find(|&name| count_of(rig, name) == 2);
    opened.filter_map(|rig| duplicate(&rig).map(|duplicate| (rig, duplicate))).collect()
}

/// A key with a duplicate has only one slot, durably, before it is written; otherwise the old value could return.
#[test]
fn write_removes_duplicate_first() {
    let duplicates = duplicates();
    assert!(!duplicates.is_empty(), "no crash leaves a duplicate");
    for (rig, duplicate) in duplicates.into_iter().take(4) {
        let replaced = with(&rig.contents(), &[(duplicate, Some(9))]);
        assert_eq!(crashed(&rig, &replaced, |rig| rig.put(duplicate, 9)), [""; 0]);
        let removed = with(&replaced, &[(duplicate, None)]);
        assert_eq!(crashed(&rig, &removed, |rig| rig.remove(duplicate)), [""; 0]);
    }
}

/// One thread finds a duplicate, drops it, and writes nothing; the next thread writes the other.
#[test]
fn duplicate_is_removed_before_other_writes() {
    for (rig, duplicate) in duplicates().into_iter().take(4) {
        let replaced = with(&rig.contents(), &[(duplicate, Some(9))]);
        let pin = epoch::pin();
        drop(rig.locked(duplicate));
        drop(pin);
        as_another(&rig, move |rig| rig.put(duplicate, 9));
        let wrong = Wrong::default();
        examine(&rig.medium, &[replaced], &wrong);
        assert_eq!(*wrong.lock(), [""; 0]);
    }
}

#[test]
fn interrupted_sweep_leaves_one_duplicate() {
    for (rig, duplicate) in duplicates().into_iter().take(4) {
        let contents = rig.contents();
        assert_eq!(crashed(&rig, &contents, Rig::sweep), [""; 0]);
        assert_eq!(count_of(&rig, duplicate), 1);
        rig.remove(duplicate);
        let wrong = Wrong::default();
        examine(&rig.medium, &[with(&contents, &[(duplicate, None)])], &wrong);
        assert_eq!(*wrong.lock(), [""; 0]);
    }
}

/// Readers take a slot without a lock bit for durable. After a sweep it must be so.
#[test]
fn killed_process_data_is_durable_after_sweep() {
    let (rig, killed) = (store(Model::Line, &some()), Arc::new(Mutex::new(Vec::new())));
    let noted = Arc::clone(&killed);
    rig.medium.observe(Box::new(move |medium, _| noted.lock().extend(medium.killed())));
    rig.put(mixed(0), 9);
    rig.remove(mixed(1));
    rig.medium.unobserve();
    let killed = std::mem::take(&mut *killed.lock());
    assert!(killed.len() > 5);
    for image in killed {
        let rig = Rig::opened(Sim::from_image(&image, Model::Line));
        rig.sweep();
        let (contents, wrong) = (rig.contents(), Wrong::default());
        examine(&rig.medium, &[contents], &wrong);
        assert_eq!(*wrong.lock(), [""; 0]);
    }
}

/// Opening carries out a committed batch, and clears its word when the result is durable; nothing names the record
/// any more when its space may be reused.
#[test]
fn batch_survives_repeated_interrupted_openings() {
    let changes = [(mixed(0), Some(9)), (mixed(1000), Some(1000))];
    let (rig, after) = (store(Model::Line, &some()), with(&some(), &changes));
    let counting = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&counting);
    rig.medium.observe(Box::new(move |medium, _| {
        let images = medium.images(4, medium.step_count()).into_iter();
        noted.lock().extend(images.filter(|image| named_record(&Sim::from_image(image, Model::Line)).is_some()));
    }));
    rig.batch(&changes);
    rig.medium.unobserve();
    let counting = std::mem::take(&mut *counting.lock());
    assert!(counting.len() > 8, "{}", counting.len());
    for image in counting.iter().step_by(counting.len() / 8) {
        let (medium, wrong) = (Sim::from_image(image, Model::Line), Wrong::default());
        let (noted, allowed, record) = (Arc::clone(&wrong), [after.clone()], named_record(&medium).expect("it was"));
        medium.observe(Box::new(move |medium, _| {
            if named_record(medium).is_none() {
                examine(medium, &allowed, &noted);
            }
        }));
        let rig = Arc::new(Rig::opened(medium.clone()));
        medium.unobserve();
        use_again(&rig, record);
        examine(&medium, std::slice::from_ref(&after), &wrong);
        assert_eq!(*wrong.lock(), [""; 0]);
    }
}
