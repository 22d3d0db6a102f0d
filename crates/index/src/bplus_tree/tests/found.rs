//! Changes of keys that were searched for before, while leaves change, split and merge in between.

use super::super::{ChangeError, Edit};
use super::keys::key;
use super::rig::Rig;

/// Families whose keys are all different.
const FAMILIES: std::ops::Range<usize> = 2..7;

/// An event between the searches and the changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Meanwhile {
    Nothing,
    /// Enough keys are inserted to split leaves.
    Come,
    /// And removed again, so that leaves merge.
    ComeAndGo,
}

fn changes_find_their_leaves(family: usize, meanwhile: Meanwhile) {
    let mut rig = Rig::new(usize::MAX);
    let there: Vec<_> = (0..300).step_by(3).map(|number| key(family, number)).collect();
    rig.put(&there);
    let passing: Vec<_> = (300..1_100).map(|number| key(family, number)).map(|key| (key, rig.item(key))).collect();
    let targets: Vec<_> = (0..300).filter(|number| number % 3 < 2).map(|number| key(family, number)).collect();
    let edits: Vec<_> = targets
        .iter()
        .enumerate()
        .map(|(number, target)| match rig.map.get(target).copied() {
            None => Edit::Insert(rig.item(target)),
            Some(old) if number % 4 == 0 => Edit::Remove(old),
            Some(old) => Edit::Replace { old, new: rig.item(target) },
        })
        .collect();
    let pin = epoch::pin();
    let found: Vec<_> =
        targets.iter().map(|target| rig.tree.find_to_change(pin.pinned(), &rig.items, target).unwrap()).collect();
    assert!(found.iter().zip(&targets).all(|(found, target)| found.item() == rig.map.get(target).copied()));
    let pass = |edit: fn(crate::Position) -> Edit| {
        passing.iter().for_each(|&(key, item)| assert_eq!(rig.apply_one(key, edit(item)), Ok(())));
    };
    match meanwhile {
        Meanwhile::Nothing => {}
        Meanwhile::Come => pass(Edit::Insert),
        Meanwhile::ComeAndGo => [Edit::Insert as fn(_) -> _, Edit::Remove].into_iter().for_each(pass),
    }
    for (found, &edit) in found.iter().zip(&edits) {
        assert_eq!(rig.tree.apply_to(&rig.items, found, edit), Ok(()), "{edit:?}");
    }
    // The result of the search is out of date.
    let Edit::Insert(first) = edits[1] else { panic!("the second is not there") };
    assert_eq!(rig.tree.apply_to(&rig.items, &found[1], edits[1]), Err(ChangeError::Exists(first)));
    drop(found);
    drop(pin);
    for (target, edit) in targets.into_iter().zip(edits) {
        match edit {
            Edit::Insert(new) | Edit::Replace { new, .. } => rig.map.insert(target, new),
            Edit::Remove(_) => rig.map.remove(target),
        };
    }
    if meanwhile == Meanwhile::Come {
        rig.map.extend(passing);
    }
    rig.check();
}

#[test]
fn change_finds_its_leaf_whatever_came_between() {
    for family in FAMILIES {
        for meanwhile in [Meanwhile::Nothing, Meanwhile::Come, Meanwhile::ComeAndGo] {
            changes_find_their_leaves(family, meanwhile);
        }
    }
}

/// A writer has found the key's leaf before all keys are removed, waits for a lock, and changes the key after that.
#[test]
fn items_found_before_clear_are_gone() {
    for family in FAMILIES {
        let mut rig = Rig::new(usize::MAX);
        let targets: Vec<_> = (0..300).map(|number| key(family, number)).collect();
        let (there, absent) = targets.split_at(200);
        rig.put(there);
        let olds: Vec<_> = there.iter().map(|key| rig.map[key]).collect();
        let news: Vec<_> = targets.iter().map(|key| rig.item(key)).collect();
        let pin = epoch::pin();
        let leaves: Vec<_> = targets.iter().map(|key| rig.tree.prefetch(pin.pinned(), &rig.items, key)).collect();
        let found = targets.iter().map(|key| rig.tree.find_to_change(pin.pinned(), &rig.items, key).unwrap());
        let found: Vec<_> = found.collect();
        rig.tree.clear().unwrap();
        assert!(leaves.iter().all(|prefetched| rig.tree.lookup_prefetched(&rig.items, prefetched).flatten().is_none()));
        assert!(leaves.iter().all(|prefetched| {
            rig.tree.find_prefetched_to_change(pin.pinned(), &rig.items, prefetched).unwrap().item().is_none()
        }));
        for ((found, &old), &new) in found.iter().zip(&olds).zip(&news) {
            let replaced = rig.tree.apply_to(&rig.items, found, Edit::Replace { old, new });
            assert_eq!(replaced, Err(ChangeError::Missing(old)));
        }
        for (found, &new) in found[there.len()..].iter().zip(&news[there.len()..]) {
            assert_eq!(rig.tree.apply_to(&rig.items, found, Edit::Insert(new)), Ok(()));
        }
        drop((leaves, found));
        drop(pin);
        rig.map = absent.iter().copied().zip(news[there.len()..].iter().copied()).collect();
        rig.check();
    }
}
