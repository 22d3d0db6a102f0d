//! What a look at the home line tells, beside what a search finds.

use pmem_sim::{Model, Sim};

use super::super::layout::LINE_ENTRY_COUNT;
use super::super::{Aim, Glance, Sight};
use super::rig::{Key, Rig, item, key, mixed};
use super::slots::neighbour;
use crate::canary;

fn aim(rig: &Rig<Sim>, key: Key) -> Aim<'_> {
    rig.index.aim(&rig.medium, key.signature)
}

fn sight(rig: &Rig<Sim>, key: Key) -> Sight {
    rig.index.lock_aimed(rig.cx(), &aim(rig, key)).expect("the segment is live").glance()
}

fn glance(rig: &Rig<Sim>, key: Key) -> Glance {
    rig.index.glance(&rig.medium, key.signature)
}

#[test]
fn a_line_fills_up_and_overflows() {
    let rig = Rig::new(1);
    let _pin = epoch::pin();
    for number in 0..LINE_ENTRY_COUNT {
        let key = neighbour(number);
        assert!(matches!(glance(&rig, key), Glance::Nothing));
        let Sight::Free(slot) = sight(&rig, key) else { panic!("entry {number} of the line is free") };
        let bucket = rig.index.lock(rig.cx(), key.signature);
        bucket.insert_at(slot, rig.write_item(key, number)).settle(&rig.medium).unwrap();
        assert_eq!((rig.slot(key), rig.get(key)), (Some(slot), Some(number)));
        assert!(matches!(sight(&rig, key), Sight::Entry(found) if found.slot == slot));
    }
    let late = neighbour(LINE_ENTRY_COUNT);
    assert!(matches!((glance(&rig, late), sight(&rig, late)), (Glance::Nothing, Sight::Full)));
    rig.put(late, 9);
    assert!(matches!((glance(&rig, late), sight(&rig, late)), (Glance::Unsure, Sight::Unsure)));
    assert_eq!((rig.get(late), rig.index.len()), (Some(9), LINE_ENTRY_COUNT + 1));
}

#[test]
fn what_is_not_decided_takes_a_search() {
    let rig = Rig::on_log();
    let _pin = epoch::pin();
    let key = neighbour(0);
    let (put, _) = rig.publish(key, rig.write_item(key, 1)).unwrap();
    assert!(matches!((glance(&rig, key), sight(&rig, key)), (Glance::Unsure, Sight::Unsure)));
    put.settle(&rig.medium).unwrap();
    assert!(matches!(glance(&rig, key), Glance::Entry(_)));
    let (removal, _) = rig.publish_removal(key).unwrap();
    assert!(matches!((glance(&rig, key), sight(&rig, key)), (Glance::Unsure, Sight::Unsure)));
    removal.settle(&rig.medium).unwrap();
    assert!(matches!((glance(&rig, key), sight(&rig, key)), (Glance::Nothing, Sight::Free(_))));
}

#[test]
fn whoever_aimed_before_a_split_is_told() {
    let rig = Rig::new(1);
    let _pin = epoch::pin();
    for number in 0..100u64 {
        rig.put(key(number.wrapping_mul(0x9E37_79B9_7F4A_7C15), number), number);
    }
    let before = aim(&rig, neighbour(0));
    rig.split(neighbour(0).signature);
    assert!(rig.index.lock_aimed(rig.cx(), &before).is_none());
    assert!(rig.index.lock_aimed(rig.cx(), &aim(&rig, neighbour(0))).is_some());
}

/// The values of two keys that a reader of several sees, if its looks count. Before them comes a split of the second one's segment, which
/// is left behind as it was, and writes of both.
fn seen_around_a_split(medium: Sim) -> Option<[u64; 2]> {
    let (rig, keys) = (Rig::format(medium, 2), [key(1 << 63 | 0x77, 1), key(0x77, 2)]);
    let _pin = epoch::pin();
    // A segment of one key is not split.
    (0..100u64).for_each(|number| _ = rig.put(self::key(mixed(number) >> 1, number + 3), number));
    keys.iter().for_each(|key| _ = rig.put(*key, 1));
    let lead = rig.index.lead();
    let lines = keys.map(|key| rig.index.home_line(&rig.medium, &lead, key.signature));
    assert!(rig.index.leads_still(&rig.medium, &lead));
    rig.split(keys[1].signature);
    [1, 0].into_iter().for_each(|second| _ = rig.put(keys[second], 2));
    let seen = [0, 1].map(|i| match rig.index.glance_at(&rig.medium, lines[i], keys[i].signature) {
        Glance::Entry(position) => item(&rig.medium, position).1,
        other => panic!("{other:?}"),
    });
    assert_eq!(keys.map(|key| rig.get(key)), [Some(2); 2]);
    rig.index.leads_still(&rig.medium, &lead).then_some(seen)
}

fn time_runs_forwards(medium: Sim) {
    let seen = seen_around_a_split(medium);
    assert!(seen.is_none_or(|[first, second]| first <= second), "{seen:?}: time runs backwards");
}

#[test]
fn looks_of_before_a_split_do_not_count() {
    time_runs_forwards(Sim::new(0, Model::Line));
}

#[test]
#[should_panic(expected = "time runs backwards")]
fn looks_that_count_in_any_case_are_caught() {
    time_runs_forwards(Sim::new(0, Model::Line).with_canary(canary::LEAD_NOT_COMPARED));
}

/// The root that readers were led by goes with a `clear`.
#[test]
fn looks_of_before_a_clear_do_not_count() {
    let rig = Rig::new(1);
    let _pin = epoch::pin();
    let lead = rig.index.lead();
    assert!(rig.index.leads_still(&rig.medium, &lead));
    rig.clear();
    assert!(!rig.index.leads_still(&rig.medium, &lead));
}

/// What a writer remembers from before its lock, of an entry that others write meanwhile.
#[test]
fn a_writers_hint_is_worth_as_much_as_its_word() {
    let (rig, key) = (Rig::new(1), neighbour(0));
    let _pin = epoch::pin();
    rig.put(key, 1);
    let aim = aim(&rig, key);
    let hint = rig.index.hint(&rig.medium, aim.line(), key.signature);
    let followed = || rig.index.lock_aimed(rig.cx(), &aim).expect("the segment is live").glance_at(&aim, hint);
    let entry = |sight| match sight {
        Sight::Entry(found) => (found.slot, found.position),
        other => panic!("{other:?}"),
    };
    assert_eq!(entry(followed()), entry(sight(&rig, key)));
    rig.put(key, 2);
    assert_eq!(entry(followed()), entry(sight(&rig, key)));
    rig.remove(key);
    assert!(matches!(followed(), Sight::Free(_)));
}

/// A writer may be led to a half of a split that came between the two words that lead readers and writers.
#[test]
fn a_writers_hint_of_another_segment_is_not_followed() {
    let (rig, key) = (Rig::new(1), neighbour(0));
    let _pin = epoch::pin();
    (0..100u64).for_each(|number| _ = rig.put(self::key(mixed(number), number), number));
    rig.put(key, 1);
    let before = aim(&rig, key);
    let hint = rig.index.hint(&rig.medium, before.line(), key.signature);
    rig.split(key.signature);
    rig.put(key, 2);
    let bucket = rig.index.lock_aimed(rig.cx(), &aim(&rig, key)).expect("the segment is live");
    let Sight::Entry(found) = bucket.glance_at(&before, hint) else { panic!("it is in its home line") };
    assert_ne!(Some(found.position), hint.map(|hint| hint.position));
}
