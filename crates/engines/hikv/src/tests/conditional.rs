//! Writes that depend on the key's value.

use pmem_sim::{Model, Sim};

use super::rig::Rig;
use crate::canary;
use engine::prelude::*;
use engine::{Decision, Error, Limits};

/// Appends to the key. During the first decision another thread puts "b".
fn append_late(rig: &Rig) -> usize {
    let mut asked_count = 0;
    let changed = rig.store.update(b"key", &mut |held| {
        asked_count += 1;
        let longer = [held.map_or(&b""[..], |held| held.value), b"+"].concat();
        if asked_count == 1 {
            rig.put(b"key", b"b");
        }
        Decision::Put(longer.into())
    });
    assert!(changed.unwrap());
    asked_count
}

#[test]
fn overtaken_update_decides_again() {
    for present in [None, Some(b"a")] {
        let rig = Rig::new();
        present.iter().for_each(|value| rig.put(b"key", *value));
        assert_eq!(append_late(&rig), 2);
        assert_eq!(rig.get(b"key").unwrap().as_deref(), Some(&b"b+"[..]));
        assert_eq!(rig.store.len().unwrap(), 1);
    }
}

#[test]
fn write_without_second_check_is_caught() {
    let rig = Rig::on(Sim::new(super::rig::REGION_BYTES, Model::Line).with_canary(canary::CAS_IGNORES_CHANGE));
    rig.put(b"key", b"a");
    assert_eq!(append_late(&rig), 1);
    assert_eq!(
        rig.get(b"key").unwrap().as_deref(),
        Some(&b"a+"[..]),
        "the broken variant does not lose the other's put"
    );
}

#[test]
fn decision_on_deleted_key_is_repeated() {
    let rig = Rig::new();
    rig.put(b"key", b"a");
    let mut seen = Vec::new();
    let changed = rig.store.update(b"key", &mut |held| {
        seen.push(held.map(|held| held.value.to_vec()));
        rig.store.delete(b"key").unwrap();
        Decision::Delete
    });
    assert!(!changed.unwrap(), "there is nothing left to delete");
    assert_eq!(seen, [Some(b"a".to_vec()), None]);
}

#[test]
fn kept_value_is_not_written() {
    let rig = Rig::new();
    rig.put(b"key", b"value");
    let before = rig.version(b"key");
    let cost = rig.cost(|| assert!(!rig.store.update(b"key", &mut |_| Decision::Keep).unwrap()));
    assert_eq!((cost.flushed_line_count, cost.fence_count, rig.version(b"key")), (0, 0, before));
}

#[test]
fn update_costs_as_put_or_delete() {
    let rig = Rig::new();
    (0..4u8).for_each(|number| rig.put(&[number], b"value"));
    let put = rig.cost(|| rig.put(&[1], b"other"));
    let changed = rig.cost(|| _ = rig.store.update(&[1], &mut |_| Decision::Put(b"third".into())).unwrap());
    assert_eq!(put.fence_count, changed.fence_count);
    let deleted = rig.cost(|| _ = rig.store.update(&[2], &mut |_| Decision::Delete).unwrap());
    assert_eq!((deleted.flushed_line_count, deleted.fence_count), (1, 1));
}

#[test]
fn refused_update_changes_nothing() {
    let rig = Rig::of_fixed_size();
    rig.put(b"key", b"value");
    let too_long = vec![0; Limits::VALUE_BYTES_MAX as usize + 1];
    let refused = rig.store.update(b"key", &mut |_| Decision::Put((&too_long[..]).into()));
    assert!(matches!(refused, Err(Error::ValueTooLong { .. })));
    let too_much = vec![0; 8 << 20];
    let refused = rig.store.update(b"key", &mut |_| Decision::Put((&too_much[..]).into()));
    assert!(matches!(refused, Err(Error::Medium(_))));
    let key = [0; Limits::KEY_BYTES_MAX + 1];
    assert!(matches!(rig.store.update(&key, &mut |_| Decision::Keep), Err(Error::KeyTooLong { .. })));
    assert_eq!(rig.get(b"key").unwrap().as_deref(), Some(&b"value"[..]));
}
