//! Unlinked objects wait for readers that may still read them, and are freed then: all of them, counted.

use pmem_sim::Sim;

use super::rig::{Rig, key, mixed};

/// Returns the number of objects that `act` leaves to be freed when this thread is not pinned any more.
fn left_by(rig: &Rig<Sim>, act: impl FnOnce()) -> u64 {
    rig.free_garbage();
    let _reader = epoch::pin();
    act();
    rig.waiting_count()
}

#[test]
fn split_keeps_segment_table_and_directory() {
    let rig = Rig::new(1);
    (0..40).for_each(|number| _ = rig.put(key(mixed(number), number), number));
    assert_eq!(left_by(&rig, || rig.split(0)), 3, "a segment of the directory's depth");
    assert_eq!(left_by(&rig, || rig.split(0)), 3, "again");
    assert_eq!(left_by(&rig, || rig.split(u64::MAX)), 2, "one of less");
    assert_eq!(rig.index.split_stats().split_count, 3);
}

#[test]
fn batch_keeps_record_and_overlay() {
    let rig = Rig::new(1);
    rig.put(key(1, 1), 1);
    let changes = [(key(1, 1), Some(2)), (key(2, 2), Some(2))];
    assert_eq!(left_by(&rig, || rig.write_batch(&changes)), 3, "and the item that was replaced");
}

#[test]
fn clear_leaves_tables() {
    let rig = Rig::new(1);
    assert_eq!(left_by(&rig, || rig.clear()), 1);
}
