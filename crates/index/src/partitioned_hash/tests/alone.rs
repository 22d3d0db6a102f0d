//! An operation that changes the segments of a partition, or relies on these segments, holds the partition's lock
//! at each step.

use std::sync::Arc;

use pmem::MediumError;

use super::super::{Cursor, NEVER};
use super::rig::{Rig, key, mixed};

/// Calls `act`, and checks at each of its steps that the partition of all keys is locked.
fn alone(rig: &Arc<Rig<pmem_sim::Sim>>, act: impl FnOnce(&Rig<pmem_sim::Sim>)) {
    let (seen, steps) = (Arc::clone(rig), rig.medium.step_count());
    rig.medium.observe(Box::new(move |_, kind| {
        assert!(seen.index.segments.is_partition_locked(0), "after {kind:?} another thread may be in the partition");
    }));
    act(rig);
    rig.medium.unobserve();
    assert!(rig.medium.step_count() > steps, "no step was seen");
    assert!(!rig.index.segments.is_partition_locked(0));
}

fn filled() -> Arc<Rig<pmem_sim::Sim>> {
    let rig = Rig::new(1);
    (0..40).for_each(|number| _ = rig.put(key(mixed(number), number), number));
    Arc::new(rig.reopened())
}

#[test]
fn split_is() {
    alone(&filled(), |rig| rig.split(0));
}

#[test]
fn step_of_sweep_is() {
    alone(&filled(), |rig| _ = rig.sweep_step(Cursor::default()));
}

#[test]
fn visit_of_what_is_due_is() {
    let (rig, mut visited_count) = (filled(), 0);
    let _pin = epoch::pin();
    rig.index.lower_due_of(rig.cx(), mixed(1), 5);
    let visited = rig.index.visit_due(rig.cx(), Cursor::default(), 5, 1, |_, _| {
        visited_count += 1;
        assert!(rig.index.segments.is_partition_locked(0), "another thread may split the visited segment");
        Ok::<_, MediumError>(NEVER)
    });
    assert!(visited.is_ok() && visited_count == 40);
}
