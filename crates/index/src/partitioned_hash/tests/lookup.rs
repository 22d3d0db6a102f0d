//! Compares lookups in the home line with full searches.

use pmem_sim::{Model, Sim};

use super::super::layout::LINE_ENTRY_COUNT;
use super::super::{LockedLookup, Lookup, Target};
use super::rig::{Key, Rig, item, key, mixed};
use super::slots::neighbour;
use crate::canary;

fn target(rig: &Rig<Sim>, key: Key) -> Target<'_> {
    rig.index.prefetch(&rig.medium, key.signature)
}

fn locked_lookup(rig: &Rig<Sim>, key: Key) -> LockedLookup {
    rig.index.lock_target(rig.cx(), &target(rig, key)).expect("the segment is live").lookup()
}

fn lookup(rig: &Rig<Sim>, key: Key) -> Lookup {
    rig.index.lookup(&rig.medium, key.signature)
}

#[test]
fn line_fills_up_and_overflows() {
    let rig = Rig::new(1);
    let _pin = epoch::pin();
    for number in 0..LINE_ENTRY_COUNT {
        let key = neighbour(number);
        assert!(matches!(lookup(&rig, key), Lookup::Nothing));
        let LockedLookup::Free(slot) = locked_lookup(&rig, key) else { panic!("entry {number} of the line is free") };
        let bucket = rig.index.lock(rig.cx(), key.signature);
        bucket.insert_at(slot, rig.write_item(key, number)).settle(&rig.medium).unwrap();
        assert_eq!((rig.slot(key), rig.get(key)), (Some(slot), Some(number)));
        assert!(matches!(locked_lookup(&rig, key), LockedLookup::Entry(found) if found.slot == slot));
    }
    let late = neighbour(LINE_ENTRY_COUNT);
    assert!(matches!((lookup(&rig, late), locked_lookup(&rig, late)), (Lookup::Nothing, LockedLookup::Full)));
    rig.put(late, 9);
    assert!(matches!((lookup(&rig, late), locked_lookup(&rig, late)), (Lookup::Unsure, LockedLookup::Unsure)));
    assert_eq!((rig.get(late), rig.index.len()), (Some(9), LINE_ENTRY_COUNT + 1));
}

#[test]
fn undecided_entry_needs_find() {
    let rig = Rig::on_log();
    let _pin = epoch::pin();
    let key = neighbour(0);
    let (put, _) = rig.publish(key, rig.write_item(key, 1)).unwrap();
    assert!(matches!((lookup(&rig, key), locked_lookup(&rig, key)), (Lookup::Unsure, LockedLookup::Unsure)));
    put.settle(&rig.medium).unwrap();
    assert!(matches!(lookup(&rig, key), Lookup::Entry(_)));
    let (removal, _) = rig.publish_removal(key).unwrap();
    assert!(matches!((lookup(&rig, key), locked_lookup(&rig, key)), (Lookup::Unsure, LockedLookup::Unsure)));
    removal.settle(&rig.medium).unwrap();
    assert!(matches!((lookup(&rig, key), locked_lookup(&rig, key)), (Lookup::Nothing, LockedLookup::Free(_))));
}

#[test]
fn stale_target_is_refused_after_split() {
    let rig = Rig::new(1);
    let _pin = epoch::pin();
    for number in 0..100u64 {
        rig.put(key(number.wrapping_mul(0x9E37_79B9_7F4A_7C15), number), number);
    }
    let before = target(&rig, neighbour(0));
    rig.split(neighbour(0).signature);
    assert!(rig.index.lock_target(rig.cx(), &before).is_none());
    assert!(rig.index.lock_target(rig.cx(), &target(&rig, neighbour(0))).is_some());
}

/// Returns the values of two keys that a reader of several keys sees, if its lookups count. Before them, the second
/// key's segment is split, so that the old segment keeps the old state, and both keys are written.
fn lookups_around_split(medium: Sim) -> Option<[u64; 2]> {
    let (rig, keys) = (Rig::format(medium, 2), [key(1 << 63 | 0x77, 1), key(0x77, 2)]);
    let _pin = epoch::pin();
    // A segment of one key is not split.
    (0..100u64).for_each(|number| _ = rig.put(self::key(mixed(number) >> 1, number + 3), number));
    keys.iter().for_each(|key| _ = rig.put(*key, 1));
    let route = rig.index.route();
    let lines = keys.map(|key| rig.index.home_line(&rig.medium, &route, key.signature));
    assert!(rig.index.is_current_route(&rig.medium, &route));
    rig.split(keys[1].signature);
    [1, 0].into_iter().for_each(|second| _ = rig.put(keys[second], 2));
    let seen = [0, 1].map(|i| match rig.index.lookup_line(&rig.medium, lines[i], keys[i].signature) {
        Lookup::Entry(position) => item(&rig.medium, position).1,
        other => panic!("{other:?}"),
    });
    assert_eq!(keys.map(|key| rig.get(key)), [Some(2); 2]);
    rig.index.is_current_route(&rig.medium, &route).then_some(seen)
}

fn time_runs_forwards(medium: Sim) {
    let seen = lookups_around_split(medium);
    assert!(seen.is_none_or(|[first, second]| first <= second), "{seen:?}: time runs backwards");
}

#[test]
fn lookups_before_split_do_not_count() {
    time_runs_forwards(Sim::new(0, Model::Line));
}

#[test]
#[should_panic(expected = "time runs backwards")]
fn always_trusted_lookups_are_caught() {
    time_runs_forwards(Sim::new(0, Model::Line).with_canary(canary::LEAD_NOT_COMPARED));
}

/// `clear` replaces the root that directed the readers.
#[test]
fn lookups_before_clear_do_not_count() {
    let rig = Rig::new(1);
    let _pin = epoch::pin();
    let route = rig.index.route();
    assert!(rig.index.is_current_route(&rig.medium, &route));
    rig.clear();
    assert!(!rig.index.is_current_route(&rig.medium, &route));
}

/// A writer keeps a candidate from before its lock, while other threads write the entry.
#[test]
fn candidate_is_valid_while_word_is_unchanged() {
    let (rig, key) = (Rig::new(1), neighbour(0));
    let _pin = epoch::pin();
    rig.put(key, 1);
    let target = target(&rig, key);
    let candidate = rig.index.candidate(&rig.medium, target.line(), key.signature);
    let followed =
        || rig.index.lock_target(rig.cx(), &target).expect("the segment is live").lookup_candidate(&target, candidate);
    let entry = |lookup| match lookup {
        LockedLookup::Entry(found) => (found.slot, found.position),
        other => panic!("{other:?}"),
    };
    assert_eq!(entry(followed()), entry(locked_lookup(&rig, key)));
    rig.put(key, 2);
    assert_eq!(entry(followed()), entry(locked_lookup(&rig, key)));
    rig.remove(key);
    assert!(matches!(followed(), LockedLookup::Free(_)));
}

/// A writer may be directed to a half of a split that intervened between the loads of the two words that direct
/// readers and writers.
#[test]
fn candidate_of_other_segment_is_not_followed() {
    let (rig, key) = (Rig::new(1), neighbour(0));
    let _pin = epoch::pin();
    (0..100u64).for_each(|number| _ = rig.put(self::key(mixed(number), number), number));
    rig.put(key, 1);
    let before = target(&rig, key);
    let candidate = rig.index.candidate(&rig.medium, before.line(), key.signature);
    rig.split(key.signature);
    rig.put(key, 2);
    let bucket = rig.index.lock_target(rig.cx(), &target(&rig, key)).expect("the segment is live");
    let LockedLookup::Entry(found) = bucket.lookup_candidate(&before, candidate) else {
        panic!("it is in its home line")
    };
    assert_ne!(Some(found.position), candidate.map(|candidate| candidate.position));
}
